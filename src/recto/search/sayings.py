"""Sayings: the sentences of a message that are worth looking up, few enough to be embedded while somebody waits.

Any script, any text; code between fences says little about what is wanted, and counts only where there is nothing else.
"""

import re
from collections.abc import Callable, Iterator, Sequence

MOST_SAYINGS = 8
# All sayings together, in characters: an embedder takes about a millisecond for forty of them, and one for each text.
MOST_SIGNS, EACH = 260, 40
# Longer ones are cut at a word: what is wanted is seldom said so late.
LONGEST = 200
# Of a message that is longer its beginning and its end are read: so many characters, so many sentences.
MOST_READ, MOST_LOOKED_AT = 16_000, 40
# A message as short as this is one saying.
SHORT = 60

_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
# Looks back and never gives back: a thousand stops in a row take no longer than a thousand letters.
_STOP = re.compile(r"""(?<![.!?…؟۔।॥։።])[.!?…؟۔।॥։።]++["'”’»)\]*_`]*+(?=\s)|[。！？｡]++["'”’」』）]*+|\n++""")
_ASKS = frozenset("?？؟")
_LAST_WORD = re.compile(r"[^\s(\[{\"'„“]+$")
_ABBREVIATIONS = """
    dr mr mrs ms prof st vs e.g i.e eg ie cf ca approx nr z.b d.h u.a bzw ggf vgl inkl p.ej p.ex sr sra mme incl"""
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())
_LONGEST_SHORT = 12


def sentences(text: str) -> list[str]:
    """In their order, stripped; a line break ends one, and so does a stop, but for those of abbreviations."""
    prose = _FENCED.sub("\n", text)
    return list(_sentences(prose if any(map(str.isalnum, prose)) else text))


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(text):
        if stop[0][0] == "." and _is_short(text[start : stop.start()]):
            continue
        yield from _worded(text[start : stop.end()])
        start = stop.end()
    yield from _worded(text[start:])


def _worded(saying: str) -> Iterator[str]:
    saying = " ".join(saying.split())
    if any(map(str.isalnum, saying)):
        yield saying


def _is_short(before: str) -> bool:
    found = _LAST_WORD.search(before[-_LONGEST_SHORT:])
    word = found[0] if found else ""
    # "J. Smith", and the number of an item of a list
    is_letter, is_item = len(word) == 1 and word.isupper(), word.isdigit() and not before[: -len(word)].strip()
    return word.lower() in _NEVER_LAST or is_letter or is_item


def shortened(text: str) -> str:
    """As much of a message as is read."""
    half = MOST_READ // 2
    return text if len(text) <= MOST_READ else f"{text[:half]}\n\n{text[-half:]}"


def sayings(text: str, worth: Callable[[str], float] = len) -> list[str]:
    """The sentences worth looking up, in their order: all of a short message, of a long one the questions, then those
    of the most `worth`, then the last and the first."""
    every = sentences(text)
    if len(text) <= SHORT and every:
        return [" ".join(every)]
    if len(every) <= MOST_SAYINGS and sum(map(_cost, every)) <= MOST_SIGNS:
        return [_cut(said) for said in every]
    return [_cut(every[at]) for at in _chosen(every, worth)]


def _chosen(every: Sequence[str], worth: Callable[[str], float]) -> list[int]:
    last = len(every) - 1
    rank = {at: (_asks(said), worth(said), at in (0, last), -at) for at, said in _looked_at(every)}
    chosen, room = list[int](), MOST_SIGNS
    for at in sorted(rank, key=lambda at: rank[at], reverse=True):
        cost = _cost(every[at])
        if len(chosen) < MOST_SAYINGS and (cost <= room or not chosen):
            chosen.append(at)
            room -= cost
    return sorted(chosen)


def _asks(saying: str) -> bool:
    return not _ASKS.isdisjoint(saying[-3:])


def _cost(saying: str) -> int:
    return min(len(saying), LONGEST) + EACH


def _looked_at(every: Sequence[str]) -> list[tuple[int, str]]:
    numbered, half = list(enumerate(every)), MOST_LOOKED_AT // 2
    return numbered if len(numbered) <= MOST_LOOKED_AT else numbered[:half] + numbered[-half:]


def _cut(saying: str) -> str:
    return saying if len(saying) <= LONGEST else saying[:LONGEST].rpartition(" ")[0] or saying[:LONGEST]
