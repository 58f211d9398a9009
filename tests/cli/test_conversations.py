from contextlib import closing

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Open, Script

from recto.cli.options import Moment
from recto.events import TextDelta
from recto.wire import ids_in

FIELDS = ["id", "parent", "role", "text", "blocks", "status", "active", "tokens", "request", "references", "created"]


def test_archived_messages_and_compactions_are_marked(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="hello\n")
    run("context", "clear")
    shown = run("conversations", "show").stdout
    assert shown.count(" · archived\n") == 2
    assert "── compaction 1: 2 messages archived, 4" in shown
    assert "tokens (the user cleared the context) ──" in shown


def test_what_did_not_finish_is_marked(run: Run, script: Script) -> None:
    run("ask", "-m", script({"error": "unreachable", "after": 1, "text": "half of it"}), "hello")
    shown = run("conversations", "show").stdout
    assert " · failed\n" in shown
    assert "failed: " in shown


def test_messages_are_chosen_by_number_time_and_role(run: Run, script: Script) -> None:
    model = script(
        {"text": "Looking.", "tool_calls": [{"name": "read_document", "arguments": {"path": "x"}}]}, {"text": "Done."}
    )
    run("chat", "-m", model, input="first\nsecond\n")
    everything = rows(run("conversations", "show", "--json"))
    assert [row["role"] for row in everything] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert rows(run("conversations", "show", "--json", "--limit", "2")) == everything[-2:]
    without = rows(run("conversations", "show", "--json", "--no-tools"))
    assert [row["role"] for row in without] == ["user", "assistant", "assistant", "user", "assistant"]
    middle = everything[3]["created"]
    since = rows(run("conversations", "show", "--json", "--since", middle))
    before = rows(run("conversations", "show", "--json", "--before", middle))
    assert before + since == everything
    assert "read_document" in run("conversations", "show").stdout
    assert "read_document" not in run("conversations", "show", "--no-tools").stdout


def test_a_time_is_understood_or_refused(run: Run) -> None:
    assert Moment().convert("2026-01-31T12:00:00Z", None, None) == "2026-01-31T12:00:00.000Z"
    assert Moment().convert("2026-01-31T12:00+02:00", None, None) == "2026-01-31T10:00:00.000Z"
    assert "is not a time" in failure(run("conversations", "show", "--since", "yesterday"), 2)


def test_fork_moves_the_head_and_undo_takes_back(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="first\nsecond\n")
    path = rows(run("conversations", "show", "--json"))
    forked = one(run("conversations", "fork", path[1]["id"], "--json"))
    assert forked["head"] == path[1]["id"]
    run("ask", "--continue", "another second")
    texts = [row["text"] for row in rows(run("conversations", "show", "--json"))]
    assert texts == ["first", "Yes.", "another second", "Yes."]
    undone = one(run("conversations", "undo", "--json"))
    assert (undone["text"], undone["head"]) == ("another second", path[1]["id"])
    run("conversations", "undo")
    assert rows(run("conversations", "show", "--json")) == []
    assert "nothing to undo" in failure(run("conversations", "undo"))


def test_branches_are_the_ends_of_all_paths(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="first\nsecond\n")
    path = rows(run("conversations", "show", "--json"))
    run("conversations", "fork", path[1]["id"])
    run("ask", "--continue", "another second")
    leaves = rows(run("conversations", "show", "--branches", "--json"))
    assert [leaf["head"] for leaf in leaves] == [True, False]
    assert leaves[1]["id"] == path[-1]["id"]
    assert run("conversations", "show", "--branches").stdout.startswith("* ")


def test_a_message_of_another_conversation_cannot_be_forked_at(run: Run, script: Script) -> None:
    model = script({"text": "Yes."})
    first = one(run("ask", "-m", model, "a", "--json"))
    second = one(run("ask", "-m", model, "b", "--json"))
    told = failure(run("conversations", "fork", first["message"], "-c", second["conversation"]))
    assert "is not part of conversation" in told
    assert "there is no message 01X" in failure(run("conversations", "fork", "01X"))


def test_a_text_cannot_steer_the_terminal(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "red \x1b[31malert\x1b]0;title\x07 \x9b2J"}), "hello \x1b[2J")
    for command in (["conversations", "list"], ["conversations", "show"], ["conversations", "search", "alert"]):
        assert not set(run(*command).stdout) & set("\x1b\x07\x9b")


def test_a_reply_that_is_coming_and_one_that_was_stopped_say_so(run: Run, script: Script, desk: Open) -> None:
    talk = desk(script({"text": "one never", "delay_s": 600})).conversation()
    with closing(talk.stream("count")) as events:
        assert any(isinstance(event, TextDelta) for event in events)
        assert rows(run("conversations", "show", "--json"))[-1]["status"] == "unfinished"
        assert " · unfinished\n" in run("conversations", "show").stdout
    last = rows(run("conversations", "show", "--json"))[-1]
    assert (last["status"], last["text"]) == ("stopped", "one")


# -- numbers, which people see in place of ids


@pytest.fixture
def two(run: Run, script: Script) -> list[str]:
    """The ids of two conversations of two turns each; the second is the latest."""
    model = script({"text": "Yes."})
    for name in ("first", "second"):
        run("chat", "-m", model, input=f"{name} question\n{name} again\n")
    return [row["id"] for row in rows(run("conversations", "list", "--json"))][::-1]


@pytest.mark.parametrize("number", ["1", "#1"])
@pytest.mark.parametrize(
    "command",
    [
        ("conversations", "show"),
        ("conversations", "undo"),
        ("context", "show"),
        ("context", "stats"),
        ("context", "strategy"),
        ("context", "clear"),
    ],
)
def test_a_conversation_is_named_by_its_number(run: Run, two: list[str], command: tuple[str, ...], number: str) -> None:
    answer = rows(run(*command, number, "--json"))[0]
    if command == ("conversations", "show"):
        assert answer["text"] == "first question"
    else:
        assert answer["conversation"] == two[0]


def test_options_take_a_conversations_number_too(run: Run, two: list[str]) -> None:
    assert one(run("ask", "-c", "1", "more", "--json"))["conversation"] == two[0]
    assert {hit["conversation"] for hit in rows(run("conversations", "search", "question", "-c", "2", "--json"))} == {
        two[1]
    }
    assert run("sources", "list", "-c", "2").stdout.startswith("agent default, conversation #2\n")
    assert one(run("conversations", "rename", "#1", "The mast", "--json"))["id"] == two[0]
    assert run("conversations", "rename", "1", "The keel").stdout == "conversation #1 is now called The keel\n"
    assert "there is no conversation #9" in failure(run("conversations", "show", "9"))


def test_a_message_is_named_by_its_number_in_its_conversation(run: Run, two: list[str]) -> None:
    said = run("conversations", "fork", "2", "-c", "1").stdout
    assert said == "the next message of conversation #1 follows #2: Yes.\n"
    assert len(rows(run("conversations", "show", "1", "--json"))) == 2
    assert "conversation #2 has no message #9" in failure(run("conversations", "fork", "9", "-c", "2"))


@pytest.mark.parametrize(
    "command",
    [
        ("conversations", "list"),
        ("conversations", "show"),
        ("conversations", "search", "question"),
        ("conversations", "undo"),
        ("conversations", "pin", "1"),
        ("context", "show"),
        ("context", "stats"),
        ("context", "strategy"),
        ("context", "clear"),
        ("request", "show"),
        ("request", "diff"),
        ("sources", "list"),
    ],
)
def test_people_see_no_ids(run: Run, two: list[str], command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.exit_code == 0
    assert ids_in(done.output) == set()
