"""Pins and summaries that apply to a path stay in force, wherever a fork goes and wherever it comes from."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.compaction.test_revisions import Life
from tests.conftest import examples

from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Text, ToolCall, ToolResult
from recto.chat.conversation import units, view
from recto.chat.message import Message
from recto.errors import Invalid
from recto.reports.transcript import archived_part
from recto.store.store import Store
from recto.window.compaction_block import WrittenSummary, cleared_at, compaction_message, next_block

pytestmark = pytest.mark.untraced


class Forking(Life):
    """A life with tool calls, in which compactions cover as much as they are told to."""

    def path(self, head: str | None = None) -> list[Message]:
        at = head or self.session.head
        return self.store.tree.page(at, most=1000)[::-1] if at else []

    def on_path(self, head: str | None = None) -> list[Message]:
        return [message for message in self.path(head) if not message.compaction]

    def say(self) -> str:
        self._say("user", Text("a word"))
        return self.said[-1]

    def call(self) -> None:
        self._say("assistant", ToolCall("c1", "look", "{}"))
        self._say("tool", ToolResult("c1", "look", "seen"))

    def _say(self, role: str, block: Text | ToolCall | ToolResult) -> None:
        message = Message(new_id(), role, (block,), parent=self.session.head)  # type: ignore[arg-type]
        self._append(message)
        self.said.append(message.id)

    def cover(self, place: int) -> Compaction:
        """A compaction up to this message of the path, with its round; what is pinned stays."""
        groups = units(self.on_path())
        covered = [message for unit in groups[: place + 1] for message in unit]
        pinned = self.block.pinned if self.block else ()
        kept = [m.id for unit in groups[: place + 1] if any(m.id in pinned for m in unit) for m in unit]
        block = next_block(
            self.block,
            WrittenSummary(f"Summary {new_id()}.", "model"),
            last=covered[-1].id,
            lifted=tuple(kept),
            messages_archived=len(covered) - len(kept),
        )
        self._append(compaction_message(block, self.session.head or ""))
        return block

    @property
    def pinned(self) -> set[str]:
        return set(self.block.pinned) if self.block else set()

    @property
    def summary(self) -> str:
        return self.block.summary if self.block else ""

    def check(self) -> None:
        seen = view(self.path())
        together = [message.id for message in (*seen.lifted, *seen.tail)]
        assert len(together) == len(set(together)), "each message once"
        assert self.pinned <= set(together), "pins are sent"
        archived, said = archived_part(self.store.tree, self.session.head), self.on_path()
        active = sum(archived.active(message) for message in said)
        assert active + (self.block.messages_archived if self.block else 0) == len(said)
        for unit in units(said):
            assert len({message.id in together for message in unit}) == 1, "calls with their results"


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Forking]:
    with Store(tmp_path / "recto.db") as store:
        yield Forking(store)


def test_a_pin_stays_when_a_fork_goes_into_what_was_summed_up(life: Forking) -> None:
    first, second, third, _ = (life.say() for _ in range(4))
    life.cover(3)
    life.revising.pin(first)
    life.fork(second)
    assert (life.pinned, life.summary) == ({first}, "")
    life.fork(third)
    assert life.pinned == {first}
    life.check()


def test_a_fork_from_another_branch_takes_the_summary_and_the_pins_along(life: Forking) -> None:
    first, second, third, fourth = (life.say() for _ in range(4))
    made = life.cover(1)
    life.revising.pin(third)
    life.fork(first)
    life.say()
    assert life.pinned == set()
    life.fork(fourth)
    assert (life.summary, life.pinned) == (made.summary, {third})
    life.fork(second)
    assert (life.summary, life.pinned) == (made.summary, set())
    life.check()


def test_a_pin_made_after_a_second_compaction_stays_when_the_first_is_in_force_again(life: Forking) -> None:
    first, second, third, _ = (life.say() for _ in range(4))
    early = life.cover(1)
    life.cover(3)
    life.revising.pin(first)
    life.fork(third)
    assert (life.summary, life.pinned, life.block and life.block.lifted) == (early.summary, {first}, (first,))
    life.check()
    life.revising.unpin(first)
    life.fork(third)
    assert (life.pinned, life.block and life.block.lifted) == (set(), ())
    assert second not in life.pinned


def test_a_fork_to_before_a_clear_has_the_pins_that_the_clear_ended(life: Forking) -> None:
    first, second, _ = (life.say() for _ in range(3))
    life.revising.pin(first)
    life.clear()
    life.revising.pin(second)
    life.fork(second)
    assert life.pinned == {first, second}
    life.check()


def test_a_fork_takes_excerpts_along_as_far_as_they_go(life: Forking) -> None:
    first, second, third, _ = (life.say() for _ in range(4))
    excerpts = {first: "A", f"{second}/call-1": "B", third: "C"}
    block = replace(next_block(None, WrittenSummary()), excerpts=excerpts, pinned=(first, third))
    life._append(compaction_message(block, life.session.head or ""))
    life.fork(second)
    assert life.block == replace(block, excerpts={first: "A", f"{second}/call-1": "B"}, pinned=(first,))


def test_a_compaction_that_was_taken_back_stays_so_in_a_fork(life: Forking) -> None:
    for _ in range(3):
        life.say()
    life.cover(1)
    last = life.say()
    life.revising.uncompact()
    life.say()
    life.fork(last)
    assert life.block
    assert (life.block.action, life.block.last) == ("undo", None)


def test_a_fork_with_nothing_to_say_again_says_nothing(life: Forking) -> None:
    first, second, third = (life.say() for _ in range(3))
    life.revising.pin(third)
    life.fork(second)
    assert (life.session.head, life.block) == (second, None)
    life.cover(0)
    inside = life.say()
    life.revising.pin(first)
    life.revising.unpin(first)
    life.fork(inside)
    assert life.session.head == inside


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "call", "cover", "pin", "pin", "unpin", "clear", "uncompact", "fork", "fork"]),
        st.integers(0, 30),
    ),
    min_size=8,
    max_size=30,
)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_pins_and_summaries_that_apply_to_a_path_survive_any_fork(tmp_path: Path, steps: list[tuple[str, int]]) -> None:
    with Store(tmp_path / "recto.db") as store:
        life = Forking(store)
        life.say()
        for what, which in steps:
            said = life.on_path()
            try:
                if what in ("say", "call"):
                    getattr(life, what)()
                elif what == "cover":
                    life.cover(which % len(units(said)))
                elif what == "fork":
                    fork(life, life.said[which % len(life.said)])
                elif what in ("pin", "unpin"):
                    getattr(life.revising, what)(said[which % len(said)].id)
                else:
                    getattr(life.revising, what)()
            except Invalid:
                pass  # nothing to pin, to unpin or to take back
            life.check()


def fork(life: Forking, target: str) -> None:
    """Forks, and compares what is in force with what was on the path that was left, or on the newest through here."""
    left = life.session.head or ""
    through = [leaf.id for leaf in life.store.tree.leaves(life.session.conversation)]
    on = [leaf for leaf in (*through, left) if target in {message.id for message in life.path(leaf)}]
    ends = [left] if left in on else on
    here = {message.id for message in life.path(target)}
    made = [message for end in ends for message in life.path(end) if message.compaction]
    made = list({message.id: message for message in made if message.id not in here}.values())
    before = life.store.tree.compaction(target)
    force = before.compaction if before else None
    newest = max(made, key=lambda message: message.id).compaction if made else force
    life.fork(target)
    wanted = set(newest.pinned) & here if newest else set()
    assert wanted <= life.pinned, "pins survive"
    ever = {id for message in made if message.compaction for id in message.compaction.pinned}
    assert life.pinned <= (ever | set(force.pinned if force else ())) & here, "and none comes from nowhere"
    assert [message.id for message in life.on_path()] == [message.id for message in life.on_path(target)]
    line = life.path(max(made, key=lambda message: message.id).id) if made else []
    blocks = [message.compaction for message in line if message.compaction and message.id not in here]
    fitting = [block for block in blocks if block.last is None or block.last in here]
    expected = fitting[-1] if fitting else force
    assert life.summary == (expected.summary if expected else ""), "and so does the summary"
    assert cleared_at(life.block) == cleared_at(expected)
