"""Questions in another language than the notes, by the real encoder: the notes answer, and it is said."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recto.search.onnx_embedder import MultilingualEncoder
from recto.vault.answers import FoundPassages, Lookup, answering
from recto.vault.vault import Vault
from recto.vault.vault_answers import OTHER_LANGUAGE, OTHER_WORDS, find_passages
from recto.vault.vault_search import VaultSearch

NOTES = {
    "Library.md": "# Library\n\nThe library opens at nine on weekdays.\n\nBooks are lent for four weeks.\n",
    "Building.md": "# Building\n\nThe heating was repaired in March for £840.\n\nThe roof leaks above the hall.\n",
    "Keys.md": "# Keys\n\n| Key | Who has it |\n|---|---|\n| cellar | Agnes |\n| attic | Bruno |\n",
    "Garden.md": "# Garden\n\nThe apple trees are cut every February.\n\nRabbits ate the lettuce last spring.\n",
}


class Notes:
    def __init__(self, folder: Path) -> None:
        root = folder / "notes"
        root.mkdir()
        for name, text in NOTES.items():
            (root / name).write_text(text)
        self.vault = Vault(root, folder / "catalog.json")
        self.search = VaultSearch(self.vault, folder / "search.db", MultilingualEncoder, timeout_s=60)
        self.search.fill(vectors=True)

    def found(self, question: str) -> FoundPassages:
        return find_passages(self.search, self.vault.read, Lookup(question))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notes]:
    opened = Notes(tmp_path_factory.mktemp("notes"))
    with closing(opened.vault), closing(opened.search):
        yield opened


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("Wann wurde die Heizung repariert?", "The heating was repaired in March for £840."),
        ("Wer hat den Schlüssel vom Keller?", "cellar · Who has it: Agnes"),
        ("¿Cuándo se cortan los manzanos?", "The apple trees are cut every February."),
        ("Где протекает крыша?", "The roof leaks above the hall."),
    ],
)
def test_a_question_in_another_language_is_answered_by_a_quote(notes: Notes, question: str, quote: str) -> None:
    found = notes.found(question)
    assert [statement.text for _, statement in answering(found.passages, 3)][:1] == [quote]
    assert found.warning == OTHER_LANGUAGE


@pytest.mark.parametrize(
    "question",
    ["Wie hoch ist der Eiffelturm?", "¿Quién ganó el partido?", "Кто президент?", "Warum ist der Himmel blau?"],
)
def test_what_no_note_says_is_not_quoted_in_any_language(notes: Notes, question: str) -> None:
    assert notes.found(question).passages == ()


def test_a_question_in_other_words_than_the_notes_is_answered_by_what_is_nearest(notes: Notes) -> None:
    found = notes.found("Where does rain drip into the building?")
    quoted = [statement.text for _, statement in answering(found.passages, 3)]
    assert (quoted[:1], found.warning) == (["The roof leaks above the hall."], OTHER_WORDS)


def test_without_the_multilingual_embedder_what_shares_no_words_is_not_quoted(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes.search, "similarities", lambda *_: [])
    assert notes.found("Where does rain drip into the building?").passages == ()


def test_a_question_in_the_language_of_the_notes_says_nothing_of_languages(notes: Notes) -> None:
    found = notes.found("When was the heating repaired?")
    assert found.passages
    assert found.warning == ""
