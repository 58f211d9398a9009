"""Long imported histories: what a summary reads at once, what it leaves to the next one, and what is recorded."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.compaction.test_compaction_work import said_in
from tests.conftest import Open, Script
from tests.said import user_sentences

from recto import wire
from recto.api.blocking import Desk, Talk
from recto.base.ids import new_id
from recto.chat.blocks import Compaction, MessageRange, Text
from recto.chat.conversation import ranges_of, ranges_without
from recto.chat.message import Message
from recto.cli.drawing.transcripts import compaction_facts, progress_in_words
from recto.compaction import summary_input, summary_writer
from recto.compaction.summary_input import sampled
from recto.events import ContextCompacted, Event, SummaryProgress
from recto.summary.set_aside import split_returned

ROLES = ("user", "assistant")
REPLY: dict[str, Any] = {"text": "Noted, the harbour has room."}
SAID = "Boat {0} arrived on quay {0} with {0} barrels of oil for the lighthouse, said the {1}."
IMPORTED = 400
# About a third of them, and more than a window of 2,000 tokens has loaded.
READ = 12_000


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_writer, "MOST_READ", READ)


def one_of_a_series(n: int) -> str:
    return SAID.format(n, ROLES[n % 2])


def something_else(n: int) -> str:
    return user_sentences()[n % 500]


def imported(at: Desk, number: int = IMPORTED, said: Callable[[int], str] = one_of_a_series) -> Talk:
    """A conversation as an import leaves it."""
    talk = at.conversation()
    talk.ask("Start.")
    told = (Message(new_id(), ROLES[n % 2], (Text(said(n)),)) for n in range(number))  # type: ignore[arg-type]
    at.store.tree.append_all(talk.id or "", told)
    return at.conversation(talk.id)


def compacted(events: Iterable[Event]) -> list[ContextCompacted]:
    return [event for event in events if isinstance(event, ContextCompacted)]


def next_compaction(talk: Talk) -> Compaction:
    for number in range(200):
        lines = "".join(f"Line {number}-{n} tells of the weather at sea, as every day.\n" for n in range(5))
        if compacted(talk.stream(lines)):
            return talk.summary_block()
    raise AssertionError("no compaction came")


def numbers(ranges: Iterable[MessageRange]) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


def first_block(talk: Talk) -> Compaction:
    (event,) = compacted(talk.stream("Where were we?"))
    block = talk.summary_block()
    assert event.notes == block.notes
    return block


def test_a_summary_reads_the_beginning_and_the_end_and_records_them(desk: Open, script: Script) -> None:
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)))
    block = first_block(talk)
    assert block.made_by == "extractive"
    assert block.read[0].first == 1
    covered = block.messages_archived + len(block.lifted)
    assert block.read[-1].last == covered
    assert len(block.read) == 2, "the beginning, and the end"
    read, unread = numbers(block.read), numbers(block.unread)
    assert not read & unread
    assert read | unread == set(range(1, covered + 1)), "read and unread make up what is covered"
    assert (block.checks["seen"], block.checks["covered"]) == (len(read), covered)
    (note,) = [note for note in block.notes if "in time" in note]
    assert f"{len(read):,} of {covered:,} messages" in note
    assert {message.said for message in said(talk)} >= read | unread, "nothing is lost"


def said(talk: Talk) -> list[Message]:
    return said_in(talk)


@pytest.mark.untraced
def test_the_next_compaction_reads_on_until_everything_is_read(desk: Open, script: Script) -> None:
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)))
    block = first_block(talk)
    talk.ask("And now?")
    assert talk.compaction() == block, "nothing is read in between"
    left = block.unread_messages
    while left:
        before, block = block, next_compaction(talk)
        assert block.unread_messages < left
        assert numbers(block.unread) < numbers(before.unread)
        assert block.checks["covered"] > block.checks["seen"] or not block.unread
        left = block.unread_messages
    assert block.read == ()
    assert not any("in time" in note for note in block.notes)


@pytest.mark.untraced
def test_what_is_read_late_is_told_with_its_number_and_corrects_nothing(desk: Open, script: Script) -> None:
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)), said=something_else)
    first = first_block(talk)
    assert not re.search(r"\(#\d+\): ", first.summary), "the order of the lines tells it"
    late, block = set[int](), first
    while block.unread:
        block = next_compaction(talk)
        late |= {int(number) for number in re.findall(r"\(#(\d+)\): ", split_returned(block.summary)[0])}
        assert late <= numbers(first.unread) - numbers(block.unread)
    assert late


@pytest.mark.untraced
def test_the_same_history_gives_the_same_summary(desk: Open, script: Script) -> None:
    model = script(REPLY, limit=2000, summarizes=False)
    one, other = first_block(imported(desk(model))), first_block(imported(desk(model)))
    assert (one.summary, one.ledger, one.read, one.unread) == (other.summary, other.ledger, other.read, other.unread)


def test_a_model_reads_no_more_and_sees_where_messages_are_missing(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    monkeypatch.setattr(summary_writer, "MOST_READ", 3 * READ)  # a model reads all that is loaded
    summary = {"text": "Boats arrive with oil for the lighthouse, boat 12 with 12 barrels.", "when": "summary"}
    talk = imported(desk(script(REPLY, summary, limit=5000)), 3 * IMPORTED)
    block = first_block(talk)
    assert block.made_by == "model"
    assert block.unread
    told = log.read_text()
    gaps = re.findall(r"\[(\d+) messages left out\]", told)
    assert sorted(map(int, gaps)) == sorted(each.length for each in block.unread)
    next_compaction(talk)
    assert "Older messages, which the earlier summary leaves out:" in log.read_text()


def test_what_fits_the_budget_is_read_whole_and_nothing_is_recorded(desk: Open, script: Script) -> None:
    block = first_block(imported(desk(script(REPLY, limit=2000, summarizes=False)), 120))
    assert block.read == block.unread == ()
    assert block.checks["seen"] == block.checks["covered"]


def test_loaded_messages_that_are_too_many_are_left_to_the_next_one_too(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, limit=12_000, summarizes=False))
    talk = imported(at)
    block = talk.compact()
    covered = block.messages_archived + len(block.lifted)
    assert numbers(block.read) | numbers(block.unread) == set(range(1, covered + 1))
    assert block.read[0].first == 1
    assert block.read[-1].last == covered


def test_pins_edits_and_undoing_keep_what_is_unread_and_a_clear_ends_it(desk: Open, script: Script) -> None:
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)))
    block = first_block(talk)
    assert talk.pin(said(talk)[1].id).unread == block.unread
    assert talk.edit_summary("Boats came.").unread == block.unread
    later = next_compaction(talk)
    assert later.unread != block.unread
    assert talk.uncompact().unread == block.unread
    assert talk.clear().unread == ()


def test_a_block_says_in_json_and_in_words_what_was_read(desk: Open, script: Script) -> None:
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)))
    block = first_block(talk)
    data = wire.block_to_json(block)
    assert data["read"][0] == [1, block.read[0].last]
    assert wire.block_from_json(wire.loads(wire.dumps(data))) == block
    old = {name: value for name, value in data.items() if name not in ("read", "unread")}
    assert wire.block_from_json(old).unread == ()  # type: ignore[union-attr]
    facts = dict(compaction_facts(block))
    assert facts["read"].startswith(f"#1–#{block.read[0].last}, ")
    assert facts["not read"].startswith(f"{block.unread_messages:,} messages: #")
    (section,) = [section for section in talk.window("x").sections if section.name == "summary"]
    assert f"{block.unread_messages} of them are read at the next compaction" in section.picks[0].because


def test_work_that_takes_long_is_shown(desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_writer, "PATIENCE_S", 0.0)
    talk = imported(desk(script(REPLY, limit=2000, summarizes=False)))
    events = list(talk.stream("Where were we?"))
    shown = [event for event in events if isinstance(event, SummaryProgress)]
    assert shown[0].of > IMPORTED - 100
    assert max(event.read for event in shown) > 0
    assert progress_in_words(SummaryProgress(0, 12_000)) == "summing up 12,000 messages"
    assert progress_in_words(SummaryProgress(1_500, 12_000)) == "summing up 12,000 messages, 1,500 read so far"


def test_of_a_huge_message_places_all_over_it_are_read_and_not_its_length(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(number: int) -> str:
        return f"{something_else(number)} It has been so since quay {number} was dark."

    log = tmp_path / "bodies.log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    monkeypatch.setattr(summary_input, "MOST_OF_ONE", 40_000)
    talk = imported(desk(script(REPLY, limit=30_000)), 1, lambda n: "\n".join(map(line, range(20_000))))
    talk.ask("Where were we?")
    talk.compact()
    told = "".join(body for body in log.read_text().splitlines() if line(0) in body)
    assert len(told) < 100_000
    assert {int(quay) // 2_000 for quay in re.findall(r"quay (\d+)", told)} >= {0, 2, 4, 5, 7, 9}
    assert "quay 19999" in told


def test_places_of_a_text_are_its_beginning_its_end_and_between_them() -> None:
    text = "".join(f"{n:06}" for n in range(10_000))
    told = sampled(text, 800)
    assert len(told) < 900
    assert [part[:6] for part in told.splitlines()[:1]] == ["000000"]
    assert told.endswith("009999")
    assert sampled(text, len(text)) == text


def test_ranges_are_made_of_numbers_and_taken_from_each_other() -> None:
    assert ranges_of([5, 1, 2, 3, 7]) == ((1, 3), (5, 5), (7, 7))
    assert ranges_of([]) == ()
    whole = (MessageRange(1, 10), MessageRange(20, 30))
    assert ranges_without(whole, ranges_of([1, 2, 5, 10, 20, 30])) == ((3, 4), (6, 9), (21, 29))
    assert ranges_without(whole, (MessageRange(5, 25),)) == ((1, 4), (26, 30))
    assert ranges_without(whole, whole) == ()
