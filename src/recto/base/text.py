"""Text helpers: cleaning foreign text once, so that all later code sees valid UTF-8 without NUL; removing keys; caching
what was found in texts; lazily compiled patterns; suggestions for mistyped names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, ParamSpec, TypeVar, cast

_BAD = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Shorter values are not keys, and removing them would tear ordinary words apart.
SHORTEST_KEY = 8
_WORD_START = re.compile(r"(?<=\S) (?=[A-Za-z])")
_caches: list[Any] = []
# Similarity of two names: within a group two wrong letters in a short name, else a typo.
_ALIKE_IN_GROUP, _ALIKE, _ALIKE_IN_ALL = 0.65, 0.8, 0.85
# Entries that a text cache keeps for the next compaction, which reads the former summary again.
_KEPT = 512
Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def text_cache(size: int) -> Callable[[Callable[Arguments, Found]], Callable[Arguments, Found]]:
    """Cache a function's findings in texts that several steps of a compaction read."""

    def remember(function: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
        remembered = lru_cache(size)(function)
        _caches.append(remembered)
        return cast(Callable[Arguments, Found], remembered)

    return remember


def trim_text_caches() -> None:
    """Trim text caches after a compaction: nothing reads the texts again, and full caches take sixty megabytes."""
    for cache in _caches:
        if cache.cache_info().currsize > _KEPT:
            cache.cache_clear()


def clean(text: str | bytes) -> tuple[str, int]:
    """The text with characters that cannot be stored or sent replaced by U+FFFD, and their number.

    Invalid bytes are first decoded to surrogates, and count like lone ones. Nothing is normalised or trimmed.
    """
    if isinstance(text, bytes):
        try:
            valid = text.decode()
        except UnicodeDecodeError:
            text = text.decode("utf-8", "surrogateescape")
        else:
            # valid UTF-8 has no surrogates, and searching for NUL alone is ten times as fast
            return (valid, 0) if "\0" not in valid else (valid.replace("\0", REPLACEMENT), valid.count("\0"))
    return _BAD.subn(REPLACEMENT, text)


def pieces_of(text: str, size: int) -> Iterator[str]:
    """A text in pieces of about `size` characters, to keep lists of words or tokens short. Each but the first begins
    with the space before a word, where tokenizers also begin a token. A text without spaces stays whole."""
    start = 0
    while len(text) - start > size and (found := _WORD_START.search(text, start + size)):
        yield text[start : found.start()]
        start = found.start()
    yield text[start:] if start else text


def without_key(text: str, key: str | None, mask: str = "***") -> str:
    """The text without a key, and without what begins like it: a part of it, or a provider's masked form."""
    if not key or len(key) < SHORTEST_KEY:
        return text
    return re.sub(rf"{re.escape(key[:SHORTEST_KEY])}[\w*•…-]*", mask, text.replace(key, mask))


class LazyPattern:
    """A regular expression that is compiled when it is first used, for long ones that most processes never need:
    compiling those about questions would add 35 ms to every start."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 note, 1,200 notes."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def dollars(amount: float) -> str:
    """A readable amount: $0.0042, $1.25."""
    if 0 < amount < 0.0001:
        return "less than $0.0001"
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}".rstrip("0").ljust(5, "0")


def closest_key(name: str, known: Mapping[str, str]) -> str:
    """The meaning of the closest of `known` names (name -> meaning) to a mistyped dotted name, or empty."""
    from difflib import get_close_matches  # only where a name is wrong

    if any(key.startswith(f"{name}.") for key in known):  # a group of settings, not a typo
        return ""
    group, _, leaf = name.lower().rpartition(".")
    parts = [(key.lower().rpartition("."), meaning) for key, meaning in known.items()]
    inside = {own: meaning for (where, _, own), meaning in parts if not group or where == group}
    if near := get_close_matches(leaf, inside, 1, _ALIKE_IN_GROUP if group else _ALIKE):
        return inside[near[0]]
    whole = {key.lower(): meaning for key, meaning in known.items()}
    near = get_close_matches(name.lower(), whole, 1, _ALIKE_IN_ALL)
    return whole[near[0]] if near else ""


# Longest quotation of a value in an error.
SHOWN = 60


def shown(value: object) -> str:
    """A foreign value for an error message: one short line without control characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
