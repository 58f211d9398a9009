"""Folder: the real place of a vault. Walked, read and written without ever leaving it; knows files, not notes.

A symlink stands for what it leads to: a file inside counts, a folder is not walked into (its notes are there already,
or are none of ours).
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from recto.errors import Invalid, NotFound
from recto.ids import new_id
from recto.text import clean
from recto.vault.ignored import NAME as IGNORE_FILE
from recto.vault.ignored import Ignored, is_ignored
from recto.vault.names import NOTE_ENDINGS

TRASH = ".trash"
# What is read of a note when nobody says otherwise: half a million tokens, more than any window takes.
MOST_READ = 2_000_000

Skipped = Callable[[str], object]


class Entry(NamedTuple):
    """A walk gives many: a tuple is made in half of the time."""

    path: str
    """Relative to the vault, with forward slashes."""
    size: int
    mtime_ns: int


def is_note(path: str) -> bool:
    return path.lower().endswith(NOTE_ENDINGS)


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = _opened(root)
        self._start = os.path.join(self.root, "")
        """As the places of all that is inside begin."""

    # -- walking

    def walk(self, skipped: Skipped = lambda path: None) -> Iterator[Entry]:
        """Notes and attachments, folder by folder, by name. `skipped` hears of what is there and cannot be read."""
        waiting = [("", Ignored())]
        while waiting:
            prefix, ignored = waiting.pop()
            children = self._children(prefix, skipped)
            if any(child.name == IGNORE_FILE for child in children):
                ignored = ignored.within(self.root / prefix, prefix)
            folders: list[tuple[str, Ignored]] = []
            for child in children:
                path = prefix + child.name
                if child.name.startswith(".") or not (path.isascii() or _is_text(path, skipped)):
                    continue
                is_folder = _is_folder(child)
                if ignored.rules and ignored.leaves_out(path, is_folder):
                    continue
                if is_folder:
                    folders.append((path + "/", ignored))
                elif entry := self._found(child, path, skipped):
                    yield entry
            waiting.extend(reversed(folders))

    def _children(self, prefix: str, skipped: Skipped) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / prefix) as children:
                return sorted(children, key=lambda child: child.name)
        except OSError as why:
            if not prefix:
                raise _unusable(self.root, why) from why
            if not isinstance(why, FileNotFoundError):
                skipped(prefix.rstrip("/"))
            return []

    def _found(self, child: os.DirEntry[str], path: str, skipped: Skipped) -> Entry | None:
        try:
            if not child.is_file() or (child.is_symlink() and not self._leads_inside(path)):
                return None
            facts = child.stat()
            return Entry(path, facts.st_size, facts.st_mtime_ns)
        except FileNotFoundError:
            return None  # gone since it was listed
        except OSError:
            skipped(path)
            return None

    def _leads_inside(self, path: str) -> bool:
        try:
            self.inside(path)
        except (Invalid, NotFound):
            return False
        return True

    # -- naming

    def inside(self, path: str) -> Path:
        """The real place of a relative path; symlinks, `..` and absolute paths cannot lead outside."""
        return Path(self._real(path))

    def _real(self, path: str) -> str:
        # as text: a Path of it would take longer than reading a note
        place = self._resolved(path)
        if self._is_hidden(place):
            raise _missing(path)
        return place

    def relative(self, place: Path) -> str:
        return place.relative_to(self.root).as_posix()

    def _resolved(self, path: str) -> str:
        if "\0" in path:
            raise Invalid("a document's path cannot hold a NUL character", path=path)
        try:
            os.fsencode(path)  # what no disk can hold is told now
            place = self._start + path
            if not self._is_plain(path):
                place = os.path.realpath(os.path.join(self._start, path))
        except (OSError, ValueError) as why:
            raise _missing(path) from why
        if not f"{place}{os.sep}".startswith(self._start):
            raise Invalid(f"{path[:80]} is outside the vault", path=path)
        return place

    def _is_plain(self, path: str) -> bool:
        """Whether it lies where it says: no way up, no symlink. Most do, and a fourth of the time tells."""
        if os.path.normpath(path) != path or path[0] in "/.":
            return False
        ends = [at for at, sign in enumerate(path) if sign == "/"]
        return not any(os.path.islink(self._start + path[:end]) for end in (*ends, None))

    def _is_hidden(self, place: str) -> bool:
        return f"{os.sep}." in place[len(self._start) - 1 :]

    def _writable(self, path: str) -> Path:
        place = self._resolved(path)
        if self._is_hidden(place):
            raise Invalid(f"{path[:80]} is hidden; hidden files of a vault are not written", path=path)
        self.check_ignored(path, place)
        return Path(place)

    def check_ignored(self, path: str, place: str | None = None) -> None:
        """Invalid for what the owner told git to leave alone, and so do we."""
        relative = (place or self._resolved(path))[len(self._start) :].replace(os.sep, "/")
        if is_ignored(self.root, relative):
            raise Invalid(f"{path[:80]} is left out by a .gitignore of the vault, and left alone", path=path)

    # -- reading

    def read(self, path: str, most: int = MOST_READ) -> bytes:
        """All of a file, or Invalid when it is larger than `most` bytes: a part of a note is no note."""
        place = self._real(path)
        with _told("read", path):
            self._measured(place, path, most)
            with open(place, "rb") as file:
                content = file.read(most + 1)
        if len(content) > most:  # it grew meanwhile
            raise _too_large(path, len(content), most)
        return content

    def entry(self, path: str) -> Entry:
        """One file as a walk would give it; NotFound when it is gone, or git-ignored."""
        entry = self._entry(path)
        if is_ignored(self.root, entry.path):
            raise _missing(path)
        return entry

    def _entry(self, path: str) -> Entry:
        place = self.inside(path)
        with _told("read", path):
            facts = self._measured(place, path, None)
        return Entry(self.relative(place), facts.st_size, facts.st_mtime_ns)

    def _measured(self, place: Path | str, path: str, most: int | None) -> os.stat_result:
        facts = os.stat(place)
        # a pipe or a device would be waited for without end
        if not stat.S_ISREG(facts.st_mode):
            raise _missing(path)
        if most is not None and facts.st_size > most:
            raise _too_large(path, facts.st_size, most)
        return facts

    # -- writing

    def write(self, path: str, content: str | bytes) -> Entry:
        """All of a note or nothing of it, folders made as needed. Text is cleaned; bytes are written as they are."""
        place = self._writable(path)
        if not is_note(place.name):
            raise Invalid(f"{path[:80]} is no note; only {' and '.join(NOTE_ENDINGS)} files are written", path=path)
        raw = content if isinstance(content, bytes) else clean(content)[0].encode()
        with _told("write", path, is_missing=False):
            if place.is_dir():
                raise Invalid(f"{path[:80]} is a folder", path=path)
            place.parent.mkdir(parents=True, exist_ok=True)
            _replace(place, raw)
        return self._entry(path)

    def move(self, old: str, new: str) -> Entry:
        """A file under a new path; never onto another one. Only the case of its name may differ."""
        source, place = self._existing(old), self._writable(new)
        if is_note(source.name) != is_note(place.name):
            raise Invalid(f"{new[:80]} does not end as {old[:80]} does: a note stays a note", path=new)
        with _told("move", old, is_missing=False):
            if place.exists() and not place.samefile(source):
                raise Invalid(f"there already is a {new[:80]} in the vault", path=new)
            place.parent.mkdir(parents=True, exist_ok=True)
            source.rename(place)
        return self._entry(new)

    def delete(self, path: str) -> str:
        """Puts a file into the vault's trash, where its owner finds it again; gives its place there."""
        source = self._existing(path)
        trash = Path(self._resolved(TRASH))
        with _told("delete", path, is_missing=False):
            trash.mkdir(exist_ok=True)
            place = _free(trash / source.name)
            source.rename(place)
        return self.relative(place)

    def _existing(self, path: str) -> Path:
        """The file that is moved or deleted: never another one, to which a link of that name leads."""
        place = self.inside(path)
        if os.path.islink(os.path.join(self._start, path)):
            raise Invalid(f"{path[:80]} is a link to {self.relative(place)}; it is left alone", path=path)
        self.check_ignored(path, str(place))
        with _told("read", path):
            self._measured(place, path, None)
        return place


def _opened(root: Path) -> Path:
    try:
        place = root.resolve()
        is_folder = stat.S_ISDIR(place.stat().st_mode)
    except (OSError, RuntimeError, ValueError) as why:
        raise _unusable(root, why) from why
    if not is_folder:
        raise Invalid(f"{root} is a file; a vault is a folder of notes", path=str(root))
    if not os.access(place, os.R_OK | os.X_OK):
        raise Invalid(f"the folder {root} cannot be read; a vault must be readable", path=str(root))
    return place


def _unusable(root: Path, why: Exception) -> Invalid | NotFound:
    if isinstance(why, FileNotFoundError):
        return NotFound(f"there is no folder {root} to use as a vault", path=str(root))
    said = why.strerror if isinstance(why, OSError) else why
    return Invalid(f"the folder {root} cannot be used as a vault: {said}", path=str(root))


def _missing(path: str) -> NotFound:
    return NotFound(f"there is no document {clean(path[:80])[0]} in the vault", path=path)


def _too_large(path: str, size: int, most: int) -> Invalid:
    sizes = f"{size / 1e6:.1f} MB; notes of at most {most / 1e6:g} MB are read"
    return Invalid(f"{path[:80]} has {sizes}", path=path, size=size, most=most)


@contextmanager
def _told(doing: str, path: str, *, is_missing: bool = True) -> Iterator[None]:
    """What the disk refuses, as one sentence."""
    try:
        yield
    except OSError as why:
        is_none = isinstance(why, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        if is_missing and (is_none or why.errno == errno.ELOOP):
            raise _missing(path) from None
        raise Invalid(f"cannot {doing} {path[:80]}: {why.strerror}", path=path) from why


def _replace(place: Path, raw: bytes) -> None:
    # a hidden name: neither a walk nor a watcher takes it for a note
    beside = place.with_name(f".{new_id()}.tmp")
    known = _mode(place)
    try:
        with beside.open("xb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        if known is not None:
            beside.chmod(known)
        beside.replace(place)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _mode(place: Path) -> int | None:
    """The mode to keep; a file that its owner has made read-only is left alone."""
    if not place.exists():
        return None
    if not os.access(place, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only")
    return stat.S_IMODE(place.stat().st_mode)


def _free(place: Path) -> Path:
    """The place, or the first one beside it that is not taken: `Note 2.md`."""
    number, free = 2, place
    while os.path.lexists(free):
        free, number = place.with_name(f"{place.stem} {number}{place.suffix}"), number + 1
    return free


def _is_folder(child: os.DirEntry[str]) -> bool:
    try:
        return child.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_text(path: str, skipped: Skipped) -> bool:
    """Whether a name is valid text; others can be neither stored nor linked to."""
    said, wrong = clean(path)
    if wrong:
        skipped(said)
    return not wrong
