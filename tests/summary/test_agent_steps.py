"""Agent steps: the latest task, the files and the last outcomes are read off any agent's messages, in any language."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.summary.samples import quarter

from recto.chat.blocks import Text, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.summary.agent_steps import continue_work_log, find_observations, says_all_by_outcome
from recto.summary.work_log import WorkLog

Call = tuple[str, dict[str, Any], str]


def said(*parts: str | Call) -> list[Message]:
    """The user's words, the assistant's after "A: ", a command with its output as "$ ls → a.py", any other call."""
    found: list[Message] = []
    for part in parts:
        number, id = len(found) + 1, str(len(found) + 1)
        if isinstance(part, str) and not part.startswith("$ "):
            role: Role = "assistant" if part.startswith("A: ") else "user"
            found.append(Message(id, role, (Text(part.removeprefix("A: ")),), said=number))
            continue
        command, _, output = part[2:].partition(" → ") if isinstance(part, str) else ("", "", "")
        name, given, result = part if isinstance(part, tuple) else ("bash", {"command": command}, output)
        found.append(Message(id, "assistant", (ToolCall(id, name, json.dumps(given)),), said=number))
        found.append(Message(f"{id}b", "tool", (ToolResult(id, name, result),), said=number + 1))
    return found


def log_of(*parts: str | Call, former: WorkLog | None = None) -> WorkLog:
    return continue_work_log(former.whole_beside("") if former else "", said(*parts)) or WorkLog()


TASK, STATE = "Please add a cache to the tile server of the harbour.", "The cache is in tiles.py."
EDIT: Call = ("edit", {"path": "tiles.py", "old_string": "a", "new_string": "b"}, "ok")
BEGUN = (TASK, EDIT, "$ pytest -q → 31 passed", f"A: {STATE}")
RULES = "\n".join(f"{at}. Every response must include exactly one command, and nothing else." for at in "12345678")
ASKED = "The export of tide tables writes empty rows when a station has no name. It should leave those rows out."
PROMPTS = (
    f"> Did you see the tower?\n\n{ASKED}\n\n```\nrows = 1\n```",
    f"<issue>\n{ASKED}\n</issue>\n<instructions>\n{RULES}\n</instructions>",
    f"ISSUE:\n{ASKED}\n\n## Important rules\n{RULES}",
)
CHANGES: tuple[str | Call, ...] = (
    ("str_replace_based_edit_tool", {"command": "str_replace", "path": "src/a.py", "old_str": "x"}, "ok"),
    ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y"}, "ok"),
    ("edit", {"search": "x", "replace": "y"}, "[File: src/a.py (3 lines)]\n1:y"),
    "$ sed -i 's/x y/z/' src/a.py && pytest -q → 1 failed",
    ("shell", {"command": ["bash", "-lc", "cd /repo && cat >> src/a.py <<EOF\nrm b.py\nEOF"]}, ""),
)
OUTCOMES = (
    ("F\nFAILED a.py::b - assert 1\n1 failed in 2s", "1 failed in 2s: FAILED a.py::b - assert 1", True),
    ("Traceback (most recent call last):\n  File x\nKeyError: 'boat'", "KeyError: 'boat'", True),
    ('{"exit_code": 2, "stdout": "", "stderr": "make: no rule"}', "stderr: make: no rule (exit code 2)", True),
    ("0 Fehler, alles übersetzt\n(Open file: a.py)\nbash-$", "0 Fehler, alles übersetzt", False),
)


def test_a_chat_in_which_a_tool_is_used_now_and_then_has_no_log() -> None:
    chat = [part for at in range(6) for part in (f"What about harbour {at} of Norway?", "A: It is deep.")]
    assert continue_work_log("", said(*chat, "$ ls → a.py")) is None


@pytest.mark.parametrize(
    ("task", "command"),
    [
        ("Bitte sorge dafür, dass der Export keine leeren Zeilen mehr schreibt.", "$ grep -n Zeilen export.py"),
        ("Ahora limita la caché a 200 MB, por favor, y avisa si se llena.", "$ grep -rn cache src"),
        ("请修复登录页面的错误，用户名为空时不要崩溃", "$ cat login.py"),
        ("Добавь проверку, чтобы пустые строки не попадали в отчёт.", "$ make report"),
        ("Now limit the cache to 200 MB.", "$ sed -i s/100/200/ src/cache.py"),
    ],
)
def test_the_latest_request_that_the_agent_works_on_is_the_task(task: str, command: str) -> None:
    log = log_of(*BEGUN, task, command)
    assert (log.task, log.earlier) == (task, ((TASK, STATE),))


@pytest.mark.parametrize("words", ["we had pizza at Luigi's yesterday", "ok, go on", "sigue, gracias", "続けて"])
def test_a_word_to_go_on_and_small_talk_are_no_task(words: str) -> None:
    assert log_of(*BEGUN, words, "$ ls src → a.py").task == TASK
    log = log_of(words, "A: Good.", *BEGUN, words, "A: Good.")
    assert (log.task, log.earlier) == (TASK, ())


def test_what_is_answered_without_work_is_no_task_and_what_nobody_has_answered_may_be_one() -> None:
    log = log_of(*BEGUN, "Who invented the zip, by the way, and in which year was it?", "A: Whitcomb Judson, in 1893.")
    assert (log.task, log.state) == (TASK, STATE)
    assert log_of(*BEGUN, "Can you write an entry for the changelog?").task.startswith("Can you write")


def test_an_answer_is_no_task_and_what_was_asked_back_about_is_one() -> None:
    asked = "Please rename the old endpoint of the tiles."
    edit: Call = ("edit", {"path": "src/routes.py", "old_string": "endpoint", "new_string": "v2"}, "ok")
    assert log_of(*BEGUN, asked, "A: Which name should it get?", "/v2/tiles", edit).task == asked
    assert log_of(*BEGUN, "A: Shall I run all tests?", "yes, all of them please", "$ make").task == TASK


def test_the_message_that_is_answered_is_pointed_to_and_told_once_it_is_covered() -> None:
    messages = said(*BEGUN, "Now draw a chart of the last 30 days, please.", "$ make chart → 3 charts")
    answered = messages.pop(-3)
    log = continue_work_log("", messages, answering=7) or WorkLog()
    assert (log.task, log.earlier) == ("message #7, which follows word for word", ((TASK, STATE),))
    log = continue_work_log(log.whole_beside(""), [answered]) or WorkLog()
    assert log.task == "Now draw a chart of the last 30 days, please."


def test_a_goal_stays_the_task_while_its_run_goes_on() -> None:
    messages = said(TASK, "$ ls", "$ ls", "[agent mode] Go on with the goal; it was stopped: out of money.", "$ ls")
    messages[0] = replace(messages[0], task_runs=({"run": "r1", "goal": TASK},))
    messages[5] = replace(messages[5], task_runs=({"run": "r1"},))
    log = continue_work_log("", messages) or WorkLog()
    assert (log.task, log.earlier) == (TASK, ())
    assert continue_work_log(log.whole_beside(""), messages[5:]) == log


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_task_is_told_without_what_surrounds_it(prompt: str) -> None:
    assert log_of(prompt, "$ grep -rn rows src", "$ pytest").task == ASKED


def test_state_and_steps_that_are_left_are_those_that_the_agent_told_last() -> None:
    steps = [{"content": "Move it", "status": "completed"}, {"content": "Draw it", "status": "pending"}]
    log = log_of(*BEGUN, ("TodoWrite", {"todos": steps}, "ok"), "A: All 9 tests pass. Next I move it all. Is it fine?")
    assert (log.state, log.left) == ("All 9 tests pass. Next I move it all.", "Draw it")


@pytest.mark.parametrize("call", CHANGES)
def test_a_changed_file_is_found_however_it_was_changed(call: str | Call) -> None:
    assert log_of(ASKED, call, "$ true").changed == ("src/a.py",)


def test_a_file_that_is_only_read_is_not_changed_and_errors_in_it_are_none() -> None:
    log = log_of(ASKED, ("view", {"path": "a.py"}, "x"), "$ cat b.log → ERROR\nERROR\nERROR\nERROR", "$ ls → 1")
    assert (log.read, log.changed, [step.is_failed for step in log.steps]) == (("a.py", "b.log"), (), [False, False])
    assert says_all_by_outcome("bash", '{"command": "make"}') > says_all_by_outcome("read_file", '{"path": "a.py"}')


@pytest.mark.parametrize(("result", "outcome", "is_failed"), OUTCOMES)
def test_the_outcome_is_the_line_that_says_how_it_went(result: str, outcome: str, is_failed: bool) -> None:
    [*_, step] = log_of(ASKED, "$ ls", f"$ make → {result}").steps
    assert (step.outcome, step.is_failed) == (outcome, is_failed)


def test_an_error_is_told_until_it_is_settled() -> None:
    failed = ("$ pytest && git push → 2 failed", "$ mypy src → a.py:3: error: bad", (*EDIT[:2], "Error: not found"))
    run = (*BEGUN, *failed, "$ CI=1 python -m pytest | tail -3 → 9 passed")
    assert [step.command for step in log_of(*run).steps if step.is_failed] == ["mypy src", "edit tiles.py"]
    done = log_of(*run, "$ sed -i s/a/b/ src/tiles.py", "$ mypy src → Success: no issues")
    assert [step.outcome for step in done.steps] == ["9 passed", "Success: no issues"]


def test_an_agent_without_tools_writes_its_commands_and_reads_their_output() -> None:
    begun = (ASKED, "A: I run it.\n```\npython seed.py\n```", "125379498\n(Open file: n/a)\nbash-$")
    later = ("A: So.\n```\nmake < in\n```", "make: *** no rule\nbash-$", "A: So.\n```\ncreate a.py\n```")
    log = log_of(*begun, *later, "[File: a.py (1 line)]\n1:\nbash-$")
    assert (log.task, log.changed) == (ASKED, ("a.py",))
    assert [(step.command, step.is_failed) for step in log.steps] == [("python seed.py", False), ("make < in", True)]
    assert find_observations(said("1:x = 1\nbash-$"), goes_on=True) == {"1": ""}


texts = st.text(max_size=60) | st.sampled_from(["Task: x", "Work log:", "a → b", "\n\n", "```\nls\n```", "$ <<x"])
calls = st.tuples(st.just("bash"), st.dictionaries(st.sampled_from(["path", "command", "status"]), texts), texts)


@given(st.lists(texts | calls, max_size=9), st.integers(0, 200), texts)
def test_any_run_gives_a_log_that_fits(parts: list[str | Call], limit: int, former: str) -> None:
    log = continue_work_log(former, said(*parts)) or WorkLog()
    assert quarter(log.render(limit, quarter)) <= max(1, limit)
    assert quarter(log_of(*parts, former=log).render(limit, quarter)) <= max(1, limit)
