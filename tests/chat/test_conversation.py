from recto.chat.blocks import Compaction, Text, ToolCall, ToolResult
from recto.chat.conversation import View, units, view
from recto.chat.message import Message


def say(id: str, role: str = "user") -> Message:
    return Message(id, role, (Text(id),))  # type: ignore[arg-type]


def compaction(id: str, last: str | None, *lifted: str) -> Message:
    return Message(id, "system", (Compaction(1, "", last, "", 0, 0, 0, "discard", "", lifted),))


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


def test_without_a_compaction_the_view_is_the_path() -> None:
    path = [say("a"), say("b")]
    assert view(path).tail == tuple(path)


def test_the_view_is_what_came_after_the_newest_compaction_and_what_it_lifted() -> None:
    path = [say("a"), say("b"), compaction("c1", "a"), say("c"), say("d"), compaction("c2", "c", "a"), say("e")]
    seen = view(path)
    assert ids(seen.tail) == ["d", "e"]
    assert ids(seen.lifted) == ["a"]
    assert seen.compaction == path[5].compaction


def test_a_compaction_that_covers_nothing_gives_everything_back() -> None:
    assert ids(view([say("a"), compaction("c", None), say("b")]).tail) == ["a", "b"]


def test_history_and_rounds_lie_before_and_after_the_current_message() -> None:
    seen = view([say("a"), say("b"), say("now"), say("r", "assistant")], current="now")
    assert (ids(seen.history), ids(seen.rounds)) == (["a", "b"], ["r"])


def test_a_lifted_current_message_leaves_only_rounds() -> None:
    path = [say("a"), say("now"), say("r1", "assistant"), compaction("c", "r1", "now"), say("r2", "assistant")]
    seen = view(path, current="now")
    assert (ids(seen.history), ids(seen.rounds), ids(seen.still_sent)) == ([], ["r2"], [])


def test_a_call_and_its_results_are_one_unit() -> None:
    call = Message("call", "assistant", (ToolCall("1", "t", "{}"),))
    first = Message("first", "tool", (ToolResult("1", "t", "x"),))
    second = Message("second", "tool", (ToolResult("2", "t", "y"),))
    groups = units([say("a"), call, first, second, say("b")])
    assert [ids(group) for group in groups] == [["a"], ["call", "first", "second"], ["b"]]


def test_results_without_a_call_stand_alone() -> None:
    orphan = Message("orphan", "tool", (ToolResult("1", "t", "x"),))
    assert [ids(group) for group in units([say("a"), orphan])] == [["a"], ["orphan"]]


def test_a_view_is_split_behind_the_last_message_that_a_cut_covers() -> None:
    tail = tuple(say(id) for id in "abc")
    seen = View(tail)
    assert seen.split("b") == (tail[:2], tail[2:])
    assert seen.split("before") == seen.split(None) == ((), tail)
