"""The home is the user's alone: what Recto writes, and what was left readable."""

import ast
import os
import re
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import Run, Spawn, run, spawn  # noqa: F401  fixtures
from tests.cli.harbour import write_server
from tests.conftest import Script

from recto.api import store_queries
from recto.api.blocking import open_desk
from recto.api.store_files import StoreFiles
from recto.base.home_files import tighten_home, use_write_ahead_log
from recto.cli.log import log_bug
from recto.cli.prompt import open_history
from recto.vault.document_summary import DocumentSummaries

SOURCE = Path(store_queries.__file__).parent
SERVER = "harbour.py"
"""The program of a server, which is the user's own and not Recto's."""


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(home: Path) -> dict[str, str]:
    found = [home, *(path for path in home.rglob("*") if path.name != SERVER)]
    return {str(path.relative_to(home)): oct(mode(path)) for path in found if mode(path) & 0o077}


@pytest.fixture
def used(home: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nearly everything was written that Recto writes."""
    vault = tmp_path / "notes"
    vault.mkdir()
    (vault / "Boat.md").write_text("# Boat\n\nThe mast is tall. " * 200)
    write_server(home)
    model = script({"text": "Yes."}, {"text": "A line.", "when": "gist"})
    with open_desk(vault=vault, model=model, settings={"references.gists": True}) as desk:
        desk.agents.create("clerk", model=model)
        desk.agents.set_value("clerk", "description", "x")
        talk = desk.conversation()
        talk.ask("What of [[Boat]]?")
        assert talk.sources(fresh=True)
        desk.search("mast", complete=True)
        assert desk.vault_search
        desk.vault_search.find_documents("mast")
    log_bug(ValueError("a bug"))
    return home


def loosen(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_what_others_could_read_is_closed_on_opening(used: Path, script: Script) -> None:
    (used / "history").write_text("hello")
    (used / "servers" / "old.log").write_text("hello")
    loosen(used)
    open_desk(model=script({"text": "Yes."})).close()
    assert open_to_others(used) == {}
    loosen(used)
    store_queries.open_queries().close()
    assert open_to_others(used) == {}


def test_a_new_home_of_the_real_command_is_private(home: Path, spawn: Spawn) -> None:  # noqa: F811
    assert spawn("config", "set", "reply.tries", "2").returncode == 0
    assert (mode(home), mode(home / "config.toml")) == (0o700, 0o600)


def test_what_is_not_rectos_own_is_left_alone(home: Path, tmp_path: Path) -> None:
    home.mkdir()
    other = tmp_path / "shared.md"
    for path in (other, home / "letter.txt", home / "agents/.git/config"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (home / "agents/link.md").symlink_to(other)
    script = home / "agents/serve"
    script.write_text("#!/bin/sh")
    script.chmod(0o755)
    tighten_home(home)
    assert {mode(path) for path in (other, home / "letter.txt", home / "agents/.git/config")} == {0o644}
    assert mode(script) == 0o700, "a program stays one"


def test_a_disk_without_modes_is_no_error(used: Path, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    loosen(used)

    def refuse(path: object, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    tighten_home(used)
    with open_desk(model=script({"text": "Yes."})) as desk:
        assert desk.conversation().ask("hello").text == "Yes."


def test_a_file_that_another_process_creates_at_the_same_time_is_waited_for(tmp_path: Path) -> None:
    path, is_refused = tmp_path / "search.db", threading.Event()

    class Connection:
        def __init__(self, db: sqlite3.Connection) -> None:
            self.db = db

        def execute(self, statement: str) -> None:
            try:
                self.db.execute(statement)
            except sqlite3.OperationalError:
                is_refused.set()
                raise

    options = {"isolation_level": None, "timeout": 0, "check_same_thread": False}
    with closing(sqlite3.connect(path, **options)) as other, closing(sqlite3.connect(path, **options)) as db:  # type: ignore[call-overload]
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            use_write_ahead_log(db, 0)
        waiting = threading.Thread(target=use_write_ahead_log, args=(Connection(db), 30))
        waiting.start()
        assert is_refused.wait(30)
        other.execute("COMMIT")
        waiting.join(30)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


# -- who creates files

# Calls that create files or folders with a mode that the umask decides.
CREATES = {"mkdir", "makedirs", "touch", "write_text", "write_bytes"}
# Modules that write files which the user named, or which belong to a project or a vault; and those that keep to the
# mode of the folder they write to.
WRITE_ELSEWHERE = {
    "agents/agents.py": "an agent's folder, in a project or in the home, which is tightened around it",
    "cli/agent.py": "an agent's file, by Agents.write_text",
    "cli/show.py": "--output",
    "cli/sources.py": "--output",
    "home_files.py": "the one place",
    "memory/memory_files.py": "the memory of a project",
    "providers/scripted.py": "the log that a variable names",
    "toml_file.py": "settings of a project or of the home: as private as their folder",
    "transfer/formats.py": "a temporary folder",
    "transfer/exporter.py": "an export",
    "vault/folder.py": "notes",
}


def _creates_openly(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name in CREATES:
        return True
    if name != "open" or any(keyword.arg == "opener" for keyword in call.keywords):
        return False
    if "O_CREAT" in ast.dump(call):
        return True
    values = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    modes = [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    is_null = "devnull" in ast.dump(call)
    return not is_null and any(re.fullmatch(r"[rwxabt+]{1,3}", mode) and set(mode) & set("wxa") for mode in modes)


def test_nothing_else_creates_files_in_the_home() -> None:
    names = re.compile(rf"\b(open|{'|'.join(CREATES)})\(")
    likely = [path for path in SOURCE.rglob("*.py") if names.search(path.read_text())]
    found = {
        str(path.relative_to(SOURCE))
        for path in likely
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _creates_openly(node)
    }
    assert found <= WRITE_ELSEWHERE.keys(), found - WRITE_ELSEWHERE.keys()


@pytest.mark.parametrize("umask", [0, 0o077])
def test_under_any_umask_the_home_is_private_while_it_is_used(
    home: Path, tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    """Also before it is closed, which would tighten it."""
    os.umask(umask)
    monkeypatch.delenv("RECTO_STORE_BACKUP")
    vault = tmp_path / "notes"
    vault.mkdir()
    (vault / "Boat.md").write_text("# Boat\n\nThe mast is tall. " * 200)
    write_server(home)
    model = script({"text": "Yes."}, {"text": "A line.", "when": "gist"})
    with open_desk(vault=vault, model=model, settings={"references.gists": True}) as desk:
        desk.agents.create("clerk", model=model)
        desk.agents.set_value("clerk", "description", "x")
        desk.facts.learn("The boat is blue.")
        talk = desk.conversation()
        talk.ask("What of [[Boat]]?")
        assert talk.sources(fresh=True)
        desk.search("mast", complete=True)
        assert desk.vault_search
        desk.vault_search.find_documents("mast")
        DocumentSummaries(home / "vaults" / "x" / "gists.db").put(b"1", "A line.")
        desk.engine.backup.close()
        StoreFiles(home).backup()
        log_bug(ValueError("a bug"))
        open_history(home / "history").append_string("hello")
        names = {path.name for path in home.rglob("*")}
        assert names >= {"recto.db-wal", "recto.db.newest", "search.db", "facts.db", "catalog.db", "gists.db"}
        assert open_to_others(home) == {}
    assert open_to_others(home) == {}
