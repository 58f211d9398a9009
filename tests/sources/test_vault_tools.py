"""The tools of a vault: one JSON object each, and errors that a model can read."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recto.chat.blocks import ToolCall, ToolResult
from recto.sources.tools import Toolbox
from recto.sources.vault_tools import MAX_LISTED, PAGE_CHARS, reading_tools, writing_tools
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

NOTES = {
    "Plan.md": "---\ntags: [work]\n---\n# The plan\n\nWe sail in May, see [[Budget#Sails]] and [[Nowhere]].\n",
    "Money/Budget.md": "# Budget\n\n## Sails\n\nThe mainsail costs 3,200 euros.\n\n## Ropes\n\nRopes are 400 euros.\n",
    "Long.md": "x" * (PAGE_CHARS + 5),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for path, text in NOTES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


@pytest.fixture
def toolbox(folder: Path, tmp_path: Path) -> Iterator[Toolbox]:
    vault = Vault(folder)
    library = VaultSearch(vault, tmp_path / "search.db", lambda: None)
    yield Toolbox([*reading_tools(vault, library), *writing_tools(vault)])
    library.close()
    vault.close()


def run(toolbox: Toolbox, name: str, **arguments: Any) -> ToolResult:
    return asyncio.run(toolbox.run(ToolCall("1", name, json.dumps(arguments)))).result


def answer(toolbox: Toolbox, name: str, **arguments: Any) -> Any:
    result = run(toolbox, name, **arguments)
    assert not result.is_error, result.text
    return json.loads(result.text)


def test_a_document_is_read_by_its_name_or_path(toolbox: Toolbox) -> None:
    read = answer(toolbox, "read_document", path="plan")
    assert read == {"path": "Plan.md", "title": "The plan", "text": NOTES["Plan.md"]}
    assert answer(toolbox, "read_document", path="Money/Budget.md")["title"] == "Budget"


def test_one_section_can_be_read_and_an_unknown_one_lists_the_headings(toolbox: Toolbox) -> None:
    assert answer(toolbox, "read_document", path="Budget", section="ropes")["text"].startswith("## Ropes\n\nRopes are")
    missing = run(toolbox, "read_document", path="Budget", section="Anchors")
    assert missing.is_error
    assert "it has: Budget, Sails, Ropes" in missing.text


def test_a_long_document_comes_in_pages(toolbox: Toolbox) -> None:
    first = answer(toolbox, "read_document", path="Long")
    assert (len(first["text"]), first["next_offset"], first["characters_left"]) == (PAGE_CHARS, PAGE_CHARS, 5)
    rest = answer(toolbox, "read_document", path="Long", offset=PAGE_CHARS)
    assert rest["text"] == "xxxxx"
    assert "next_offset" not in rest


def test_documents_are_listed_by_folder_and_tag(toolbox: Toolbox) -> None:
    listed = answer(toolbox, "list_documents")
    assert {each["path"] for each in listed["documents"]} == set(NOTES)
    assert listed["total"] == len(NOTES)
    assert [each["path"] for each in answer(toolbox, "list_documents", folder="Money")["documents"]] == [
        "Money/Budget.md"
    ]
    assert [each["title"] for each in answer(toolbox, "list_documents", tag="work")["documents"]] == ["The plan"]


def test_a_long_list_comes_in_pages(toolbox: Toolbox, folder: Path) -> None:
    for number in range(MAX_LISTED + 3):
        (folder / f"note {number:03}.md").write_text("text")
    first = answer(toolbox, "list_documents")
    assert first["next_offset"] == MAX_LISTED
    assert len(answer(toolbox, "list_documents", offset=MAX_LISTED)["documents"]) == first["total"] - MAX_LISTED


def test_documents_and_excerpts_are_found(toolbox: Toolbox) -> None:
    found = answer(toolbox, "find_documents", query="what does the mainsail cost?")
    assert found["documents"][0]["path"] == "Money/Budget.md"
    excerpt = answer(toolbox, "find_excerpts", query="mainsail")["excerpts"][0]
    assert excerpt["path"] == "Money/Budget.md"
    assert "3,200 euros" in excerpt["text"]
    assert excerpt["heading"].endswith("Sails")
    assert len(answer(toolbox, "find_excerpts", query="euros", limit=1)["excerpts"]) == 1


def test_links_are_resolved_and_followed_both_ways(toolbox: Toolbox) -> None:
    assert answer(toolbox, "resolve_wikilink", wikilink="[[budget#Sails|the sails]]") == {
        "wikilink": "[[budget#Sails|the sails]]",
        "relative_path": "Money/Budget.md",
        "heading": "Sails",
        "block": None,
        "embed": False,
        "caption": "the sails",
    }
    assert answer(toolbox, "resolve_wikilink", wikilink="Plan")["relative_path"] == "Plan.md"
    back = answer(toolbox, "find_backlinks", path="Budget")
    assert [(link["path"], link["line"]) for link in back["links"]] == [("Plan.md", 6)]
    assert "We sail in May" in back["links"][0]["context"]
    forward = answer(toolbox, "find_forward_links", path="Plan")
    assert [(link["wikilink"], link["path"]) for link in forward["links"]] == [
        ("[[Budget#Sails]]", "Money/Budget.md"),
        ("[[Nowhere]]", None),
    ]


def test_a_note_is_written_but_an_existing_one_is_not_replaced(toolbox: Toolbox, folder: Path) -> None:
    assert answer(toolbox, "write_document", path="New/Idea.md", text="# Idea\n")["path"] == "New/Idea.md"
    assert (folder / "New/Idea.md").read_text() == "# Idea\n"
    again = run(toolbox, "write_document", path="Plan.md", text="gone")
    assert again.is_error
    assert "replace" in again.text
    assert (folder / "Plan.md").read_text() == NOTES["Plan.md"]
    answer(toolbox, "write_document", path="Plan.md", text="new", replace=True)
    assert (folder / "Plan.md").read_text() == "new"


def test_a_note_is_renamed_with_the_links_to_it(toolbox: Toolbox, folder: Path) -> None:
    renamed = answer(toolbox, "rename_document", path="Budget", new_path="Money/Costs.md")
    assert renamed == {"path": "Money/Costs.md", "links_rewritten": 1, "notes": ["Plan.md"]}
    assert "[[Costs#Sails]]" in (folder / "Plan.md").read_text()


def test_a_deleted_note_is_in_the_trash(toolbox: Toolbox, folder: Path) -> None:
    assert answer(toolbox, "delete_document", path="Plan")["trashed"] == ".trash/Plan.md"
    assert (folder / ".trash/Plan.md").exists()


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read_document", {"path": "../x"}, "outside the vault"),
        ("read_document", {"path": "none"}, "no document none"),
        ("read_document", {"path": 3}, "path must be a text"),
        ("read_document", {"path": "plan", "offset": "far"}, "offset must be a whole number"),
        ("find_documents", {"query": " "}, "query must be a text"),
        ("resolve_wikilink", {"wikilink": "[[Bugdet]]"}, "did you mean Money/Budget.md"),
        ("resolve_wikilink", {"wikilink": "[[]]"}, "is not a wikilink"),
        ("write_document", {"path": "../x.md", "text": "x"}, "outside the vault"),
        ("write_document", {"path": "x.md", "text": 3}, "text must be a text"),
        ("rename_document", {"path": "none", "new_path": "a.md"}, "no document none"),
    ],
)
def test_what_goes_wrong_is_a_result_the_model_can_read(
    toolbox: Toolbox, name: str, arguments: dict[str, Any], says: str
) -> None:
    result = run(toolbox, name, **arguments)
    assert result.is_error
    assert says in result.text


def test_a_link_with_a_heading_reads_that_section(toolbox: Toolbox) -> None:
    for named in ("[[Budget#Ropes]]", "Budget#Ropes", "/Money/Budget.md#Ropes"):
        assert answer(toolbox, "read_document", path=named)["text"].startswith("## Ropes")
    assert answer(toolbox, "read_document", path="/Plan.md")["path"] == "Plan.md"


def test_a_folder_is_a_folder_not_the_beginning_of_a_name(toolbox: Toolbox) -> None:
    missing = run(toolbox, "list_documents", folder="Mon")
    assert missing.is_error
    assert "there is no folder Mon" in missing.text
    assert answer(toolbox, "list_documents", folder="/Money/")["total"] == 1


def test_links_of_an_unknown_note_are_an_error_and_many_come_in_pages(toolbox: Toolbox, folder: Path) -> None:
    (folder / "Many.md").write_text("[[Plan]]\n" * 130)
    assert "no document qqq" in run(toolbox, "find_backlinks", path="qqq").text
    first = answer(toolbox, "find_backlinks", path="plan")
    assert (first["path"], len(first["links"]), first["total"], first["next_offset"]) == ("Plan.md", 100, 130, 100)
    assert len(answer(toolbox, "find_backlinks", path="plan", offset=100)["links"]) == 30


def test_no_twin_is_written_beside_a_note(toolbox: Toolbox, folder: Path) -> None:
    twin = run(toolbox, "write_document", path="plan.md", text="x", replace=True)
    assert twin.is_error
    assert "Plan.md already exists" in twin.text
    assert not (folder / "plan.md").exists() or (folder / "plan.md").read_text() == NOTES["Plan.md"]


def test_calls_that_write_run_in_their_order(toolbox: Toolbox, folder: Path) -> None:
    texts = [f"version {number} " + "x" * (20_000 - 900 * number) for number in range(20)]

    async def all_at_once() -> None:
        calls = [
            ToolCall(str(number), "write_document", json.dumps({"path": "n.md", "text": text, "replace": True}))
            for number, text in enumerate(texts)
        ]
        await asyncio.gather(*(toolbox.run(call) for call in calls))

    asyncio.run(all_at_once())
    assert (folder / "n.md").read_text() == texts[-1]
