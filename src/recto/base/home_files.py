"""Files in the user's home: private, replaced atomically; and databases that several processes open. Every command
imports this: nothing heavy.

TrustFile: what the user trusts in projects, each by the hash of its content.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from recto.base.locations import FACTS_FILE, RUNS_FOLDER, SEARCH_FILE, SOURCES_FILE, STORE_FILE
from recto.errors import RectoError

TRUST_FILE, TRUST_FORMAT = "trusted.json", 1
SERVERS, SETTINGS = "projects", "settings"
"""Sections of the file. The servers' was the first, and keeps its name."""
HISTORY_FILE, CRASH_FILE, KEYS_FILE = "history", "crash.log", "keys.json"
PAGE_FILE = "page.json"
ALLOWED_FOLDER = "allowed"

_OWN_NAMES = {
    *(TRUST_FILE, HISTORY_FILE, CRASH_FILE, KEYS_FILE, PAGE_FILE, "config.toml", "models.toml", ".mcp.json"),
    *(ALLOWED_FOLDER, "agents", "backups", "models", RUNS_FOLDER, "servers", "vaults"),
}
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


# -- who may read


def make_private_folder(folder: Path) -> Path:
    """Create a folder and missing parents, private to the user. Raises OSError."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)
        sync_to_disk(folder.parent)
    return folder


def sync_to_disk(path: Path) -> None:
    """Wait until a file's content, or the names in a folder, are on the disk, safe from power cuts. Raises OSError, but
    not for a folder: some systems cannot sync one."""
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        if not path.is_dir():
            raise


def private(path: str, flags: int) -> int:
    """Open a private file: the `opener` for everything that creates a file in the home."""
    return os.open(path, flags, 0o600)


def create_private_file(path: Path) -> None:
    """Create an empty private file unless it exists. SQLite copies a database's mode to the files beside it."""
    with suppress(FileExistsError):
        os.close(private(str(path), os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def tighten_home(home: Path) -> None:
    """Make the home and Recto's files in it private.

    Only files with Recto's names: the folder may hold other things too.
    """
    databases = (STORE_FILE, SEARCH_FILE, SOURCES_FILE, FACTS_FILE)
    with suppress(OSError):
        about = os.stat(home)
        # leave shared folders such as /tmp, and the user's home folder
        if not about.st_mode & stat.S_ISVTX and not os.path.samefile(home, os.path.expanduser("~")):
            _tighten(home, about)
        with os.scandir(home) as found:
            own = [each for each in found if each.name in _OWN_NAMES or each.name.startswith(databases)]
        _tighten_all(own)


@contextmanager
def private_home(home: Path) -> Iterator[None]:
    """Keep the home private while it is opened, and afterwards."""
    with suppress(OSError):  # opening it reports the problem
        make_private_folder(home)
    tighten_home(home)
    yield
    tighten_home(home)


def _tighten_all(entries: Iterable[os.DirEntry[str]]) -> None:
    for each in entries:
        with suppress(OSError):
            about = each.stat(follow_symlinks=False)
            _tighten(each.path, about)
            # a hidden folder is the user's, such as the repository of agents
            if stat.S_ISDIR(about.st_mode) and not each.name.startswith("."):
                with os.scandir(each.path) as found:
                    _tighten_all(list(found))


def _tighten(path: str | Path, about: os.stat_result) -> None:
    if about.st_mode & _OTHERS and not stat.S_ISLNK(about.st_mode):
        os.chmod(path, stat.S_IMODE(about.st_mode) & ~_OTHERS)


# -- JSON


def read_json(path: Path) -> dict[str, Any]:
    """The file's JSON; empty if it is missing or unreadable, since its content can be restored."""
    import json  # two milliseconds, and most commands do not need it

    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Replace the file atomically."""
    import json  # only to write a file
    import tempfile

    make_private_folder(path.parent)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as file:
        try:
            json.dump(value, file, ensure_ascii=False)
            file.close()
            sync_to_disk(Path(file.name))  # else a power cut may leave an empty file under the new name
            os.replace(file.name, path)
            sync_to_disk(path.parent)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


@contextmanager
def locked_file(path: Path) -> Iterator[None]:
    """Hold a lock between processes; it ends with the process. Raises OSError."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600), "r+b") as file:
        with suppress(ImportError):
            import fcntl  # not every system has it

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- trust


class TrustFile:
    """One section of the file: hashes by project and by name."""

    def __init__(self, home: Path, section: str) -> None:
        self._path, self._section = home / TRUST_FILE, section

    def is_trusted(self, name: str, sha256: str, project: Path | None) -> bool:
        return self.trusted(project).get(name) == sha256

    def trusted(self, project: Path | None) -> dict[str, str]:
        found = self._read()[1].get(_project_key(project))
        return found if isinstance(found, dict) else {}

    def trust(self, hashes: Mapping[str, str], project: Path | None) -> None:
        self._write(self.trusted(project) | dict(hashes), project)

    def distrust(self, names: Collection[str], project: Path | None) -> None:
        """Stop trusting a name; does nothing if it was not trusted."""
        self._write({name: sha for name, sha in self.trusted(project).items() if name not in names}, project)

    def _read(self) -> tuple[dict[str, Any], dict[str, Any]]:
        data = read_json(self._path)
        data = data if data.get("format") == TRUST_FORMAT else {"format": TRUST_FORMAT}
        section = data.get(self._section)
        return data, section if isinstance(section, dict) else {}

    def _write(self, hashes: dict[str, str], project: Path | None) -> None:
        (data, section), key = self._read(), _project_key(project)
        section.pop(key, None)
        try:
            write_json(self._path, data | {self._section: section | ({key: hashes} if hashes else {})})
        except OSError as why:
            raise RectoError(f"cannot write {self._path}: {why.strerror or why}", path=str(self._path)) from why


def _project_key(project: Path | None) -> str:
    return str(project.resolve()) if project else ""


# -- databases

_BUSY = 5  # SQLite's error code


def use_write_ahead_log(db: Any, timeout_s: float) -> None:
    """Set the journal mode, with retries: if two processes create a file together, SQLite fails one without waiting."""
    ends = time.monotonic() + timeout_s
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            return
        except Exception as why:
            if (getattr(why, "sqlite_errorcode", None) or 0) & 0xFF != _BUSY or time.monotonic() > ends:
                raise
            time.sleep(0.01)
