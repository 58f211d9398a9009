"""Suggestions while the user types: which names fit what was typed, and a cache for names that take long to look up.

The fuzzy matching is our own: prompt_toolkit's looks only at letters in order, ours prefers beginnings and whole words.
"""

import logging
import re
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate

from msgspec import Struct

from recto.vault.link_resolver import fold_name

# The most suggestions that are offered at once.
MOST = 50
# After this time names are looked up again in the background; the old ones serve until then.
FRESH_S = 3.0
# Typed text beyond this length is ignored: nobody types more without a mistake.
_LONGEST = 60
_BOUNDS = " /-_.("
# Letters spread over more than this many times their number do not match.
_FURTHEST = 4

log = logging.getLogger(__name__)


class Suggestion(Struct, frozen=True):
    key: str
    """The folded name, which is compared with what was typed."""
    insert: str
    shown: str
    meta: str = ""


class Suggestions:
    """A fixed list of suggestions."""

    def __init__(self, items: Sequence[Suggestion]) -> None:
        self._items = items
        self._fuzzy = Fuzzy([item.key for item in items])

    def best(self, typed: str) -> list[Suggestion]:
        return [self._items[number] for number in self._fuzzy.best(fold_name(typed), MOST)]


class CachedSuggestions:
    """Suggestions that take a while to look up. The first `best()` waits for them, for at most `patience_s`; later they
    are renewed in the background."""

    def __init__(self, look_up: Callable[[], Iterable[Suggestion]], patience_s: float | None = None) -> None:
        self._look_up, self._patience_s = look_up, patience_s
        self._found = Suggestions(())
        self._since: float | None = None
        self._fresh_s = FRESH_S
        self._lock = threading.Lock()
        self._renewal: threading.Thread | None = None
        self._has_waited = False

    def start(self) -> None:
        """Begins to look them up, if they are not there or old, and does not wait."""
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
