"""Links from the command line: what leads where, what leads nowhere, and the picture of it."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.test_vault import at, boat

from recto.vault.graph import build_graph, neighbourhood

__all__ = ["boat"]


# -- resolve


def test_a_hidden_note_is_refused_not_missing(run: Run, boat: Path) -> None:
    (boat / ".obsidian").mkdir()
    (boat / ".obsidian" / "x.md").write_text("hidden")
    hidden = "is refused: hidden files and folders of a vault are not read"
    for words in (["resolve", "[[.obsidian/x]]"], ["links", ".obsidian/x.md"], ["backlinks", ".obsidian/x.md"]):
        assert hidden in failure(run("vault", *words, *at(boat)))
    assert "leads to no document" in failure(run("vault", "resolve", "[[.obsidian/gone]]", *at(boat)))


@pytest.mark.parametrize(
    "link", ["Budget", "budget.md", " [[ Budget ]] ", "[[Costs]]", "[money](Budget.md)", "/Budget"]
)
def test_a_link_may_be_written_in_many_ways(run: Run, boat: Path, link: str) -> None:
    done = run("vault", "resolve", link, *at(boat))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "Budget.md\n", "")


def test_the_note_in_which_it_stands_decides_between_equals(run: Run, boat: Path) -> None:
    near = [
        one(run("vault", "resolve", "[[Notes]]", "--from", source, *at(boat), "--json"))["relative_path"]
        for source in ("Engine", "people/Notes.md")
    ]
    assert near == ["parts/Notes.md", "people/Notes.md"]
    within = one(run("vault", "resolve", "[[#Serial number]]", "--from", "Engine", *at(boat), "--json"))
    assert (within["relative_path"], within["heading"]) == ("parts/Engine.md", "Serial number")
    assert "--from DOC" in failure(run("vault", "resolve", "[[#Serial number]]", *at(boat)))


@pytest.mark.parametrize(
    "link", ["", "  ", "[[]]", "[[Budget", "[[Budget]] and [[Engine]]", "[[ # ]]", "a\nb", "\x1b[31m"]
)
def test_what_is_no_link_is_told(run: Run, boat: Path, link: str) -> None:
    told = failure(run("vault", "resolve", link, *at(boat)))
    assert told.startswith("recto: ")
    assert "\x1b" not in told


def test_a_heading_that_is_not_there_is_noted(run: Run, boat: Path) -> None:
    done = run("vault", "resolve", "[[Engine#Colour]]", *at(boat))
    assert (done.stdout, done.stderr) == ("parts/Engine.md\n", "note: parts/Engine.md has no heading Colour\n")
    assert "has no block b1" in run("vault", "resolve", "[[Engine^b1]]", *at(boat)).stderr


# -- links, backlinks, broken

FIELDS = ["source", "line", "wikilink", "relative_path", "heading", "block", "embed", "caption", "kind", "context"]


def test_backlinks_are_found_from_every_note_and_for_attachments(run: Run, boat: Path) -> None:
    assert [row["source"] for row in rows(run("vault", "backlinks", "Budget", *at(boat), "--json"))] == [
        "Welcome.md",
        "parts/Engine.md",
    ]
    assert [row["source"] for row in rows(run("vault", "backlinks", "plan.svg", *at(boat), "--json"))] == ["Welcome.md"]
    done = run("vault", "backlinks", "people/Notes", *at(boat))
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "note: no link leads to people/Notes.md\n"


def test_broken_links_are_marked_and_something_close_is_named(run: Run, boat: Path) -> None:
    told = run("vault", "broken", *at(boat)).stdout.splitlines()
    assert told[0] == "Budget.md:7  [[Engin]] → ⚠ not found; did you mean parts/Engine.md?"
    assert one(run("vault", "broken", *at(boat), "--json"))["relative_path"] is None
    assert "⚠ not found" in run("vault", "links", "Budget", *at(boat)).stdout
    assert len(rows(run("vault", "broken", "Budget", *at(boat), "--json"))) == 1


def test_a_document_may_be_named_as_a_shell_completes_it(run: Run, boat: Path) -> None:
    for name in ("boat/parts/Engine.md", str(boat / "parts" / "Engine.md"), "parts/Engine", "[[Engine]]", "ENGINE"):
        assert rows(run("vault", "links", name, *at(boat), "--json"))[0]["source"] == "parts/Engine.md", name
    assert "is refused: it is outside the vault" in failure(run("vault", "links", "../home/config.toml", *at(boat)))
    assert "is not text" in failure(run("vault", "links", "raw.bin", *at(with_bytes(boat))))


def with_bytes(root: Path) -> Path:
    (root / "raw.bin").write_bytes(bytes(range(256)))
    return root


@pytest.mark.parametrize("name", ["", " ", "n" * 5000, "~nobody/x", "a/../../b", "\x00", "/", ".", "#", "🐟", "\udcff"])
def test_odd_names_of_documents_are_told_in_a_sentence(run: Run, boat: Path, name: str) -> None:
    for command in ("links", "backlinks", "broken" if name else "links"):
        told = failure(run("vault", command, "--vault", str(boat), "--", name))
        assert told.startswith("recto: ")
        assert len(told) < 300


def test_names_of_files_may_hold_anything(run: Run, boat: Path) -> None:
    for name in ('we "ird" 🐟', "new\nline", "C# [x] ^y", "'; DROP TABLE notes; --"):
        (boat / f"{name}.md").write_text("[[Budget]]\n")
        assert rows(run("vault", "links", f"{name}.md", *at(boat), "--json"))[0]["source"] == f"{name}.md"
        lines = run("vault", "links", f"{name}.md", *at(boat)).stdout.splitlines()
        assert len(lines) == 2, name
    assert len(rows(run("vault", "backlinks", "Budget", *at(boat), "--json"))) == 6


def test_a_note_cannot_steer_the_terminal(run: Run, boat: Path) -> None:
    (boat / "Evil.md").write_text("\x1b]0;owned\x07 [[Budget]] \x1b[31m\n")
    assert "\x1b" not in run("vault", "links", "Evil", *at(boat)).stdout


# -- graph


def test_the_graph_is_written_where_one_stands_and_said(run: Run, boat: Path, tmp_path: Path) -> None:
    done = run("vault", "graph", *at(boat))
    assert done.stdout == "vault-graph.html: 6 notes, 1 attachment, 1 missing note, 5 links\n"
    page = (tmp_path / "vault-graph.html").read_text()
    assert "parts/Engine.md" in page
    assert boat.as_uri() in page


def test_the_graph_does_not_land_among_the_notes_unless_asked_to(
    run: Run, boat: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(boat)
    told = one(run("vault", "graph", *at(boat), "--json"))
    assert Path(told["file"]).is_relative_to(home)
    assert (told["nodes"], told["links"], told["format"]) == (8, 5, "html")
    assert told["kinds"] == {"note": 6, "attachment": 1, "missing": 1}
    assert told["left_out"] == {}
    assert not (boat / "vault-graph.html").exists()
    run("vault", "graph", *at(boat), "-o", "mine.dot")
    assert (boat / "mine.dot").read_text().startswith("digraph")


def test_the_graph_comes_in_the_form_that_was_asked_for(run: Run, boat: Path) -> None:
    assert run("vault", "graph", *at(boat), "--format", "dot", "-o", "-").stdout.startswith("digraph vault {")
    found = json.loads(run("vault", "graph", *at(boat), "--format", "json", "-o", "-").stdout)
    assert {node["path"] for node in found["nodes"] if node["is_broken"]} == {"Engin"}
    assert "</html>" in run("vault", "graph", *at(boat), "-o", "-").stdout


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.html", "<!doctype html>"),
        ("a.HTML", "<!doctype html>"),
        ("a.dot", "digraph vault {"),
        ("a.gv", "digraph vault {"),
        ("a.json", '{"nodes"'),
    ],
)
def test_the_ending_says_what_is_written(run: Run, boat: Path, tmp_path: Path, name: str, begins: str) -> None:
    assert run("vault", "graph", *at(boat), "-o", str(tmp_path / name)).exit_code == 0
    assert (tmp_path / name).read_text().startswith(begins)


@pytest.mark.parametrize("name", ["a.png", "a", "a.html.gz", ".dot"])
def test_another_ending_is_refused_unless_the_format_is_given(run: Run, boat: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    said = failure(run("vault", "graph", *at(boat), "-o", str(file)), 2)
    assert ".html, .dot, .gv, .json" in said
    assert not file.exists()
    assert run("vault", "graph", *at(boat), "-o", str(file), "--format", "dot").exit_code == 0
    assert file.read_text().startswith("digraph")


@pytest.mark.parametrize("args", [[], ["--format", "json"]])
@pytest.mark.parametrize("name", ["Budget.md", "New.markdown", "link.html"])
def test_a_graph_is_never_written_over_a_note(run: Run, boat: Path, args: list[str], name: str) -> None:
    (boat / "link.html").symlink_to("Budget.md")
    before = (boat / "Budget.md").read_text()
    said = failure(run("vault", "graph", *at(boat), "-o", str(boat / name), *args), 2)
    assert "a graph is not written to a note" in " ".join(said.split())
    assert (boat / "Budget.md").read_text() == before
    assert not (boat / "New.markdown").exists()


def test_what_is_left_out_is_told_by_its_kind(run: Run, boat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.vault.graph.MAX_NODES", 4)
    done = run("vault", "graph", *at(boat), "-o", "few.html")
    assert done.stdout == "few.html: 3 notes, 1 attachment, 4 links\n"
    assert "left out: 3 notes, 1 missing note" in done.stderr
    told = one(run("vault", "graph", *at(boat), "-o", "few.html", "--json"))
    assert (told["nodes"], told["kinds"], told["left_out"]) == (
        4,
        {"note": 3, "attachment": 1},
        {"note": 3, "missing": 1},
    )
    piped = run("vault", "graph", *at(boat), "-o", "-")
    assert piped.stdout.startswith("<!doctype html>")
    assert "left out: 3 notes" in piped.stderr
    assert run("vault", "graph", *at(boat), "-o", "all.json").stderr == ""


def test_a_place_that_cannot_be_written_is_told(run: Run, boat: Path) -> None:
    assert "cannot write" in failure(run("vault", "graph", *at(boat), "-o", os.path.join("no", "such", "folder.html")))
    assert "--open needs a file" in failure(run("vault", "graph", *at(boat), "-o", "-", "--open"), 2)


def test_what_lies_around_a_note_is_followed_both_ways() -> None:
    whole = build_graph(
        {"a": "A", "b": "B", "c": "C", "d": "D"}, [("a", "b", False), ("c", "b", False), ("c", "d", False)]
    )
    assert [{node.path for node in neighbourhood(whole, "a", depth).nodes} for depth in (1, 2, 3)] == [
        {"a", "b"},
        {"a", "b", "c"},
        {"a", "b", "c", "d"},
    ]
