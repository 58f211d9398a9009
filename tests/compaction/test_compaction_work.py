"""Compaction from end to end: scripted models, a real store, and summarisers that do everything wrong."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Open, Script
from tests.said import user_sentences

from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message
from recto.errors import DoesNotFit, Invalid, NotFound, Overflow
from recto.events import (
    CompactionProposed,
    ContextCompacted,
    ContextUsage,
    Event,
    Noticed,
    Replied,
    Sent,
    SummaryRequested,
)
from recto.summary.verification import strip_marks

pytestmark = pytest.mark.untraced

REPLY: dict[str, Any] = {"text": "A reply of a dozen tokens: there are 14 boats, as always."}
SUMMARY: dict[str, Any] = {
    "text": "Task: count the boats. Facts: there are 14 boats in the harbour.",
    "when": "summary",
}
SAID = "Message number {} has some words to take up room in the window, and then a few more."


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(path))
    return path


def fill(talk: Talk, turns: int = 60, said: str = SAID) -> list[Event]:
    """Turns until the first compaction, that one included; everything that was heard of the last turn."""
    for number in range(turns):
        events = list(talk.stream(said.format(number)))
        if any(isinstance(event, ContextCompacted) for event in events):
            return events
    raise AssertionError("no compaction came")


def say(talk: Talk, turns: int) -> None:
    for number in range(turns):
        talk.ask(SAID.format(number))


def said_in(talk: Talk) -> list[Message]:
    return [message for message in talk.messages(limit=None) if not message.compaction]


def page(folder: Path, text: str) -> tuple[Path, dict[str, Any]]:
    """A vault with one note, and a step that reads it."""
    vault = folder / "vault"
    vault.mkdir()
    (vault / "Page.md").write_text(text)
    return vault, {"tool_calls": [{"name": "read_document", "arguments": {"path": "Page.md"}}]}


def of(kind: type, events: list[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def summary_requests(at: Desk, talk: Talk) -> list[dict[str, Any]]:
    ids = at.store.records.ids(talk.id)
    return [json.loads(at.rebuild(id)) for id in ids if at.record(id).purpose == "summary"]


def sent(at: Desk, events: list[Event]) -> list[dict[str, Any]]:
    body = json.loads(at.rebuild(of(Sent, events)[-1].request))
    return list(body["messages"])


def test_at_the_threshold_the_beginning_becomes_a_summary_and_the_latest_messages_stay(
    desk: Open, script: Script
) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200), context__reserved_response_tokens=100)
    talk = at.conversation()
    events = fill(talk)
    (asked,), (compacted,) = of(SummaryRequested, events), of(ContextCompacted, events)
    assert (asked.part, asked.of, asked.model) == (1, 1, talk.model)
    assert compacted.compaction_number == 1
    assert compacted.made_by == "model"
    assert compacted.summary == SUMMARY["text"]
    assert compacted.context_size_after < compacted.context_size_before
    block = talk.summary_block()
    assert (block.made_by, block.made and block.made.model) == ("model", talk.model)
    assert block.because.endswith("of 1200")
    assert block.checks["seen"] == block.checks["covered"] == block.messages_archived
    messages = sent(at, events)
    assert messages[1]["role"] == "user"
    assert "14 boats" in messages[1]["content"]
    assert "continue from the summary" in messages[1]["content"]
    usage, window = of(ContextUsage, events)[-1], of(Sent, events)[-1].window
    recalled = sum(section.tokens for section in window.sections if section.name == "recalled")
    assert usage.size - recalled == compacted.context_size_after, "what is really sent, but for what is recalled"
    assert compacted.context_size_after <= 0.5 * usage.limit
    verbatim = [message["content"].rpartition("[End of what was recalled.]\n\n")[2] for message in messages[2:]]
    assert len(verbatim) >= 6
    said = [message.text for message in talk.messages(limit=None) if not message.compaction][:-1]
    assert verbatim == said[len(said) - len(verbatim) :]
    assert all(difference is None for _, difference in at.verify())


def test_the_summary_call_rides_on_the_prefix_of_the_conversation(desk: Open, script: Script, log: Path) -> None:
    vault = log.parent / "vault"
    vault.mkdir()
    talk = desk(script(REPLY, SUMMARY, limit=1400), vault=vault).conversation()
    fill(talk)
    bodies = log.read_bytes().splitlines()
    (place,) = [n for n, body in enumerate(bodies) if b"Answer with the summary alone" in body]
    before, summary = bodies[place - 1], bodies[place]
    order = summary.rindex(b',{"role":"user"')
    assert before.startswith(summary[:order]), "all but the order was sent before"
    asked = json.loads(summary)
    assert asked["tool_choice"] == "none"
    assert asked["tools"]
    assert asked["temperature"] == 0.3


def test_a_second_compaction_is_asked_about_the_first_summary_and_what_came_after_nothing_older(
    desk: Open, script: Script
) -> None:
    second = {"text": "Task: still counting. Facts: 14 boats, 3 of them red.", "when": "summary"}
    at = desk(script(REPLY, SUMMARY, second, limit=1200))
    talk = at.conversation()
    fill(talk)
    first = talk.summary_block()
    fill(talk, said="Another message, number {}, with other words than those that came before it in this chat.")
    _, two = summary_requests(at, talk)
    contents = [str(message["content"]) for message in two["messages"]]
    assert "14 boats" in contents[1]
    said = said_in(talk)
    covered = [message.id for message in said].index(first.last or "") + 1
    assert contents[2] == said[covered].text
    assert not any(SAID.format(0) in content for content in contents)
    newest = talk.summary_block()
    assert newest.compaction_number == 2
    assert strip_marks(newest.summary) == second["text"]
    assert newest.messages_archived > first.messages_archived


def test_every_message_is_covered_or_verbatim_after_many_compactions(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1000))
    talk = at.conversation()
    for number in range(60):
        events = list(talk.stream(SAID.format(number)))
        window = of(Sent, events)[-1].window
        assert window.total <= window.limit - window.reserve
    assert talk.compaction() is not None
    said = said_in(talk)
    assert len(said) == 120
    covered = talk.archived()
    active = [message for message in said if covered.active(message)]
    newest = talk.summary_block()
    assert len(active) + newest.messages_archived == 120
    broken = [at.record(id).account.broken_by for id in at.store.records.ids(talk.id)]
    assert {why for why in broken if why} <= {f"compaction {n}" for n in range(1, 99)}


BAD: dict[str, list[dict[str, Any]]] = {
    "nothing": [{"text": "", "when": "summary"}],
    "an error": [{"error": "unreachable", "when": "summary"}],
    "an error text": [{"text": "Error: internal server error", "when": "summary"}],
    "a refusal": [{"text": "I'm sorry, but I can't help with that.", "when": "summary"}],
    "a tool call": [{"tool_calls": [{"name": "read_document", "arguments": {}}], "when": "summary"}],
    "more than the source": [{"text": "and on and on " * 2000, "when": "summary"}],
    "a cut answer": [{"text": "Task: count the", "finish": "length", "when": "summary"}],
    "its prompt": [
        {
            "text": "Sum up the conversation above so that it can go on from your summary alone.",
            "when": "summary",
        }
    ],
    "rate limits": [{"error": "rate_limited", "when": "summary"}],
}


@pytest.mark.parametrize("kind", BAD)
def test_a_summariser_that_fails_is_asked_twice_and_then_sentences_of_the_originals_serve(
    desk: Open, script: Script, kind: str
) -> None:
    at = desk(script(REPLY, *BAD[kind], limit=1200))
    talk = at.conversation()
    events = fill(talk)
    (compacted,) = of(ContextCompacted, events)
    assert compacted.made_by == "extractive"
    assert len(compacted.notes) == 2
    assert compacted.notes[0].startswith("attempt 1 by")
    assert of(Replied, events)[-1].message.text == REPLY["text"]
    block = talk.summary_block()
    originals = " ".join(message.text for message in talk.messages())
    lines = [line.partition(": ")[2] for line in block.summary.splitlines() if line]
    assert lines
    assert all(line.rstrip("…")[:20] in originals for line in lines)
    assert compacted.context_size_after < compacted.context_size_before
    assert len(summary_requests(at, talk)) == 2


def test_a_first_attempt_that_fails_is_made_good_by_the_second(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, BAD["nothing"][0], SUMMARY, limit=1200))
    talk = at.conversation()
    (compacted,) = of(ContextCompacted, fill(talk))
    assert (compacted.made_by, compacted.summary) == ("model", SUMMARY["text"])
    assert "it is empty" in compacted.notes[0]
    _, transcript = summary_requests(at, talk)
    assert len(transcript["messages"]) == 2
    assert SAID.format(0) in transcript["messages"][1]["content"]
    assert "tools" not in transcript


def test_a_summariser_that_hangs_is_given_up(desk: Open, script: Script) -> None:
    slow = {"text": "late", "hang_s": 30, "when": "summary"}
    talk = desk(script(REPLY, slow, limit=1200), context__summary_timeout_s=1).conversation()
    (compacted,) = of(ContextCompacted, fill(talk))
    assert compacted.made_by == "extractive"
    assert "did not answer within 1 s" in compacted.notes[0]


def test_a_summary_model_of_its_own_gets_a_transcript_in_slices_that_fit_its_window(
    desk: Open, script: Script, log: Path
) -> None:
    small = script({"text": "Facts: part of it.", "when": "summary"}, limit=700)
    talk = desk(script(REPLY, limit=4000), context__summary_model=small, context__summary_tokens=120).conversation()
    events = fill(talk, said=SAID.replace("{}", "{0}") * 3)
    requested = of(SummaryRequested, events)
    assert len(requested) > 3
    assert requested[-1].of == 1, "the parts are merged in the end"
    assert all(event.size <= 700 for event in requested)
    (compacted,) = of(ContextCompacted, events)
    assert compacted.made_by == "model"
    asked = [json.loads(line) for line in log.read_bytes().splitlines()]
    transcripts = " ".join(body["messages"][1]["content"] for body in asked if body["model"] in small)
    block = talk.summary_block()
    covered = said_in(talk)[: block.messages_archived]
    flat = " ".join(transcripts.split())
    assert all(" ".join(message.text.split())[:60] in flat for message in covered)
    assert block.checks["covered"] == block.checks["seen"] == len(covered)
    assert block.checks["parts"] > 1


def test_a_summary_model_that_cannot_be_had_is_noted_and_the_own_model_writes(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200), context__summary_model="scripted:/nowhere.json")
    (compacted,) = of(ContextCompacted, fill(at.conversation()))
    assert compacted.made_by == "model"
    assert "scripted:/nowhere.json cannot write summaries" in compacted.notes[0]


def test_a_first_message_larger_than_the_window_is_sent_as_an_excerpt_and_kept_whole(
    desk: Open, script: Script
) -> None:
    settings = {"context__max_prompt_tokens": 300, "context__reserved_response_tokens": 50}
    at = desk(script(REPLY), system_prompt="Be brief.", **settings)
    talk = at.conversation()
    text = "Sentence number one of a very long letter. " * 180
    planned = talk.window(text)
    assert planned.plan.cut is not None
    assert planned.plan.cut.excerpts
    assert planned.total <= 250
    events = list(talk.stream(text))
    window = of(Sent, events)[-1].window
    assert window.total <= 250
    assert abs(planned.total - window.total) < 30
    assert "as an excerpt" in window.sections[-1].picks[-1].because
    content = sent(at, events)[-1]["content"]
    assert content.startswith("Sentence number one")
    first = talk.messages()[0]
    assert first.text == text
    assert first.id in content
    (compacted,) = of(ContextCompacted, events)
    assert (compacted.excerpts, compacted.messages_archived) == (1, 0)
    again = list(talk.stream("And what now?"))
    assert sent(at, again)[-3]["content"] == content, "the excerpt stays as it is"


def test_a_tool_result_many_times_the_window_is_sent_as_an_excerpt(desk: Open, script: Script, tmp_path: Path) -> None:
    vault, call = page(tmp_path, "A line of a huge document, again and again.\n" * 3000)
    at = desk(script(call, {"text": "read"}, limit=2000), vault=vault)
    talk = at.conversation()
    events = list(talk.stream("What is in it?"))
    assert of(Replied, events)[-1].message.text == "read"
    result = talk.messages()[2].results[0] if talk.messages()[2].results else talk.messages()[-3].results[0]
    messages = sent(at, events)
    assert messages[-1]["role"] == "tool"
    assert len(messages[-1]["content"]) < len(result.text) / 5
    assert "left out" in messages[-1]["content"]
    assert of(Sent, events)[-1].window.total <= 2000 - 512


def test_recent_messages_that_are_huge_are_covered_and_all_are_accounted_for(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "word " * 150}, SUMMARY, limit=1100)).conversation()
    for number in range(4):
        events = list(talk.stream(f"{number} " + "word " * 150))
        window = of(Sent, events)[-1].window
        assert window.total <= window.limit - window.reserve
    covered = talk.archived()
    said = said_in(talk)
    block = talk.summary_block()
    assert sum(covered.active(message) for message in said) + block.messages_archived == 8


def test_the_provider_says_too_long_and_the_window_is_made_smaller(desk: Open, script: Script) -> None:
    steps = [REPLY] * 12 + [{"error": "overflow"}, REPLY]
    talk = desk(script(*steps, SUMMARY, limit=4000)).conversation()
    say(talk, 12)
    events = list(talk.stream("and now?"))
    assert of(Replied, events)
    assert sum("too long" in event.text for event in of(Noticed, events)) == 1
    sizes = [event.size for event in of(ContextUsage, events)]
    assert len(sizes) == 2
    assert sizes[1] < sizes[0]
    assert talk.messages()[-1].text == REPLY["text"]


def test_an_overflow_first_shrinks_the_largest_tool_results_of_the_turn(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    vault, call = page(tmp_path, "A line of the page.\n" * 150)
    at = desk(script(call, {"error": "overflow"}, {"text": "read"}, limit=4000), vault=vault)
    talk = at.conversation()
    events = list(talk.stream("What is in it?"))
    assert of(Replied, events)[-1].message.text == "read"
    before, after = (json.loads(at.rebuild(event.request))["messages"][-1] for event in of(Sent, events)[-2:])
    assert len(after["content"]) < 0.7 * len(before["content"])
    assert talk.messages()[0].text == "What is in it?"


def test_an_overflow_that_does_not_end_is_told(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, {"error": "overflow"})).conversation()
    talk.ask("hello")
    with pytest.raises(Overflow):
        talk.ask("hello?")
    assert talk.messages()[-1].text == "hello?" or talk.messages()[-1].compaction


# -- by hand


def test_a_compaction_by_hand_keeps_the_latest_and_follows_instructions(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = at.conversation()
    say(talk, 6)
    block = talk.compact("the names of the boats")
    assert block.summary == SUMMARY["text"]
    assert block.because == "the user asked for it"
    assert block.messages_archived == 7
    (asked,) = summary_requests(at, talk)
    assert "the names of the boats" in asked["messages"][-1]["content"]
    assert talk.ask("go on").text == REPLY["text"]


def test_there_must_be_something_to_compact(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, SUMMARY)).conversation()
    talk.ask("hello")
    with pytest.raises(Invalid, match="nothing to compact"):
        talk.compact()


def test_a_summary_can_be_edited_and_the_old_text_is_kept(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200))
    talk = at.conversation()
    with pytest.raises(Invalid, match="no summary to edit"):
        talk.edit_summary("x")
    fill(talk)
    talk.edit_summary("There are 15 boats, not 14.")
    events = list(talk.stream("How many?"))
    assert "15 boats" in sent(at, events)[1]["content"]
    newest, former = talk.compactions()[:2]
    assert (newest.made_by, newest.action, newest.last) == ("user", "edit", former.last)
    assert former.summary == SUMMARY["text"]
    with pytest.raises(Invalid, match="empty"):
        talk.edit_summary("  ")
    with pytest.raises(Invalid, match="30 %"):
        talk.edit_summary("word " * 2000)
    broken = at.record(of(Sent, events)[-1].request).account.broken_by
    assert broken == f"compaction {newest.compaction_number}"


def test_a_compaction_can_be_taken_back_and_later_turns_stay(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY), context__recall_ratio=0)
    talk = at.conversation()
    say(talk, 6)
    whole = talk.window("next").total
    talk.compact()
    talk.ask("one more")
    assert talk.window("next").total < whole
    block = talk.uncompact()
    assert (block.action, block.last, block.summary) == ("undo", None, "")
    messages = json.loads(at.rebuild(talk.ask("still there?").request_id))["messages"]
    assert messages[1]["content"] == SAID.format(0)
    assert [m["content"] for m in messages if m["role"] == "user"][-2:] == ["one more", "still there?"]
    with pytest.raises(Invalid, match="no compaction to take back"):
        talk.uncompact()


def test_taking_back_the_second_compaction_gives_the_first_again(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, SUMMARY, {"text": "Second summary.", "when": "summary"})).conversation()
    say(talk, 6)
    first = talk.compact()
    say(talk, 6)
    talk.compact()
    talk.edit_summary("Edited second summary.")
    back = talk.uncompact()
    assert (back.summary, back.last) == (first.summary, first.last)


# -- pins


def test_a_pinned_message_is_in_every_window_until_it_is_unpinned(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200))
    talk = at.conversation()
    talk.ask("The password of the boathouse is swordfish.")
    pinned = talk.messages()[0]
    talk.pin(pinned.id)
    for _ in range(2):
        events = fill(talk)
        assert [m["content"] for m in sent(at, events)].count(pinned.text) == 1
    talk.unpin(pinned.id)
    events = list(talk.stream("What was it?"))
    assert pinned.text not in [m["content"] for m in sent(at, events)]
    talk.pin(pinned.id)
    events = list(talk.stream("And now?"))
    assert sent(at, events)[2]["content"] == pinned.text, "pinned again from the archive"
    with pytest.raises(Invalid, match="pinned already"):
        talk.pin(pinned.id)
    with pytest.raises(NotFound):
        talk.pin("nothing")
    with pytest.raises(Invalid, match="not pinned"):
        talk.unpin(talk.messages()[-1].id)


def test_pinning_what_is_in_the_window_breaks_no_prefix(desk: Open, script: Script) -> None:
    at = desk(script(REPLY))
    talk = at.conversation()
    talk.ask("one")
    talk.pin(talk.messages()[0].id)
    reply = talk.ask("two")
    assert at.record(reply.request_id).account.broken_by is None


def test_a_pinned_tool_result_keeps_its_call(desk: Open, script: Script, tmp_path: Path) -> None:
    vault, call = page(tmp_path, "The mast is 9 m tall.")
    at = desk(script(call, REPLY, SUMMARY, limit=1400), vault=vault)
    talk = at.conversation()
    talk.ask("How tall?")
    result = next(message for message in talk.messages() if message.role == "tool")
    talk.pin(result.id)
    messages = sent(at, fill(talk))
    assert [m["role"] for m in messages[2:4]] == ["assistant", "tool"]
    assert "9 m tall" in messages[3]["content"]


def test_pins_that_do_not_fit_are_named(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, limit=8000)).conversation()
    talk.ask("word " * 1500)
    talk.pin(talk.messages()[0].id)
    smaller = desk(script(REPLY, limit=1200)).conversation(talk.id)
    with pytest.raises(DoesNotFit, match="the pinned messages take"):
        smaller.ask("hello")


# -- strategies


def test_hybrid_still_sends_what_matters_most(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1500), context__strategy="hybrid")
    talk = at.conversation()
    talk.ask("Please plan a trip around the lake for five people.")
    talk.ask("We must be back on Friday, and we decided to go without a car.")
    events = fill(talk)
    contents = [str(m["content"]) for m in sent(at, events)]
    assert "Please plan a trip around the lake for five people." in contents
    block = talk.summary_block()
    lifted = [talk.messages()[0].id]
    assert block.lifted[: len(lifted)] == tuple(lifted)
    window = of(Sent, events)[-1].window
    history = next(section for section in window.sections if section.name == "history")
    assert any("still sent: priority 8" in pick.because for pick in history.picks)


def test_the_closest_choice_of_a_strategy_wins(desk: Open, script: Script, tmp_path: Path) -> None:
    home = tmp_path / "home"
    model = script(REPLY)
    (home / "agents" / "clerk").mkdir(parents=True)
    (home / "agents" / "clerk" / "agent.toml").write_text('[context]\nstrategy = "hybrid"\n')
    at = desk(model)
    assert at.conversation().window("x").strategy == "summarize"
    assert at.conversation(agent="clerk").window("x").strategy == "hybrid"
    talk = at.conversation(agent="clerk")
    talk.use_strategy("discard")
    assert talk.window("x").strategy == "discard"
    assert talk.window("x", strategy="summarize").strategy == "summarize"
    assert talk.ask("hello").window.strategy == "discard"
    assert at.conversation(talk.id).window("x").strategy == "discard"
    assert desk(model, context__strategy="hybrid").conversation(talk.id).window("x").strategy == "hybrid"
    talk.use_strategy(None)
    assert talk.window("x").strategy == "hybrid"
    with pytest.raises(Invalid, match="discard or summarize or hybrid"):
        talk.window("x", strategy="guess")


def test_automatic_compaction_can_be_switched_off(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1000), context__enabled=False)
    talk = at.conversation()
    notes: list[str] = []
    for number in range(20):
        events = list(talk.stream(SAID.format(number)))
        notes += [event.text for event in of(Noticed, events)]
        window = of(Sent, events)[-1].window
        assert window.total <= window.limit - window.reserve
    assert talk.compaction() is None
    assert any("older messages were left out of this request" in note for note in notes)
    assert summary_requests(at, talk) == []


def test_when_what_must_stay_fills_the_window_compaction_stops_and_says_so(desk: Open, script: Script) -> None:
    keeps = {"context__recent_messages_to_keep": 38, "context__min_recent_messages_to_keep": 38}
    at = desk(script(REPLY, SUMMARY, limit=1500), context__summary_tokens=96, **keeps)
    talk = at.conversation()
    notes: list[str] = []
    for number in range(40):
        events = list(talk.stream(SAID.format(number)))
        notes += [event.text for event in of(Noticed, events)]
        window = of(Sent, events)[-1].window
        assert window.total <= window.limit - window.reserve
    assert any("2 compactions in a row have freed little" in note for note in notes)
    assert max(block.little for block in talk.compactions()) == 2, "then it waits until there is something to free"
    assert len(summary_requests(at, talk)) <= 10


@pytest.mark.parametrize(
    ("limit", "settings", "told"),
    [
        (2000, {"context__threshold": 0.95, "context__reserved_response_tokens": 60}, "the context is 8"),
        (1200, {}, "it is compacted at 688"),
    ],
    ids=["large", "small"],
)
def test_a_line_comes_once_before_the_compaction(
    desk: Open, script: Script, limit: int, settings: dict[str, Any], told: str
) -> None:
    talk = desk(script(REPLY, SUMMARY, limit=limit), **settings).conversation()
    notes: list[str] = []
    for number in range(60):
        events = list(talk.stream(SAID.format(number)))
        notes += [event.text for event in of(Noticed, events) if "% full" in event.text]
        if of(ContextCompacted, events):
            break
    (note,) = notes
    assert told in note


# -- ask first


def answered(talk: Talk, answer: str, *, edited: str | None = None) -> list[Event]:
    for number in range(60):
        heard: list[Event] = []
        for event in talk.stream(SAID.format(number)):
            heard.append(event)
            if isinstance(event, CompactionProposed):
                event.accept(edited) if answer == "yes" else event.refuse()
        if of(CompactionProposed, heard):
            return heard
    raise AssertionError("no compaction was proposed")


def test_asked_first_the_user_may_accept_edit_or_refuse(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200), context__confirm=True)
    accepted = at.conversation()
    events = answered(accepted, "yes")
    assert of(ContextCompacted, events)[0].summary == SUMMARY["text"]
    edited = at.conversation()
    events = answered(edited, "yes", edited="My own words.")
    (compacted,) = of(ContextCompacted, events)
    assert (compacted.summary, compacted.made_by) == ("My own words.", "user")
    refused = at.conversation()
    events = answered(refused, "no")
    assert not of(ContextCompacted, events)
    assert of(Replied, events)
    assert refused.compaction() is None


def test_asked_first_with_nobody_there_nothing_is_compacted_and_the_chat_goes_on(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, SUMMARY, limit=1200), context__confirm=True).conversation()
    notes: list[str] = []
    for number in range(30):
        reply = talk.ask(SAID.format(number))
        notes += reply.notes
        assert reply.window.total <= reply.window.limit - reply.window.reserve
    assert talk.compaction() is None
    assert any("nobody to ask" in note for note in notes)


# -- long histories


def test_what_was_never_loaded_is_seen_by_the_summariser_too(desk: Open, script: Script, log: Path) -> None:
    at = desk(script(REPLY, SUMMARY, limit=3000))
    talk = at.conversation()
    talk.ask("start")
    head = talk.session.head
    with at.store.database.write():
        for number in range(300):
            role = ("user", "assistant")[number % 2]
            said = Message(new_id(), role, (Text(f"{role} says number {number} of the list"),), parent=head)  # type: ignore[arg-type]
            head = at.store.tree.append(talk.id or "", said).message.id
    again = at.conversation(talk.id)
    events = list(again.stream("go on"))
    (compacted,) = of(ContextCompacted, events)
    assert compacted.made_by == "model"
    told = " ".join(log.read_text().split())
    block = again.summary_block()
    assert all(f"says number {number} of" in told for number in range(300))
    assert block.checks["seen"] == block.checks["covered"]


def test_a_model_with_a_smaller_window_compacts_first(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, limit=30_000)).conversation()
    say(talk, 30)
    small = desk(script(REPLY, SUMMARY, limit=1000)).conversation(talk.id)
    events = list(small.stream("still there?"))
    assert of(ContextCompacted, events)
    window = of(Sent, events)[-1].window
    assert window.total <= window.limit - window.reserve


def test_a_summary_that_became_too_long_for_a_smaller_window_is_written_anew(desk: Open, script: Script) -> None:
    long = {"text": "Fact number one of many. " * 60, "when": "summary"}
    talk = desk(script(REPLY, long, limit=30_000)).conversation()
    say(talk, 10)
    talk.compact()
    small = desk(script(REPLY, SUMMARY, limit=900)).conversation(talk.id)
    events = list(small.stream("still there?"))
    window = of(Sent, events)[-1].window
    assert window.total <= window.limit - window.reserve
    block = small.summary_block()
    assert len(block.summary) < len(long["text"])


def test_a_fork_between_what_is_covered_and_the_compaction_keeps_it(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=1200))
    talk = at.conversation()
    fill(talk)
    said = said_in(talk)
    talk.fork(said[-3].id)
    block = talk.compaction()
    assert isinstance(block, Compaction)
    assert block.summary == SUMMARY["text"]
    messages = sent(at, list(talk.stream("another way")))
    assert "14 boats" in messages[1]["content"]


# -- what a summary has told is never dropped


def test_a_message_that_leaves_no_room_for_a_summary_does_not_throw_it_away(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=2000))
    talk = at.conversation()
    fill(talk)
    events = list(talk.stream("word " * 1350))
    assert of(Sent, events)[-1].window.total <= 2000 - 512
    assert not of(ContextCompacted, events), "nothing is stored that tells less"
    assert any("a summary has no room" in event.text for event in of(Noticed, events))
    block = talk.summary_block()
    assert block.summary == SUMMARY["text"]
    after = list(talk.stream("and now?"))
    former = summary_requests(at, talk)[-1]
    assert "14 boats" in json.dumps(former["messages"])
    assert "14 boats" in sent(at, after)[1]["content"]


def test_what_is_pinned_while_a_summary_is_written_stays_pinned(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, SUMMARY, limit=1200)).conversation()
    pinned = ""
    for number in range(40):
        for event in talk.stream(SAID.format(number)):
            if isinstance(event, SummaryRequested) and not pinned:
                pinned = talk.messages()[0].id
                talk.pin(pinned)
        if pinned:
            break
    block = talk.summary_block()
    assert block.pinned == (pinned,)
    numbers = [each.compaction_number for each in talk.compactions()]
    assert len(numbers) == len(set(numbers))


def test_a_second_compaction_in_one_tool_loop_still_has_the_question(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    vault, call = page(tmp_path, "some words of a page " * 30)
    at = desk(script(*[call] * 14, {"text": "done"}, SUMMARY, limit=2048), vault=vault)
    talk = at.conversation()
    events = list(talk.stream("The question to answer"))
    assert len(of(ContextCompacted, events)) > 1
    for asked in summary_requests(at, talk):
        roles = [message["role"] for message in asked["messages"]]
        assert roles[:2] == ["system", "user"]
        assert sum(message["content"] == "The question to answer" for message in asked["messages"]) == 1
    kept = [at.record(id) for id in at.store.records.ids(talk.id)]
    ridden = [each.account.broken_by for each in kept if each.purpose == "summary"]
    assert ridden == [None] * len(ridden), "each rides on the prefix"
    named = [each.account.broken_by for each in kept if each.purpose == "reply"]
    assert sum(why is not None for why in named) == len(of(ContextCompacted, events))


def test_taking_back_a_clear_gives_the_pins_back(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY)).conversation()
    talk.ask("The password is swordfish.")
    pinned = talk.messages()[0].id
    talk.pin(pinned)
    talk.clear()
    assert talk.compaction() is not None
    back = talk.uncompact()
    assert back.pinned == (pinned,)


def test_an_excerpt_can_be_taken_back_once_there_is_room(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, limit=1000)).conversation()
    talk.ask("A sentence of a long letter. " * 300)
    assert (talk.messages()[0].tokens.own or 0) > 1500, "the message is counted whole"
    large = desk(script(REPLY, limit=60_000))
    again = large.conversation(talk.id)
    again.uncompact()
    reply = again.ask("And?")
    assert (
        json.loads(large.rebuild(reply.request_id))["messages"][1]["content"] == "A sentence of a long letter. " * 300
    )


def test_a_refusal_is_forgotten_after_a_compaction_by_hand(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY, SUMMARY, limit=1200), context__confirm=True).conversation()
    answered(talk, "no")
    talk.compact()
    heard = answered(talk, "yes")
    assert of(ContextCompacted, heard)


def test_an_overflow_with_nothing_to_make_smaller_is_told_at_once(desk: Open, script: Script, log: Path) -> None:
    at = desk(script({"error": "overflow"}))
    with pytest.raises(Overflow):
        at.conversation().ask("hello")
    assert len(log.read_bytes().splitlines()) == 1


def test_an_overflow_by_the_message_alone_sends_an_excerpt_of_it(desk: Open, script: Script) -> None:
    talk = desk(script({"error": "overflow"}, {"text": "read"})).conversation()
    events = list(talk.stream("A sentence of a long letter. " * 300))
    assert of(Replied, events)[-1].message.text == "read"
    first, second = (event.size for event in of(ContextUsage, events))
    assert second < 0.7 * first
    block = talk.compactions()[0]
    assert block.because.startswith("the provider says")


@pytest.mark.parametrize(
    ("said", "settings"), [(["hi"], {"context__recent_messages_to_keep": 1}), (["hi", "and?"], {})]
)
def test_a_compaction_by_hand_that_would_make_the_window_larger_is_refused(
    desk: Open, script: Script, said: list[str], settings: dict[str, Any]
) -> None:
    talk = desk(script({"text": "ok"}, SUMMARY), **settings).conversation()
    for text in said:
        talk.ask(text)
    with pytest.raises(Invalid, match="and a summary of it would take"):
        talk.compact()
    assert talk.compaction() is None


def test_of_a_short_chat_half_is_compacted_where_that_gains_something(desk: Open, script: Script) -> None:
    at = desk(script({"text": "It stands. " * 90}, SUMMARY))
    talk = at.conversation()
    talk.ask("How does the mast stand? " * 40)
    talk.ask("And the boom? " * 60)
    block = talk.compact()
    assert block.messages_archived == 2
    assert block.context_size_after < block.context_size_before
    single = at.conversation()
    single.ask("How does the mast stand? " * 40)
    assert single.compact().messages_archived == 1


def test_summary_and_ledger_together_are_shorter_than_what_they_stand_for(desk: Open, script: Script) -> None:
    facts = "On 5 April 2031 the mast of the Albatross, 14 m of spruce, cost 3,200 € at Harlan & Sons in Fowey."
    at = desk(script({"text": "Noted."}, {"error": "unreachable", "when": "summary"}))
    talk = at.conversation()
    for number in range(4):
        talk.ask(f"{facts} Ticket AB-{number}17, file docs/{number}.md.")
    block = talk.compact()
    assert block.context_size_after < block.context_size_before


@pytest.mark.parametrize(
    ("keep", "told"), [("the parking and the keys", "The spare keys hang"), ("the birthday cake", "Aunt Rosa brings")]
)
def test_what_the_user_wants_kept_is_told_without_a_model_too(desk: Open, script: Script, keep: str, told: str) -> None:
    talk = desk(
        script({"text": "Noted."}, limit=8000, summarizes=False),
        context__recent_messages_to_keep=2,
        context__summary_tokens=120,
    ).conversation()
    for text in (
        "We decided to paint the boat house red, the deadline is 14 June 2026.",
        "Never use the old crane, it is locked since March.",
        "The spare keys hang in the office, parking is behind the mill.",
        "The invoice 4711 of 3,200 euros must be paid by 1 July.",
        "Aunt Rosa brings the birthday cake on Sunday.",
        "Our order number is BX-2291, the sails come from Lyon.",
        "Bernd Kowalski is the harbour master, his number is 555-0199.",
        "The mast must be 14 metres tall and made of spruce.",
        "Fine.",
        "Good.",
    ):
        talk.ask(text)
    talk.compact(keep)
    assert told in talk.summary_block().summary


def test_a_compaction_that_covers_little_keeps_what_the_former_one_told(desk: Open, script: Script) -> None:
    at = desk(script({"text": "Noted."}, limit=8000, summarizes=False), context__recent_messages_to_keep=2)
    talk = at.conversation()
    wanted = [text for text in user_sentences() if re.search(r"\d", text)][:40]
    for text in wanted:
        talk.ask(text)
    first = talk.compact()
    for _ in range(4):
        talk.ask("Go on, please.")
        talk.compact()
    block = talk.summary_block()
    assert block.compaction_number == first.compaction_number + 4

    def told(block: Compaction) -> list[str]:
        flat = " ".join("\n".join((block.summary, *block.ledger)).split())
        return [text for text in wanted if text in flat]

    assert len(told(first)) >= 20
    assert set(told(first)) <= set(told(block))


def test_a_compaction_that_was_taken_back_is_not_made_again_by_the_next_message(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "ok"}, SUMMARY, limit=4000)).conversation()
    while talk.compaction() is None:
        talk.ask("How does the mast stand? " * 16)
    first = talk.compactions()[0]
    talk.uncompact()
    talk.ask("hi")
    now = talk.compactions()[0]
    assert (now.action, now.last) == ("undo", None)
    assert talk.window().plan.cut is None
    while now.action == "undo":
        talk.ask("And the boom, how does that stand? " * 10)
        now = talk.compactions()[0]
    assert now.context_size_before >= first.context_size_before * 1.1 or now.context_size_before > 4000 * 0.87
    talk.pin("#1")
    block = talk.compactions()[0]
    assert block.restored_size == 0


def test_a_window_that_is_slightly_too_full_after_an_undo_leaves_messages_out_once(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "ok"}, SUMMARY, limit=4000), context__threshold=0.86).conversation()
    while talk.compaction() is None:
        talk.ask("How does the mast stand? " * 16)
    talk.uncompact()
    talk.ask("And the boom, how does that stand? " * 12)
    block = talk.compactions()[0]
    assert block.action == "undo"
    assert talk.window("What now? " * 30).total <= 4000 - 512
