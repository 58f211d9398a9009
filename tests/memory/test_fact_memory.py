"""Facts are learned once, found by words, and never told without what contradicts them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recto.errors import Invalid, NotFound
from recto.memory.fact_memory import FactMemory, is_told_by
from recto.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "recto.db") as opened:
        yield opened


@pytest.fixture
def memory(store: Store, tmp_path: Path) -> Iterator[FactMemory]:
    made = FactMemory(store, tmp_path / "facts.db", lambda: None)
    yield made
    made.close()


def texts(memory: FactMemory, question: str) -> list[str]:
    return [each.fact.text for each in memory.relevant(question)[0]]


def test_what_is_learned_is_found(memory: FactMemory) -> None:
    learned = memory.learn("My sister Anna lives in Berlin", message="m1", conversation="c1")
    memory.learn("The server runs Debian")
    assert (learned.fact.number, learned.fact.kind, learned.fact.learned_by, learned.is_new) == (
        1,
        "person",
        "user",
        True,
    )
    assert (learned.fact.message, learned.fact.conversation) == ("m1", "c1")
    assert texts(memory, "Where does Anna live?") == ["My sister Anna lives in Berlin"]
    assert texts(memory, "Which system runs on the server?") == ["The server runs Debian"]
    assert texts(memory, "quantum chromodynamics") == []


def test_what_hardly_matches_does_not_come_beside_what_does(memory: FactMemory) -> None:
    memory.learn("The budget for the greenhouse of the school is 900 euros")
    for name in ("gate", "roof", "pond", "fence"):
        memory.learn(f"The {name} of the school was painted by the neighbours in spring")
    assert texts(memory, "How much may the greenhouse of the school cost?") == [
        "The budget for the greenhouse of the school is 900 euros"
    ]


def test_what_is_said_again_becomes_the_newer_text(memory: FactMemory, store: Store) -> None:
    first = memory.learn("my cat is called Tom").fact
    again = memory.learn("My cat is called Tom.")
    assert (again.is_new, again.fact.number, again.fact.text) == (False, first.number, "My cat is called Tom.")
    assert [each.text for each in again.fact.history] == ["my cat is called Tom"]
    assert store.facts.count() == 1
    assert memory.learn("My cat is called Tom.").fact == again.fact


def test_an_older_statement_never_comes_without_the_newer_one(memory: FactMemory) -> None:
    old = memory.learn("Our dentist is Dr. Kim", created="2025-01-02T10:00:00Z").fact
    new = memory.learn("Our dentist is Dr. Lee now", created="2026-03-04T10:00:00Z")
    assert [fact.number for fact in new.contradicted] == [old.number]
    for question in ("When does Dr. Kim open?", "Who is our dentist?"):
        (found,) = memory.relevant(question)[0]
        assert (found.fact.text, [each.text for each in found.older]) == (new.fact.text, [old.text])


def test_a_replaced_fact_is_kept_and_no_longer_told(memory: FactMemory, store: Store) -> None:
    old = memory.learn("Our dentist is Dr. Kim").fact
    new = memory.learn("We go to Dr. Lee", replaces=old.number).fact
    assert texts(memory, "Who is our dentist, Dr. Kim or Dr. Lee?") == ["We go to Dr. Lee"]
    assert store.facts.fact(old.number).replaced_by == new.number
    with pytest.raises(Invalid, match="cannot be replaced"):
        memory.replace(new.number, old.number)


def test_one_fact_can_be_made_to_replace_another(memory: FactMemory) -> None:
    old, new = (memory.learn(f"The release is on {day}").fact for day in ("3 May", "12 June"))
    memory.replace(old.number, new.number)
    (found,) = memory.relevant("When is the release?")[0]
    assert (found.fact, found.older) == (found.fact, ())
    assert found.fact.number == new.number


def test_an_edited_fact_is_found_by_its_new_words_alone(memory: FactMemory) -> None:
    fact = memory.learn("The meeting is on Monday").fact
    edited = memory.edit(fact.number, "The meeting is on Thursday", kind="project")
    assert (edited.kind, [each.text for each in edited.history]) == ("project", ["The meeting is on Monday"])
    assert texts(memory, "What happens on Thursday?") == ["The meeting is on Thursday"]
    assert texts(memory, "Anything on Monday?") == []


def test_a_forgotten_fact_leaves_no_word_behind(memory: FactMemory, tmp_path: Path, store: Store) -> None:
    fact = memory.learn("The door code is xylophone99").fact
    memory.edit(fact.number, "The door code is zeppelin42")
    memory.learn("The garden has roses")
    assert texts(memory, "What is the door code?")
    assert memory.forget(fact.number).text == "The door code is zeppelin42"
    assert texts(memory, "What is the door code?") == []
    assert texts(memory, "roses in the garden") == ["The garden has roses"]
    with pytest.raises(NotFound, match="there is no fact 1; `recto memory list` shows them"):
        store.facts.fact(fact.number)
    with pytest.raises(NotFound):
        memory.edit(fact.number, "x")
    assert memory.learn("A new one").fact.number == 3, "numbers are never used twice"
    store.database.checkpoint(is_whole=True)
    written = b"".join(path.read_bytes() for path in tmp_path.glob("recto.db*"))
    assert b"roses" in written
    assert not any(word in written for word in (b"xylophone99", b"zeppelin42"))


@pytest.mark.parametrize(
    "call", [("learn", 7), ("edit", "1", "x"), ("forget", True), ("replace", 1, None), ("facts", "people")]
)
def test_arguments_of_another_type_are_refused_in_a_sentence(memory: FactMemory, call: tuple[Any, ...]) -> None:
    name, *arguments = call
    with pytest.raises(Invalid, match="must be"):
        getattr(memory, name)(*arguments)


def test_facts_are_written_as_markdown_or_json_alone(memory: FactMemory) -> None:
    with pytest.raises(Invalid, match="markdown or json"):
        memory.export("html")


def test_facts_of_another_process_are_found(memory: FactMemory, store: Store, tmp_path: Path) -> None:
    memory.learn("The first one is about boats")
    other = FactMemory(store, tmp_path / "facts.db", lambda: None)
    other.learn("The second one is about trains")
    other.close()
    assert texts(memory, "trains?") == ["The second one is about trains"]


def test_a_fact_that_another_process_indexes_meanwhile_stays_in_the_index(
    memory: FactMemory, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.learn("The first one is about boats")
    assert texts(memory, "boats?")
    other, changes = FactMemory(store, tmp_path / "facts.db", lambda: None), store.facts.changed_since

    def overtaken(reached: int, most: int) -> Any:
        found = changes(reached, most)
        monkeypatch.undo()
        other.index()
        return found

    other.learn("The second one is about trains")
    monkeypatch.setattr(store.facts, "changed_since", overtaken)
    assert texts(memory, "trains?") == ["The second one is about trains"]
    other.close()


def test_an_index_of_another_store_is_made_anew(memory: FactMemory, tmp_path: Path) -> None:
    for number in range(5):
        memory.learn(f"Planet number {number} has rings")
    memory.relevant("rings")
    with Store(tmp_path / "other.db") as empty:
        other = FactMemory(empty, tmp_path / "facts.db", lambda: None)
        assert texts(other, "rings") == []
        other.learn("Saturn has rings")
        assert texts(other, "rings") == ["Saturn has rings"]
        other.close()


def test_uses_are_counted(memory: FactMemory, store: Store) -> None:
    fact = memory.learn("I like tea").fact
    store.facts.used([fact.number])
    found = store.facts.fact(fact.number)
    assert (found.uses, bool(found.last_used)) == (1, True)


def test_a_statement_of_a_document_is_known_as_such() -> None:
    note = "The boat was built in 1934. She was renamed in 1951."
    assert is_told_by("The boat was built in 1934", [note])
    assert not is_told_by("My aunt is called Mary", [note])
