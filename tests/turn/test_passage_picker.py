"""Passages of the vault come in by themselves for a model that cannot search, and are quoted with the reply."""

import json
from pathlib import Path

import pytest
from tests.conftest import Open, Script
from tests.vault.asked_notes import NOTES

from recto.blocking import Desk, Talk
from recto.errors import NotFound
from recto.events import Appended, NotesQuoted, Noticed, Replied, Sent, TextDelta
from recto.sources.source import Pick
from recto.turn.passage_picker import NOTHING, NOTHING_NEAR

OK = {"text": "ok"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for path, text in NOTES.items():
        (root / path).write_text(text, "utf-8")
    return root


def sent(at: Desk, talk: Talk) -> str:
    return str(json.loads(at.rebuild(at.store.records.ids(talk.id)[-1]))["messages"][-1]["content"])


def passages(talk: Talk, text: str) -> list[Pick]:
    return [pick for section in talk.window(text).sections for pick in section.picks if pick.kind == "passage"]


def test_a_question_brings_the_passage_that_answers_and_its_reply_quotes_it(
    desk: Open, script: Script, vault: Path
) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()
    question = "How much does a loaf of rye bread cost?"
    [drafted] = passages(talk, question)
    reply = talk.ask(question)
    [pick] = [pick for section in reply.window.sections for pick in section.picks if pick.kind == "passage"]
    assert (pick.name, pick.mode, drafted.sha256) == ("Bakery.md", "agent", pick.sha256)
    assert pick.score
    assert pick.because.startswith("found for this message: Rye bread, line ")
    assert sent(at, talk).startswith("BEGIN DOCUMENT Bakery.md › Rye bread\n")
    [quote] = reply.quotes
    assert (quote.wikilink, quote.heading, quote.sentence) == (
        "[[Bakery]]",
        "Rye bread",
        "Rye bread costs 4.20 a loaf.",
    )
    assert talk.messages()[-1].quotes == reply.quotes, "kept with the reply"
    assert [(each.relative_path, each.reference_type) for each in reply.references] == [("Bakery.md", "search")]
    assert talk.messages()[0].text == question
    assert all(difference is None for _, difference in at.verify())


def test_what_was_brought_in_is_not_sent_again_with_the_next_message(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()
    talk.ask("How much does a loaf of rye bread cost?")
    talk.ask("Wer hat den Apfelbaum gepflanzt?")
    body = at.rebuild(at.store.records.ids(talk.id)[-1]).decode()
    assert "Kessler" in body
    assert "4.20" not in body


def test_a_message_that_leans_brings_the_note_in_use(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(OK, tools=False), vault=vault).conversation()
    talk.ask("Where is the house in [[Viaje#Alojamiento]]?")
    reply = talk.ask("¿Y cómo se llama la dueña?")
    assert "Remedios" in f"{reply.quotes[0].sentence} {reply.quotes[0].more}"
    [pick, *_] = [pick for section in reply.window.sections for pick in section.picks if pick.kind == "passage"]
    assert pick.name == "Viaje.md"


def test_the_model_and_the_user_are_told_when_no_note_speaks_of_it(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()
    reply = talk.ask("What is the capital of Australia?")
    assert NOTHING_NEAR in reply.notes
    assert sent(at, talk).startswith(NOTHING)
    assert reply.quotes == ()
    assert [pick.because for pick in passages(talk, "Who painted the Mona Lisa?")] == [
        "no note is near enough to the message"
    ]


@pytest.mark.parametrize("text", ["Hello!", "Thanks a lot!", "Guten Morgen!", "Gracias", "ok"])
def test_a_greeting_searches_nothing_and_says_nothing(desk: Open, script: Script, vault: Path, text: str) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()
    reply = talk.ask(text)
    assert sent(at, talk) == text
    assert NOTHING_NEAR not in reply.notes


def test_who_tells_something_is_not_told_that_no_note_speaks_of_it(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()
    assert talk.ask("I repaired the bicycle of my neighbour yesterday.").notes == ()
    assert "do not speak" not in sent(at, talk)


def test_a_model_that_can_search_gets_none_unless_the_user_wants_it(desk: Open, script: Script, vault: Path) -> None:
    question = "How much does a loaf of rye bread cost?"
    assert passages(desk(script(OK), vault=vault).conversation(), question) == []
    wanted = desk(script(OK), vault=vault, references__auto="always").conversation()
    assert [pick.name for pick in passages(wanted, question)] == ["Bakery.md"]
    assert wanted.ask(question).quotes == ()
    never = desk(script(OK, tools=False), vault=vault, references__auto="never").conversation()
    assert passages(never, question) == []


def test_quotes_can_be_switched_off_and_on(desk: Open, script: Script, vault: Path) -> None:
    question = "How much does a loaf of rye bread cost?"
    assert (
        desk(script(OK, tools=False), vault=vault, references__quotes="never").conversation().ask(question).quotes == ()
    )
    on = desk(script(OK), vault=vault, references__quotes="always").conversation()
    [quote] = on.ask(f"{question} See [[Bakery]]").quotes
    assert quote.sentence == "Rye bread costs 4.20 a loaf."


def test_quotes_come_before_the_words_of_a_tiny_model_and_after_those_of_another(
    desk: Open, script: Script, vault: Path
) -> None:
    for is_tiny in (True, False):
        talk = desk(script(OK, tools=False, summarizes=not is_tiny), vault=vault).conversation()
        events = [type(event) for event in talk.stream("Who runs the bakery?")]
        order = [kind for kind in events if kind in (NotesQuoted, Sent, TextDelta, Replied)]
        words = [Sent, TextDelta]
        assert order == ([NotesQuoted, *words, Replied] if is_tiny else [*words, NotesQuoted, Replied])


def test_passages_stay_within_their_share_and_those_that_do_not_fit_are_recorded(
    desk: Open, script: Script, vault: Path
) -> None:
    long = "The harbour of Veldt has a crane for boats. " * 12
    for number in range(8):
        (vault / f"Harbour {number}.md").write_text(
            f"# Harbour {number}\n\n{long}\n\nThe crane of Veldt lifts {number} tons.\n"
        )
    talk = desk(script(OK, tools=False, limit=2500), vault=vault).conversation()
    reply = talk.ask("How many tons does the crane of Veldt lift?")
    picks = [pick for section in reply.window.sections for pick in section.picks if pick.kind == "passage"]
    assert 1 <= len(picks) <= 4
    assert sum(pick.tokens for pick in picks) <= 0.2 * reply.window.limit
    assert any(pick.kind == "passage" for pick in reply.window.not_picked)


def test_a_search_that_fails_is_told_and_the_turn_goes_on(
    desk: Open, script: Script, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    talk = at.conversation()

    def fail(*_: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("recto.vault.vault_search.VaultSearch.find_excerpts", fail)
    events = list(talk.stream("Who runs the bakery?"))
    assert any(isinstance(event, Noticed) and "could not be searched" in event.text for event in events)
    assert talk.messages()[-1].text == "ok"


def test_the_notes_answer_before_a_tiny_model_is_ready_and_even_if_it_never_is(
    desk: Open, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.providers.embedded.find_weights", lambda home: None)
    talk = desk("embedded:smollm2", vault=vault).conversation()
    events = talk.stream("Who runs the bakery?")
    assert isinstance(next(events), Appended)
    quoted = next(events)
    with pytest.raises(NotFound, match="The embedded model needs"):
        next(events)
    assert isinstance(quoted, NotesQuoted)
    assert quoted.quotes[0].sentence == "Farida runs it with her brother Tom."
    assert quoted.tiny_model == "embedded:smollm2"


def test_quotes_that_came_ahead_are_told_once_and_kept_with_the_reply(
    desk: Open, script: Script, vault: Path, tmp_path: Path
) -> None:
    model = script(OK, tools=False, summarizes=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "models.toml").write_text(f'["{model}"]\ntools = false\nsummarizes = false\n')
    talk = desk(model, vault=vault).conversation()
    events = list(talk.stream("Who runs the bakery?"))
    assert [type(event) for event in events[:2]] == [Appended, NotesQuoted]
    assert sum(isinstance(event, NotesQuoted) for event in events) == 1
    [quoted] = [event for event in events if isinstance(event, NotesQuoted)]
    assert talk.messages()[-1].quotes == quoted.quotes


def test_what_was_said_before_a_clear_is_not_leaned_on(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(OK, tools=False), vault=vault).conversation()
    talk.ask("Where is the house in [[Viaje#Alojamiento]]?")
    talk.clear()
    assert all(pick.name != "Viaje.md" for pick in passages(talk, "And who owns it?"))


def test_a_polite_question_is_searched_too(desk: Open, script: Script, vault: Path) -> None:
    talk = desk(script(OK, tools=False), vault=vault).conversation()
    assert talk.ask("How can I bake rye bread?").quotes
