"""Sources at a real terminal: being asked before a tool runs, servers on their way, completion."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, rows
from tests.cli.harbour import BERTH, WAIT, write_agent, write_server
from tests.cli.terminal import Terminal
from tests.conftest import Script

QUESTION = "run it? [y]es / [a]lways in this conversation / [N]o "


@pytest.fixture(autouse=True)
def harbour(home: Path) -> None:
    """The default agent has rules, references and a server, all the user's own."""
    write_agent(home / "agents/default")
    write_server(home)


def begin(terminal: type[Terminal], model: str, *options: str) -> Terminal:
    chat = terminal("chat", "-m", f"scripted:{Path(model).name}", *options)
    chat.wait_for("› ")
    return chat


def answer(chat: Terminal, keys: str) -> None:
    chat.settle()
    chat.type(keys)


def approvals(run: Run) -> list[str]:
    blocks = [block for row in rows(run("conversations", "show", "--json")) for block in row["blocks"]]
    return [block.get("approval", "") for block in blocks if block["type"] == "tool_result"]


def test_a_tool_is_shown_and_runs_after_a_yes(terminal: type[Terminal], script: Script, run: Run) -> None:
    chat = begin(terminal, script({"text": "Let me book.", "tool_calls": [BERTH]}, {"text": "It is booked."}))
    chat.type("book\r")
    told = chat.wait_for(QUESTION)
    assert "Let me book." in told
    assert "harbour wants to run berth" in told
    assert "Books a berth for a boat." in told
    assert '{\r\n  "boat": "Sorrel",\r\n  "nights": 3\r\n}' in told
    answer(chat, "maybe\r")
    assert "maybe" in chat.wait_for(QUESTION), "the keys of an answer can be seen"
    chat.type("y\r")
    assert '· harbour:berth {"boat":"Sorrel","nights":3} → 34 characters' in chat.wait_for("It is booked.")
    chat.leave()
    assert approvals(run) == ["allowed"]


@pytest.mark.slow
def test_enter_says_no_and_always_is_not_asked_again(terminal: type[Terminal], script: Script, run: Run) -> None:
    model = script(
        {"tool_calls": [BERTH]}, {"text": "One."}, {"tool_calls": [BERTH]}, {"text": "Two."}, {"tool_calls": [BERTH]}
    )
    chat = begin(terminal, model)
    chat.type("book\r")
    chat.wait_for(QUESTION)
    answer(chat, "\r")
    assert "not run: you said no" in chat.wait_for("One.")
    chat.wait_for("› ")
    chat.type("again\r")
    chat.wait_for(QUESTION)
    answer(chat, "a\r")
    chat.wait_for("Two.")
    chat.leave()
    run("chat", "-m", script({"tool_calls": [BERTH]}, {"text": "Three."}), "--continue", input="once more\n")
    assert approvals(run) == ["denied", "always", "always"]


def test_ctrl_c_at_the_question_refuses_the_call_and_stops_the_turn(
    terminal: type[Terminal], script: Script, run: Run
) -> None:
    chat = begin(terminal, script({"tool_calls": [BERTH, WAIT]}, {"text": "Later."}))
    chat.type("book\r")
    chat.wait_for(QUESTION)
    answer(chat, "\x03")
    told = chat.wait_for("stopped; the part received is kept")
    assert "Traceback" not in told
    assert QUESTION not in told
    chat.wait_for("› ")
    chat.type("and now\r")
    chat.wait_for("Later.")
    chat.leave()
    stored = rows(run("conversations", "show", "--json"))
    assert [row["role"] for row in stored] == ["user", "assistant", "tool", "user", "assistant"]
    assert [row["status"] for row in stored] == ["done", "done", "stopped", "done", "done"]
    refused, cancelled = stored[2]["blocks"]
    assert refused["approval"] == "denied"
    assert cancelled["text"].startswith("cancelled")


def test_a_tool_at_work_is_named_and_ctrl_c_ends_it(terminal: type[Terminal], script: Script) -> None:
    model = script({"tool_calls": [WAIT]}, {"text": "After all."})
    chat = begin(terminal, model, "--allow-tool", "harbour/wait")
    chat.type("wait\r")
    chat.wait_for("calling harbour:wait…")
    chat.type("\x03")
    chat.wait_for("stopped; the part received is kept")
    chat.wait_for("› ")
    chat.type("go on\r")
    assert "Traceback" not in chat.wait_for("After all.")
    chat.leave()
