import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recto.store.store import Store

# Where Debian puts what is not meant to be called by hand.
SERVERS = "/usr/lib/postgresql"
STARTS_WITHIN_S = 60


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "recto.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """A PostgreSQL server of the tests' own, on a Unix socket; a call makes an empty database and gives its URL."""
    if (programs := _programs()) is None:
        pytest.skip("no PostgreSQL server is installed here; `make test-all` installs one")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed here; requirements/dev.txt has it")
    user = _server_user()
    folder = Path(tempfile.mkdtemp(prefix="recto-pg-"))
    if user:
        shutil.chown(folder, user)
    data, options = folder / "data", f"-k {folder} -c listen_addresses= -c fsync=off"

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run([programs / program, *arguments], cwd=folder, user=user, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    try:
        run("initdb", "-D", str(data), "-U", "recto", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        # the server would keep a pipe open: its log goes to a file
        log = str(folder / "log")
        run("pg_ctl", "start", "-w", "-t", str(STARTS_WITHIN_S), "-D", str(data), "-l", log, "-o", options)
        try:
            numbers = itertools.count(1)

            def make() -> str:
                name = f"recto{next(numbers)}"
                with psycopg.connect(f"host={folder} user=recto dbname=postgres", autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name}")
                return f"postgresql+psycopg://recto@/{name}?host={folder}"

            yield make
        finally:
            run("pg_ctl", "stop", "-D", str(data), "-m", "immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder with the newest server's programs."""
    found = [Path(at).resolve().parent] if (at := shutil.which("initdb")) else []
    packaged = sorted(Path(SERVERS).glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    return next(iter([*(each.parent for each in reversed(packaged)), *found]), None)


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root: the package's own user does it then."""
    return "postgres" if os.getuid() == 0 else None
