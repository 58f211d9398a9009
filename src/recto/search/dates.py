"""Day: a day or month named in a text, in any usual form: `2026-06-14`, `14.6.2026`, "14 June", "June 14th". Finds the
days of questions and notes, and makes the labels by which the index finds passages of a day.

Month names are known in English, German, Spanish and French.
"""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache

from msgspec import Struct

from recto.base.text import LazyPattern
from recto.search.terms import normalize_text, words
from recto.sentences.words import tables

MONTHS = {
    name: number
    for number, names in enumerate(tables("common_words.toml")["months"]["all"], 1)
    for name in names.split("/")
}
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
    rf"\b(?:(?:in|im|en|last|this|by|of|during|since|until|seit|bis|desde|depuis) (?P<month>{_MONTH})\b\.?"
    rf"(?: (?:of |de )?{_YEAR}\b)?|(?P<named>{_MONTH})\b\.? (?:of |de )?(?P<of>(?:1[5-9]|20)\d\d)\b)"
)
_FORMS = (_ISO, _JOINED, _NUMBERS, _NO_YEAR, _DAY_FIRST, _MONTH_FIRST, _WHOLE_MONTH)
YEAR = LazyPattern(r"\b(?:1[5-9]|20)\d\d\b")
_DAYS_AGO = {
    **dict.fromkeys(("today", "heute", "hoy"), 0),
    **dict.fromkeys(("yesterday", "gestern", "ayer", "hier"), 1),
}
_AGO = LazyPattern(r"\b(\d{1,3}|an?|one|two|three|four|five|six) (day|week|month|year)s? ago\b")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SPAN = LazyPattern(r"\b(last|this) (week|month|year)\b")
_MARK = "@"


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
    days = [day for day, _, _ in found]
    kept = list[str]()
    for word in _blanked(plain, found).split() if found else text.split():
        if (ago := _DAYS_AGO.get(normalize_text(word).strip(" ?!.,;:"))) is None:
            kept.append(word)
        else:
            then = today - timedelta(days=ago)
            days.append(Day(then.year, then.month, then.day))
    return tuple(dict.fromkeys(days)), " ".join(kept) if days else text


def without_days(text: str) -> str:
    plain = _plain(text)
    return _blanked(plain, list(_found(plain)))


def _blanked(plain: str, found: Sequence[tuple[Day, int, int]]) -> str:
    for _, start, end in found:
        plain = f"{plain[:start]}{' ' * (end - start)}{plain[end:]}"
    return plain


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


# -- labels of passages. Normalizing removes this character from texts, so no word can be mistaken for a label.

LABEL_MARK = "\u00b6"
MAX_LABELS = 31


@lru_cache(maxsize=64)  # takes a third of the time of cutting a message into passages
def passage_labels(day: str) -> str:
    """The labels of a passage: its day, month and year, and its month and day of any year. `day` is an ISO date."""
    year, month, number = day[:4], day[5:7], day[8:10]
    if not (day.isascii() and (year + month + number).isdigit() and len(number) == 2):
        return ""
    labels = (year, year + month, year + month + number, f"m{month}", f"m{month}{number}")
    return " ".join(f"{LABEL_MARK}{each}" for each in labels)


def date_labels(text: str, today: date) -> list[list[str]]:
    """For each date in a question the labels of which a passage of that time has one. A day also counts as its month
    and its year."""
    plain, found = _plain(text), list[list[str]]()
    for day in take_days(text, today)[0]:
        found += [[f"m{day.month:02}"], *([[f"m{day.month:02}{day.day:02}"]] if day.day else [])]
        found += [[str(day.year)]] if day.year else []
    found += [[year] for year in YEAR.findall(plain)]
    for count, unit in _AGO.findall(plain):
        days = _UNIT_DAYS[unit]
        middle = today - timedelta(days=min((_COUNTS.get(count) or int(count)) * days, 36_000))
        found.append(_labels_between(middle - timedelta(days=days // 2), middle + timedelta(days=days // 2)))
    for which, unit in _SPAN.findall(plain):
        first = {"week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}.get(unit)
        first, last = first or today.replace(month=1, day=1), today
        if which == "last":
            last = first - timedelta(days=1)
            first = {"week": first - timedelta(days=7), "month": last.replace(day=1)}.get(unit) or last.replace(
                month=1, day=1
            )
        found.append(_labels_between(first, last))
    return [[f"{LABEL_MARK}{each}" for each in group] for group in dict.fromkeys(map(tuple, found))]


def _labels_between(first: date, last: date) -> list[str]:
    """All days of a short range, all months of a long one."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    digits = "%Y%m%d" if len(days) <= MAX_LABELS else "%Y%m"
    return list(dict.fromkeys(f"{each:{digits}}" for each in days))
