"""Ground: what texts say, in a form that facts can be asked of: "was this said?" and "is this told?". Pure.

Whether something was said is judged kindly: rounding, another spelling, a part of a name or of a path are no
inventions. Whether something is told is judged strictly: it must stand there.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field

from recto.summary import figures
from recto.summary.bindings import content_words
from recto.summary.facts import Fact, facts

# Beyond so many characters only the words of a text are kept, not the text.
_KEPT = 8_000_000
_STEM = 5
_CLOSE = 0.05
_SAID_SHARE, _KNOWN_SHARE, _TOLD_SHARE = 0.5, 0.6, 0.6
_WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"[.!?;]+\s+|[。！？\n]")


@dataclass(slots=True)
class Ground:
    words: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    numbers: dict[str, set[float]] = field(default_factory=dict)
    """Values by unit; the empty one holds all that were written without."""
    _texts: list[str] = field(default_factory=list)
    _size: int = 0
    _joined: str | None = None
    _stems: set[str] | None = None
    _sorted: dict[str, list[float]] = field(default_factory=dict)
    _sentences: list[set[str]] | None = None

    def add(self, text: str, found: Iterable[Fact] | None = None) -> None:
        """Takes a text in; `found` are its facts where they are known already."""
        plain = " ".join(text.lower().split())
        self.words.update(_WORD.findall(plain))
        for fact in facts(text) if found is None else found:
            self._take(fact)
        if self._size <= _KEPT:
            self._texts.append(plain)
            self._size += len(plain)
        self._joined = self._stems = self._sentences = None
        self._sorted.clear()

    def _take(self, fact: Fact) -> None:
        self.keys.add(fact.key)
        if fact.kind == "date":
            self.dates |= figures.date_parts(fact.normal)
        elif fact.kind == "number":
            values, unit = figures.values(fact.normal)
            other = figures.other_value(fact.text)
            self.numbers.setdefault(unit, set()).update(values, () if other is None else (other,))

    @property
    def text(self) -> str:
        if self._joined is None:
            self._joined = "\n".join(self._texts)
        return self._joined

    # -- was it said?

    def holds(self, fact: Fact) -> bool:
        """Whether the texts say this, or something that it may fairly be told from."""
        if fact.key in self.keys:
            return True
        match fact.kind:
            case "number":
                return self._holds_number(fact)
            case "date":
                return self._holds_date(fact.normal)
            case "decision" | "error":
                return self._holds_sentence(content_words(fact.text))
            case "name":
                return all(map(self._knows, _WORD.findall(fact.normal))) or fact.normal in self.text
            case "path":
                return self._holds_path(fact.normal)
            case "time":
                return fact.normal.removesuffix(":00") in self.text or fact.normal in self.text
            case "identifier" if fact.normal.isalpha():
                return self._knows(fact.normal) or fact.normal in self.text
            case "identifier" | "version" | "url" if " " not in fact.normal:
                return any(each in self.text for each in (fact.normal, fact.normal.replace("_", " ")))
            case _:
                return self._quotes(fact.normal)

    def _holds_sentence(self, content: set[str]) -> bool:
        """One sentence has half of its content, or all texts together have most of it. Figures in it are facts of
        their own."""
        words = {word for word in content if word.isalpha() and len(word) > 3}
        known = sum(self._knows(word) for word in words)
        return known >= _KNOWN_SHARE * len(words) or self._share(content, self._all_sentences) >= _SAID_SHARE

    def _knows(self, word: str) -> bool:
        """The word, its singular or plural, or one that begins as it does: Portugal for Portuguese."""
        if word in self.words or word.rstrip("s") in self.words or f"{word}s" in self.words:
            return True
        if len(word) <= _STEM:
            return False
        if self._stems is None:
            self._stems = {each[:_STEM] for each in self.words if len(each) >= _STEM}
        return word[:_STEM] in self._stems

    def _quotes(self, normal: str) -> bool:
        if normal.strip("\"'`.,:;!? ") in self.text:
            return True
        words = _WORD.findall(normal)
        return len(words) > 1 and all(word in self.words for word in words)

    def _holds_number(self, fact: Fact) -> bool:
        values, unit = figures.values(fact.normal)
        other = figures.other_value(fact.text)
        units = [unit, ""] if unit else list(self.numbers)
        if not values:
            return fact.normal in self.text
        return all(self._holds_value(value, units) for value in values) or (
            other is not None and self._holds_value(other, units)
        )

    def _holds_value(self, value: float, units: Iterable[str]) -> bool:
        if any(value in self.numbers.get(unit, ()) for unit in units):
            return True
        if any(figures.WORDS.get(word) == value for word in self.words & figures.WORDS.keys()):
            return True
        return any(self._rounds(value, unit) for unit in units)

    def _rounds(self, value: float, unit: str) -> bool:
        """Whether a value that was said is this one, told with fewer digits."""
        if unit not in self._sorted:
            self._sorted[unit] = sorted(self.numbers.get(unit, ()))
        known, reach = self._sorted[unit], min(_step(value) / 2, abs(value) * _CLOSE)
        at = bisect_left(known, value - reach)
        return at < len(known) and known[at] <= value + reach

    def _holds_date(self, normal: str) -> bool:
        if normal in self.dates or normal in self.words:
            return True
        year, _, rest = normal.partition("-")
        if year.isdigit() and len(rest) == 5:
            swapped = f"{year}-{rest[3:]}-{rest[:2]}"
            return (f"--{rest}" in self.dates and year in self.words) or swapped in self.dates
        return bool(year.isdigit() and f"--{rest}" in self.dates and year in self.words)

    def _holds_path(self, normal: str) -> bool:
        """As it stands, as the end of a longer one, or put together of a known file and known folders."""
        if normal in self.text:
            return True
        bare, _, line = re.sub(r"[:#]l?(?=\d+$)", "\0", normal).partition("\0")
        if line and line not in self.words:
            return False
        *folders, name = bare.replace("\\", "/").strip("/").split("/")
        known = all(folder in self.text for folder in folders)
        return known and name in self.text

    # -- is it told?

    def tells(self, fact: Fact) -> bool:
        """Whether this very fact stands in the texts, in whatever spelling."""
        if fact.key in self.keys:
            return True
        match fact.kind:
            case "number":
                values, unit = figures.values(fact.normal)
                return bool(values) and all(value in self.numbers.get(unit, ()) for value in values)
            case "date":
                return fact.normal in self.dates
            case "decision" | "error":
                return self._share(content_words(fact.text), self._all_sentences) >= _TOLD_SHARE
            case "time":
                return False
            case "quote" | "command" | "url" | "path" | "version":
                return fact.normal.strip("\"'`") in self.text
            case _:
                return re.search(rf"(?<!\w){re.escape(fact.normal)}(?!\w)", self.text) is not None

    @property
    def _all_sentences(self) -> list[set[str]]:
        if self._sentences is None:
            found = (content_words(part) for text in self._texts for part in _BREAK.split(text))
            self._sentences = [words for words in found if words]
        return self._sentences

    def _share(self, content: set[str], among: list[set[str]]) -> float:
        """How much of a sentence's content the closest of these has."""
        return max((len(content & other) for other in among), default=0) / (len(content) or 1)


def _step(value: float) -> float:
    """What the last digit that was written stands for."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    digits = f"{abs(value):.10g}"
    if "e" in digits:
        return 0.0
    whole, _, part = digits.partition(".")
    return 10.0 ** -len(part) if part else 10.0 ** (len(whole) - len(whole.rstrip("0")))
