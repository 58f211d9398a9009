"""Day: a day or month named in a text, in any usual form: `2026-06-14`, `14.6.2026`, "14 June", "June 14th".

Month names are known in English, German, Spanish and French.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache

from msgspec import Struct

from recto.base.text import LazyPattern
from recto.search.dates import MONTHS
from recto.search.terms import normalize_text, words
from recto.vault.document import Document, note_name

# Any word, then looked up: a pattern with all month names takes long to compile at every start.
_MONTH = "[a-z]{3,10}"
_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d)"
_ISO = LazyPattern(rf"(?<!\d){_YEAR}(?P<sign>[-/.])(?P<month>\d\d?)(?:(?P=sign)(?P<day>\d\d?))?(?![\d])")
_JOINED = LazyPattern(rf"(?<!\d){_YEAR}(?P<month>0[1-9]|1[0-2])(?P<day>[0-3]\d)(?!\d)")
_NUMBERS = LazyPattern(rf"(?<![\d.])(?P<day>\d\d?)(?P<sign>[-/.]) ?(?P<month>\d\d?)(?P=sign) ?{_YEAR}(?!\d)")
_NO_YEAR = LazyPattern(r"\b(?:am|vom|bis|ab|zum|seit|den) (?P<day>\d\d?)\. ?(?P<month>\d\d?)\.(?! ?\d)")
_DAY_FIRST = LazyPattern(
    rf"(?<![\d.])(?P<day>\d\d?)(?:st|nd|rd|th|er|\.)? (?:of |de )?(?P<month>{_MONTH})\b\.?"
    rf"(?:,? (?:of |de |del )?{_YEAR}\b)?"
)
_MONTH_FIRST = LazyPattern(
    rf"\b(?P<month>{_MONTH})\b\.? (?P<day>\d\d?)(?:st|nd|rd|th)?\b(?! ?(?:am|pm|:))(?:,? {_YEAR}\b)?"
)
# "may" and "march" are months only in some sentences.
_WHOLE_MONTH = LazyPattern(
    rf"\b(?:(?:in|im|en|during|since|until|seit|bis|desde|depuis) (?P<month>{_MONTH})\b\.?(?: (?:of |de )?{_YEAR}\b)?"
    rf"|(?P<named>{_MONTH})\b\.? (?:of |de )?(?P<of>(?:1[5-9]|20)\d\d)\b)"
)
_FORMS = (_ISO, _JOINED, _NUMBERS, _NO_YEAR, _DAY_FIRST, _MONTH_FIRST, _WHOLE_MONTH)
YEAR = LazyPattern(r"\b(?:1[5-9]|20)\d\d\b")
_RELATIVE = {
    **dict.fromkeys(("today", "heute", "hoy"), 0),
    **dict.fromkeys(("yesterday", "gestern", "ayer", "hier"), 1),
}
_RELATIVE_WORDS = LazyPattern(rf"\b(?:{'|'.join(_RELATIVE)})\b")
DATE_PROPERTIES = frozenset(("date", "datum", "fecha", "day", "created", "erstellt"))
_MARK = "@"
# A statement that begins with a day was written then: "14 March 2026: launch on 13 June".
MAX_BEGINNING_CHARS = 18
NO_TIME = (0, 0, 0)


class Day(Struct, frozen=True):
    year: int | None
    month: int
    day: int | None
    """None: the whole month."""

    @property
    def term(self) -> str:
        """Its place in the terms of a question; no word begins like this."""
        return f"{_MARK}{self.year or ''}-{self.month}-{self.day or ''}"

    def holds(self, other: "Day") -> bool:
        """True if `other` is this day or lies in this month. A missing year matches any."""
        same_year = self.year is None or other.year is None or self.year == other.year
        return same_year and self.month == other.month and self.day in (None, other.day)

    @property
    def written(self) -> str:
        """As notes may have it, for a search by words."""
        numbers = f"{self.year or ''} {self.month:02} {f'{self.day:02} {self.day}' if self.day else ''}"
        return f"{numbers} {' '.join(name for name, month in MONTHS.items() if month == self.month and len(name) > 3)}"


def is_day_term(term: str) -> bool:
    return term.startswith(_MARK)


@lru_cache(maxsize=256)
def day_of_term(term: str) -> Day:
    year, month, day = (int(part) if part else None for part in term[len(_MARK) :].split("-"))
    assert month is not None
    return Day(year, month, day)


def named_days(text: str) -> tuple[Day, ...]:
    return tuple(day for day, _, _ in _found(_plain(text)))


def take_days(text: str, today: date) -> tuple[tuple[Day, ...], str]:
    """The days that a question names, and the question without them. "yesterday" and the like count from `today`."""
    plain = _plain(text)
    found = list(_found(plain))
    for match in _RELATIVE_WORDS.finditer(plain):
        then = today - timedelta(days=_RELATIVE[match[0]])
        found.append((Day(then.year, then.month, then.day), *match.span()))
    return tuple(dict.fromkeys(day for day, _, _ in found)), _blanked(plain, found) if found else text


def without_days(text: str) -> str:
    plain = _plain(text)
    return _blanked(plain, list(_found(plain)))


def _blanked(plain: str, found: Sequence[tuple[Day, int, int]]) -> str:
    for _, start, end in found:
        plain = f"{plain[:start]}{' ' * (end - start)}{plain[end:]}"
    return plain


def note_day(document: Document) -> Day | None:
    properties = document.parsed.properties
    told = (str(properties[name]) for name in sorted(DATE_PROPERTIES & properties.keys()))
    days = (day for text in (*told, note_name(document.path)) for day in named_days(text))
    return next((day for day in days if day.year), None)


def order_in_time(document: Document, heading: str, text: str = "") -> tuple[int, int, int]:
    """The date of a statement, from its beginning, its heading, or the note's properties or name; zeros if unknown."""
    days = (*named_days(text[:MAX_BEGINNING_CHARS]), *named_days(heading), *filter(None, [note_day(document)]))
    if day := next((each for each in days if each.year), None):
        return day.year or 0, day.month, day.day or 0
    year = YEAR.search(f"{heading} {note_name(document.path)}")
    return int(year[0]) if year else 0, 0, 0


def _plain(text: str) -> str:
    """Letter by letter, since normalizing a whole text would also change the signs between digits."""
    signs = text.lower()
    if not text.isascii():
        signs = "".join(sign if sign.isascii() else normalize_text(sign) or " " for sign in signs)
    return " ".join(signs.split())


def _found(plain: str) -> Iterator[tuple[Day, int, int]]:
    """Each day with its position; no part of a text is read twice."""
    if not any(map(str.isdigit, plain)) and MONTHS.keys().isdisjoint(words(plain)):
        return
    taken = list[tuple[int, int]]()
    for form in _FORMS:
        for match in form.finditer(plain):
            start, end = match.span()
            day = _day(match.groupdict())
            if day and not any(start < last and first < end for first, last in taken):
                taken.append((start, end))
                yield day, start, end


def _day(told: dict[str, str | None]) -> Day | None:
    month_told, year = told.get("month") or told.get("named") or "", told.get("year") or told.get("of")
    month = MONTHS.get(month_told, 0) or (int(month_told) if month_told.isdigit() else 0)
    day = int(told.get("day") or 0)
    if month > 12 >= day > 0:  # month first, as in America
        month, day = day, month
    if not 1 <= month <= 12 or day > 31:
        return None
    return Day(int(year) if year else None, month, day or None)
