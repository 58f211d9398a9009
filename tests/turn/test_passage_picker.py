"""Passages of the vault come in by themselves for a model that cannot search, and are quoted with the reply."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conftest import Open, Script
from tests.vault.asked_notes import NOTES

from recto.api.blocking import Desk, Talk
from recto.errors import NotFound
from recto.events import Appended, NotesQuoted, Noticed, Replied, Sent, TextDelta, Working
from recto.providers.model import Model
from recto.providers.scripted import ScriptedProvider
from recto.sources.source import Pick
from recto.turn.passage_picker import NOTHING, NOTHING_FOUND, NOTHING_NEAR, QUOTES_ALONE

OK = {"text": "ok"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for path, text in NOTES.items():
        (root / path).write_text(text, "utf-8")
    return root


@pytest.fixture
def desk(desk: Open) -> Open:
    """The index of its vault is filled: a turn waits only a moment for that."""

    def opened(model: str, **settings: Any) -> Desk:
        at = desk(model, **settings)
        if at.vault_search:
            at.vault_search.fill()
        return at

    return opened


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
    assert (
        f"searched your notes for “capital, australia” and {NOTHING_NEAR}. The reply is not from your notes"
        in reply.notes
    )
    assert sent(at, talk).startswith(NOTHING)
    assert reply.quotes == ()
    assert [pick.because for pick in passages(talk, "Who painted the Mona Lisa?")] == [
        "no note is near enough to the message"
    ]


def test_a_greeting_or_a_calculation_searches_nothing_and_says_nothing(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    for text in (
        *("Hello!", "Thanks a lot!", "Guten Morgen!", "Gracias", "ok"),
        *("what is 40 * 310", "What is 16% of 64?", "12 + 34 = ?", "Wie viel ist 40 mal 64?"),
    ):
        talk = at.conversation()
        reply = talk.ask(text)
        assert (reply.quotes, reply.notes, sent(at, talk)) == ((), (), text)
    told = at.conversation().ask("I repaired the bicycle of my neighbour yesterday.")
    assert told.notes == (), "who tells something is not told that no note speaks of it"


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
    monkeypatch.setenv("RECTO_MODELS", str(vault.parent / "no models"))
    talk = desk("embedded:smollm2", vault=vault).conversation()
    events = (event for event in talk.stream("Who runs the bakery?") if not isinstance(event, Working))
    assert isinstance(next(events), Appended)
    quoted = next(events)
    with pytest.raises(NotFound, match="embedded:smollm2 needs"):
        next(events)
    assert isinstance(quoted, NotesQuoted)
    assert quoted.quotes[0].sentence == "Farida runs it with her brother Tom."
    assert quoted.tiny_model == ""


def test_a_model_that_is_too_small_for_notes_quotes_them_and_is_not_asked(
    desk: Open, script: Script, vault: Path
) -> None:
    at = desk(script(OK, tools=False, summarizes=False, answers_from_notes=False), vault=vault)
    talk = at.conversation()
    for question, quoted, told in (
        ("Who runs the bakery?", "Farida runs it with her brother Tom.", QUOTES_ALONE),
        ("Who runs it? See [[Bakery]]", "Farida runs it with her brother Tom.", QUOTES_ALONE),
        ("What is the capital of Australia?", "", NOTHING_FOUND),
    ):
        events = list(talk.stream(question))
        assert (
            "".join(each.sentence for event in events if isinstance(event, NotesQuoted) for each in event.quotes)
            == quoted
        )
        [replied] = [event for event in events if isinstance(event, Replied)]
        assert replied.message.text.startswith(told)
        assert "recto models use standard" in replied.message.text
        assert not at.store.records.record(replied.request).was_sent
        assert not any(event.tiny_model for event in events if isinstance(event, NotesQuoted))
    reply = talk.ask("Hello!")
    assert (reply.text, at.store.records.record(reply.request_id).was_sent) == ("ok", True)


def test_a_small_model_gets_the_rows_and_sentences_that_answer(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False, summarizes=False), vault=vault)
    talk = at.conversation()
    talk.ask("When does the bakery open on Saturday?")
    assert "\n- Bakery › Opening hours: " in sent(at, talk)
    assert "Saturday: Opens 7:00, Closes 13:00;" in sent(at, talk)
    assert "|" not in sent(at, talk)


def test_a_small_model_is_told_the_language_of_the_question(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False, summarizes=False), vault=vault)
    for question, order in (
        ("Who runs the bakery?", "Answer:"),
        ("Wer hat den Apfelbaum gepflanzt?", "Antworte auf Deutsch:"),
    ):
        talk = at.conversation()
        talk.ask(question)
        assert sent(at, talk).endswith(f"{order}\n\n{question}")


def test_a_small_model_is_not_asked_what_neither_notes_nor_chat_can_say(
    desk: Open, script: Script, vault: Path
) -> None:
    talk = desk(script(OK, tools=False, summarizes=False), vault=vault).conversation()
    reply = talk.ask("Wer hat den Eiffelturm in Paris gebaut?")
    assert reply.text == "Das weiß ich nicht: Deine Notizen sagen es nicht."
    assert any(note.endswith("found nothing near enough") or "; the nearest is" in note for note in reply.notes)
    assert talk.ask("What is the capital of Australia?").text == "ok"


def test_the_instructions_of_a_model_replace_the_default_ones_alone(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ScriptedProvider.model

    async def with_instructions(provider: ScriptedProvider, name: str) -> Model:
        return replace(await asked(provider, name), system_prompt="Be brief.")

    monkeypatch.setattr(ScriptedProvider, "model", with_instructions)
    for settings, told in (({}, "Be brief."), ({"system_prompt": "Rhyme."}, "Rhyme.")):
        at = desk(script(OK), **settings)
        reply = at.conversation().ask("Hello!")
        assert json.loads(at.rebuild(reply.request_id))["messages"][0]["content"] == told


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


def test_a_request_is_searched_as_a_question(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    for request, answer in (
        ("How can I bake rye bread?", ""),
        ("I want to know who runs the bakery", "Farida"),
        ("Tell me about the rye bread.", "flour"),
        ("Erzähl mir vom Apfelbaum", "Boskoop"),
        ("Sag mir, wer den Apfelbaum gepflanzt hat", "Kessler"),
        ("Dime cuánto cuesta el alquiler del coche", "412"),
        ("Dis-moi quand a lieu le concert de Noël", "12 décembre"),
    ):
        reply = at.conversation().ask(request)
        assert any(answer in f"{quote.sentence} {quote.more}" for quote in reply.quotes), request
    for request in ("Tell me about the Eiffel Tower", "Ich möchte wissen, wer Faust geschrieben hat"):
        assert any(NOTHING_NEAR in note for note in at.conversation().ask(request).notes), request


def test_a_message_about_all_notes_is_told_what_there_is(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script(OK, tools=False), vault=vault)
    for text in ("Summarize my notes", "Fasse meine Notizen zusammen", "What is in my notes?"):
        talk = at.conversation()
        reply = talk.ask(text)
        assert reply.quotes == ()
        assert any("you have 5 notes: Bakery, Chorale, Schrebergarten" in note for note in reply.notes)
        assert "There are 5 notes" in sent(at, talk)


def test_why_nothing_could_be_searched_is_told(desk: Open, script: Script, vault: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    [note] = desk(script(OK, tools=False), vault=tmp_path / "empty").conversation().ask("Who runs the bakery?").notes
    assert note.startswith("there are no notes in ")
    (vault / "Log.md").write_text("It rained again.\n" * 150_000)
    talk = desk(script(OK, tools=False), vault=vault).conversation()
    reply = talk.ask("What is the capital of Australia?")
    assert any(NOTHING_NEAR in note and "not searched: Log.md has 2.5 MB" in note for note in reply.notes)
    shutil.rmtree(vault)
    reply = talk.ask("Who signs off the release?")
    assert any("is no longer there" in note for note in reply.notes)
    assert not any(NOTHING_NEAR in note for note in reply.notes)
