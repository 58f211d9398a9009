"""VaultSearch: notes found by words and meaning while they change."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recto.errors import NoVectors, StoreError
from recto.vault import indexer
from recto.vault import vault_search as module
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

NOTES = {
    "Engine.md": "---\naliases: [The motor]\ntags: [boat/power]\nmaker: Norrland\n---\n# Engine\n\nA diesel.\n\n"
    "## Data\n\nThe serial number is N328-40716.\n",
    "people/Oskar.md": "# Oskar Lindqvist\n\nHe is allergic to shellfish.\n\nHe planned the whole rig.\n",
    "daily/2026-06-13.md": "Launch day. High water at noon.\n",
    "東京.md": "# 東京\n\n昨日は東京タワーを見た。 🗼\n",
    "Stub.md": "",
}
Open = Callable[..., VaultSearch]


class Letters:
    """An embedder that counts letters."""

    name = key = "letters"

    def __init__(self) -> None:
        self.asked = list[str]()

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        rows = np.array([[text.lower().count(chr(97 + place)) + 1e-6 for place in range(26)] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def close(self) -> None: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in NOTES.items():
        place = tmp_path / "notes" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return tmp_path / "notes"


@pytest.fixture
def opened(root: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens libraries on one vault; what has changed is looked for every time."""
    made: list[tuple[VaultSearch, Vault]] = []

    def open_one(embedder: Any = None, *, at: Path = root, name: str = "cache") -> VaultSearch:
        vault = Vault(at, tmp_path / name / "catalog.db")
        made.append((VaultSearch(vault, tmp_path / name / "search.db", lambda: embedder), vault))
        return made[-1][0]

    yield open_one
    for library, vault in made:
        library.close()
        vault.close()


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.vault.vault.FRESH_S", 0.0)
    # on a busy machine the first scan takes longer than a user would wait
    monkeypatch.setattr(module, "SCAN_TIMEOUT_S", 60.0)
    monkeypatch.setattr(module, "LOCK_TIMEOUT_S", 60.0)


def paths(library: VaultSearch, text: str, most: int = 3) -> list[str]:
    return [hit.path for hit in library.find_documents(text, most).hits]


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("serial number", "Engine.md"),
        ("the MOTOR", "Engine.md"),
        ("boat/power", "Engine.md"),
        ("norrland", "Engine.md"),
        ("allergies to shellfish?", "people/Oskar.md"),
        ("lindqvist rig", "people/Oskar.md"),
        ("what happened on 13 June 2026", "daily/2026-06-13.md"),
        ("東京タワー", "東京.md"),
        ("🗼", "東京.md"),
        ("stub", "Stub.md"),
        ('"serial" AND (number OR NOT* ^x', "Engine.md"),
        ("word " * 10_000 + "shellfish", "people/Oskar.md"),
    ],
)
def test_a_note_is_found_by_its_text_and_by_its_name(opened: Open, question: str, path: str) -> None:
    found = opened().find_documents(question)
    assert found.hits[0].path == path
    assert 0 < found.hits[0].score <= 1
    assert found.hits[0].because
    assert found.warning == ""


def test_an_excerpt_is_verbatim_and_knows_its_place(opened: Open, root: Path) -> None:
    (best, *_), note = opened().find_excerpts("serial number of the engine")
    assert (best.path, best.title, best.heading, best.line) == ("Engine.md", "Engine", "Data", 10)
    assert best.text == (root / best.path).read_text()[best.start : best.end]
    assert best.text == "## Data\n\nThe serial number is N328-40716."
    assert note == ""


def test_a_note_with_exactly_this_name_comes_first(opened: Open, root: Path) -> None:
    (root / "Rope.md").write_text("See elsewhere.")
    (root / "Other.md").write_text("# Rope rope\n\nRope, rope and rope again, for [[Rope]].")
    first = opened().find_documents("rope").hits[0]
    assert (first.path, first.because) == ("Rope.md", "has this name")


# -- as notes change


def test_changed_new_and_deleted_notes_are_found_as_they_are_now(opened: Open, root: Path) -> None:
    library = opened()
    assert paths(library, "shellfish") == ["people/Oskar.md"]
    (root / "people/Oskar.md").write_text("# Oskar\n\nHe likes mussels by now, all of them.")
    (root / "New.md").write_text("Shellfish are served on Fridays.")
    (root / "Engine.md").unlink()
    assert paths(library, "shellfish") == ["New.md"]
    assert paths(library, "mussels") == ["people/Oskar.md"]
    assert paths(library, "serial number") == []
    assert (library.status.indexed, library.status.left) == (len(NOTES), 0)


def test_many_changes_are_left_to_the_background_with_a_warning(
    opened: Open, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = opened()
    library.fill()
    monkeypatch.setattr(module, "UPDATE_BEFORE_SEARCH", 2)
    monkeypatch.setattr(library, "wake", lambda: None)
    for number in range(5):
        (root / f"Apple {number}.md").write_text("About apples.")
    assert library.find_documents("apples").warning.endswith("3 notes are not in it yet")
    library.find_documents("apples")
    found = library.find_documents("apples", limit=9)
    assert (len(found.hits), found.warning) == (5, "")


def test_a_mostly_stale_index_is_cleared_but_keeps_its_vectors(
    opened: Open, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(indexer, "MIN_STALE", 4)
    embedder = Letters()
    library = opened(embedder)
    library.fill(vectors=True)
    for number in range(20):
        (root / "Stub.md").write_text(f"text {number}")
        library.fill(vectors=True)
    with sqlite3.connect(tmp_path / "cache" / "search.db") as db:
        assert db.execute("SELECT count(*) FROM passages").fetchone()[0] <= 2 * library.status.passages + 4
    db.close()
    assert paths(library, "shellfish")[0] == "people/Oskar.md"
    asked = [text for text in embedder.asked if "shellfish" in text]
    assert len(asked) == 2  # once as a passage, once as the question


# -- meaning


def test_similar_notes_are_found_and_their_vectors_are_stored(opened: Open, root: Path) -> None:
    embedder = Letters()
    library = opened(embedder)
    library.fill(vectors=True)
    status = library.status
    assert (status.vectors, status.waiting, status.embedder) == (6, 0, "letters")
    assert "near in meaning" in library.find_documents("hsifllehs ot cigrella").hits[0].because
    embedder.asked.clear()
    (root / "Engine.md").write_text(NOTES["Engine.md"].replace("A diesel.", "No diesel."))
    library.fill(vectors=True)
    assert [text.splitlines()[-1] for text in embedder.asked] == ["No diesel."]


def test_without_an_embedder_only_words_are_searched_with_a_warning(root: Path, tmp_path: Path) -> None:
    def missing() -> None:
        raise NoVectors("The extra is not installed.")

    vault = Vault(root, tmp_path / "c.db")
    library = VaultSearch(vault, tmp_path / "s.db", missing)
    found = library.find_documents("shellfish")
    assert found.hits[0].path == "people/Oskar.md"
    assert found.warning == "The extra is not installed: searching by words only"
    assert library.status.embedder is None
    library.close()
    vault.close()


# -- when things are not as they should be


def test_a_damaged_index_is_rebuilt(opened: Open, tmp_path: Path) -> None:
    opened().fill()
    index = tmp_path / "cache" / "search.db"
    for end in ("-wal", "-shm"):
        index.with_name(f"search.db{end}").unlink(missing_ok=True)
    index.write_bytes(b"no database " * 1000)
    library = opened()
    assert paths(library, "shellfish") == ["people/Oskar.md"]
    assert "being rebuilt" in library.rebuild_reason


def test_an_index_that_cannot_be_written_is_one_sentence(root: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    vault = Vault(root)
    library = VaultSearch(vault, tmp_path / "taken" / "search.db", lambda: None)
    with pytest.raises(StoreError, match=r"search\.db cannot be written"):
        library.find_documents("shellfish")
    library.close()
    vault.close()


def test_a_missing_folder_finds_nothing_and_is_one_sentence(opened: Open, root: Path) -> None:
    library = opened()
    library.fill()
    shutil.rmtree(root)
    assert library.find_documents("shellfish").hits == ()
    assert library.find_excerpts("shellfish").hits == ()
