from contextlib import closing
from typing import Any

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Open, Script

from recto.cli.options import Moment
from recto.events import TextDelta
from recto.wire import ids_in


def test_messages_are_chosen_by_number_time_and_role(run: Run, script: Script) -> None:
    reads = {"text": "Looking.", "tool_calls": [{"name": "read_document", "arguments": {"path": "x"}}]}
    run("chat", "-m", script(reads, {"text": "Done."}), input="first\nsecond\n")

    def shown(*options: str) -> list[dict[str, Any]]:
        return rows(run("conversations", "show", "--json", *options))

    everything = shown()
    assert [row["role"] for row in everything] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert shown("--limit", "2") == everything[-2:]
    assert shown("--no-tools") == [row for row in everything if row["role"] != "tool"]
    middle = everything[3]["created"]
    assert shown("--before", middle) + shown("--since", middle) == everything
    assert "read_document" in run("conversations", "show").stdout
    assert "read_document" not in run("conversations", "show", "--no-tools").stdout
    assert shown("--since", "#3", "--before", "6") == everything[2:5]
    run("context", "clear")
    assert (len(shown()), shown("--no-system")[-1]["id"]) == (7, everything[-1]["id"])


def test_a_time_is_understood_or_refused(run: Run) -> None:
    assert Moment().convert("2026-01-31T12:00:00Z", None, None) == "2026-01-31T12:00:00.000Z"
    assert Moment().convert("2026-01-31T12:00+02:00", None, None) == "2026-01-31T10:00:00.000Z"
    assert "is not a time" in failure(run("conversations", "search", "x", "--since", "yesterday"), 2)


def test_fork_moves_the_head_and_undo_takes_back(run: Run, script: Script) -> None:
    run("chat", "-m", script({"text": "Yes."}), input="first\nsecond\n")
    path = rows(run("conversations", "show", "--json"))
    assert one(run("conversations", "fork", path[1]["id"], "--json"))["head"] == path[1]["id"]
    run("ask", "--continue", "another second")
    texts = [row["text"] for row in rows(run("conversations", "show", "--json"))]
    assert texts == ["first", "Yes.", "another second", "Yes."]
    leaves = rows(run("conversations", "show", "--branches", "--json"))
    assert [(leaf["head"], leaf["id"] == path[-1]["id"]) for leaf in leaves] == [(True, False), (False, True)]
    undone = one(run("conversations", "undo", "--json"))
    assert (undone["text"], undone["head"]) == ("another second", path[1]["id"])
    run("conversations", "undo")
    assert rows(run("conversations", "show", "--json")) == []
    assert "nothing to undo" in failure(run("conversations", "undo"))


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
def test_a_conversation_is_named_by_its_number(run: Run, two: list[str], number: str) -> None:
    assert rows(run("conversations", "show", number, "--json"))[0]["text"] == "first question"
    for command in ("context show", "context stats", "conversations undo", "context clear"):
        assert one(run(*command.split(), number, "--json"))["conversation"] == two[0]


def test_options_take_a_conversations_number_too(run: Run, two: list[str]) -> None:
    assert one(run("ask", "-c", "1", "more", "--json"))["conversation"] == two[0]
    found = rows(run("conversations", "search", "question", "-c", "2", "--json"))
    assert {hit["conversation"] for hit in found} == {two[1]}
    assert run("sources", "list", "-c", "2").stdout.startswith("agent default, conversation #2\n")
    assert one(run("conversations", "rename", "#1", "The mast", "--json"))["id"] == two[0]
    run("conversations", "fork", "2", "-c", "1")
    assert len(rows(run("conversations", "show", "1", "--json"))) == 2


def test_people_see_no_ids(run: Run, two: list[str]) -> None:
    for command in (
        *("conversations list", "conversations show", "conversations search question", "context show"),
        *("context stats", "request show", "sources list"),
        *("conversations pin 1", "conversations undo", "context clear"),
    ):
        done = run(*command.split())
        assert (done.exit_code, ids_in(done.output)) == (0, set()), command
