"""What is done to single messages: pins, priorities, tool results."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.terminal import Terminal
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


def test_a_pinned_message_is_marked_and_still_sent_when_it_is_archived(run: Run, said: list[dict[str, Any]]) -> None:
    first = said[0]["id"]
    assert "#1 is pinned, in every window of conversation #1 " in run("conversations", "pin", first).stdout
    assert _marked(run("conversations", "show").stdout, "#1 user ").endswith(" · pinned")
    run("context", "compact")
    shown = run("conversations", "show").stdout
    assert _marked(shown, "#1 user ").endswith(" · pinned · archived, still sent")
    assert _marked(shown, "#2 assistant ").endswith(" · archived")
    assert first not in shown, "people see numbers"
    now = stored(run)
    assert (now[first]["active"], now[first]["pinned"], now[first]["lifted"]) == (True, True, True)
    assert (now[said[1]["id"]]["active"], now[said[1]["id"]]["pinned"]) == (False, False)
    assert "still sent" in run("context", "show").stdout


def test_unpinning_lets_it_go(run: Run, said: list[dict[str, Any]]) -> None:
    first = said[0]["id"]
    run("conversations", "pin", first)
    run("context", "compact")
    assert "#1 is no longer pinned in conversation #1: " in run("conversations", "unpin", first).stdout
    assert (stored(run)[first]["active"], stored(run)[first]["pinned"]) == (False, False)


def test_what_cannot_be_pinned_is_refused(run: Run, said: list[dict[str, Any]], script: Script) -> None:
    first = said[0]["id"]
    assert "there is no message 01X" in failure(run("conversations", "pin", "01X"))
    assert "is not pinned" in failure(run("conversations", "unpin", first))
    run("conversations", "pin", first)
    assert "pinned already" in failure(run("conversations", "pin", first))
    other = one(run("ask", "-m", script(REPLY), "elsewhere", "--json"))["conversation"]
    for command in (["pin", first], ["unpin", first], ["priority", first, "3"]):
        assert "not part of conversation #2" in failure(run("conversations", *command, "-c", other))
    assert "there is no conversation 01X" in failure(run("conversations", "pin", first, "-c", "01X"))


def test_a_message_on_another_branch_cannot_be_pinned(run: Run, said: list[dict[str, Any]]) -> None:
    run("conversations", "fork", said[1]["id"])
    assert "not on this branch" in failure(run("conversations", "pin", said[-1]["id"]))


def test_a_compaction_cannot_be_pinned(run: Run, said: list[dict[str, Any]]) -> None:
    head = one(run("context", "compact", "--json"))["head"]
    assert "is a compaction" in failure(run("conversations", "pin", head))


def test_a_priority_is_set_and_shown(run: Run, said: list[dict[str, Any]]) -> None:
    reply = said[1]["id"]
    head = _marked(run("conversations", "show").stdout, "#2 assistant ")
    assert head.endswith(".json"), "the usual priority is not told"
    assert one(run("conversations", "priority", reply, "9", "--json"))["priority"] == 9
    assert stored(run)[reply]["priority"] == 9
    assert _marked(run("conversations", "show").stdout, "#2 assistant ").endswith(" · priority 9")
    told = run("conversations", "priority", reply, "3").stdout
    assert told.startswith("#2 has priority 3 in conversation #1: ")


def test_the_transcript_tells_every_compaction_and_its_summary_once(run: Run, said: list[dict[str, Any]]) -> None:
    run("context", "compact")
    run("conversations", "pin", said[0]["id"])
    shown = run("conversations", "show").stdout
    assert "── compaction 1: 7 messages archived, " in shown
    assert "· summary by scripted:" in shown
    assert "(the user asked for it) ──\n" in shown
    assert "(the user pinned message #1) ──\n" in shown
    assert shown.count(f"\n  {SUMMARY['text']}\n") == 1


def test_the_attempts_that_failed_are_told_with_their_compaction(run: Run, script: Script) -> None:
    talk(run, script(REPLY, {"error": "unreachable", "when": "summary"}), 6)
    run("context", "compact")
    shown = run("conversations", "show").stdout
    _, marker, rest = shown.partition("· sentences of the originals (the user asked for it) ──\n")
    assert marker
    assert rest.splitlines()[1].startswith("· attempt 1 by "), "behind what became of the facts"


def test_a_message_is_named_by_its_number_too(run: Run, said: list[dict[str, Any]]) -> None:
    assert "pinned" in run("conversations", "pin", "#1").stdout
    assert _marked(run("conversations", "show").stdout, "#1 user ").endswith(" · pinned")
    assert stored(run)[said[0]["id"]]["pinned"]
    assert "no longer pinned" in run("conversations", "unpin", "1").stdout
    assert "has no message #999" in run("conversations", "pin", "#999").stderr


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


def test_show_takes_numbers_ids_and_times_as_bounds(run: Run, said: list[dict[str, Any]]) -> None:
    def shown(*options: str) -> list[str]:
        return [row["id"] for row in rows(run("conversations", "show", "--json", *options))]

    ids = [row["id"] for row in said]
    assert shown("--since", "#3", "--before", "6") == ids[2:5]
    assert shown("--since", ids[9]) == ids[9:]
    assert shown("--before", "2001-01-01") == []
    assert shown("--limit", "2") == ids[-2:]
    run("context", "clear")
    assert len(shown()) == len(ids) + 1
    assert shown("--no-system") == ids
    assert "soon is not a time" in run("conversations", "show", "--since", "soon").stderr


def test_bounds_with_nothing_between_them_are_told(run: Run, script: Script) -> None:
    run("ask", "-m", script({"text": "Yes."}), "one")
    run("ask", "-m", script({"text": "Yes."}), "--continue", "two")
    shown = run("conversations", "show", "--since", "#3", "--before", "#2")
    assert (shown.stdout, shown.stderr) == (
        "",
        "note: this conversation has no message from then: check --since and --before\n",
    )


def test_code_of_a_message_is_shown_as_it_was_written_in_a_narrow_terminal(
    run: Run, script: Script, terminal: type[Terminal]
) -> None:
    code = 'result = compute(first_argument="' + "value " * 12 + '")'
    words = "Some words that are longer than a narrow terminal is wide."
    talk(run, script({"text": f"{words}\n\n```python\n{code}\n```\n\n{words}"}), 1)
    opened = terminal("conversations", "show", columns=40)
    shown = opened.wait_for("terminal is wide.") + opened.wait_for("terminal is wide.")
    opened.code()
    assert code in shown
    assert shown.count("longer than a narrow\r\nterminal") == 2, "prose continues between words"


def test_documents_of_a_message_are_one_list(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "plan.md").write_text("The plan.")
    assert run("ask", "--model", script(REPLY), "Compare @plan.md with @nowhere.md").exit_code == 0
    shown = run("conversations", "show").stdout
    assert shown.count("📚 Referenced documents") == 1
    assert "@nowhere.md  not found" in shown
    assert "@plan.md  plan.md" in shown
