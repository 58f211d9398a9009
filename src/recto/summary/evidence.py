"""Evidence: checks whether texts support a value or a claim, and whether they state it.

Support is lenient: a rounded figure, another spelling, a part of a name or path is no invention; a claim is supported
if its words occur near each other. Stating is strict: it requires the very value.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

from recto.sentences.features import terms_of
from recto.sentences.segments import segments
from recto.sentences.words import word_class, words_in
from recto.summary.figures import (
    Value,
    implied_dates,
    months,
    number_words,
    precision,
    readings,
    values_and_unit,
    weekday_of,
    weekdays,
)
from recto.summary.values import find_values, plain_text

# After this many characters only the words of further texts are kept.
_MAX_STORED = 8_000_000
_STEM_LENGTH = 5
_ROUNDING_TOLERANCE = 0.05
_WORD = re.compile(r"[^\W_]+")
# The share of a claim's terms required in two neighbouring sentences, and in the texts overall; the share that makes a
# sentence say the same as another, or its opposite.
_NEAR, _KNOWN, _SAME = 0.3, 0.4, 0.7
# The share of terms that conveys the main point of a sentence; the lower one if its figures are stated too.
_TOLD, _TOLD_WITH_FIGURES = 0.35, 0.2
_LEAST_CLAIM, _LONG_CLAIM = 3, 6


class Evidence(Struct):
    words: set[str] = field(default_factory=set)
    keys: set[tuple[str, str]] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)
    numbers: dict[str, set[float]] = field(default_factory=dict)
    """Values by unit; "" holds those without one."""
    written: set[float] = field(default_factory=set)
    """Figures as written, without units."""
    terms: set[str] = field(default_factory=set)
    _texts: list[str] = field(default_factory=list)
    _size: int = 0
    _joined: str | None = None
    _stems: set[str] | None = None
    _sorted: dict[str, list[float]] = field(default_factory=dict)
    _sentences: list[tuple[frozenset[str], bool]] = field(default_factory=list)
    """The terms of each sentence, and True if it is negated."""
    _places: dict[str, list[int]] = field(default_factory=dict)

    def add(self, text: str) -> None:
        plain = plain_text(text)
        self.words.update(found[0] for found in _WORD.finditer(plain))
        for value in find_values(text):
            for reading in readings(value):
                self._add_value(reading)
        for segment in segments(text):
            self._add_sentence(segment.text)
        self._sentences.append((frozenset(), False))  # keeps texts from being neighbours
        if self._size <= _MAX_STORED:
            self._texts.append(plain)
            self._size += len(plain)
        self._joined = self._stems = None
        self._sorted.clear()

    def _add_value(self, value: Value) -> None:
        self.keys.add(value.key)
        self.written.update(map(abs, value.written))
        if value.kind == "date":
            self.dates |= implied_dates(value.normal)
            self.words.update(*map(weekday_of, value.normal.split("–")))
        elif value.kind == "time":
            self.keys.update(("time", each) for each in value.normal.split("–"))
        elif value.kind == "number":
            values, unit = values_and_unit(value.normal)
            self.numbers.setdefault(unit, set()).update(values)

    def _add_sentence(self, text: str) -> None:
        terms = terms_of(text)
        self.terms |= terms
        for term in terms:
            self._places.setdefault(term, []).append(len(self._sentences))
        self._sentences.append((terms, is_denied(text)))

    @property
    def text(self) -> str:
        if self._joined is None:
            self._joined = "\n".join(self._texts)
        return self._joined

    # -- values

    def supports(self, value: Value) -> bool:
        """True if the texts have this value, or something that it may fairly be derived from."""
        return any(map(self._supports, readings(value)))

    def _supports(self, value: Value) -> bool:
        if value.key in self.keys or value.normal in self.words:
            return True
        match value.kind:
            case "number":
                return self._supports_number(value)
            case "date":
                return all(map(self._supports_date, value.normal.split("–")))
            case "name":
                return all(map(self._has_word, _WORD.findall(value.normal))) or value.normal in self.text
            case "path":
                return self._supports_path(value.normal)
            case "time":
                return all(map(self._supports_time, value.normal.split("–")))
            case "identifier" if value.normal.isalpha():
                return self._has_word(value.normal) or value.normal in self.text
            case "identifier" | "version" | "url" if " " not in value.normal:
                return value.normal in self.text or value.normal.replace("_", " ") in self.text
            case _:
                words = _WORD.findall(value.normal)
                return value.normal.strip("\"'`.,:;!? ") in self.text or (
                    len(words) > 1 and all(word in self.words for word in words)
                )

    def states(self, value: Value) -> bool:
        """True if this very value is in the texts, in any spelling."""
        if value.key in self.keys:
            return True
        match value.kind:
            case "number":
                values, unit = values_and_unit(value.normal)
                return bool(values) and all(each in self.numbers.get(unit, ()) for each in values)
            case "date" | "time":
                return all(each in self.dates or ("time", each) in self.keys for each in value.normal.split("–"))
            case "name" | "identifier":
                return bool(re.search(rf"(?<!\w){re.escape(value.normal)}(?!\w)", self.text))
            case _:
                return value.normal.strip("\"'`") in self.text

    def _has_word(self, word: str) -> bool:
        """True for the word, its singular or plural, one with the same beginning (Portugal for Portuguese), or the
        same weekday."""
        if not self.words.isdisjoint({word, word.rstrip("s"), f"{word}s"} | weekdays().get(word, frozenset())):
            return True
        if len(word) <= _STEM_LENGTH:
            return False
        if self._stems is None:
            self._stems = {known[:_STEM_LENGTH] for known in self.words if len(known) >= _STEM_LENGTH}
        return word[:_STEM_LENGTH] in self._stems

    def _supports_number(self, value: Value) -> bool:
        """A figure with a unit needs one with the same unit or none; a figure without a unit, any."""
        values, unit = values_and_unit(value.normal)
        if not values:
            return value.normal in self.text
        units = ("",) if unit else tuple(self.numbers)
        return all(
            self._has_value(each, (unit,))
            or self._has_value(written, units)
            or self._is_spelled_out(written)
            or (not unit and written in self.written)
            for each, written in zip(values, map(abs, value.written), strict=True)
        )

    def _supports_time(self, normal: str) -> bool:
        """A full hour may be a bare number."""
        hour = int(normal[:2])
        is_full = normal.endswith(":00") and bool({float(hour), float(hour % 12)} & self.numbers.get("", set()))
        return ("time", normal.removesuffix(":00")) in self.keys or ("time", normal) in self.keys or is_full

    def _has_value(self, value: float, units: Iterable[str]) -> bool:
        return any(value in self.numbers.get(unit, ()) or self._is_rounded(value, unit) for unit in units)

    def _is_spelled_out(self, value: float) -> bool:
        return any(known == value for word, known in number_words().items() if word in self.words)

    def _is_rounded(self, value: float, unit: str) -> bool:
        """True if this is a known value with fewer digits."""
        if unit not in self._sorted:
            self._sorted[unit] = sorted(self.numbers.get(unit, ()))
        known, tolerance = self._sorted[unit], min(precision(value) / 2, abs(value) * _ROUNDING_TOLERANCE)
        at = bisect_left(known, value - tolerance)
        return at < len(known) and known[at] <= value + tolerance

    def _supports_date(self, normal: str) -> bool:
        if normal in self.dates:
            return True
        year, _, rest = normal.partition("-")
        if normal.startswith("--"):  # a range of days, such as "26 to 29 July"
            names = {name for name, month in months().items() if month == int(normal[2:4])}
            is_known = normal[:4] in self.dates or not names.isdisjoint(self.words)
            return is_known and (len(normal) == 4 or float(normal[5:]) in self.written)
        return bool(year.isdigit() and f"--{rest}" in self.dates and year in self.words)

    def _supports_path(self, normal: str) -> bool:
        """True for a known path, the end of one, or a known file in known folders."""
        if normal in self.text:
            return True
        bare, _, line = normal.replace("#l", ":").replace("#", ":").rpartition(":")
        if not line.isdigit():
            bare = normal
        elif line not in self.words:
            return False
        *folders, name = bare.replace("\\", "/").strip("/").split("/")
        return all(folder in self.text for folder in folders) and name in self.text

    # -- claims

    def share_known(self, text: str) -> float:
        """The share of its terms that occur in the texts."""
        terms = terms_of(text)
        return len(terms & self.terms) / len(terms) if terms else 1.0

    def supports_claim(self, text: str) -> bool:
        """True if enough of its words are known and occur near each other. A short one is not a claim."""
        terms = terms_of(text)
        if len(terms) < _LEAST_CLAIM:
            return True
        if len(terms & self.terms) < _KNOWN * len(terms):
            return False
        return len(terms) < _LONG_CLAIM or self._nearest(terms) >= _NEAR * len(terms)

    def denies(self, text: str) -> bool:
        """True if sentences with these words say the opposite, and none says the same."""
        terms, own = terms_of(text), is_denied(text)
        shared = self._shared(terms)
        same = [
            self._sentences[place][1]
            for place, count in shared.items()
            if count >= _SAME * max(len(terms), len(self._sentences[place][0]))
        ]
        return bool(same) and len(terms) >= _LEAST_CLAIM and own not in same

    def states_claim(self, text: str) -> bool:
        """True if one sentence has most of its words, all of its figures, and the same negation."""
        terms, own = terms_of(text), is_denied(text)
        if not all(self.states(value) for value in find_values(text) if value.kind in ("number", "date", "time")):
            return False
        return any(shared >= _SAME * len(terms) and denied == own for shared, denied in self._sharing(terms))

    def tells(self, text: str) -> bool:
        """True if its main point is conveyed, even in other words: half of its figures, and some of its words in one
        sentence with the same negation."""
        terms, own = terms_of(text), is_denied(text)
        figures = [value for value in find_values(text) if value.kind in ("number", "date", "time")]
        numbers = [value for value in figures if value.kind == "number"]
        if any(2 * sum(map(self.states, each)) < len(each) for each in (figures, numbers)):
            return False
        least = (_TOLD_WITH_FIGURES if figures else _TOLD) * len(terms)
        return any(shared >= least and (denied or not own) for shared, denied in self._sharing(terms))

    def _sharing(self, terms: frozenset[str]) -> list[tuple[int, bool]]:
        """For each sentence with one of these terms, their number, and True if it is negated."""
        return [(shared, self._sentences[place][1]) for place, shared in self._shared(terms).items()]

    def _nearest(self, terms: frozenset[str]) -> int:
        """The most of these terms in two neighbouring sentences."""
        shared = self._shared(terms)
        best = 0
        for place, count in shared.items():
            if place + 1 in shared:
                count = len(terms & (self._sentences[place][0] | self._sentences[place + 1][0]))
            best = max(best, count)
        return best

    def _shared(self, terms: frozenset[str]) -> Counter[int]:
        return Counter(place for term in terms for place in self._places.get(term, ()))


def is_denied(text: str) -> bool:
    return word_class("negations").is_in(words_in(text), text)
