from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import text
from tests.store.conftest import PROCESSES, execute, say

from recto.base.ids import new_id
from recto.chat.blocks import Compaction, Text, ToolCall
from recto.chat.message import Message, Tokens, Usage
from recto.errors import Invalid, NotFound
from recto.store.store import Store
from recto.window.compaction_block import compaction_message


def chat(store: Store, *words: str) -> tuple[str, list[Message]]:
    conversation = store.tree.create().id
    said: list[Message] = []
    for number, word in enumerate(words):
        message = say(word, said[-1].id if said else None, "assistant" if number % 2 else "user")
        said.append(store.tree.append(conversation, message).message)
    return conversation, said


def compaction(last: str | None, *lifted: str, pinned: tuple[str, ...] = (), **excerpts: str) -> Compaction:
    block = Compaction(1, "2026-01-01T00:00:00.000Z", last, "", 1, 10, 5, "discard", "full", lifted)
    return replace(block, pinned=pinned, excerpts=excerpts)


def path(store: Store, head: str | None, until: str | None = None) -> list[str]:
    return [m.text for m in reversed(store.tree.page(head, most=1000, until=until))] if head else []


def test_a_message_comes_back_with_all_that_was_known_about_it(store: Store) -> None:
    conversation = store.tree.create().id
    message = Message(
        new_id(),
        "assistant",
        (Text("hi"), ToolCall("1", "read", "{broken")),
        status="error",
        error="the stream broke",
        context_type="tool_output",
        priority=8,
        agent="writer",
        model="openai:x",
        provider="openai",
        usage=Usage(10, 2, 3, 4),
        tokens=Tokens(5, 6, 7),
        memory_references=("f1",),
        learning_points=("l",),
        task_runs=({"task": 1},),
    )
    placed = store.tree.append(conversation, message).message
    assert store.tree.message(message.id) == placed
    assert replace(placed, created="") == message


def test_a_fork_is_a_new_child_and_the_other_branch_stays(store: Store) -> None:
    conversation, said = chat(store, "a", "b", "c")
    store.tree.move(conversation, said[0].id)
    other = store.tree.append(conversation, say("x", said[0].id))
    assert other.moved
    assert path(store, store.tree.conversation(conversation).head) == ["a", "x"]
    assert {leaf.text for leaf in store.tree.leaves(conversation)} == {"x", "c"}


def test_the_loser_of_a_race_becomes_a_branch(store: Store) -> None:
    conversation, said = chat(store, "a")
    assert store.tree.append(conversation, say("first", said[0].id)).moved
    late = store.tree.append(conversation, say("late", said[0].id))
    assert not late.moved
    assert path(store, store.tree.conversation(conversation).head) == ["a", "first"]
    assert path(store, late.message.id) == ["a", "late"]


def test_the_same_message_twice_is_stored_once_and_another_under_its_id_is_refused(store: Store) -> None:
    conversation, said = chat(store, "a")
    assert store.tree.append(conversation, said[0]).message == said[0]
    with pytest.raises(Invalid, match="other content"):
        store.tree.append(conversation, replace(said[0], blocks=(Text("b"),)))


def test_many_messages_appended_at_once_are_as_if_appended_one_by_one(store: Store) -> None:
    _, said = chat(store, "First.", "Second.", "Third.")
    at_once = store.tree.create()
    last = store.tree.append_all(at_once.id, (say(each.text, role=each.role) for each in said))
    assert last is not None
    assert store.tree.conversation(at_once.id).head == last.id
    assert store.tree.conversation(at_once.id).title == "First."
    one_by_one, all_at_once = (store.tree.page(end, most=9) for end in (said[-1].id, last.id))
    places = [(each.text, each.depth, each.said) for each in one_by_one]
    assert places == [(each.text, each.depth, each.said) for each in all_at_once]
    more = store.tree.append_all(
        at_once.id, [say("Fourth."), Message("cut", "system", (compaction(last.id),)), say("Fifth.")]
    )
    assert more is not None
    assert path(store, more.id)[-1] == "Fifth."
    assert (more.depth, more.said) == (6, 5)
    newest = store.tree.compaction(more.id)
    assert newest is not None
    assert newest.id == "cut"
    assert [each.text for each in store.tree.numbered_stretch(more.id, 2, 5)] == [
        "Second.",
        "Third.",
        "Fourth.",
        "Fifth.",
    ]


@pytest.mark.parametrize("what", ["conversation", "message", "owner", "leaves", "compaction"])
def test_unknown_ids_are_not_found(store: Store, what: str) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        getattr(store.tree, what)("nowhere")


def test_unknown_parents_and_foreign_heads_are_not_found(store: Store) -> None:
    conversation, _ = chat(store, "a")
    _, elsewhere = chat(store, "b")
    with pytest.raises(NotFound):
        store.tree.append(conversation, say("x", "nowhere"))
    with pytest.raises(NotFound, match="is not part of"):
        store.tree.move(conversation, elsewhere[0].id)


def test_a_cycle_in_damaged_data_ends(store: Store) -> None:
    _, said = chat(store, "a", "b", "c")
    execute(store, "UPDATE messages SET parent = 3 WHERE n = 1")
    assert path(store, said[2].id) == ["a", "b", "c"]


def test_the_newest_compaction_on_the_path_is_known_at_every_message(store: Store) -> None:
    conversation, said = chat(store, "a", "b", "c")
    made = store.tree.append(conversation, compaction_message(compaction(said[1].id), said[2].id)).message
    after = store.tree.append(conversation, say("d", made.id)).message
    assert store.tree.compaction(said[2].id) is None
    assert store.tree.compaction(after.id) == made
    assert (made.said, after.said, after.depth) == (3, 4, 5)


def test_the_paths_of_several_conversations_are_found_at_once(store: Store) -> None:
    plain, _ = chat(store, "a", "b")
    forked, told = chat(store, "a", "b", "c")
    store.tree.move(forked, told[0].id)
    store.tree.append(forked, say("x", told[0].id))
    compacted, all_said = chat(store, "a", "b", "c")
    block = compaction(all_said[1].id, all_said[0].id)
    made = store.tree.append(compacted, compaction_message(block, all_said[2].id)).message
    store.tree.append(compacted, say("d", made.id))
    empty = store.tree.create().id
    found = store.tree.paths([plain, forked, compacted, empty, "nowhere"])
    assert found.keys() == {plain, forked, compacted, empty}
    for home in (plain, forked, compacted):
        head = store.tree.conversation(home).head
        assert head is not None
        assert found[home].conversation == store.tree.conversation(home)
        assert found[home].trail == store.tree.trail(head)
        assert found[home].compaction == store.tree.compaction_block(head)
    assert [found[home].covered for home in (plain, forked, compacted, empty)] == [0, 0, 2, 0]
    assert found[empty].trail.branches == ()
    assert store.tree.paths([]) == {}


def test_all_compactions_on_the_path_are_found(store: Store) -> None:
    conversation, said = chat(store, "a", "b")
    head, made = said[-1].id, []
    for _ in range(5):
        for number in range(20):
            head = store.tree.append(conversation, say(f"{number}", head)).message.id
        made.append(store.tree.append(conversation, compaction_message(compaction(said[0].id), head)).message)
        head = made[-1].id
    assert store.tree.compactions(head, limit=100) == made[::-1]
    assert store.tree.compactions(head, after=made[2].depth) == [made[4], made[3]]
    assert store.tree.compactions(head, limit=2) == [made[4], made[3]]
    assert store.tree.compactions(head, limit=0) == []
    assert store.tree.compactions(made[1].parent or "", limit=9) == [made[0]]
    assert store.tree.compactions(said[0].id, limit=9) == []


def test_compactions_that_point_at_each_other_in_damaged_data_end(store: Store) -> None:
    conversation, said = chat(store, "a", "b")
    made = store.tree.append(conversation, compaction_message(compaction(said[0].id), said[1].id)).message
    execute(store, "UPDATE messages SET compaction = 3")
    assert store.tree.compactions(made.id, limit=9) == [made]


def test_the_newest_compaction_on_any_branch_through_a_message_is_found(store: Store) -> None:
    conversation, said = chat(store, "a", "b", "c")
    first = store.tree.append(conversation, compaction_message(compaction(None), said[2].id)).message
    other = store.tree.append(conversation, say("x", said[0].id)).message
    second = store.tree.append(conversation, compaction_message(compaction(None), other.id)).message
    found = [store.tree.newest_compaction_below(message.id) for message in (*said, other, first, second)]
    assert found == [second.id, first.id, first.id, second.id, None, None]


def test_a_message_is_on_the_paths_of_its_descendants_only(store: Store) -> None:
    conversation, said = chat(store, "a", "b", "c")
    store.tree.move(conversation, said[0].id)
    other = store.tree.append(conversation, say("x", said[0].id)).message
    _, elsewhere = chat(store, "y")
    on = [[store.tree.is_on(end.id, message.id) for message in (*said, other)] for end in (*said, other, elsewhere[0])]
    assert on == [
        [True, False, False, False],
        [True, True, False, False],
        [True, True, True, False],
        [True, False, False, True],
        [False, False, False, False],
    ]
    for unknown in (("nowhere", said[0].id), (said[0].id, "nowhere")):
        with pytest.raises(NotFound, match="nowhere"):
            store.tree.is_on(*unknown)


def test_a_message_can_be_given_a_priority(store: Store) -> None:
    _, said = chat(store, "a", "b")
    store.tree.prioritise(said[0].id, 10)
    assert [message.priority for message in store.tree.page(said[1].id, most=9)] == [5, 10]
    assert [message.priority for message in store.tree.bare_page(said[1].id, most=9)] == [5, 10]
    assert [message.priority for message in store.tree.active(said[1].id, most=9)[1]] == [5, 10]
    with pytest.raises(NotFound, match="no message nowhere"):
        store.tree.prioritise("nowhere", 5)
    for wrong in (0, 11, -1):
        with pytest.raises(Invalid, match="from 1 to 10"):
            store.tree.prioritise(said[0].id, wrong)
    with store.database.read() as connection:
        assert connection.execute(text("SELECT priority, details FROM messages WHERE n = 1")).one() == (10, "{}")
    store.tree.count(replace(said[0], tokens=Tokens(1, 2, 3)))
    assert (store.tree.message(said[0].id).priority, store.tree.message(said[0].id).tokens) == (10, Tokens(1, 2, 3))


def test_an_unfinished_message_shows_what_has_come_and_is_folded_at_the_end(store: Store) -> None:
    conversation, said = chat(store, "q")
    growing = Message(new_id(), "assistant", (), parent=said[0].id, status="unfinished")
    store.tree.append(conversation, growing)
    store.tree.grow(growing.id, [["text", "Hel"]])
    store.tree.grow(growing.id, [["text", "lo"]])
    assert store.tree.message(growing.id).text == "Hello"
    store.tree.finish(replace(growing, blocks=(Text("Hello"),), status="done", priority=3))
    assert (store.tree.message(growing.id).status, store.tree.message(growing.id).priority) == ("done", 3)
    assert store.database.scalar(text("SELECT count(*) FROM deltas")) == 0
    with pytest.raises(Invalid, match="already finished"):
        store.tree.finish(growing)


def grow_for_ever(path: Path, conversation: str, parent: str, shown: Connection) -> None:
    store = Store(path)
    message = Message(new_id(), "assistant", (), parent=parent, status="unfinished")
    store.tree.append(conversation, message)
    for number in range(10_000):
        store.tree.grow(message.id, [["text", f"{number} "]])
        shown.send(number)


def test_what_was_stored_before_a_kill_is_there_and_the_conversation_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "recto.db"
    with Store(path) as store:
        conversation, said = chat(store, "q")
        ours, theirs = PROCESSES.Pipe()
        process = PROCESSES.Process(target=grow_for_ever, args=(path, conversation, said[0].id, theirs))
        process.start()
        last = [ours.recv() for _ in range(50)][-1]
        process.kill()
        process.join()
    with Store(path) as store:
        head = store.tree.conversation(conversation).head
        left = store.tree.message(head or "")
        assert left.status == "unfinished"
        assert f" {last} " in left.text
        assert store.tree.append(conversation, say("go on", head)).moved
