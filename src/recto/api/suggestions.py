"""Suggestions while the user types: notes, their headings and files whose names fit. Slow look-ups are cached."""

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from msgspec import Struct

from recto.errors import RectoError
from recto.vault.document import note_name
from recto.vault.folder import Enters, Folder, FolderEntry, is_note
from recto.vault.link_resolver import fold_name
from recto.vault.links import Link, split_link
from recto.vault.vault import Vault

# The most suggestions offered.
MOST = 50
# After this time names are looked up again in the background; the old ones serve until then.
FRESH_S = 3.0
# Of a larger folder only the first files are offered.
MOST_FILES = 200_000
# Folders that programs fill: by their name, or by a file that the program puts there. pip, venv and most caches write
# one of these files; npm and Python do not.
GENERATED_NAMES = {"node_modules", "bower_components", "__pycache__", "site-packages"}
GENERATED_MARKS = {"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"}
NEEDS_QUOTES = re.compile(r"[\s\"`<>|@]")
UNTYPED_SOURCE = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"]')
# Characters that end or divide a link. Names with them are not offered, and headings are found without them.
_DIVIDERS = "[]#^|`\\%"
_WITHOUT_DIVIDERS = str.maketrans(_DIVIDERS, " " * len(_DIVIDERS))

log = logging.getLogger(__name__)


class Suggestion(Struct, frozen=True):
    key: str
    """The folded name, which is compared with what was typed."""
    insert: str
    shown: str
    meta: str = ""


class Suggestions:
    def __init__(self, items: Sequence[Suggestion]) -> None:
        self._items = items

    def best(self, typed: str) -> list[Suggestion]:
        """Names that begin with the typed text, those with a word that does, those that contain all its words; of
        these the shorter ones first."""
        folded = fold_name(typed)
        words = folded.split()
        if not words:
            return list(self._items[:MOST])
        fitting = (
            (_rank(item.key, folded), len(item.key), place)
            for place, item in enumerate(self._items)
            if all(word in item.key for word in words)
        )
        return [self._items[place] for *_, place in nsmallest(MOST, fitting)]


def _rank(key: str, typed: str) -> int:
    return 0 if key.startswith(typed) else 1 if any(f"{bound}{typed}" in key for bound in " /-_.(") else 2


class CachedSuggestions:
    """Suggestions that are slow to look up. The first `best()` waits for them, for at most `patience_s`; later they are
    refreshed in the background."""

    def __init__(self, look_up: Callable[[], Iterable[Suggestion]], patience_s: float | None = None) -> None:
        self._look_up, self._patience_s = look_up, patience_s
        self._found: Suggestions | None = None
        self._since = -FRESH_S
        self._renewal = threading.Thread()

    def start(self) -> None:
        """Starts looking them up if they are missing or old, without waiting."""
        if not self._renewal.is_alive() and time.monotonic() - self._since > FRESH_S:
            self._renewal = threading.Thread(target=self._renew, name="recto-suggestions", daemon=True)
            self._renewal.start()

    def best(self, typed: str) -> list[Suggestion]:
        self.start()
        if self._found is None:
            self._renewal.join(self._patience_s)
        return self._found.best(typed) if self._found else []

    def _renew(self) -> None:
        try:
            self._found = Suggestions(tuple(self._look_up()))
        except Exception:  # the next look-up may succeed
            log.debug("looking up suggestions failed", exc_info=True)
        self._since = time.monotonic()


# -- names to suggest


def note_names(vault: Vault) -> Iterator[Suggestion]:
    """Every file by the shortest link that leads to it, latest change first; then notes by their aliases."""
    paths = list(_latest(_files(vault.folder)))
    names = {path: note_name(path) if is_note(path) else path.rpartition("/")[2] for path in paths}
    bearers = Counter(fold_name(name) for name in names.values())
    links = {path: name if bearers[fold_name(name)] == 1 else path.removesuffix(".md") for path, name in names.items()}
    links = {path: link for path, link in links.items() if _fits_link(link)}
    for path, link in links.items():
        folder = path.rpartition("/")[0]
        yield Suggestion(fold_name(link), link, link, f"{folder}/" if folder else "")
    for note in vault.documents():
        for alias in note.aliases if note.path in links else ():
            if _fits_link(alias):
                yield Suggestion(fold_name(alias), f"{links[note.path]}|{alias}", alias, f"→ {links[note.path]}")


def _fits_link(name: str) -> bool:
    return name.isprintable() and name == name.strip() and not any(sign in name for sign in _DIVIDERS)


def note_headings(vault: Vault, name: str, typed: str) -> list[Suggestion]:
    """The headings of the named note; in document order while nothing is typed."""
    try:
        path = vault.resolve(Link(f"[[{name}]]", *split_link(name))) if name.strip("# ") else None
        headings = vault.read(path).parsed.headings if path and is_note(path) else ()
    except RectoError:
        log.debug("the headings of a note could not be read", exc_info=True)
        return []
    plain = [" ".join(heading.text.translate(_WITHOUT_DIVIDERS).split()) for heading in headings]
    found = [Suggestion(fold_name(text), text, text) for text in plain if text]
    return Suggestions(found).best(typed)


def file_paths(roots: Sequence[Path]) -> Iterator[Suggestion]:
    """Files below the roots as an `@` takes them, latest change first; a file below two roots is named from the nearer
    one."""
    known: dict[str, FolderEntry] = {}
    for root in roots:
        for entry in _files(Folder(root), enters=_is_written_by_people):
            place = f"{root}/{entry.path}"
            if place not in known or len(entry.path) < len(known[place].path):
                known[place] = entry
    for path in dict.fromkeys(_latest(known.values())):
        if not UNTYPED_SOURCE.search(path):
            yield Suggestion(fold_name(path), f'"{path}"' if NEEDS_QUOTES.search(path) else path, path)


def _is_written_by_people(folder: str, names: Set[str]) -> bool:
    return folder.rpartition("/")[2] not in GENERATED_NAMES and names.isdisjoint(GENERATED_MARKS)


def _files(folder: Folder, enters: Enters | None = None) -> Iterator[FolderEntry]:
    return islice(folder.walk(enters=enters), MOST_FILES)


def _latest(entries: Iterable[FolderEntry]) -> Iterator[str]:
    return (entry.path for entry in sorted(entries, key=lambda entry: -entry.mtime_ns))
