"""The log: where it goes, what is in it, and what never is."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import Run, Spawn, failure
from tests.cli.test_main import Broken
from tests.conftest import Open, Script, Serve
from tests.providers.conftest import Loopback

from recto.base.home_files import CRASH_FILE
from recto.cli import chat as chat_command
from recto.cli import log, main, slash
from recto.cli.chat_state import ChatState
from recto.cli.log import REDACTED, redact
from recto.cli.show import console

KEY = "sk-proj-4f9XyZ8821abcdEFGH"
TOOL = {"name": "read_document", "arguments": {"path": "Welcome"}}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    log.close()


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    return tmp_path / "recto.log"


def whole_turn(run: Run, script: Script, notes: Path, logged: Path) -> str:
    """The log of a turn with a tool call, a broken link and an answer."""
    model = script({"tool_calls": [TOOL], "thinking": "secretly"}, {"text": "She is called Sorrel."})
    asked = run("--log", str(logged), "ask", "-m", model, "--vault", str(notes), "Which boat, see [[Nowhere]]?")
    assert (asked.exit_code, asked.stdout) == (0, "She is called Sorrel.\n")
    return logged.read_text()


def test_a_log_tells_the_steps_of_a_turn_and_nothing_that_was_said(
    run: Run, script: Script, notes: Path, logged: Path
) -> None:
    told = whole_turn(run, script, notes, logged)
    assert {line.split(" ")[2] for line in told.splitlines()} == {"INFO"}
    steps = [line.split(": ", 1)[1] for line in told.splitlines()]
    assert steps[0].endswith(": ask")
    assert [step.split(" ")[0] for step in steps[1:]] == [
        *("message", "request", "reply", "tool", "tool", "request", "reply")
    ]
    assert "tool read_document finished: " in told
    assert logged.stat().st_mode & 0o777 == 0o600
    for said in ("Which boat", "Sorrel", "Nowhere", "secretly", "Welcome"):
        assert said not in told


@pytest.mark.parametrize("level", ["debug", "warning"])
def test_only_at_debug_level_what_was_said_is_logged(
    run: Run, script: Script, notes: Path, logged: Path, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("RECTO_LOG", level)
    told = whole_turn(run, script, notes, logged)
    for said in ("Which boat", "She is called Sorrel.", "Nowhere", '{"path":"Welcome"}'):
        assert (said in told) == (level == "debug")
    assert told or level == "warning"


def test_a_log_goes_to_stderr_or_to_the_file_of_the_environment(
    fork: Spawn, script: Script, logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_LOG", "info")
    done = fork("ask", "-m", script({"text": "Yes."}), "--json", "hello")
    assert json.loads(done.stdout)["text"] == "Yes."
    assert b" INFO recto.events: request " in done.stderr
    monkeypatch.setenv("RECTO_LOG_FILE", str(logged))
    done = fork("ask", "-m", script({"text": "Yes."}), "hello")
    assert (done.stdout, done.stderr) == (b"Yes.\n", b"")
    assert " INFO recto.events: request " in logged.read_text()


def test_without_a_log_nothing_is_said(spawn: Spawn, script: Script) -> None:
    done = spawn("ask", "-m", script({"text": "Yes."}), "hello")
    assert (done.stdout, done.stderr) == (b"Yes.\n", b"")


def test_a_level_or_a_file_that_cannot_be_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = failure(run("--log", str(tmp_path), "config", "show"))
    assert told == f"recto: the log cannot be written to {tmp_path}: Is a directory\n"
    monkeypatch.setenv("RECTO_LOG", "loud")
    assert failure(run("config", "show")) == "recto: RECTO_LOG takes debug, info, warning, error, not loud\n"


# -- secrets


@pytest.mark.parametrize("level", ["debug", "info"])
def test_a_key_in_a_providers_error_is_never_logged(
    run: Run, serve: Serve, logged: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = serve(Loopback.error(401, {"error": {"message": f"Incorrect API key: Bearer {KEY}"}}))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("RECTO_OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("RECTO_LOG", level)
    failure(run("--log", str(logged), "ask", "-m", "openai:gpt-4o", "a private question"))
    told = logged.read_text()
    assert "failed: Refused" in told
    assert KEY not in told
    assert ("a private question" in told) == (level == "debug")
    assert (REDACTED in told) == (level == "debug"), "the error itself is there, without its key"
    assert KEY not in log.log_bug(ValueError(f"refused {KEY}"))
    assert KEY not in (logged.parent / "home" / "crash.log").read_text()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"Authorization: Bearer {KEY}", f"Authorization: Bearer {REDACTED}"),
        (f"{{'x-api-key': '{KEY}'}}", f"{{'x-api-key': '{REDACTED}'}}"),
        ("https://host/v1?key=abc123&x=1", f"https://host/v1?key={REDACTED}&x=1"),
        ("HARBOUR_TOKEN=abc123 sh", f"HARBOUR_TOKEN={REDACTED} sh"),
        ("postgresql+psycopg://me:hunter2@host/db", f"postgresql+psycopg://me:{REDACTED}@host/db"),
        (f"wrong key {KEY}.", f"wrong key {REDACTED}"),
        ("12 tokens: 3 of 4, max_tokens=5, the key: C major", "12 tokens: 3 of 4, max_tokens=5, the key: C major"),
    ],
)
def test_what_looks_like_a_key_is_redacted_and_nothing_else(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_a_key_of_the_environment_is_redacted_whatever_it_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_API_KEY", "correct horse battery")
    assert redact("said correct horse battery twice") == f"said {REDACTED} twice"


# -- bugs


def test_a_bug_is_logged_with_its_traceback(logged: Path, home: Path) -> None:
    log.set_up("error", str(logged), "broken")
    told = failure(CliRunner().invoke(Broken("recto"), ["broken"]))
    assert told.startswith("recto: KeyError: this is a bug in Recto; its traceback is in ")
    assert told.endswith("(RECTO_LOG=debug recto --log FILE COMMAND logs what led to it)\n")
    assert "ERROR recto.cli.log: unexpected KeyError\nTraceback " in logged.read_text()


def test_a_bug_in_a_thread_goes_to_the_crash_file(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    failing = ZeroDivisionError("in a thread")
    main._log_thread_failure(threading.ExceptHookArgs((ZeroDivisionError, failing, None, None)))
    assert "ZeroDivisionError: in a thread" in (home / "crash.log").read_text()
    assert capfd.readouterr() == ("", "")


def test_a_bug_in_the_chat_is_told_and_the_chat_goes_on(
    desk: Open, script: Script, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("missing")

    monkeypatch.setattr(slash, "run", fail)
    opened = desk(script({"text": "One."}))
    state = ChatState(opened, opened.conversation(), console())
    chat_command._answer(state, "/help")
    assert "KeyError: this is a bug in Recto" in " ".join(capsys.readouterr().out.split())
    assert "KeyError: 'missing'" in (home / "crash.log").read_text()
    assert not state.over


def test_the_page_about_trouble_names_what_there_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text()
    for named in (*(f"`{level}`" for level in log.LEVELS), "RECTO_LOG", "RECTO_LOG_FILE", "--log", CRASH_FILE):
        assert named in page
