"""One message, all the way through, with scripted models and a real store."""

import asyncio
import json
import os
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conftest import Open, Script

from recto.errors import DoesNotFit, Invalid, NotFound, Unreachable
from recto.events import (
    Appended,
    Branched,
    ContextCompacted,
    ContextUsage,
    Event,
    Noticed,
    Replied,
    Sent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    Working,
)
from recto.sources.tools import CANCELLED
from recto.turn.turn import Turn


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    (root / "Welcome.md").write_text("# Welcome\nSorrel was built in 1934.")
    (root / "Long.md").write_text("A long note. " * 4000)
    return root


def body(desk_log: Path, place: int = -1) -> dict[str, object]:
    lines = desk_log.read_bytes().splitlines()
    found = json.loads(lines[place])
    assert isinstance(found, dict)
    return found


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(path))
    return path


def test_a_question_is_answered_stored_counted_recorded_and_rebuilt(desk: Open, script: Script, log: Path) -> None:
    at = desk(script({"text": "Blue, I think."}))
    talk = at.conversation()
    reply = talk.ask("What colour is the sky?")
    assert reply.text == "Blue, I think."
    assert [message.text for message in talk.messages()] == ["What colour is the sky?", "Blue, I think."]
    assert at.rebuild(reply.request_id) == log.read_bytes().rstrip(b"\n")
    assert reply.usage.input == reply.window.total
    assert reply.window.exact
    record = at.record(reply.request_id)
    assert record.message == talk.messages()[0].id
    assert record.outcome["reply"] == reply.message.id
    assert record.account.total == sum(section.tokens for section in record.account.sections or ())
    assert talk.messages()[0].tokens.own is not None


def test_the_events_tell_the_walk_in_order(desk: Open, script: Script) -> None:
    at = desk(script({"text": "one two"}))
    events = list(at.conversation().stream("hello"))
    kinds = [type(event) for event in events]
    assert kinds == [Appended, ContextUsage, Sent, TextDelta, TextDelta, Replied]


def test_ask_works_inside_a_running_loop(desk: Open, script: Script) -> None:
    at = desk(script({"text": "fine"}))

    async def notebook_cell() -> str:
        return at.conversation().ask("how are you?").text

    assert asyncio.run(notebook_cell()) == "fine"


def test_what_precedes_the_message_is_a_byte_prefix_of_the_next_request(desk: Open, script: Script) -> None:
    at = desk(script({"text": "a reply"}))
    talk = at.conversation()
    requests = [talk.ask(f"question {number}").request_id for number in range(4)]
    records = [at.record(request) for request in requests]
    for before, after in pairwise(requests):
        one, two = at.rebuild(before), at.rebuild(after)
        assert two.startswith(one[: one.rindex(b',{"role":"user"')])
    assert [record.account.broken_by for record in records] == [None] * 4
    prefix = records[3].account.prefix
    assert prefix
    assert prefix.kept >= prefix.of > 0


def test_the_users_words_are_safe_when_the_model_cannot_be_reached(desk: Open, script: Script) -> None:
    at = desk(script({"error": "unreachable"}, {"text": "back again"}))
    talk = at.conversation()
    with pytest.raises(Unreachable):
        talk.ask("important words")
    assert [message.text for message in talk.messages()] == ["important words"]
    request = at.store.records.latest(talk.id or "")
    assert at.record(request or "").outcome["finish"] == "error"
    assert talk.ask("still there?").text == "back again"
    assert len(talk.messages()) == 3


def test_a_stream_that_breaks_keeps_what_came(desk: Open, script: Script) -> None:
    at = desk(script({"text": "one two three four", "error": "unreachable", "after": 2}, {"text": "five"}))
    talk = at.conversation()
    with pytest.raises(Unreachable):
        talk.ask("count")
    broken = talk.messages()[-1]
    assert (broken.status, broken.text) == ("error", "one two")
    assert broken.error
    assert talk.ask("go on").text == "five"


def test_leaving_a_stream_early_keeps_what_came_as_stopped(desk: Open, script: Script) -> None:
    at = desk(script({"text": "one two three four", "after": 2, "until": "/never"}))
    talk = at.conversation()
    events = talk.stream("count")
    for event in events:
        if isinstance(event, TextDelta) and "two" in event.text:
            break
    events.close()
    stopped = talk.messages()[-1]
    assert (stopped.status, stopped.text) == ("stopped", "one two")
    assert at.record(stopped.request or "").outcome["finish"] == "stopped"


@pytest.mark.parametrize("after", [0.0, 0.003, 0.01, 0.04])
def test_cancelling_at_any_moment_leaves_us_where_the_store_is(desk: Open, script: Script, after: float) -> None:
    at = desk(script({"text": "one two three four", "delay_s": 0.005}))
    talk = at.conversation()
    talk.ask("start")

    async def cancelled() -> None:
        async def turn() -> None:
            async for _ in talk.asynchronous.stream("stop me"):
                pass

        task = asyncio.create_task(turn())
        await asyncio.sleep(after)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert talk.session.head == at.store.tree.conversation(talk.id or "").head
    assert all(message.status != "unfinished" for message in talk.messages())
    appended = [event for event in talk.stream("go on") if isinstance(event, Appended)]
    assert [event.branched for event in appended] == [False]


@pytest.mark.parametrize("text", ["", "  \n\t ", b""])
def test_a_blank_message_is_refused_and_nothing_is_stored(desk: Open, script: Script, text: str | bytes) -> None:
    at = desk(script({"text": "x"}))
    talk = at.conversation()
    with pytest.raises(Invalid, match="empty"):
        talk.ask(text)
    assert talk.messages() == []


def test_invalid_bytes_are_replaced_and_the_user_is_told(desk: Open, script: Script) -> None:
    at = desk(script({"text": "x"}))
    talk = at.conversation()
    reply = talk.ask(b"a\xff\x00b")
    assert talk.messages()[0].text == "a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}b"
    assert "2 invalid or NUL characters" in reply.notes[0]


def test_instructions_larger_than_the_window_are_named_and_the_message_is_stored(desk: Open, script: Script) -> None:
    at = desk(script({"text": "x"}, limit=1000), system_prompt="Be kind. " * 300)
    talk = at.conversation()
    with pytest.raises(DoesNotFit, match="the system prompt takes") as caught:
        talk.ask("hello " * 100)
    assert caught.value.largest == "the system prompt"
    assert len(talk.messages()) == 1


def test_a_full_window_is_cut_once_and_then_stands_still(desk: Open, script: Script) -> None:
    at = desk(script({"text": "A reply of about ten tokens or so, always."}, limit=1024), context__strategy="discard")
    talk = at.conversation()
    compactions: list[ContextCompacted] = []
    for number in range(60):
        for event in talk.stream(f"Message number {number} with some words to take up room in the window."):
            if isinstance(event, ContextCompacted):
                compactions.append(event)
            if isinstance(event, Sent):
                assert event.window.total <= event.window.limit - event.window.reserve
    assert 2 <= len(compactions) <= 12
    assert [event.compaction_number for event in compactions] == list(range(1, len(compactions) + 1))
    assert all(event.context_size_after <= 256 < 512 < event.context_size_before for event in compactions)
    path = talk.messages(limit=None)
    assert len([message for message in path if message.compaction is None]) == 120
    assert all(difference is None for _, difference in at.verify())
    broken = [at.record(id).account.broken_by for id in at.store.records.ids()]
    assert [why for why in broken if why] == [f"compaction {event.compaction_number}" for event in compactions]


def test_tools_run_in_parallel_and_their_results_come_in_order(
    desk: Open, script: Script, vault: Path, log: Path
) -> None:
    at = desk(
        script(
            {
                "text": "Let me look.",
                "tool_calls": [
                    {"name": "read_document", "arguments": {"path": "Welcome.md"}},
                    {"name": "read_document", "arguments": {"path": "../secret"}},
                ],
            },
            {"text": "It was built in 1934."},
        ),
        vault=vault,
    )
    talk = at.conversation()
    events = list(talk.stream("When?"))
    assert [type(e) for e in events if isinstance(e, ToolStarted | ToolFinished)].count(ToolFinished) == 2
    roles = [message.role for message in talk.messages()]
    assert roles == ["user", "assistant", "tool", "assistant"]
    calls, results = talk.messages()[1].calls, talk.messages()[2].results
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert "1934" in results[0].text
    assert results[1].is_error
    assert "outside the vault" in results[1].text
    first, second = at.store.records.ids()
    sent = at.rebuild(second)
    assert sent.startswith(at.rebuild(first)[: at.rebuild(first).rindex(b"]")])
    assert [m["role"] for m in json.loads(sent)["messages"]] == ["system", "user", "assistant", "tool", "tool"]


def test_a_loop_of_tools_ends_at_the_step_limit_with_every_call_closed(desk: Open, script: Script, vault: Path) -> None:
    model = script({"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]})
    at = desk(model, vault=vault, tools__step_limit=3)
    talk = at.conversation()
    events = list(talk.stream("loop"))
    assert any(isinstance(e, Noticed) and "stopped after 3 rounds" in e.text for e in events)
    messages = talk.messages()
    # three rounds run; then the model is asked for an answer without tools, and one that calls all the same is closed
    assert [m.role for m in messages] == ["user"] + ["assistant", "tool"] * 4
    assert [message.results[0].is_error for message in messages if message.results] == [False, False, False, True]
    assert messages[-1].results[0].text == CANCELLED


def test_behind_the_last_round_of_tools_an_answer_is_asked_for(desk: Open, script: Script, vault: Path) -> None:
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]}
    at = desk(script(call, {"text": "1934"}), vault=vault, tools__step_limit=1)
    reply = at.conversation().ask("when?")
    assert reply.text == "1934"
    assert json.loads(at.rebuild(reply.request_id))["tool_choice"] == "none"
    assert not any("stopped after" in note for note in reply.notes)


def test_stopping_during_a_tool_closes_its_call(
    desk: Open, script: Script, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script({"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]}), vault=vault)
    talk = at.conversation()
    assert at.vault is not None
    release = threading.Event()
    monkeypatch.setattr(at.vault, "read", lambda path: release.wait(5))
    events = talk.stream("read it")
    for event in events:
        if isinstance(event, ToolStarted):
            break
    events.close()
    release.set()
    assert talk.messages()[-1].results[0].text == CANCELLED


def test_a_tool_loop_longer_than_the_window_keeps_the_question(
    desk: Open, script: Script, vault: Path, log: Path
) -> None:
    (vault / "Page.md").write_text("some words of a page " * 30)
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Page.md"}}]}
    at = desk(script(*[call] * 12, {"text": "done"}, limit=2048), vault=vault)
    talk = at.conversation()
    compacted = [e for e in talk.stream("The question to answer") if isinstance(e, ContextCompacted)]
    assert compacted
    beside = ("Answer with the summary alone", "what this document is about")  # the latter in the background
    for line in log.read_bytes().splitlines():
        messages = json.loads(line)["messages"]
        if any(said in messages[-1].get("content", "") for said in beside):
            continue
        asked = [m["content"] for m in messages if m["role"] == "user"]
        assert asked.count("The question to answer") == 1
        calls = [call["id"] for m in messages for call in m.get("tool_calls", ())]
        assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert talk.messages()[-1].text == "done"
    assert talk.ask("and now?").text == "done"
    assert all(difference is None for _, difference in at.verify())


def test_a_linked_document_goes_in_with_the_message_and_is_gone_from_the_next(
    desk: Open, script: Script, vault: Path, log: Path
) -> None:
    at = desk(script({"text": "ok"}), vault=vault)
    talk = at.conversation()
    reply = talk.ask("What is in [[Welcome]] and [[Nowhere]]?")
    sections = {section.name: section for section in reply.window.sections}
    assert sections["documents"].picks[0].name == "Welcome.md"
    assert sections["documents"].picks[0].because == "linked as [[Welcome]]"
    assert any("[[Nowhere]] leads to no document" in note for note in reply.notes)
    assert "BEGIN DOCUMENT Welcome.md" in log.read_text()
    talk.ask("And now?")
    assert "BEGIN DOCUMENT" not in json.dumps(body(log))
    assert talk.messages()[0].text == "What is in [[Welcome]] and [[Nowhere]]?"


def test_a_model_without_tools_gets_a_part_of_a_large_document(
    desk: Open, script: Script, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script({"text": "ok"}), vault=vault)
    talk = at.conversation()
    provider = at.engine.models.provider(talk.model)
    original = provider.model

    async def without_tools(name: str) -> object:
        return replace(await original(name), tools=False)

    monkeypatch.setattr(provider, "model", without_tools)
    reply = talk.ask("Sum up [[Long]] and [[Welcome]]")
    sections = {section.name: section for section in reply.window.sections}
    assert "tools" not in sections
    assert next(pick.because for pick in sections["documents"].picks) == "linked as [[Long]]; 1 relevant part of it"
    assert any("Long.md does not fit whole" in note for note in reply.notes)
    assert reply.window.total <= reply.window.limit - reply.window.reserve


def test_a_front_end_that_stays_sees_what_one_that_comes_anew_sees(desk: Open, script: Script, vault: Path) -> None:
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]}
    steps = [{"text": "a reply " * 20}, call, {"text": "an answer " * 10}] * 20
    at = desk(script(*steps, limit=1500), vault=vault)
    talk = at.conversation()
    compacted = 0
    for number in range(24):
        said = f"question {number}, see [[Welcome]] " + "word " * (number * 7 % 40)
        compacted += sum(isinstance(event, ContextCompacted) for event in talk.stream(said))
        if number % 7 == 3:
            talk.undo()
        if number % 11 == 5:
            at.conversation(talk.id).ask("from elsewhere")
        if number == 17:
            talk.clear()
        anew = at.conversation(talk.id)
        anew.session.head = talk.session.head
        assert talk.window("next").to_json() == anew.window("next").to_json()
        (held,) = talk.session.loaded.values() if talk.session.loaded else (None,)
        if held:
            assert held.counted_units.keys() <= {message.id for message in (*held.view.tail, *held.view.lifted)}
    assert compacted > 1
    assert all(difference is None for _, difference in at.verify())


def test_window_shows_what_would_be_sent_and_changes_nothing(desk: Open, script: Script, vault: Path) -> None:
    at = desk(script({"text": "ok"}, limit=1024), vault=vault)
    talk = at.conversation()
    for _ in range(4):
        talk.ask("word " * 50)
    at.index()  # what is recalled must not depend on how far the index has come
    before = (talk.messages(), at.store.records.ids())
    planned = talk.window("What about [[Welcome]]?")
    assert (talk.messages(), at.store.records.ids()) == before
    reply = talk.ask("What about [[Welcome]]?")
    assert [(s.name, s.tokens) for s in planned.sections] == [(s.name, s.tokens) for s in reply.window.sections]
    assert planned.total == reply.window.total


def test_undo_goes_back_before_the_last_question_and_the_next_is_a_branch(desk: Open, script: Script) -> None:
    at = desk(script({"text": "r"}))
    talk = at.conversation()
    talk.ask("first")
    second = talk.ask("second")
    assert talk.undo().text == "second"
    assert [message.text for message in talk.messages()] == ["first", "r"]
    talk.ask("another")
    assert [message.text for message in talk.messages()] == ["first", "r", "another", "r"]
    assert len(at.store.tree.leaves(talk.id or "")) == 2
    assert at.rebuild(second.request_id)
    talk.undo()
    talk.undo()
    assert talk.messages() == []
    with pytest.raises(NotFound, match="nothing to undo"):
        talk.undo()


def test_fork_answers_from_another_place_and_both_branches_stay(desk: Open, script: Script) -> None:
    at = desk(script({"text": "r"}))
    talk = at.conversation()
    talk.ask("a")
    talk.ask("b")
    talk.fork(talk.messages()[1].id)
    talk.ask("c")
    assert [message.text for message in talk.messages()] == ["a", "r", "c", "r"]
    with pytest.raises(NotFound):
        talk.fork("nowhere")


def test_clear_starts_the_view_anew_and_deletes_nothing(desk: Open, script: Script, log: Path) -> None:
    at = desk(script({"text": "r"}))
    talk = at.conversation()
    with pytest.raises(Invalid, match="nothing to clear"):
        talk.clear()
    talk.ask("the secret word is heron")
    talk.clear()
    talk.ask("hello")
    assert "heron" not in json.dumps(body(log))
    assert "heron" in talk.messages()[0].text
    assert at.search("heron")[0].message.text == "the secret word is heron"


def test_a_branch_is_told_in_the_notes_of_the_reply(desk: Open, script: Script) -> None:
    at = desk(script({"text": "r"}))
    one = at.conversation()
    one.ask("start")
    two = at.conversation(one.id)
    one.ask("faster")
    reply = two.ask("slower")
    assert reply.notes == ("this conversation was continued elsewhere in the meantime; a new branch starts after #2",)
    assert reply.branched
    assert (two.message(reply.branched.after or "").text, reply.branched.number) == ("r", 2)
    again = two.ask("again")
    assert (again.notes, again.branched) == ((), None)


@pytest.mark.parametrize("kind", [Sent, ToolStarted])
def test_a_branch_that_a_reply_or_a_tool_has_started_is_told(
    desk: Open, script: Script, vault: Path, kind: type
) -> None:
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Welcome.md"}}]}
    at = desk(script({"text": "r"}, call, {"text": "late"}), vault=vault)
    talk = at.conversation()
    talk.ask("start")
    before = talk.head

    async def heard() -> list[Event]:
        """At the first event of this kind another client moves the head."""
        events: list[Event] = []
        async for event in talk.asynchronous.stream("meanwhile"):
            if isinstance(event, kind) and not any(isinstance(each, kind) for each in events):
                at.store.tree.move(talk.id or "", before)
            events.append(event)
        return events

    (branch,) = [event for event in at.run(heard()) if isinstance(event, Branched)]
    assert branch.number == (3 if kind is Sent else 4)


def test_a_conversation_remembers_its_vault_and_says_when_that_is_gone(
    desk: Open, script: Script, vault: Path, tmp_path: Path
) -> None:
    model = script({"text": "r"})
    talk = desk(model, vault=vault).conversation()
    talk.ask("See [[Welcome]]")
    later = desk(model).conversation(talk.id).ask("And [[Welcome]] again?")
    assert "documents" in [section.name for section in later.window.sections]
    vault.rename(tmp_path / "moved")
    lost = desk(model).conversation(talk.id).ask("And now [[Welcome]]?")
    assert any("the vault of this conversation cannot be used" in note for note in lost.notes)


def test_a_changed_system_prompt_file_is_used_and_old_requests_still_rebuild(
    desk: Open, script: Script, tmp_path: Path, log: Path
) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("Be brief.")
    at = desk(script({"text": "r"}), system_prompt_file=str(prompt))
    talk = at.conversation()
    first = talk.ask("a")
    prompt.write_text("Be long.")
    second = talk.ask("b")
    assert b"Be brief." in at.rebuild(first.request_id)
    assert b"Be long." in at.rebuild(second.request_id)
    assert at.record(second.request_id).account.broken_by == "the instructions changed"
    prompt.unlink()
    with pytest.raises(Invalid, match="cannot read the system prompt file"):
        talk.ask("c")
    assert talk.messages()[-1].text == "c"
    assert at.rebuild(first.request_id)


def test_another_model_takes_over_in_mid_conversation(desk: Open, script: Script) -> None:
    small = script({"text": "small"}, limit=1024)
    at = desk(script({"text": "ok"}))
    talk = at.conversation()
    for _ in range(6):
        talk.ask("word " * 100)
    talk.use(small)
    events = list(talk.stream("hello"))
    assert any(isinstance(event, ContextCompacted) for event in events)
    assert talk.messages()[-1].text == "small"
    reopened = at.conversation(talk.id)
    assert at.settings.origin("model") == "option"
    assert reopened.model == at.settings.model
    with pytest.raises(NotFound):
        talk.use("nobody:x")


def test_counts_are_made_once_and_then_come_from_the_store(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script({"text": "a reply"})
    talk = desk(model).conversation()
    for number in range(12):
        talk.ask(f"question {number}")
    again = desk(model)
    from recto.providers.model import VocabularyCounter

    measured: list[int] = []
    original = VocabularyCounter.count

    async def watched(self: VocabularyCounter, pieces: object) -> object:
        measured.append(len(pieces))  # type: ignore[arg-type]
        return await original(self, pieces)  # type: ignore[arg-type]

    monkeypatch.setattr(VocabularyCounter, "count", watched)
    again.conversation(talk.id).window("something new")
    assert sum(measured) < 5, "a few new pieces are counted at once; the messages of the history are not"


def test_waking_a_talk_stores_and_sends_nothing(desk: Open, script: Script, log: Path) -> None:
    at = desk(script({"text": "ok"}))
    talk = at.conversation()
    talk.wake()
    assert talk.ask("Are you there?").text == "ok"
    assert len(log.read_bytes().splitlines()) == 1
    assert [message.role for message in talk.messages(limit=None)] == ["user", "assistant"]


def test_a_vault_that_is_not_there_is_an_error_before_anything_is_opened(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="to use as a vault"):
        desk(script({"text": "x"}), vault=tmp_path / "nowhere")
    assert not os.path.exists(tmp_path / "home")


def _slowly(step: Callable[..., Any]) -> Callable[..., Any]:
    async def slow(*args: Any) -> Any:
        await asyncio.sleep(0.05)
        return await step(*args)

    return slow


def test_steps_that_take_long_are_told(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.turn.emitting.PATIENCE_S", 0)
    notes = tmp_path / "notes"
    notes.mkdir()
    for step in ("pick", "fill"):
        monkeypatch.setattr(Turn, step, _slowly(getattr(Turn, step)))
    talk = desk(model := script({"text": "Yes."}), notes).conversation()
    told = [event for event in talk.stream("hello") if isinstance(event, Working)]
    assert Working("model", model=model) in told
    assert Working("sources") in told
    assert Working("search") in told
