"""What a clear put out of reach stays there until the clear is taken back, whatever else happens to the window."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import Open, Script, examples

from recto import wire
from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message
from recto.compaction.revisions import BlockRevision, fork_to
from recto.errors import Invalid
from recto.store.store import Store
from recto.turn.session import ChatSession, moved
from recto.window.compaction_block import WrittenSummary, cleared_at, compaction_message, next_block, revised_block

BLOCK = Compaction(2, "2026-01-01T00:00:00.000Z", "m9", "", 9, 90, 5, "clear", "the user cleared it", action="clear")


class Revising:
    """Revisions as the engine commits them."""

    def __init__(self, store: Store, session: ChatSession) -> None:
        self._store, self._session = store, session

    def __getattr__(self, name: str) -> Callable[..., Compaction]:
        change = getattr(BlockRevision(self._store, self._session.conversation, self._session.head), name)
        return lambda *args: self._session.commit(self._store, lambda: change(*args))


class Life:
    """A conversation that is talked in, compacted, cleared and forked, without a model."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.session = ChatSession(store.tree.create().id, None, "scripted:none")
        self.revising = Revising(store, self.session)
        self.said: list[str] = []

    @property
    def block(self) -> Compaction | None:
        newest = self.store.tree.compaction(self.session.head) if self.session.head else None
        return newest.compaction if newest else None

    @property
    def cleared(self) -> str | None:
        return cleared_at(self.block)

    def say(self) -> str:
        message = Message(new_id(), "user", (Text("a word"),), parent=self.session.head)
        self._append(message)
        self.said.append(message.id)
        return message.id

    def clear(self) -> str | None:
        self.revising.clear()
        return self.cleared

    def compact(self) -> None:
        last = self.say()
        self.say()
        block = next_block(self.block, WrittenSummary("Summed up.", "model"), last=last)
        self._append(compaction_message(block, self.session.head or ""))

    def fork(self, message: str) -> None:
        self.session.commit(self.store, lambda: (None, fork_to(self.store, self.session, message)))

    def _append(self, message: Message) -> None:
        placed = self.store.tree.append(self.session.conversation, message)
        self.session.apply(**moved(placed))


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    with Store(tmp_path / "recto.db") as store:
        yield Life(store)


def test_a_clear_is_at_the_last_message_that_it_covers(life: Life) -> None:
    last = life.say()
    assert (life.clear(), life.block and life.block.last) == (last, last)


def test_it_outlives_compactions_pins_and_edits(life: Life) -> None:
    life.say()
    cleared = life.clear()
    life.compact()
    life.revising.pin(life.said[-1])
    life.revising.edit("My own words.")
    life.revising.unpin(life.said[-1])
    life.compact()
    assert life.cleared == cleared


def test_taking_it_back_gives_what_was_in_force_before(life: Life) -> None:
    life.say()
    first = life.clear()
    life.say()
    second = life.clear()
    assert first != second
    assert life.revising.uncompact().cleared == first
    assert life.revising.uncompact().cleared is None


def test_taking_back_a_later_compaction_leaves_it_in_force(life: Life) -> None:
    life.say()
    cleared = life.clear()
    life.compact()
    life.revising.uncompact()
    assert life.cleared == cleared
    life.revising.uncompact()
    assert life.cleared is None


def test_taking_it_back_restores_the_compaction_before_it_whole(life: Life) -> None:
    life.compact()
    before = life.block
    life.say()
    life.clear()
    back = life.revising.uncompact()
    assert before is not None
    said = replace(before, compaction_number=3, action="undo", because=back.because, timestamp=back.timestamp)
    said = replace(said, takes_back=1)
    assert back == said


def test_a_fork_before_it_is_not_cleared_and_one_behind_it_is(life: Life) -> None:
    first, _ = life.say(), life.say()
    cleared = life.clear()
    third = life.say()
    life.compact()
    life.fork(third)
    assert life.cleared == cleared
    life.fork(first)
    assert life.cleared is None


def test_a_fork_to_the_last_message_that_it_covers_takes_it_along(life: Life) -> None:
    last = life.say()
    cleared = life.clear()
    life.fork(last)
    assert life.cleared == cleared == last


def test_undo_takes_it_back_for_what_is_said_next(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "r"})).conversation()
    talk.ask("The password is swordfish.")
    talk.clear()
    talk.undo()
    talk.ask("And?")
    assert cleared_at(talk.compaction()) is None


def test_a_clear_is_carried_over() -> None:
    cleared = replace(BLOCK, cleared="m9")
    assert next_block(cleared, WrittenSummary(), last="m20").cleared == "m9"
    assert revised_block(cleared, "edit", "", written=WrittenSummary("Told anew.", "user")).cleared == "m9"


def test_it_is_written_down_only_where_there_is_one() -> None:
    assert "cleared" not in wire.block_to_json(BLOCK)
    kept = replace(BLOCK, cleared="m9")
    assert wire.block_from_json(wire.block_to_json(kept)) == kept


STEPS = st.lists(
    st.tuples(st.sampled_from(["say", "clear", "compact", "pin", "uncompact", "fork"]), st.integers(0, 9)), max_size=15
)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_only_a_clear_puts_out_of_reach_and_only_what_is_covered(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    with Store(tmp_path / "recto.db") as store:
        life, clears = Life(store), set[str | None]()
        life.say()
        for what, which in steps:
            before, at = life.cleared, life.said[which % len(life.said)]
            try:
                if what == "clear":
                    clears.add(life.clear())
                elif what in ("say", "compact"):
                    getattr(life, what)()
                elif what == "fork":
                    life.fork(at)
                elif what == "uncompact":
                    life.revising.uncompact()
                elif store.tree.is_on(life.session.head or "", at):
                    life.revising.pin(at)
            except Invalid:
                pass
            assert what in ("clear", "uncompact", "fork") or life.cleared == before
            if cleared := life.cleared:
                assert cleared in clears
                assert life.block is not None
                assert store.tree.is_on(life.session.head or "", cleared)
                assert store.tree.is_on(life.block.last or "", cleared)
