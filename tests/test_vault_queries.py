"""A vault looked up without a store."""

from pathlib import Path

import pytest

from recto.api.vault_queries import VaultQueries, open_vault_queries
from recto.errors import Invalid, NotFound


@pytest.fixture
def reader(tmp_path: Path) -> VaultQueries:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "Welcome.md").write_text("# Welcome\n\nSee [[Budget#Table]] and [[Nowhere]].\n")
    (folder / "Budget.md").write_text("---\ntags: [money]\n---\n# Budget\n\n## Table\n\n100 euros.\n")
    (folder / "boat.png").write_bytes(b"\x89PNG")
    made = open_vault_queries(str(folder))
    made.refresh()
    return made


def test_contents_are_counted(reader: VaultQueries) -> None:
    with reader:
        found = reader.contents()
    assert (found.notes, found.attachments, found.links, found.broken) == (2, 1, 2, 1)


def test_a_document_is_found_by_name_and_path(reader: VaultQueries) -> None:
    with reader:
        assert {reader.find_document(name) for name in ("Budget", "[[Budget]]", "Budget.md")} == {"Budget.md"}
        with pytest.raises(NotFound, match=r"did you mean Budget\.md"):
            reader.find_document("Budgit")


def test_a_graph_can_be_of_a_tag_or_around_a_note(reader: VaultQueries) -> None:
    with reader:
        assert {node.path for node in reader.graph(tag="money").nodes} == {"Budget.md"}
        assert {node.path for node in reader.graph(source="Budget", depth=1).nodes} == {"Budget.md", "Welcome.md"}


def test_without_a_vault_it_says_how_to_name_one() -> None:
    with pytest.raises(Invalid, match="no vault is named"):
        open_vault_queries()
