"""The vault that is measured is the same in every run, and its links and words lead where the bench says."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bench.notes import Notes, write_notes
from bench.vault import _walk_all
from bench.vault_search import SORTS, queries_of

from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

pytestmark = pytest.mark.untraced

COUNT = 300


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return write_notes(tmp_path_factory.mktemp("vault") / "notes", COUNT)


@pytest.fixture(scope="module")
def vault(notes: Notes) -> Iterator[Vault]:
    with closing(Vault(notes.root)) as opened:
        yield opened


def test_the_same_vault_is_written_every_time(notes: Notes, tmp_path: Path) -> None:
    again = write_notes(tmp_path, COUNT)
    assert (again.paths, again.links, again.bytes) == (notes.paths, notes.links, notes.bytes)
    assert all((tmp_path / path).read_bytes() == (notes.root / path).read_bytes() for path in notes.paths)


def test_every_link_leads_where_it_was_meant_to(notes: Notes, vault: Vault) -> None:
    meant = Counter((link.source, link.written.lstrip("!"), link.path) for link in notes.links)
    assert Counter((found.source, found.link.wikilink, found.path) for found in vault.all_links()) == meant
    assert 0.01 < sum(link.path is None for link in notes.links) / len(notes.links) < 0.06


def test_a_walk_finds_plain_names_and_little_else(notes: Notes) -> None:
    walked = _walk_all(notes)
    assert 0 < walked.right < walked.count


def test_every_query_is_of_words_that_a_note_holds(notes: Notes, vault: Vault, tmp_path: Path) -> None:
    with closing(VaultSearch(vault, tmp_path / "index.db", lambda: None)) as library:
        library.fill()
        queries = queries_of(notes, 30)
        assert {query.sort for query in queries} == set(SORTS)
        for query in queries:
            assert query.path in {hit.path for hit in library.find_documents(query.text, COUNT).hits}, query
