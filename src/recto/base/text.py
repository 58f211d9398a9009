"""Text helpers: cleaning foreign text once, so that all later code sees valid UTF-8 without NUL; removing keys; caching
what was found in texts; lazily compiled patterns; suggestions for mistyped names.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any, ParamSpec, TypeVar, cast

_BAD = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Shorter values are not keys, and removing them would tear ordinary words apart.
SHORTEST_KEY = 8
_WORD_START = re.compile(r"(?<=\S) (?=[A-Za-z])")
_KEY_START = 3
# How providers mask the middle or the end of a key.
_MASKED = re.compile(r"(?:[*•…]|\.{2,}|x{3,})[\w*•….-]*")
# The second form matches a mask at the end.
_MASKED_START = re.compile(r"(?:[*•…]|\.{3}|x{3})(?:[*•….x]*([\w-]{2,})|[*•….x]*+)")
_REST = re.compile(r"[\w-]*")
_caches: list[Any] = []
_keepers: list[object] = []
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


@contextmanager
def kept_text_caches() -> Iterator[None]:
    """Trim text caches once, after several compactions of the same texts."""
    _keepers.append(keeper := object())
    try:
        yield
    finally:
        _keepers.remove(keeper)
        trim_text_caches()


def trim_text_caches() -> None:
    """Trim text caches after a compaction: nothing reads the texts again, and full caches take sixty megabytes."""
    for cache in _caches if not _keepers else ():
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
    """The text without a key, its beginning, or a provider's masked form of it."""
    if not key or len(key) < SHORTEST_KEY:
        return text
    parts, at = [], 0
    while (start := text.find(key[:_KEY_START], at)) >= 0:
        end = start + _same(text[start : start + len(key)], key)
        masked = _MASKED.match(text, end)
        if end - start < SHORTEST_KEY and masked is None:
            parts.append(text[at : start + 1])
            at = start + 1
            continue
        rest = masked or _REST.match(text, end)
        parts += [text[at:start], mask]
        at = rest.end() if rest else end
    text = "".join(parts) + text[at:]
    return _MASKED_START.sub(lambda found: mask if found[1] and key.endswith(found[1]) else found[0], text)


def _same(one: str, other: str) -> int:
    """The length of the common prefix."""
    return next((n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


class LazyPattern:
    """A regular expression that is compiled when it is first used, for long ones that most processes never need:
    compiling those about questions would add 35 ms to every start."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern)

    def search(self, text: str) -> re.Match[str] | None:
        return self._compiled.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._compiled.match(text)

    def findall(self, text: str) -> list[Any]:
        return self._compiled.findall(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(text)

    def sub(self, replacement: str, text: str) -> str:
        return self._compiled.sub(replacement, text)

    def split(self, text: str) -> list[str]:
        return self._compiled.split(text)


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 note, 1,200 notes."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def dollars(amount: float) -> str:
    """A readable amount: $0.0042, $1.25."""
    if 0 < amount < 0.0001:
        return "less than $0.0001"
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}".rstrip("0").ljust(5, "0")


# Similarity of two names: within a group two wrong letters in a short name, else a typo.
_ALIKE_IN_GROUP, _ALIKE = 0.65, 0.8


def closest_key(name: str, known: Mapping[str, str]) -> str:
    """The meaning of the closest of `known` names (name -> meaning) to a mistyped dotted name, or empty.

    Close names differ by a few letters or share most words: `reply.enabled` shares only one word with
    `context.enabled`, and means something else.
    """
    if any(key.startswith(f"{name}.") for key in known):  # a group of settings, not a typo
        return ""
    best = max(known, key=lambda key: _nearness(name.lower(), key.lower()), default="")
    return known[best] if best and _nearness(name.lower(), best.lower()) else ""


def _nearness(name: str, key: str) -> float:
    """The similarity of a name; 0 if unrelated."""
    (group, _, leaf), (key_group, _, key_leaf) = name.rpartition("."), key.rpartition(".")
    same = group == key_group
    letters = _alike(leaf, key_leaf) if same or not group else _alike(name, key)
    if letters >= (_ALIKE_IN_GROUP if same and group else _ALIKE):
        return 1 + letters
    words, key_words = (_words(leaf), _words(key_leaf)) if same else (_words(name), _words(key))
    shared = sum(any(_alike(word, other) >= _ALIKE for other in key_words) for word in words)
    is_part = bool(words) and set(words) <= set(_words(key_leaf))
    share = shared / max(len(words), len(key_words), 1)
    return share + letters / 10 if is_part or share > 0.5 else 0


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name) if word]


def _alike(one: str, other: str) -> float:
    from difflib import SequenceMatcher  # only where a name is wrong

    if one[:1] == other[:1] and sorted(one) == sorted(other):  # two swapped letters
        return 0.95
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


# Longest quotation of a value in an error.
SHOWN = 60


def shown(value: object) -> str:
    """A foreign value for an error message: one short line without control characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
