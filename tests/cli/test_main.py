import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run, Spawn, failure
from tests.cli.harbour import write_agent, write_server
from tests.conftest import Script, mostly_slow

from recto.cli.main import COMMANDS, LazyGroup, recto

HEAVY = (
    *("logging", "sqlalchemy", "rich", "prompt_toolkit", "httpx2", "splintr", "genai_prices"),
    *("recto.api.desk", "recto.engine"),
)


def loaded(*commands: str) -> set[str]:
    """What a process has imported after these commands."""
    code = (
        "import sys\nfrom recto.cli.main import recto\n"
        f"for each in {commands!r}:\n    try:\n        recto.main(each.split())\n"
        "    except SystemExit as ended:\n        assert not ended.code, each\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_help_imports_nothing_heavy() -> None:
    words = ("", "ask", "chat", "vault", "vault search", "vault stats")
    found = loaded(*(f"{each} --help" for each in words))
    assert not found & {*HEAVY, "recto.vault.vault", "recto.settings.settings"}


def test_commands_about_agents_import_no_store(home: Path) -> None:
    write_server(home, include="agent")
    write_agent(home / "agents/clerk")
    commands = ("sources list --help", "agent list", "agent show clerk", "agent config clerk")
    assert not loaded(*commands) & {*HEAVY, "mcp", "numpy"} - {"logging"}
    assert not (home / "recto.db").exists()


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    for name, help in COMMANDS.items():
        command = recto.get_command(click.Context(recto), name)
        assert command
        assert (command.help or "").startswith(help.rstrip("."))


def walk(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from walk(inner, (*path, name))


def test_every_command_shows_an_example_of_itself(run: Run) -> None:
    for path, _ in walk(recto):
        shown = run(*path, "--help")
        assert shown.exit_code == 0
        assert f"Example: recto {' '.join(path)}".rstrip() in shown.stdout, path


@pytest.mark.parametrize(
    ("words", "kind", "named", "code"),
    [
        (("ask", "--wrong"), "Usage", "--wrong", 2),
        (("contxt",), "Usage", "Did you mean context?", 2),
        (("conversations", "show", "01NOSUCHID"), "NotFound", "there is no conversation 01NOSUCHID", 1),
    ],
)
def test_an_error_is_one_sentence_or_json(run: Run, words: tuple[str, ...], kind: str, named: str, code: int) -> None:
    assert named in failure(run(*words), code)
    told = json.loads(failure(run(*words, "--json"), code))["error"]
    assert (told["type"], named in told["message"]) == (kind, True)
    assert failure(run("ask", "-m", "nope:x", "--", "--json")).startswith("recto: "), "a word of the message"


class Broken(LazyGroup):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known: dict[str, str] = {}
        return click.Command("broken", callback=lambda: known["missing"])


def test_a_bug_is_told_even_where_nothing_can_be_written(home: Path) -> None:
    home.write_text("a file where a folder should be")
    assert "this is a bug in Recto ('missing')" in failure(CliRunner().invoke(Broken("recto"), ["broken"]))


def test_a_reader_that_leaves_early_is_no_error(fork: Spawn, script: Script) -> None:
    model = script({"text": "word " * 20})
    fork("chat", "-m", model, input=b"first\n" * 20)
    shown = subprocess.Popen(
        [sys.executable, "-m", "recto", "conversations", "show"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert shown.stdout is not None
    assert shown.stderr is not None
    shown.stdout.readline()
    shown.stdout.close()
    assert shown.stderr.read() == b""
    shown.stderr.close()
    shown.wait()


def test_ctrl_c_stops_a_reply_and_keeps_what_came(script: Script, run: Run) -> None:
    model = script({"text": "one two three four five", "delay_s": 30})
    asking = subprocess.Popen(
        [sys.executable, "-m", "recto", "ask", "-m", model, "count"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert asking.stdout is not None
    assert os.read(asking.stdout.fileno(), 100) == b"one"
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=30)
    assert (asking.returncode, out, err) == (130, b"\n", b"")
    last = json.loads(run("conversations", "show", "--json").stdout.splitlines()[-1])
    assert (last["status"], last["text"]) == ("stopped", "one")


@pytest.mark.parametrize("closed", mostly_slow(["<&-", ">&-", "2>&-"], [">&-"]))
def test_a_closed_stream_is_no_bug(closed: str, script: Script, home: Path) -> None:
    model = script({"text": "yes"})
    command = f'exec {closed}; "{sys.executable}" -m recto ask -m {model} hello'
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert not (home / "crash.log").exists()


def test_a_console_of_another_encoding_does_not_end_the_command(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii:strict")
    done = subprocess.run(
        [sys.executable, "-m", "recto", "ask", "-m", script({"text": "Größe ✓"}), "hello"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert done.stdout.decode() == "Größe ✓\n"
