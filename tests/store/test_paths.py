"""What is on a path is told by branches and depths; here it is held against walking there."""

from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Text
from recto.chat.message import Message
from recto.errors import NotFound
from recto.store.store import Store
from recto.window.compaction_block import compaction_message

BLOCK = Compaction(1, "2026-01-01T00:00:00.000Z", None, "", 1, 10, 5, "discard", "full")

NEWEST = 10**6
# Each step says which message it follows (0: none, it begins a conversation) and whether it is a Compaction.
GROWTH = st.lists(st.tuples(st.integers(0, 30) | st.just(NEWEST), st.booleans()), min_size=1, max_size=40)
lives = settings(max_examples=examples(80, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])


def grown(store: Store, steps: list[tuple[int, bool]]) -> list[Message]:
    made: list[Message] = []
    homes: dict[str, str] = {}
    for after, is_compaction in steps:
        parent = made[min(after, len(made)) - 1] if after and made else None
        message = Message(new_id(), "user", (Text(f"{len(made)}"),), parent=parent.id if parent else None)
        if is_compaction and parent:
            message = compaction_message(BLOCK, parent.id)
        home = homes[parent.id] if parent else store.tree.create().id
        made.append(store.tree.append(home, message).message)
        homes[message.id] = home
    return made


def walked(store: Store, head: Message) -> list[Message]:
    return store.tree.bare_page(head.id, most=999)[::-1]


@lives
@given(GROWTH)
def test_what_is_on_a_path_is_what_walking_it_finds(store: Store, steps: list[tuple[int, bool]]) -> None:
    before = store.tree.newest_number()
    made = grown(store, steps)
    known = {each.message.id: each for each in store.tree.after(before, most=99)}
    for head in made:
        on_path = {message.id for message in walked(store, head)}
        trail = store.tree.trail(head.id)
        assert {id for id, each in known.items() if trail.holds(each.branch, each.message.depth)} == on_path
        assert {message.id for message in made if store.tree.is_on(head.id, message.id)} == on_path


@lives
@given(GROWTH, st.integers(-1, 45), st.integers(-1, 45))
def test_messages_of_a_path_are_found_by_number_and_by_depth(
    store: Store, steps: list[tuple[int, bool]], first: int, last: int
) -> None:
    for head in grown(store, steps):
        said = [message for message in walked(store, head) if message.compaction is None]
        assert store.tree.numbered(head.id, range(-1, 50)) == {message.said: message for message in said}
        assert store.tree.stretch(head.id, first, last) == [each for each in said if first <= each.depth <= last]


@lives
@given(GROWTH)
def test_a_branch_is_an_unforked_run(store: Store, steps: list[tuple[int, bool]]) -> None:
    before = store.tree.newest_number()
    grown(store, steps)
    ends: dict[str, int] = {}
    for each in store.tree.after(before, most=99):
        first_child = each.message.parent in ends
        assert each.branch == (ends.pop(each.message.parent or "") if first_child else each.n)
        ends[each.message.id] = each.branch


def test_messages_come_in_the_order_they_were_stored_with_their_home(store: Store) -> None:
    assert store.tree.newest_number() == 0
    one, two, three = grown(store, [(0, False), (0, False), (1, False)])
    first, second, third = store.tree.after(0, most=9)
    assert [each.message for each in (first, second, third)] == [one, two, three]
    assert [each.home for each in (first, second, third)] == [store.tree.owner(m.id) for m in (one, two, three)]
    assert (first.conversation, first.branch) == (third.conversation, third.branch)
    assert (second.conversation, second.branch) == (2, second.n)
    assert store.tree.after(first.n, most=1) == [second]
    assert store.tree.after(third.n, most=9) == []
    assert store.tree.newest_number() == third.n


def test_messages_are_found_by_their_numbers_and_a_missing_one_is_not_there(store: Store) -> None:
    grown(store, [(NEWEST, False)] * 1200)
    everything = {each.n: each for each in store.tree.after(0, most=2000)}
    assert store.tree.by_number(range(2000)) == everything
    assert store.tree.by_number([7, 7, -1, 2**40]) == {7: everything[7]}
    assert store.tree.by_number([]) == {}


def test_a_head_that_is_not_there_is_named(store: Store) -> None:
    tree = store.tree
    for look in (tree.trail, partial(tree.numbered, numbers=[1]), partial(tree.stretch, first=1, last=2)):
        with pytest.raises(NotFound, match="no message nowhere"):
            look("nowhere")
