"""What a compaction sets aside from end to end: stored with its block, brought back on its topic, along every path."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from tests.compaction.test_compaction_work import said_in
from tests.conftest import Open, Script
from tests.said import user_sentences

from recto import wire
from recto.api.blocking import Desk, Talk, open_desk
from recto.chat.blocks import Compaction
from recto.summary.ledger import parse_ledger
from recto.summary.set_aside import RETURNED

pytestmark = pytest.mark.untraced

REPLY: dict[str, Any] = {"text": "Noted, thank you. " * 20}  # so that compactions come soon
FAILS: dict[str, Any] = {"error": "unreachable", "when": "summary"}
PLANTED = "We decided that the mooring fee for the sailboat Meltemi is 940 euros."
ASKED = "How much is the mooring fee for the sailboat Meltemi?"


def said(number: int) -> str:
    sentences = user_sentences()
    return sentences[number % len(sentences)]


def compact(talk: Talk, times: int, start: int = 0) -> list[Compaction]:
    """Talks on until so many compactions have come."""
    blocks: list[Compaction] = []
    number = start
    while len(blocks) < times:
        before = talk.compaction()
        talk.ask(said(number))
        number += 1
        block = talk.compaction()
        if block and block != before:
            blocks.append(block)
    return blocks


def told(block: Compaction) -> str:
    return "\n".join((block.summary, *block.ledger))


def aside(blocks: list[Compaction]) -> str:
    return "\n".join(line for block in blocks for line in block.set_aside)


LIMIT, SETTINGS = 3000, {"context.summary_tokens": 320}


def opened(desk: Open, script: Script, *summaries: dict[str, Any]) -> tuple[Desk, Talk]:
    at = desk(script(REPLY, *summaries, limit=LIMIT), context__summary_tokens=320)
    return at, at.conversation()


class Stages:
    """One conversation at several points of its way: each is made once, and every test goes on with a copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._blocks: dict[str, list[Compaction]] = {}
        script = folder / "script.json"
        script.write_text(json.dumps({"limit": LIMIT, "steps": [REPLY, FAILS]}))
        self.model = f"scripted:{script}"

    def compacted(self, times: int, home: Path) -> list[Compaction]:
        """So many compactions, of which no summary is a model's."""
        return self._reach(str(times), str(times - 1) if times > 1 else None, _once_more, home)

    def aside(self, home: Path) -> list[Compaction]:
        """Compactions until what was planted is no longer told."""
        return self._reach("aside", None, until_aside, home)

    def _reach(
        self, name: str, before: str | None, make: Callable[[Talk], list[Compaction]], home: Path
    ) -> list[Compaction]:
        self._make(name, before, make)
        copytree(self._folder / name, home)
        return self._blocks[name]

    def _make(self, name: str, before: str | None, make: Callable[[Talk], list[Compaction]]) -> None:
        if name in self._blocks:
            return
        if before:
            self._make(before, str(int(before) - 1) if before != "1" else None, make)
            copytree(self._folder / before, self._folder / name)
        with open_desk(home=self._folder / name, model=self.model, settings=SETTINGS) as at:
            blocks = make(at.conversation(1) if before else at.conversation())
        self._blocks[name] = [*self._blocks.get(before or "", ()), *blocks]


def _once_more(talk: Talk) -> list[Compaction]:
    asked = [message for message in talk.messages(limit=None, with_system=False) if message.role == "user"]
    return compact(talk, 1, len(asked))


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return Stages(tmp_path_factory.mktemp("stages"))


Compacted = Callable[[int], tuple[Desk, Talk, list[Compaction]]]


@pytest.fixture
def compacted(stages: Stages, desk: Open, tmp_path: Path) -> Compacted:
    def after(times: int) -> tuple[Desk, Talk, list[Compaction]]:
        blocks = stages.compacted(times, tmp_path / "home")
        at = desk(stages.model, context__summary_tokens=320)
        return at, at.conversation(1), blocks

    return after


@pytest.fixture
def set_aside(stages: Stages, desk: Open, tmp_path: Path) -> tuple[Desk, Talk]:
    """What was planted is set aside."""
    blocks = stages.aside(tmp_path / "home")
    assert "940 euros" in aside(blocks)
    at = desk(stages.model, context__summary_tokens=320)
    return at, at.conversation(1)


def until_aside(talk: Talk) -> list[Compaction]:
    """Compactions until what was planted is no longer told."""
    talk.ask("Let us plan the year for our club.")  # the task, which is told for ever
    for number in range(6):  # what comes first is told for long
        talk.ask(said(500 + number))
    talk.ask(PLANTED)
    while talk.compaction() is None:
        talk.ask("The weather is mild today, with a little wind from the sea and some clouds above the hills. " * 3)
    blocks = [talk.summary_block()]
    while "940" in told(blocks[-1]):
        assert len(blocks) < 15, "it is told for ever"
        blocks += compact(talk, 1, 20 * len(blocks))
    return blocks


def goes_on(talk: Talk, start: int = 900) -> Compaction:
    """The topic comes up again in every message until the next compaction."""
    before = talk.compaction()
    for number in range(start, start + 60):
        talk.ask(f"{ASKED} I ask once more, {number}.")
        block = talk.compaction()
        if block and block != before:
            return block
    raise AssertionError("no compaction came")


def test_what_was_set_aside_stands_in_the_summary_when_its_topic_goes_on(set_aside: tuple[Desk, Talk]) -> None:
    returns(set_aside[1])


def test_what_was_set_aside_stands_in_a_models_summary_too(desk: Open, script: Script) -> None:
    _, talk = opened(desk, script, {"text": "The weather is mild, with a little wind.", "when": "summary"})
    assert "940 euros" in aside(until_aside(talk))
    returns(talk)


def returns(talk: Talk) -> None:
    block = goes_on(talk)
    assert RETURNED in block.summary
    assert "User (#15): We decided that the mooring fee for the sailboat Meltemi is 940 euros" in block.summary
    assert "[unverified]" not in block.summary


def test_what_was_set_aside_is_one_recall_away(set_aside: tuple[Desk, Talk]) -> None:
    at, talk = set_aside
    at.engine.message_index.catch_up()
    talk.ask(ASKED)
    request = at.store.records.ids(talk.id)[-1]
    assert "940 euros" in at.rebuild(request).decode()


def test_nothing_is_both_told_and_set_aside_and_each_thing_is_set_aside_once(compacted: Compacted) -> None:
    _, _, blocks = compacted(8)
    assert sum(bool(block.set_aside) for block in blocks) >= 5
    for block in blocks:
        assert not [item for item in parse_ledger(block.set_aside) if item.text in told(block)]
    items = [item for block in blocks for item in parse_ledger(block.set_aside)]
    assert len(items) == len(set(items))


def test_the_window_lists_what_is_set_aside_by_ranges(compacted: Compacted) -> None:
    at, talk, blocks = compacted(6)
    contents = blocks[-1].contents
    assert contents
    assert contents[0].startswith("#")
    request = at.store.records.ids(talk.id)[-1]
    assert wire.dumps(contents[0]).strip('"') in at.rebuild(request).decode()


def test_summary_ledger_and_contents_stay_within_the_summarys_room(compacted: Compacted) -> None:
    at, talk, _ = compacted(6)
    assert goes_on(talk).contents
    sections = [at.record(id).account.sections or () for id in at.store.records.ids(talk.id)]
    sizes = [section.tokens for each in sections for section in each if section.name == "summary"]
    assert 240 < max(sizes) <= 360


def test_after_a_clear_nothing_earlier_returns(set_aside: tuple[Desk, Talk]) -> None:
    _, talk = set_aside
    assert talk.clear().contents == ()
    compact(talk, 3, 500)
    block = goes_on(talk)
    assert "940" not in told(block)


def test_taking_a_compaction_back_takes_back_what_it_set_aside(compacted: Compacted) -> None:
    at, talk, blocks = compacted(4)
    before = at.store.tree.set_aside(talk.head or "")
    assert set(blocks[-1].set_aside) <= set(before)
    undone = talk.uncompact()
    assert undone.set_aside == ()
    assert undone.contents == blocks[-2].contents
    after = at.store.tree.set_aside(talk.head or "")
    assert after == before[: len(after)]
    assert not set(blocks[-1].set_aside) & set(after)


def test_pins_and_edits_do_not_repeat_what_was_set_aside(compacted: Compacted) -> None:
    at, talk, (*_, block) = compacted(4)
    before = at.store.tree.set_aside(talk.head or "")
    edited = talk.edit_summary("My own words.")
    assert edited.set_aside == ()
    assert edited.contents == block.contents
    assert at.store.tree.set_aside(talk.head or "") == before


def test_what_was_set_aside_follows_a_fork(compacted: Compacted) -> None:
    at, talk, _ = compacted(3)
    head = said_in(talk)[-1].id
    before = at.store.tree.set_aside(talk.head or "")
    compact(talk, 1, 300)
    talk.fork(head)
    assert at.store.tree.set_aside(talk.head or "") == before


def test_a_fork_to_before_a_compaction_keeps_what_it_set_aside(compacted: Compacted) -> None:
    at, talk, (*_, block) = compacted(4)
    assert block.set_aside
    path = [message.id for message in talk.messages(limit=None, with_system=False)]
    talk.fork(path[path.index(block.last or "") + 1])
    assert set(block.set_aside) <= set(at.store.tree.set_aside(talk.head or ""))
    assert (talk.compaction() or block).contents == block.contents


def test_the_fields_are_written_and_read_and_old_blocks_have_none(compacted: Compacted) -> None:
    _, _, (*_, block) = compacted(4)
    written = wire.block_to_json(block)
    assert written["set_aside"] == list(block.set_aside)
    assert wire.block_from_json(written) == block
    old = {name: value for name, value in written.items() if name not in ("set_aside", "contents")}
    read = wire.block_from_json(old)
    assert isinstance(read, Compaction)
    assert (read.set_aside, read.contents) == ((), ())


def test_nothing_of_it_asks_a_model(desk: Open, script: Script) -> None:
    at = desk(script(REPLY, limit=LIMIT, summarizes=False), context__summary_tokens=320)
    talk = at.conversation()
    assert aside(compact(talk, 6))
    assert not [id for id in at.store.records.ids(talk.id) if at.record(id).purpose != "reply"]
