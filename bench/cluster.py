"""A PostgreSQL server of one's own, thrown away afterwards: for benches and tests."""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Where Debian puts what is not meant to be called by hand.
SERVERS = "/usr/lib/postgresql"
STARTS_WITHIN_S = 60


def find_programs() -> Path | None:
    """The folder with the newest server's programs."""
    found = [Path(at).resolve().parent] if (at := shutil.which("initdb")) else []
    packaged = sorted(Path(SERVERS).glob("*/bin/initdb"), key=lambda each: int(each.parts[-3]))
    return next(iter([*(each.parent for each in reversed(packaged)), *found]), None)


@contextmanager
def throwaway_cluster(programs: Path, settings: str = "-c fsync=off") -> Iterator[Callable[[], str]]:
    """On a Unix socket; a call makes an empty database and gives its URL."""
    import psycopg

    user = _server_user()
    folder = Path(tempfile.mkdtemp(prefix="recto-pg-"))
    if user:
        shutil.chown(folder, user)
    data, options = folder / "data", f"-k {folder} -c listen_addresses= {settings}"

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


def _server_user() -> str | None:
    """PostgreSQL refuses to run as root: the package's own user does it then."""
    return "postgres" if os.getuid() == 0 else None
