"""The golden home at a place of its own, a clock that stands still, and the files that outputs are compared with."""

import importlib
import json
import os
import pkgutil
import re
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.store.golden.clock import Clock
from tests.store.golden.home import unpack_world

import recto
from recto.cli.main import recto as recto_command
from recto.store.fact import note_key

HERE = Path(__file__).parent
UPDATES = bool(os.environ.get("UPDATE_GOLDEN"))
NOW = "2026-03-07T09:00:00+00:00"
"""After everything in the golden home."""
MADE_AT = "/srv/golden"
"""Where the golden home was made; outputs name this place, wherever the tests run."""
STOPWATCHES = ("recto.api.goal_run", "recto.turn.incoming_message")
"""The modules that tell how long something took."""
ID = re.compile(r"(?<![0-9A-Z])[0-7][0-9A-HJKMNP-TV-Z]{25}(?![0-9A-Z])")
VARYING = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r"\brecto-[\w-]{32,}"), "<key>"),
    (re.compile(r"\bnotes-[0-9a-f]{12}\b"), "notes-<hash>"),  # of the path
)

Compare = Callable[[str, str], None]


class World:
    """Each test has a copy of its own, always at the same place: paths are part of what is stored."""

    def __init__(self, folder: Path) -> None:
        self.root, self._template = folder / "live", folder / "template"
        self.home, self.project, self.notes = (self.root / name for name in ("home", "project", "notes"))
        unpack_world(self._template)
        store = self._template / "home" / "recto.db"
        with closing(sqlite3.connect(store)) as connection:
            self._known = set(ID.findall("\n".join(connection.iterdump())))
            _move(connection, str(self.root))
        self.renew()

    def keep(self) -> None:
        """Later copies begin as the present one is now."""
        shutil.rmtree(self._template)
        shutil.copytree(self.root, self._template)

    def renew(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.copytree(self._template, self.root)

    def normalised(self, text: str) -> str:
        """Without what differs from run to run: where it ran, and ids that are not in the golden home."""
        new: dict[str, str] = {}

        def named(found: re.Match[str]) -> str:
            id = found[0]
            return id if id in self._known else new.setdefault(id, f"<id {len(new) + 1}>")

        text = ID.sub(named, text.replace(str(self.root), MADE_AT))
        for pattern, name in VARYING:
            text = pattern.sub(name, text)
        return text


def _move(connection: sqlite3.Connection, root: str) -> None:
    """The store as if it had been made here. It is still as it was committed, so its tables are known for good."""
    for table, column in (
        ("conversations", "details"),
        ("uses", "vault"),
        ("facts", "note"),
    ):
        connection.execute(f"UPDATE {table} SET {column} = replace({column}, '{MADE_AT}', ?)", (root,))
    for number, note in connection.execute("SELECT n, note FROM facts WHERE note IS NOT NULL").fetchall():
        about = json.loads(note)
        key = note_key(about["vault"], about["path"])
        connection.execute("UPDATE facts SET note_key = ? WHERE n = ?", (key, number))
    connection.commit()


@pytest.fixture(scope="session")
def worlds() -> Iterator[Callable[[], World]]:
    # a short path, as long on every machine, so that no line is folded elsewhere
    # and no sign that Markdown would escape
    folder = Path("/tmp").resolve() / f"recto-golden-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    for module in pkgutil.walk_packages(recto.__path__, "recto."):
        if not module.name.startswith(("recto.web", "recto.store.migrations", "recto.__main__")):
            importlib.import_module(module.name)  # the clock reaches only what is imported
    numbers = count(1)
    yield lambda: made_world(folder / str(next(numbers)))
    shutil.rmtree(folder)


def made_world(folder: Path) -> World:
    """With the indexes of its searches, which would otherwise be made by every test."""
    world = World(folder)
    with surroundings(world):
        notes = f"--vault {world.notes}"
        # a suggestion brings the facts about notes up to date
        for line in (
            "conversations search Anna",
            "memory search Anna",
            f"vault index {notes}",
            f"vault suggest 15 {notes}",
        ):
            CliRunner().invoke(recto_command, line.split(), catch_exceptions=False)
    world.keep()
    return world


@pytest.fixture(scope="session")
def shared_world(worlds: Callable[[], World]) -> World:
    """For tests that each begin with a new copy."""
    return worlds()


@pytest.fixture(scope="session")
def second_world(worlds: Callable[[], World]) -> World:
    """For tests that only look."""
    return worlds()


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    shared_world.renew()
    with surroundings(shared_world):
        yield shared_world


@contextmanager
def surroundings(world: World, **more: str) -> Iterator[None]:
    """Nothing of the machine is seen, nor what time it is; `more` are further variables."""
    try:
        with pytest.MonkeyPatch.context() as patches:
            _surround(world, patches, more)
            yield
    finally:
        time.tzset()


def _surround(world: World, patches: pytest.MonkeyPatch, more: dict[str, str]) -> None:
    variables = {
        "RECTO_HOME": str(world.home),
        "RECTO_SEARCH_EMBEDDER": "none",
        "RECTO_STORE_BACKUP": "off",
        "RECTO_CONTEXT_COUNT_AT_PROVIDER": "off",
        "HOME": str(world.root / "user"),
        "XDG_CACHE_HOME": str(world.root / "user" / ".cache"),
        "TZ": "UTC",
        "COLUMNS": "140",
        "LINES": "50",
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        **more,
    }
    foreign = ("RECTO_", "LC_", "OTEL_", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "EDITOR", "VISUAL")
    for name in [*os.environ]:
        if name.startswith(foreign) or name.lower().endswith(("_api_key", "_proxy")):
            patches.delenv(name)
    for name, value in variables.items():
        patches.setenv(name, value)
    patches.setitem(sys.modules, "keyring", None)
    patches.chdir(world.project)
    time.tzset()
    clock = Clock(NOW)
    clock.install(patches.setattr)
    for name in STOPWATCHES:
        patches.setattr(sys.modules[name], "time", clock.stopwatch())
    # how long work takes is the machine's matter, and with it how often its progress is told
    for shown in ("compaction.summary_writer", "turn.emitting"):
        patches.setattr(f"recto.{shown}.PATIENCE_S", 3600.0)


@pytest.fixture
def compare(world: World) -> Compare:
    """Compares an output with the file of this name, or writes the file anew if that was asked for."""
    return lambda name, text: compare_with(world, name, text)


def compare_with(world: World, name: str, text: str) -> None:
    file, found = HERE / name, world.normalised(text)
    assert "this is a bug in Recto" not in found
    if UPDATES:
        file.parent.mkdir(exist_ok=True)
        file.write_text(found, "utf-8")
    assert file.exists(), f"there is no golden file {name}: `make golden` writes it"
    assert found == file.read_text("utf-8"), (
        f"{name} differs: if that is meant, `make golden` and a line in CHANGELOG.md"
    )


def pretty(line: str) -> str:
    """A line of output; one of JSON over several lines, so that differences can be read."""
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return json.dumps(value, indent=1, ensure_ascii=False) if isinstance(value, dict | list) else line
