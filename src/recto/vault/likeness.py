"""Likeness: which of many names look like one that none of them is. Knows spellings, not files."""

from collections import Counter
from collections.abc import Iterable
from heapq import nlargest

# So many that share pairs of letters are compared letter by letter; what is less alike than this was not meant.
_NEAR, _LEAST = 50, 0.5


class Likeness:
    """Names by the pairs of letters they hold: looking at every name for every question takes ten times as long."""

    def __init__(self, names: Iterable[str]) -> None:
        self._sizes: dict[str, int] = {}
        self._holding: dict[str, list[str]] = {}
        for name in names:
            pairs = _pairs(name)
            self._sizes[name] = len(pairs)
            for pair in pairs:
                self._holding.setdefault(pair, []).append(name)

    def closest(self, wanted: str) -> list[str]:
        """The most alike first."""
        from difflib import SequenceMatcher  # only broken links need it

        matcher, alike = SequenceMatcher(b=wanted, autojunk=False), list[tuple[float, str]]()
        for name in self._near(wanted):
            matcher.set_seq1(name)
            # the two quick ones are never less than the real one
            if (
                min(matcher.real_quick_ratio(), matcher.quick_ratio()) >= _LEAST
                and (ratio := matcher.ratio()) >= _LEAST
            ):
                alike.append((-ratio, name))
        return [name for _, name in sorted(alike)]

    def _near(self, wanted: str) -> list[str]:
        pairs, shared = _pairs(wanted), Counter[str]()
        for pair in pairs:
            shared.update(self._holding.get(pair, ()))
        # where few names share anything the others are looked at as well: `a` may have been meant by `ab`
        among: Iterable[str] = shared if len(shared) >= _NEAR else self._sizes
        return nlargest(_NEAR, among, key=lambda name: (shared[name] / (len(pairs) + self._sizes[name]), name))


def _pairs(name: str) -> set[str]:
    return {name[at : at + 2] for at in range(max(1, len(name) - 1))}
