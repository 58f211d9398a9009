"""Suggestions while the user types: notes, their headings and files whose names fit.

An unreadable vault suggests nothing. Slow look-ups are cached.

The fuzzy matching is our own: prompt_toolkit's looks only at letters in order, ours prefers beginnings and whole
words."""

import logging
import re
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate, islice
from pathlib import Path

from msgspec import Struct

from recto.errors import RectoError
from recto.vault.document import note_name
from recto.vault.folder import Enters, Folder, FolderEntry, is_note
from recto.vault.link_resolver import fold_name
from recto.vault.links import Link, find_links, split_link
from recto.vault.vault import Vault

# The most suggestions offered.
MOST = 50
# After this time names are looked up again in the background; the old ones serve until then.
FRESH_S = 3.0
# Typed text beyond this length is ignored: nobody types more without a mistake.
_LONGEST = 60
_BOUNDS = " /-_.("
# Letters spread over more than this many times their number do not match.
_FURTHEST = 4

# Of a larger folder only the first files are offered.
MOST_FILES = 200_000
# Folders that programs fill: by their name, or by a file that the program puts there. pip, venv and most caches write
# one of these files; npm and Python do not.
GENERATED_NAMES = {"node_modules", "bower_components", "__pycache__", "site-packages"}
GENERATED_MARKS = {"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"}
_NEEDS_QUOTES = re.compile(r"[\s\"`<>|@]")
# Characters that would end or divide a link; headings are found without them.
_DIVIDERS = str.maketrans("[]#^|", "     ")
# Cannot be typed on one line; must be tried in a link.
_UNTYPED = re.compile("^\\s|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_UNQUOTED = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"]')
_ODD = re.compile(r"[\[\]#`%<\\]|\s$")

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
        self._fuzzy = Fuzzy([item.key for item in items])

    def best(self, typed: str) -> list[Suggestion]:
        return [self._items[number] for number in self._fuzzy.best(fold_name(typed), MOST)]


class CachedSuggestions:
    """Suggestions that are slow to look up. The first `best()` waits for them, for at most `patience_s`; later they are
    refreshed in the background."""

    def __init__(self, look_up: Callable[[], Iterable[Suggestion]], patience_s: float | None = None) -> None:
        self._look_up, self._patience_s = look_up, patience_s
        self._found = Suggestions(())
        self._since: float | None = None
        self._fresh_s = FRESH_S
        self._lock = threading.Lock()
        self._renewal: threading.Thread | None = None
        self._has_waited = False

    def start(self) -> None:
        """Starts looking them up if they are missing or old, without waiting."""
        is_old = self._since is None or time.monotonic() - self._since > self._fresh_s
        if is_old and not (self._renewal and self._renewal.is_alive()):
            self._renewal = threading.Thread(target=self._renew, name="recto-suggestions", daemon=True)
            self._renewal.start()

    def best(self, typed: str) -> list[Suggestion]:
        self.start()
        if self._renewal and not self._has_waited:
            self._has_waited = True
            self._renewal.join(self._patience_s)
        return self._found.best(typed)

    def _renew(self) -> None:
        with self._lock:
            began = time.monotonic()
            try:
                items = tuple(self._look_up())
            except Exception:  # the next look-up may succeed
                log.debug("looking up suggestions failed", exc_info=True)
                items = ()
            self._found, self._since = Suggestions(items), time.monotonic()
            # a slow look-up is repeated less often
            self._fresh_s = max(FRESH_S, 10 * (self._since - began))


def letters_in_order(letters: str) -> re.Pattern[str]:
    """Matches the letters with gaps between them. The gap before a letter never contains that letter, so there is one
    way to match and no backtracking."""
    gap = _FURTHEST * len(letters)
    rest = (f"[^{re.escape(letter)}\n]{{0,{gap}}}+{re.escape(letter)}" for letter in letters[1:])
    return re.compile(re.escape(letters[:1]) + "".join(rest))


class Fuzzy:
    """Finds the keys that fit what was typed. The caller folds both."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def best(self, typed: str, most: int) -> list[int]:
        """Numbers of the keys that fit, best first: keys that begin with the typed text, keys with a word that does,
        keys that contain it, keys with all its words, keys with its letters in order and close together. Ties go to the
        shorter key, then to the earlier one."""
        if not typed:
            return list(range(min(most, len(self._keys))))
        found: dict[int, None] = {}
        for fitting in self._ways(typed[:_LONGEST]):
            new = ((apart, len(self._keys[number]), number) for number, apart in fitting if number not in found)
            found |= dict.fromkeys(number for *_, number in nsmallest(most - len(found), new))
            if len(found) >= most:
                break
        return list(found)

    def _ways(self, typed: str) -> Iterator[Iterable[tuple[int, int]]]:
        """Pairs of a key's number and the length of the match in it, for each way to match, best way first."""
        keys = self._keys
        holding = [number for number, key in enumerate(keys) if typed in key]
        yield ((number, 0) for number in holding if keys[number].startswith(typed))
        starts = re.compile(f"[{re.escape(_BOUNDS)}]{re.escape(typed)}")
        yield ((number, 0) for number in holding if starts.search(keys[number]))
        yield ((number, 0) for number in holding)
        first, *words = sorted(typed.split(), key=len, reverse=True) or [""]
        if words:
            some = (number for number, key in enumerate(keys) if first in key)
            yield ((number, 0) for number in some if all(word in keys[number] for word in words))
        yield self._in_order(typed.replace(" ", "")).items()

    def _in_order(self, letters: str) -> dict[int, int]:
        """Searches all keys as one text, which is several times faster than one by one."""
        found: dict[int, int] = {}
        for match in letters_in_order(letters).finditer(self._text) if letters else ():
            number, apart = bisect_right(self._starts, match.start()) - 1, match.end() - match.start()
            if apart <= _FURTHEST * len(letters):
                found[number] = min(apart, found.get(number, apart))
        return found

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._keys)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(key) + 1 for key in self._keys)]


# -- names to suggest


def note_names(vault: Vault) -> Iterator[Suggestion]:
    """Every file by the shortest link that leads to it, latest change first; then notes by their aliases."""
    paths = [entry.path for entry in sorted(_files(vault.folder), key=lambda entry: -entry.mtime_ns)]
    names = {path: note_name(path) if is_note(path) else path.rpartition("/")[2] for path in paths}
    bearers = Counter(fold_name(name) for name in names.values())
    links = {path: name if bearers[fold_name(name)] == 1 else path.removesuffix(".md") for path, name in names.items()}
    links = {
        path: link for path, link in links.items() if "|" not in link and "^" not in link and _leads(vault, link, path)
    }
    for path, link in links.items():
        folder = path.rpartition("/")[0]
        yield Suggestion(fold_name(link), link, link, f"{folder}/" if folder else "")
    for note in vault.documents():
        for alias in note.aliases if note.path in links else ():
            link, caption = links[note.path], " ".join(alias.translate(_DIVIDERS).split())
            if caption and _leads(vault, insert := f"{link}|{caption}", note.path):
                yield Suggestion(fold_name(alias), insert, alias, f"→ {link}")


def _leads(vault: Vault, inside: str, path: str) -> bool:
    """True if `[[inside]]` is a link that leads to this path."""
    if _UNTYPED.search(inside):
        return False
    if not _ODD.search(inside):
        return True
    found = find_links(f"[[{inside}]]")
    return [each.inner for each in found] == [inside] and vault.resolve(found[0]) == path


def note_headings(vault: Vault, name: str, typed: str) -> list[Suggestion]:
    """The headings of the named note; in document order while nothing is typed."""
    try:
        path = vault.resolve(Link(f"[[{name}]]", *split_link(name))) if name.strip("# ") else None
        headings = vault.read(path).parsed.headings if path and is_note(path) else ()
    except RectoError:
        log.debug("the headings of a note could not be read", exc_info=True)
        return []
    plain = [" ".join(heading.text.translate(_DIVIDERS).split()) for heading in headings]
    found = [
        Suggestion(fold_name(text), text, text, "#" * heading.level)
        for text, heading in zip(plain, headings, strict=True)
        if text
    ]
    return Suggestions(found).best(typed.lstrip())


def file_paths(roots: Sequence[Path]) -> Iterator[Suggestion]:
    """Files below the roots as an `@` takes them, latest change first; a file below two roots is named from the nearer
    one."""
    known: dict[str, tuple[str, int]] = {}
    for root in roots:
        start = f"{root}/"
        for path, _, changed in _files(Folder(root), enters=_is_written_by_people):
            place = start + path
            if place not in known or len(path) < len(known[place][0]):
                known[place] = (path, changed)
    latest = sorted(known.values(), key=lambda each: -each[1])
    for path in dict.fromkeys(path for path, _ in latest):
        if not _UNQUOTED.search(path):
            yield Suggestion(fold_name(path), f'"{path}"' if _NEEDS_QUOTES.search(path) else path, path)


def _is_written_by_people(folder: str, names: Set[str]) -> bool:
    return folder.rpartition("/")[2] not in GENERATED_NAMES and names.isdisjoint(GENERATED_MARKS)


def _files(folder: Folder, enters: Enters | None = None) -> Iterator[FolderEntry]:
    return islice(folder.walk(enters=enters), MOST_FILES)
