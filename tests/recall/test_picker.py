"""What was archived comes back with a message that it bears on, and nothing that must not."""

import json
from typing import Any

import pytest
from tests.conftest import Open, Script, mostly_slow
from tests.said import user_sentences

from recto.api.blocking import Desk, Talk
from recto.events import Noticed, Sent
from recto.window.account import Section

pytestmark = pytest.mark.untraced

REPLY = {"text": "I see, and I will keep that in mind for later. " * 2}
SUMMARY = {"text": "Task: talk about a boat and other things.", "when": "summary"}
TOLD = (
    "The mast of the Albatross is 14 metres tall and made of spruce.",
    "My sister Ada bakes rye bread every Thursday.",
    "We decided to paint the kitchen green in April.",
    "The invoice of the sailmaker was 3,200 euros.",
    "The cat is called Minka and hates the vacuum cleaner.",
    "I parked the trailer behind the old cinema.",
    "The harbour master wants the form by the end of June.",
    "Our train to Lyon leaves at 7:42.",
)


def told(desk: Desk, *more: str) -> Talk:
    """A conversation whose beginning is archived."""
    talk = desk.conversation()
    for text in (*TOLD, *more, "Thanks.", "Good.", "Fine.", "Right."):
        talk.ask(text)
    talk.compact()
    desk.engine.message_index.catch_up()  # a turn does not wait for it
    return talk


def recalled(window: Any) -> Section | None:
    return next((section for section in window.sections if section.name == "recalled"), None)


def numbers(section: Section | None) -> list[str]:
    return [pick.because.split(",")[0].split(":")[0] for pick in section.picks] if section else []


def body(desk: Desk, request: str) -> str:
    last = json.loads(desk.rebuild(request))["messages"][-1]["content"]
    return last if isinstance(last, str) else "".join(part["text"] for part in last)


def test_an_archived_message_comes_back_verbatim_with_its_number_and_its_day(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    reply = talk.ask("How tall is the mast of the Albatross?")
    sent = body(at, reply.request_id)
    assert f"#1 user: {TOLD[0]}" in sent
    assert sent.index("[Recalled from earlier") < sent.index(TOLD[0]) < sent.index("How tall is the mast")
    created = talk.messages(limit=None)[0].created
    assert f"[{created[:4]}-" in sent, "the time is told"
    section = recalled(reply.window)
    assert section is not None
    assert section.tokens == sum(pick.tokens for pick in section.picks)
    first = next(pick for pick in section.picks if pick.name == talk.messages(limit=None)[0].id)
    assert first.score is not None
    assert 0 < first.score <= 1
    assert "mast" in first.because


def test_what_is_recalled_is_in_order_of_time(desk: Open, script: Script) -> None:
    talk = told(desk(script(REPLY, SUMMARY)))
    found = numbers(recalled(talk.window("the invoice, the mast of the Albatross and the cat Minka")))
    assert found == sorted(found, key=lambda each: int(each[1:]))
    assert {"#1", "#7", "#9"} <= set(found)


def test_the_next_window_does_not_hold_what_was_recalled_before(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    talk.ask("How tall is the mast of the Albatross?")
    reply = talk.ask("And the cat Minka, what does she hate?")
    assert TOLD[0] not in body(at, reply.request_id).split("[Recalled")[0]
    messages = json.loads(at.rebuild(reply.request_id))["messages"]
    assert not any("[Recalled" in str(message["content"]) for message in messages[:-1])


def test_nothing_is_recalled_for_chatter_or_for_what_was_never_spoken_of(desk: Open, script: Script) -> None:
    talk = told(desk(script(REPLY, SUMMARY)))
    assert recalled(talk.window("Thanks!")) is None
    assert recalled(talk.window("Explain photosynthesis in chloroplasts")) is None


def test_nothing_is_recalled_before_anything_is_archived(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY)).conversation()
    talk.ask(TOLD[0])
    assert recalled(talk.window("How tall is the mast?")) is None


def test_recall_can_be_turned_off(desk: Open, script: Script) -> None:
    talk = told(desk(script(REPLY, SUMMARY), context__recall_ratio=0))
    assert recalled(talk.window("How tall is the mast?")) is None


def test_nothing_comes_back_from_behind_a_clear(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    talk.clear()
    for text in ("We bought a mast for the toy boat.", *TOLD[1:], "Thanks.", "Good.", "Fine.", "Right."):
        talk.ask(text)
    talk.compact()
    section = recalled(talk.window("How tall is the mast of the Albatross?"))
    texts = {message.id: message.text for message in talk.messages(limit=None)}
    assert section is not None
    assert all(texts[pick.name] != TOLD[0] for pick in section.picks)
    talk.uncompact()
    talk.uncompact()
    window = talk.window("How tall is the mast of the Albatross?")
    assert talk.messages(limit=None)[0].id in [pick.name for pick in (recalled(window) or section).picks], (
        "the clear is taken back"
    )


def test_nothing_comes_from_another_branch(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = at.conversation()
    talk.ask("Let us talk about boats.")
    start = talk.session.head
    talk.ask("On this branch the mast is 99 metres tall.")
    assert start is not None
    talk.fork(start)
    for text in (TOLD[0], *TOLD[1:], "Thanks.", "Good.", "Fine.", "Right."):
        talk.ask(text)
    talk.compact()
    sent = talk.window("How tall is the mast?")
    section = recalled(sent)
    assert section is not None
    path = {message.id for message in talk.messages(limit=None)}
    assert all(pick.name in path for pick in section.picks)


def test_what_is_pinned_or_lifted_is_not_recalled_too(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    first = talk.messages(limit=None)[0].id
    talk.pin(first)
    section = recalled(talk.window("How tall is the mast of the Albatross?"))
    assert section is None or first not in [pick.name for pick in section.picks]


def test_what_was_found_but_did_not_fit_is_listed(desk: Open, script: Script) -> None:
    short = SUMMARY | {"text": "Ada bakes rye bread every Thursday, and boats were measured."}
    at = desk(script(REPLY, short), context__recall_tokens=90)
    talk = told(at, *(f"The mast of boat {number} is {number} metres tall." for number in range(10)))
    window = talk.window("How tall is the mast?")
    section = recalled(window)
    assert section is not None
    assert section.tokens <= 90
    assert 1 <= len(window.not_picked) <= 10
    assert all(pick.score is not None and "mast" in pick.because for pick in window.not_picked[:3])
    assert window.to_json()["not_picked"][0]["score"] == window.not_picked[0].score


def test_recall_takes_no_more_than_its_share_and_the_window_fits(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=2000), context__recall_ratio=0.1)
    talk = told(at, *(f"The mast of boat {number} is {number} metres tall." for number in range(30)))
    window = talk.window("How tall is the mast?")
    section = recalled(window)
    assert section is not None
    assert section.tokens <= (window.limit - window.reserve) * 0.1
    assert window.free >= 0


def test_in_hybrid_unused_room_flows_to_recall(desk: Open, script: Script) -> None:
    said = [f"The mast of boat {number} is {number} metres tall, and its sail is red." for number in range(70)]
    small, large = (
        recalled(
            told(
                desk(script(REPLY, SUMMARY, limit=3000), context__strategy=strategy, context__recall_ratio=0.2), *said
            ).window("How tall is the mast?")
        )
        for strategy in ("summarize", "hybrid")
    )
    assert small is not None
    assert large is not None
    assert large.tokens > small.tokens


def test_a_question_of_a_few_words_is_understood_from_what_was_said_before(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    talk.ask("Tell me about the mast of the Albatross")
    assert "#1" in numbers(recalled(talk.window("why?")))


def test_a_long_message_comes_back_in_the_parts_that_matter(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    filler = "Nothing of note happened on this day, and the next one was the same. " * 30
    talk = told(at, f"{filler}\n\nThe secret of the sailmaker is beeswax on the thread.\n\n{filler}")
    window = talk.window("What is the secret of the sailmaker's thread?")
    section = recalled(window)
    assert section is not None
    part = next(pick for pick in section.picks if "a part of it" in pick.because)
    assert part.tokens < 400
    reply = talk.ask("What is the secret of the sailmaker's thread?")
    assert "beeswax on the thread" in body(at, reply.request_id)


def test_the_record_keeps_what_was_recalled_and_rebuilds(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    reply = talk.ask("How tall is the mast of the Albatross?")
    assert next(at.record(reply.request_id).account.picks("recalled")).score
    assert all(difference is None for _, difference in at.verify())


def test_a_search_that_cannot_be_done_is_noted_and_the_chat_goes_on(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)
    at.engine.message_index.close()
    index = at.home / "search.db"
    index.unlink(missing_ok=True)
    for end in ("-wal", "-shm"):
        (at.home / f"search.db{end}").unlink(missing_ok=True)
    index.mkdir()
    damage = "recto.search.disposable_file.DisposableFile._is_damage"  # which would make room
    monkeypatch.setattr(damage, lambda self, why: False)
    events = list(talk.stream("How tall is the mast of the Albatross?"))
    assert any(isinstance(event, Sent) for event in events)
    assert any(isinstance(event, Noticed) and "nothing was recalled" in event.text for event in events)


def test_rounds_of_tool_calls_keep_what_was_recalled(desk: Open, script: Script, tmp_path: Any) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Page.md").write_text("A page.")
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Page.md"}}]}
    at = desk(script(*[REPLY] * 12, call, {"text": "done"}, SUMMARY), vault=vault)
    talk = told(at)
    events = [event for event in talk.stream("How tall is the mast of the Albatross?") if isinstance(event, Sent)]
    assert len(events) == 2
    first, second = (recalled(event.window) for event in events)
    assert first is not None
    assert second is not None
    assert [pick.name for pick in first.picks] == [pick.name for pick in second.picks]
    before, after = (at.rebuild(event.request) for event in events)
    assert after.startswith(before[: before.rindex(b"]")])


@pytest.mark.parametrize(
    "text", ["", "   ", "?!…", "the of and", '"mast" OR (NEAR "x', "船" * 50, "🎉" * 20, "word " * 10_000]
)
def test_whatever_is_asked_the_window_is_made(desk: Open, script: Script, text: str) -> None:
    talk = told(desk(script(REPLY, SUMMARY)))
    window = talk.window(text)
    assert window.free >= 0
    assert not any("failed" in note for note in window.notes)


def test_a_conversation_of_one_message_has_nothing_to_recall(desk: Open, script: Script) -> None:
    talk = desk(script(REPLY)).conversation()
    talk.ask("Only this about the mast.")
    assert recalled(talk.window("mast")) is None


def test_what_the_summary_says_word_for_word_is_not_recalled_too(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, {"text": f"Told so far: {TOLD[0]}", "when": "summary"}))
    talk = told(at)
    assert "#1" not in numbers(recalled(talk.window("How tall is the mast of the Albatross?")))


@pytest.mark.parametrize("tokens", mostly_slow(range(60, 700, 45), range(60, 700, 180)))
def test_later_rounds_send_the_very_same_whatever_the_room(
    desk: Open, script: Script, tmp_path: Any, tokens: int
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Page.md").write_text("A page.")
    call = {"tool_calls": [{"name": "read_document", "arguments": {"path": "Page.md"}}]}
    more = [f"The mast of boat {number} is {number} metres tall." for number in range(12)]
    replies = [REPLY] * (len(TOLD) + len(more) + 4)
    at = desk(script(*replies, call, {"text": "done"}, SUMMARY), vault=vault, context__recall_tokens=tokens)
    talk = told(at, *more)
    first, second = [event for event in talk.stream("How tall is the mast?") if isinstance(event, Sent)]
    section = recalled(first.window)
    assert section is None or section.tokens <= tokens
    before, after = at.rebuild(first.request), at.rebuild(second.request)
    assert after.startswith(before[: before.rindex(b"]")])


def test_whatever_fails_inside_the_search_the_turn_goes_on(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script(REPLY, SUMMARY))
    talk = told(at)

    def fails(*_: object, **__: object) -> None:
        raise ValueError("cannot reshape")

    monkeypatch.setattr(at.engine.message_index, "recall", fails)
    events = list(talk.stream("How tall is the mast of the Albatross?"))
    assert any(isinstance(event, Sent) for event in events)
    assert any(isinstance(event, Noticed) and "cannot reshape" in event.text for event in events)


def test_a_later_question_about_a_long_paste_brings_what_its_excerpt_leaves_out(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, SUMMARY, limit=4000, summarizes=False))
    talk = at.conversation()
    rooms = [f"Room {n}: {user_sentences()[n % 500]}" for n in range(700)]
    rooms[200] = "The replacement key of the boiler cabinet is kept by Henrike Voss."
    rooms[500] = "The attic must stay closed between May and August, because bats live there."
    first = talk.ask("When must the attic stay closed?\n\n" + "\n".join(rooms))
    assert rooms[500] in body(at, first.request_id)
    assert rooms[200] not in body(at, first.request_id)
    at.engine.message_index.catch_up()
    assert rooms[200] in body(at, talk.ask("And who keeps the replacement key of the boiler cabinet?").request_id)


def test_a_pasted_log_asks_for_nothing_but_a_question_above_one_does(desk: Open, script: Script) -> None:
    talk = told(desk(script(REPLY, SUMMARY)))
    log = "".join(f"2026-01-01 10:00:{n:02} ERROR mast.py:{n} = [{n}, {n}];\n" for n in range(20))
    assert recalled(talk.window(log)) is None
    asked = "How tall is the mast of the Albatross? I need to know before we order the new rigging. " * 14
    assert "#1" in numbers(recalled(talk.window(f"{asked}\n{log[:400]}")))


def best_of(window: Any) -> tuple[Any, bool]:
    """The best of all that was found, and whether it is sent."""
    section = recalled(window)
    assert section is not None
    best = max((*section.picks, *window.not_picked), key=lambda pick: pick.score or 0)
    return best, best in section.picks


def test_the_best_hit_is_sent_though_it_also_explains_worse_ones(desk: Open, script: Script) -> None:
    """The question before a short answer is the best hit itself, and keeps its own rank."""
    best = "Which varnish does the mast of the Albatross need?"
    boats = [f"Varnish number {each}: the mast of the Albatross does need a coat in May, I think." for each in range(4)]
    replies = [REPLY] * (len(TOLD) + len(boats)) + [{"text": "Copal."}] + [REPLY] * 8
    at = desk(script(*replies, SUMMARY), context__recall_tokens=110)
    window = told(at, *boats, best).window("The mast of the Albatross: which varnish does it need?")
    assert window.not_picked
    found, is_sent = best_of(window)
    assert is_sent
    assert found.because.startswith("#25,")
    assert "holds" in found.because
