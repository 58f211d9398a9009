"""Tool use: files, commands and outcomes, read off calls of any name."""

import json
from typing import Any

import pytest

from recto.summary.outcome import find_outcome
from recto.summary.shell_command import command_family
from recto.summary.tool_use import ToolUse, read_tool_use, read_written_command

NONE: frozenset[str] = frozenset()


def used(name: str, result: str = "ok", *, is_error: bool = False, open_file: str = "", **arguments: Any) -> ToolUse:
    return read_tool_use(name, json.dumps(arguments), result, is_error=is_error, open_file=open_file, frames=NONE)


@pytest.mark.parametrize(
    "use",
    [
        used("edit_file", path="src/a.py", old_string="x", new_string="y"),
        used("str_replace_based_edit_tool", command="str_replace", path="src/a.py", old_str="x", new_str="y"),
        used("Write", file_path="src/a.py", content="x = 1"),
        used("apply_patch", patch="*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** End Patch"),
        used("edit", search="x", replace="y", open_file="src/a.py"),
        used("multi_edit", edits=[{"file": "src/a.py", "content": "x"}]),
        used("bash", command="sed -i 's/x/y/' src/a.py"),
        used("run", cmd="cd repo && cat > src/a.py <<'EOF'\nx = 1\nrm b.py\nEOF"),
        used("shell", command=["tee", "src/a.py"]),
        used("bash", command="python -c \"open('src/a.py', 'w').write('x')\""),
        used("bash", command="python - <<'PY'\np = 'src/a.py'\ns = open(p).read()\nopen(p, 'w').write(s)\nPY"),
        used("bash", command="python3 <<EOF\nfrom pathlib import Path\np = Path('src/a.py')\np.write_text('x')\nEOF"),
        used("bash", command="git apply - <<'EOF'\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\nEOF"),
        used("bash", "patching file src/a.py", command="patch -p1 < fix.diff"),
        used("bash", command="perl -pi -e 's/x/y/' src/a.py"),
        used("bash", command="npx prettier --write src/a.py"),
        used("bash", "1 failed", command="sed -i s/x/y/ src/a.py && pytest -q"),
        used("shell", command=["bash", "-lc", "cd /repo && echo x >> src/a.py"]),
        used("shell", command=["apply_patch", "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y"]),
        used("replaceStringInFile", filePath="src/a.py", oldString="x", newString="y"),
        used("execute_python", code="with open('src/a.py', 'w') as f:\n    f.write('x')"),
    ],
)
def test_a_changed_file_is_found_however_it_was_changed(use: ToolUse) -> None:
    assert use.changed == ("src/a.py",)


def test_paths_of_windows_are_whole() -> None:
    command = r"(Get-Content src\app\a.cs) -replace 'x', 'y' | Set-Content C:\repo\src\app\a.cs"
    assert used("powershell", command=command).changed == (r"C:\repo\src\app\a.cs",)
    assert used("run", command=r"type src\app\a.cs").read == (r"src\app\a.cs",)


def test_a_tool_that_keeps_a_list_changes_no_file() -> None:
    assert used("todo_write", todos=[{"content": "x", "status": "pending"}], open_file="src/a.py").changed == ()


@pytest.mark.parametrize(
    "use",
    [
        used("read_file", path="src/a.py"),
        used("view", command="view", path="src/a.py"),
        used("bash", command="cd repo && head -50 src/a.py"),
    ],
)
def test_a_file_that_is_read_is_not_changed(use: ToolUse) -> None:
    assert (use.read, use.changed) == (("src/a.py",), ())


def test_an_edit_that_failed_changes_nothing_and_a_later_one_settles_it() -> None:
    failed = used("edit", "Error: old_str was not found", path="a.py", old_str="x", new_str="y")
    assert failed.is_failed
    assert failed.changed == ()
    assert failed.families == used("edit", path="a.py", old_str="x", new_str="z").families


@pytest.mark.parametrize(
    ("command", "family"),
    [
        ("pytest -q tests/a.py", "pytest"),
        ("python -m pytest -q", "pytest"),
        ("uv run pytest -x", "pytest"),
        ("CI=1 timeout 60 git commit -m x", "git commit"),
        ("npm run build", "npm build"),
        ("npm test -- --run", "npm test"),
        ("make -j4 lint", "make lint"),
        ("python reproduce.py --fast", "python reproduce.py"),
        ("/usr/bin/gcc -o a a.c", "gcc"),
        ("cd src", ""),
        ("perl -pi -e s/x/y/ a.pl", "perl -i"),
        ("git -C repo status", "git status"),
    ],
)
def test_a_command_belongs_to_a_family(command: str, family: str) -> None:
    assert command_family(command.split()) == family


@pytest.mark.parametrize(
    ("text", "outcome", "is_failed"),
    [
        ("....\n==== 12 passed in 0.31s ====", "12 passed in 0.31s", False),
        ("E  assert 1 == 2\n== 2 failed, 12 passed in 1s ==", "2 failed, 12 passed in 1s", True),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'boat'", "KeyError: 'boat'", True),
        ('{"exit_code": 2, "stdout": "", "stderr": "make: no rule"}', "make: no rule (exit code 2)", True),
        ("building\nfatal: not a git repository", "fatal: not a git repository", True),
        ("345\n(Open file: a.py)\nbash-$", "345", False),
        ("Warning: an error: is only a word\ndone", "Warning: an error: is only a word / done", False),
        ("", "no output", False),
        ("test result: ok. 5 passed; 0 failed", "test result: ok. 5 passed; 0 failed", False),
        ("F\nFAILED a.py::b - assert 1\n1 failed in 2s", "1 failed in 2s: FAILED a.py::b - assert 1", True),
        ("<returncode>1</returncode>\n<output>\nbad tide\n</output>", "bad tide (exit code 1)", True),
        ("<returncode>0</returncode>\n<output>\n</output>", "no output", False),
        ('{"output": "3 passed", "metadata": {"exit_code": 0}}', "3 passed", False),
        (
            "Collected\nSuccessfully installed tides-1.0\nWARNING: Running as root",
            "Successfully installed tides-1.0",
            False,
        ),
        ("Decompilation found!\nint f(void)\n{\n  return 1;\n}", "Decompilation found!", False),
        (
            "<title>Tides</title>\n<hr/>\n<p>Of the harbour of Lund, in the south:</p>\n<p>The tide is <b>high</b></p>",
            "The tide is high",
            False,
        ),
        ('{"rows": 12, "table": "tides"}', '{"rows": 12, "table": "tides"}', False),
        ("npm error Missing script: lint\nnpm error\nnpm error   npm run", "npm error Missing script: lint", True),
    ],
)
def test_the_outcome_is_the_line_that_says_how_it_went(text: str, outcome: str, is_failed: bool) -> None:
    assert find_outcome(text, is_error=False, frames=NONE) == (outcome, is_failed)


def test_a_short_listing_is_told_whole() -> None:
    assert used("bash", "auth\nmail\ntides", command="ls services").outcome == "auth / mail / tides"


def test_a_file_about_errors_is_no_error() -> None:
    assert not used("bash", "ValueError: in the log\n" * 30, command="cat app.log").is_failed
    assert not used("read_file", "raise ValueError('x')\nError: y", path="a.py").is_failed


def test_the_end_of_a_pipe_is_not_what_was_run() -> None:
    assert used("bash", "3 passed", command="cd /repo && pytest -q 2>&1 | tail -5").families == {"pytest"}
    assert used("bash", "a.py", command="git diff --stat | head").is_looking


def test_a_command_between_fences_is_read_too() -> None:
    use = read_written_command("edit 1:3\nprint(1)\nend", "[File: /repo/a.py (3 lines)]\n1:print(1)", frames=NONE)
    assert use.changed == ("/repo/a.py",)
    assert read_written_command("make test", "3 passed", frames=NONE).outcome == "3 passed"


@pytest.mark.parametrize("arguments", ["", "{", "[]", '"x"', '{"command": 3}', '{"path": null}', '{"command": "\'"}'])
def test_any_arguments_can_be_read(arguments: str) -> None:
    assert read_tool_use("bash", arguments, "ok", frames=NONE).is_failed is False


def test_a_page_that_was_looked_up_is_told_by_its_title_or_its_length() -> None:
    page = (
        "Beavers were found in the valley again in 1998. Many complaints result from flooded meadows near the river. "
        "The authority passed a plan for the protection of both sides. Most farmers accept the total compensation."
    )
    titled = read_tool_use("fetch_page", '{"url": "https://example.org"}', f"Beavers\n{page}", frames=frozenset())
    bare = read_tool_use("fetch_page", '{"url": "https://example.org"}', page, frames=frozenset())
    assert titled.outcome == "Beavers"
    assert bare.outcome == "35 words of text"
