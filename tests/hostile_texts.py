"""Texts that make a careless reader slow, and the measure: four times the text may take six times the processor time.

A text repeats a unit, alone or between two letters. What is measured is processor time of the thread, so that neither
the speed nor the load of a machine matters: a reader whose time grows with the square of the text takes sixteen times
as long. Below the floor nothing is judged; and a verdict is checked a second time.
"""

import gc
import re
from collections.abc import Callable, Iterator
from itertools import product
from statistics import median
from time import thread_time

from msgspec import Struct

FLOOR_S = 0.02
MAX_GROWTH = 6
MAX_CHARS = 40_000
# What reads 2,048 characters in less than this would not be above the floor at eight times the length, even if it were
# quadratic. What takes longer is measured only where four times the text takes visibly more than four times as long.
_SCREENS, _SCREEN_S, _ENOUGH_S, _LINEAR = (128, 512, 2048), 0.0003, 0.005, 4.6
# Twenty units in this time may be the beginning of something exponential: it is measured in small steps.
_FIRST_UNITS, _EXPONENTIAL_S = 20, 0.001

_CHARS = " \t\n\r\u00a0\u2028[](){}<>\"'`*_~=#+-.,;:!?/\\|&@^%$0aA“„«…。、中のก가\u0301\u200b\u200d😀"
_PAIRS = """
[[ ]] ]( [] ![ ![[ [^ [a]( [[a| [[a] ** __ ~~ == _* *_ __a {{ }} <!-- --> %% <a </a &# &amp; ``` ~~~ ``a // :: http://
https://a/ www.a. mailto: a@ @a @a. a@b. ${ ${a 1. 1, 1: 1- 1) -_ a- a_ a' a. a, a/ /a --a -- 2020- 0x $$ #1 || |- ال
\x1b[ \x1b]8;; :a ?a= &a= a= key= aA Aa
"""
_WORDS = """
a|a b|) (|**a|*a|`a|"a|'a|“a|«a|(a|[a|<a|_a|a.|a?|a:|a,|A|Aa|A b|Aa Bb|A.|a (b)|-|*|>|1.|1)|- [ ]|#|#a|=|a=|-a|--a|12|
12:00|2020-01-01|1st|.|…|。|中|!|?|:|;|\\|/|a -|User:|Error:|File
"""
_LINES = "a - * > 1. # | --- === ``` ~~~ |a| |-| a:b [a [[a **a `a <a "
ALL_UNITS = tuple(
    dict.fromkeys(
        [
            *_CHARS,
            *(f"{char}{end}" for char, end in product(_CHARS, "a \n")),
            *_PAIRS.split(),
            *(f"{word.strip()} " for word in _WORDS.split("|")),
            *(f"{line}\n" for line in _LINES.split()),
            *(f"\n{line}" for line in _LINES.split()),
            *("\n\n", " \n", "\n ", "\t ", "\r\n", "a\n\n"),
        ]
    )
)
READER_UNITS = (*_CHARS, *_PAIRS.split(), "a ", "a. ", "A. ", "a? ", "**a ", "*a ", "a\n", "- a\n", "|a|\n", "> a\n")
FEW_UNITS = (" ", "[", "**a ", "\n", "![[", ".", "a", "1.")


class HostileText(Struct, frozen=True):
    unit: str
    is_between_letters: bool = False

    def of(self, chars: int) -> str:
        text = self.unit * max(1, chars // len(self.unit))
        return f"a{text}a" if self.is_between_letters else text


Read = Callable[[str], object]


def hostile_texts(units: tuple[str, ...]) -> Iterator[HostileText]:
    for unit in units:
        yield HostileText(unit)
        yield HostileText(unit, is_between_letters=True)


def own_units(pattern: str) -> tuple[str, ...]:
    """Words and marks of a pattern itself: they begin what only that pattern follows."""
    plain = re.sub(r"\\[a-zA-Z]|\(\?[a-zA-Z:=!<>]+|\{[\d,]*\}", " ", pattern)
    words = re.findall(r"[^\W\d_]{2,}", plain)[:40]
    marks = [re.sub(r"\\(.)", r"\1", found) for found in re.findall(r"(?:\\[^\w\s])+", pattern)]
    return tuple(dict.fromkeys(unit for each in (*words, *marks) for unit in (each, f"{each} ")))


def growth(read: Read, text: HostileText) -> float | None:
    """How much longer it takes to read four times the text; None where that is less than `MAX_GROWTH`, or nothing."""
    chars = _FIRST_UNITS * len(text.unit)
    many = 5 * chars
    if _seconds(read, text.of(chars)) < _EXPONENTIAL_S:
        chars = many
    while chars < many and _seconds(read, text.of(chars)) < 2 * FLOOR_S:
        chars = chars * 5 // 4
    if chars >= many and _is_linear(read, text):
        return None
    while chars <= MAX_CHARS:
        if _seconds(read, text.of(chars)) > 2 * FLOOR_S:
            found = [_ratio(read, text, chars) for _ in range(2)]
            return min(found) if min(found) > MAX_GROWTH else None
        chars *= 2
    return None


def _is_linear(read: Read, text: HostileText) -> bool:
    took, chars = 0.0, 0
    for chars in _SCREENS:
        if (took := _seconds(read, text.of(chars))) > _ENOUGH_S:
            break
    return took < _SCREEN_S or _quickest(read, text.of(chars)) < _LINEAR * _quickest(read, text.of(chars // 4))


def _quickest(read: Read, text: str) -> float:
    return min(_seconds(read, text) for _ in range(3))


def _ratio(read: Read, text: HostileText, chars: int) -> float:
    whole, quarter = text.of(chars), text.of(chars // 4)
    took = median(_seconds(read, whole) for _ in range(3))
    return took / max(median(_seconds(read, quarter) for _ in range(3)), 1e-6) if took > FLOOR_S else 0.0


def _seconds(read: Read, text: str) -> float:
    collects = gc.isenabled()
    gc.disable()
    try:
        start = thread_time()
        read(text)
        return thread_time() - start
    finally:
        if collects:
            gc.enable()
