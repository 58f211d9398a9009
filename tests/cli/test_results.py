"""What tools gave, whole, at the command line."""

import json
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.conftest import Script

PLAIN = Path(__file__).parents[1] / "servers" / "parts" / "plain.py"
CALLS = [{"name": "plain__show", "arguments": {}}, {"name": "plain__big", "arguments": {"size": 300_000}}]


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


def test_what_is_not_there_is_told(run: Run, message: str) -> None:
    assert "holds 2 tool results, not 3" in failure(run("conversations", "result", message, "--call", "3"))
    assert "gave 1 pictures or files, not 2" in failure(run("conversations", "result", message, "--media", "2"))
