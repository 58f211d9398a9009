"""What is done to single messages: pins, priorities, tool results."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.test_context_compaction import REPLY, SUMMARY, talk
from tests.conftest import Script

PLAIN = Path(__file__).parents[1] / "mcp" / "parts" / "plain.py"
CALLS = [{"name": "plain__show", "arguments": {}}, {"name": "plain__big", "arguments": {"size": 300_000}}]


@pytest.fixture
def said(run: Run, script: Script) -> list[dict[str, Any]]:
    """Twelve messages that were said, as they are stored."""
    talk(run, script(REPLY, SUMMARY), 6)
    return rows(run("conversations", "show", "--json"))


def _marked(shown: str, beginning: str) -> str:
    """The head line of a message."""
    return next(line for line in shown.splitlines() if line.startswith(beginning))


def stored(run: Run) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows(run("conversations", "show", "--json"))}


def test_a_pinned_message_is_still_sent_when_it_is_archived_until_it_is_unpinned(
    run: Run, said: list[dict[str, Any]]
) -> None:
    first, second = said[0]["id"], said[1]["id"]
    run("conversations", "pin", "#1")
    assert one(run("conversations", "priority", second, "9", "--json"))["priority"] == 9
    run("context", "compact")
    shown = run("conversations", "show").stdout
    assert _marked(shown, "#1 user ").endswith(" · pinned · archived, still sent")
    assert _marked(shown, "#2 assistant ").endswith(" · priority 9 · archived")
    assert first not in shown, "people see numbers"
    now = stored(run)
    assert (now[first]["active"], now[first]["pinned"], now[first]["lifted"]) == (True, True, True)
    assert (now[second]["active"], now[second]["pinned"], now[second]["priority"]) == (False, False, 9)
    run("conversations", "unpin", first)
    assert (stored(run)[first]["active"], stored(run)[first]["pinned"]) == (False, False)


def test_what_cannot_be_pinned_is_refused(run: Run, said: list[dict[str, Any]], script: Script) -> None:
    first = said[0]["id"]
    assert "is not pinned" in failure(run("conversations", "unpin", first))
    run("conversations", "pin", first)
    assert "pinned already" in failure(run("conversations", "pin", first))
    assert "is a compaction" in failure(run("conversations", "pin", one(run("context", "compact", "--json"))["head"]))
    run("conversations", "fork", said[1]["id"])
    assert "not on this branch" in failure(run("conversations", "pin", said[-1]["id"]))
    other = one(run("ask", "-m", script(REPLY), "elsewhere", "--json"))["conversation"]
    for command in (["pin", first], ["unpin", first], ["priority", first, "3"]):
        assert "not part of conversation #2" in failure(run("conversations", *command, "-c", other))


# -- tool results


@pytest.fixture
def message(run: Run, script: Script, home: Path) -> str:
    """The message that holds the results of a picture and of a long text."""
    home.mkdir()
    server = {"command": sys.executable, "args": [str(PLAIN)], "approval": "allow"}
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": server}}))
    one(run("ask", "-m", script({"tool_calls": CALLS}, {"text": "ok"}, limit=60_000), "show me", "--json"))
    return str(next(row["id"] for row in rows(run("conversations", "show", "--json")) if row["role"] == "tool"))


def test_a_result_of_which_the_model_saw_the_beginning_is_printed_whole(run: Run, message: str, tmp_path: Path) -> None:
    assert "kept whole" in run("conversations", "show").stdout
    assert "image/png kept" in run("conversations", "show").stdout
    assert len(run("conversations", "result", message, "--call", "2").stdout_bytes) > 290_000
    assert "first" in run("conversations", "result", message).stdout
    picture = tmp_path / "picture.png"
    done = run("conversations", "result", message, "--media", "1", "-o", str(picture))
    assert (done.exit_code, picture.read_bytes()) == (0, b"\x89PNG")


def test_documents_of_a_message_are_one_list(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("The plan.")
    assert run("ask", "--model", script(REPLY), "Compare @plan.md with @nowhere.md").exit_code == 0
    shown = run("conversations", "show").stdout
    assert shown.count("📚 Referenced documents") == 1
    assert "@nowhere.md  not found" in shown
    assert "@plan.md  plan.md" in shown
