"""`recto store`, and a home that can only be read."""

import json
import os
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.conftest import Open, Script

from recto.cli.main import recto
from recto.store.backup import backups


@pytest.fixture
def home(desk: Open, script: Script, tmp_path: Path) -> Path:
    at = desk(script({"text": "The mast is nine metres tall."}))
    talk = at.conversation()
    talk.ask("How tall is the mast?")
    talk.ask("And the boom?")
    at.index()
    at.close()
    return tmp_path / "home"


def run(*words: str) -> Result:
    return CliRunner().invoke(recto, words)


def test_a_changed_record_is_a_problem_and_the_exit_code_says_so(home: Path) -> None:
    with closing(sqlite3.connect(home / "recto.db")) as connection:
        connection.execute("UPDATE requests SET sha256 = x'00' WHERE n = 1")
        connection.commit()
    done = run("store", "check")
    assert (done.exit_code, "PROBLEM request" in done.output) == (1, True)


def test_a_lost_store_is_told_by_every_command_and_restored_by_one(home: Path) -> None:
    assert run("store", "backup").exit_code == 0
    (home / "recto.db").write_bytes(b"")
    for words in (["conversations", "list"], ["ask", "hello"], ["store", "check"]):
        done = run(*words)
        assert done.exit_code == 1
        assert "is empty, but 4 messages were stored" in done.output
        assert "`recto store restore`" in done.output
    done = run("store", "restore", "--json")
    assert json.loads(done.output)["restored"] == str(backups(home / "recto.db")[0].file)
    assert "How tall is the mast?" in run("conversations", "show").output


def test_a_lost_store_can_be_accepted_as_it_is_and_a_damaged_one_cannot(home: Path) -> None:
    (home / "recto.db").unlink()
    assert run("conversations", "list").exit_code == 1
    assert run("store", "accept").exit_code == 0
    assert run("conversations", "list").exit_code == 0
    (home / "recto.db").write_bytes(b"not a database" * 100)
    done = run("store", "accept")
    assert (done.exit_code, "`recto store restore`" in done.output) == (1, True)


def test_a_chat_makes_the_daily_backup_and_reading_makes_none(
    home: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECTO_STORE_BACKUP")
    for words in (["conversations", "list"], ["conversations", "search", "mast"], ["request", "verify", "--all"]):
        assert run(*words).exit_code == 0
    assert backups(home / "recto.db") == []
    assert run("ask", "Once more?", "-m", script({"text": "Nine."})).exit_code == 0
    assert len(backups(home / "recto.db")) == 1


# -- a home that cannot be written

Ask = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=["closed", "left after a kill"])
def read_only(home: Path, request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Runs commands over a home that nobody can write: by its modes, or for root by a mount of its own."""
    if request.param != "closed":
        _leave_a_log(home)
    before = _contents(home)
    is_root = os.geteuid() == 0
    prefix = f"mount --bind {home} {home} && mount -o remount,ro,bind {home} && exec " if is_root else "exec "
    shell = ["unshare", "-m", "sh", "-c"] if is_root else ["sh", "-c"]
    if is_root and (not shutil.which("unshare") or subprocess.run([*shell, prefix + "true"]).returncode):
        pytest.skip("root writes whatever the modes say, and may not mount here")
    _set_writable(home, is_writable=is_root)

    def ask(*words: str) -> "subprocess.CompletedProcess[str]":
        command = shlex.join([sys.executable, "-m", "recto", *words])
        return subprocess.run([*shell, prefix + command], capture_output=True, text=True, timeout=120)

    yield ask
    _set_writable(home, is_writable=True)
    assert _contents(home) == before


def _leave_a_log(home: Path) -> None:
    """As after a kill: the last message is only in the log."""
    left = (
        "import os; from pathlib import Path; from recto.store.store import Store\n"
        f"store = Store(Path({str(home / 'recto.db')!r}))\n"
        "store.tree.change(store.tree.latest().id, title='In the log')\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", left]).returncode == 9
    assert (home / "recto.db-wal").stat().st_size


def _contents(home: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in home.rglob("*") if file.is_file()}


def _set_writable(home: Path, *, is_writable: bool) -> None:
    for path in (home, *home.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IWUSR if is_writable else mode & ~stat.S_IWUSR)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["conversations", "list"], "#1"),
        (["conversations", "show"], "nine metres"),
        (["conversations", "search", "boom"], "And the boom?"),
        (["request", "rebuild"], "And the boom?"),
        (["request", "verify", "--all"], "ok "),
        (["request", "show"], "scripted"),
        (["store", "check"], "ok: "),
    ],
)
def test_a_read_only_home_can_be_read(read_only: Ask, words: list[str], said: str) -> None:
    done = read_only(*words)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_nothing_is_said_in_a_read_only_home_and_that_is_told(read_only: Ask, script: Script) -> None:
    done = read_only("ask", "hello", "-m", script({"text": "Hi."}))
    assert done.returncode == 1
    assert "is read-only: nothing can be stored" in done.stderr


@pytest.mark.slow
def test_a_vault_that_was_never_indexed_is_searched_in_a_read_only_home(read_only: Ask, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "Mast.md").write_text("The mast is nine metres tall.")
    done = read_only("vault", "search", "--vault", str(tmp_path / "notes"), "mast")
    assert done.returncode == 0, done.stderr
    assert "Mast.md" in done.stdout
    assert read_only("store", "backup", str(tmp_path / "copy.db")).returncode == 0
    assert (tmp_path / "copy.db").stat().st_size > 0


def test_what_the_page_about_trouble_shows_works(home: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
    shown = page[page.index("## The store") :]
    commands = [line for line in shown.splitlines() if line.startswith("recto ")]
    assert len(commands) == 5
    for line in commands:
        done = run(*shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}\n{done.output}"
    assert "| `store.backup` | `true` |" in shown
    assert "backup = false" in (home / "config.toml").read_text()


def test_pruning_names_what_goes_and_asks_before(home: Path) -> None:
    with closing(sqlite3.connect(home / "recto.db")) as connection:
        connection.execute("UPDATE conversations SET updated = '2020', created = '2020'")
        connection.commit()
    backup = home / "backups/recto-2020-01-01.db"
    backup.parent.mkdir(exist_ok=True)
    shutil.copy(home / "recto.db", backup)
    told = run("store", "prune", "--older-than", "90d", "--dry-run").stdout
    assert f"stays: {backup}, which may hold them\n" in told
    assert "for good" not in told
    refused = run("store", "prune", "--older-than", "90d")
    assert (refused.exit_code, "--yes removes it without asking" in refused.output) == (1, True)
    assert run("store", "prune", "--older-than", "90d", "--backups", "--yes").exit_code == 0
    assert not backup.exists()
    after = json.loads(run("store", "prune", "--older-than", "0h", "--yes", "--json").output)
    assert (after["conversations"], after["removed"], after["facts"]) == ([], 0, 0)
