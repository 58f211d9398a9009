"""Finds the dates in a question, and makes the index labels for a passage's kind and day."""

import re
from datetime import date, timedelta
from functools import lru_cache

from msgspec import Struct

from recto.search.terms import words
from recto.sentences.words import tables

MONTHS = {
    name: number
    for number, names in enumerate(tables("common_words.toml")["months"]["all"], 1)
    for name in names.split("/")
}
# Words that usually mean something else: months only next to a day or a year.
_AMBIGUOUS_MONTHS = frozenset(("may", "mar", "mars", "march", "jan", "mai"))

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_NAMED_MONTH = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?(?P<month>{_MONTH})\b\.?"
    r"(?:,?\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!\s*(?:am|pm|:)))?(?:,?\s+(?:of\s+|de\s+)?(?P<year>(?:19|20)\d\d)\b)?"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six) (day|week|month|year)s? ago\b")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_RELATIVE = re.compile(r"\b(yesterday|today|last (?:week|month|year|night)|this (?:morning|week|month|year))\b")
_BEFORE_MONTH = re.compile(r"\b(?:in|since|until|during|by|of|last|this|im|en|of)\s+$")


class DayRange(Struct, frozen=True):
    """A range of days, both ends included. The ends may be prefixes: 2023, 2023-05, 2023-05-08."""

    first: str
    last: str


class DatePart(Struct, frozen=True):
    """A month, or a day of a month, in any year."""

    month: int
    day: int | None = None

    @property
    def iso(self) -> str:
        """`05` or `05-08`, as after the year in a stored time."""
        return f"{self.month:02}" + (f"-{self.day:02}" if self.day else "")


DateMention = DayRange | DatePart
ONE_DAY = timedelta(days=1)


def find_dates(folded: str, today: date) -> list[DateMention]:
    """Return the dates in a normalized text, each once. A day also counts as its month and its year."""
    found: list[DateMention] = []
    for year, month, day in _ISO.findall(folded):
        found += [_period(f"{year}-{month}"), *([_period(f"{year}-{month}-{day}")] if day else [])]
    for match in _NAMED_MONTH.finditer(folded):
        name, day = match["month"], match["before"] or match["after"]
        is_month = name not in _AMBIGUOUS_MONTHS or day or match["year"]
        if is_month or _BEFORE_MONTH.search(folded[: match.start("month")]):
            parts = [DatePart(MONTHS[name]), *([DatePart(MONTHS[name], int(day))] if day and 0 < int(day) < 32 else [])]
            found += parts
    found += map(_period, _YEAR.findall(folded))
    for number, unit in _AGO.findall(folded):
        size = _UNIT_DAYS[unit]
        count, slack = _COUNTS.get(number) or int(number), timedelta(days=size // 2)
        middle = today - timedelta(days=min(count * size, 36_000))
        found.append(DayRange(str(middle - slack), str(middle + slack)))
    found += [_relative_days(phrase, today) for phrase in _RELATIVE.findall(folded)]
    return list(dict.fromkeys(found))


def _period(prefix: str) -> DayRange:
    return DayRange(prefix, prefix)


def _relative_days(phrase: str, today: date) -> DayRange:
    if phrase in ("today", "this morning"):
        return _period(str(today))
    if phrase in ("yesterday", "last night"):
        return _period(str(today - ONE_DAY))
    which, span = phrase.split()
    monday = today - timedelta(days=today.weekday())
    first = {"week": monday, "month": today.replace(day=1), "year": today.replace(month=1, day=1)}[span]
    if which == "this":
        return DayRange(str(first), str(today))
    if span == "week":
        return DayRange(str(first - 7 * ONE_DAY), str(first - ONE_DAY))
    return _period(str(first - ONE_DAY)[: 7 if span == "month" else 4])


# Normalizing removes this character from texts, so no word can be mistaken for a label.
LABEL_MARK = "\u00b6"
_DATE_PREFIX = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)


def passage_labels(kind: str, time: str) -> str:
    """All labels of a passage: its kind; its day, month, year and decade; its month and day of any year; and its kind
    joined with year and decade, because few passages may have both of two frequent labels."""
    return _labels_of_day(kind, time[:10])


@lru_cache(maxsize=64)  # takes a third of the time of cutting a message into passages
def _labels_of_day(kind: str, day: str) -> str:
    found = [kind_label(kind)] if kind else []
    if (match := _DATE_PREFIX.match(day)) and match[3]:
        year, month, day = match.groups()
        found += [joint_label(found[0], f"{LABEL_MARK}{year[:size]}") for size in (3, 4) if found]
        found += [f"{LABEL_MARK}{(year + month + day)[:size]}" for size in (3, 4, 6, 8)]
        found += [f"{LABEL_MARK}m{month}", f"{LABEL_MARK}m{month}{day}"]
    return " ".join(found)


def kind_label(kind: str) -> str:
    return f"{LABEL_MARK}k{''.join(words(kind))}"


def joint_label(kind: str, years: str) -> str:
    """`years` is the label of a year or a decade."""
    return f"{kind}{years}"


def is_of_years(label: str) -> bool:
    return len(label) <= len(f"{LABEL_MARK}2000")


def date_labels(mention: DateMention) -> list[str]:
    """Every passage of that time has one of them."""
    if not isinstance(mention, DayRange):
        return [f"{LABEL_MARK}m{mention.iso.replace('-', '')}"]
    first, last = _first_day(mention.first), _last_day(mention.last)
    return _cover(first, last) if first and last else []


def time_range_labels(since: str | None, before: str | None) -> list[str]:
    """Every passage in it has one of them. Empty for all time and for times that cannot be parsed."""
    first = _FIRST_DAY if since is None else _first_day(since)
    last = _LAST_DAY if before is None else _first_day(before)
    if (since is None and before is None) or first is None or last is None:
        return []
    if before is not None and len(before) <= 10:  # exclusive: the range ends before this day
        last -= ONE_DAY
    return _cover(first, last) or [f"{LABEL_MARK}never"]


def _first_day(time: str) -> date | None:
    """The day of a time, or the first day of its month or year."""
    match = _DATE_PREFIX.match(time)
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
    except ValueError:
        return None


def _last_day(time: str) -> date | None:
    """The day of a time, or the last day of its month or year."""
    day = _first_day(time)
    return day if day is None or len(time) >= 10 else _period_end(day, 6 if len(time) == 7 else 4)


def _period_end(day: date, digits: int) -> date:
    """The last day of the decade (3 digits), year (4), month (6) or day (8) that begins on `day`."""
    if digits == 8:
        return day
    if digits == 6:
        return (day.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY
    return date(day.year + (9 if digits == 3 else 0), 12, 31)


def _cover(first: date, last: date) -> list[str]:
    """The fewest decades, years, months and days that cover a range."""
    found = []
    first, last = max(first, _FIRST_DAY), min(last, _LAST_DAY)
    while first <= last:
        begins = [(3, first.year % 10 == 0 and first.month == first.day == 1), (4, first.month == first.day == 1)]
        begins += [(6, first.day == 1), (8, True)]
        digits = next(size for size, does in begins if does and _period_end(first, size) <= last)
        found.append(f"{LABEL_MARK}{f'{first:%Y%m%d}'[:digits]}")
        first = _period_end(first, digits) + ONE_DAY
    return found
