"""Fuzzy: which of many names somebody may mean who has typed a part of one. Knows texts, folded by the caller."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import nsmallest
from itertools import accumulate

# Nobody types more letters than that without getting one wrong.
_LONGEST = 60
_BOUNDS = " /-_.("
# Letters that are scattered more than that spell nothing: so many times their number.
_FURTHEST = 4


class Fuzzy:
    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys

    def best(self, typed: str, most: int) -> list[int]:
        """Numbers of the keys that fit, the best first: those that begin with it, those in which a word does, those
        that hold it, those with all its words, those with its letters in order and close together. Among equals the
        shorter, then the earlier."""
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
        """Numbers of keys, and how far apart in them lies what was typed; best ways first."""
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
        """All keys are gone through as one text, which is several times faster than one by one."""
        # what lies between two letters does not hold the second: so there is but one way to match, and no going back
        rest = (f"[^{re.escape(letter)}\n]*{re.escape(letter)}" for letter in letters[1:])
        pattern = re.compile(re.escape(letters[:1]) + "".join(rest))
        found: dict[int, int] = {}
        for match in pattern.finditer(self._text) if letters else ():
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
