"""Dates: finds the dates that a question mentions, and makes the index labels for a passage's kind and day."""

import re
from datetime import date, timedelta
from functools import lru_cache

from msgspec import Struct

from recto.search.terms import words

_NAMES = (
    "january jan januar janvier enero",
    "february feb februar fevrier febrero",
    "march mar maerz marz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug aout agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez decembre diciembre",
)
MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
# Words that usually mean something else: they count as a month only beside a day or a year.
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
    """From one day to another, both included. The ends may be prefixes: 2023, 2023-05, 2023-05-08."""

    first: str
    last: str


class DatePart(Struct, frozen=True):
    """A month, or a day of a month, in any year."""

    month: int
    day: int | None = None

    @property
    def iso(self) -> str:
        """`05` or `05-08`, as in a stored time after the year."""
        return f"{self.month:02}" + (f"-{self.day:02}" if self.day else "")


DateMention = DayRange | DatePart


def find_dates(folded: str, today: date) -> list[DateMention]:
    """Finds the dates in a normalized text, each once. A day also counts as its month and its year."""
    dates: dict[DateMention, None] = {}
    for match in _ISO.finditer(folded):
        dates |= dict.fromkeys(_iso_ranges(match[1], match[2], match[3]))
    for match in _NAMED_MONTH.finditer(folded):
        dates |= dict.fromkeys(_named_month(match, folded))
    for match in _YEAR.finditer(folded):
        dates |= {DayRange(match[0], match[0]): None}
    for match in _AGO.finditer(folded):
        dates |= {_days_ago(match, today): None}
    for match in _RELATIVE.finditer(folded):
        dates |= {_relative_days(match[1], today): None}
    return list(dates)


def _iso_ranges(year: str, month: str, day: str | None) -> list[DateMention]:
    out: list[DateMention] = [DayRange(f"{year}-{month}", f"{year}-{month}")]
    return [*out, DayRange(f"{year}-{month}-{day}", f"{year}-{month}-{day}")] if day else out


def _named_month(match: re.Match[str], text: str) -> list[DateMention]:
    month, day = MONTHS[match["month"]], match["before"] or match["after"]
    if match["month"] in _AMBIGUOUS_MONTHS and not (
        day or match["year"] or _BEFORE_MONTH.search(text[: match.start("month")])
    ):
        return []
    return [DatePart(month), DatePart(month, int(day))] if day and 0 < int(day) < 32 else [DatePart(month)]


def _days_ago(match: re.Match[str], today: date) -> DateMention:
    count = _COUNTS.get(match[1]) or int(match[1])
    size = _UNIT_DAYS[match[2]]
    middle, slack = today - timedelta(days=min(count * size, 36_000)), max(0, size // 2)
    return DayRange(str(middle - timedelta(days=slack)), str(middle + timedelta(days=slack)))


def _relative_days(phrase: str, today: date) -> DateMention:
    if phrase in ("today", "this morning"):
        return DayRange(str(today), str(today))
    if phrase in ("yesterday", "last night"):
        return DayRange(str(today - timedelta(days=1)), str(today - timedelta(days=1)))
    which, span = phrase.split()
    if which == "this":
        first = {"week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}
        return DayRange(str(first.get(span, today.replace(month=1, day=1))), str(today))
    if span == "week":
        start = today - timedelta(days=today.weekday() + 7)
        return DayRange(str(start), str(start + timedelta(days=6)))
    end = today.replace(day=1) if span == "month" else today.replace(month=1, day=1)
    last = end - timedelta(days=1)
    return DayRange(str(last)[:7], str(last)[:7]) if span == "month" else DayRange(str(last.year), str(last.year))


# Normalizing removes this character from texts, so no word can be mistaken for a label.
LABEL_MARK = "\u00b6"
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DATE_PREFIX = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)
ONE_DAY = timedelta(days=1)


def passage_labels(kind: str, time: str) -> str:
    """All labels of a passage: its kind; its day, month, year and decade; its month and day of any year; its kind
    together with year and decade: of those that have each of two frequent labels few may have both."""
    return _labels_of_day(kind, time[:10])


@lru_cache(maxsize=64)  # a third of the time that it takes to cut a message into passages
def _labels_of_day(kind: str, day: str) -> str:
    found = [kind_label(kind)] if kind else []
    if match := _DAY.match(day):
        year, month, day = match.groups()
        found += [joint_label(found[0], f"{LABEL_MARK}{year[:size]}") for size in (3, 4) if found]
        found += [f"{LABEL_MARK}{(year + month + day)[:size]}" for size in (3, 4, 6, 8)]
        found += [f"{LABEL_MARK}m{month}", f"{LABEL_MARK}m{month}{day}"]
    return " ".join(found)


def kind_label(kind: str) -> str:
    return f"{LABEL_MARK}k{''.join(words(kind))}"


def joint_label(kind: str, years: str) -> str:
    """Of passages that have both labels; `years` is that of a year or of a decade."""
    return f"{kind}{years}"


def is_of_years(label: str) -> bool:
    """Whether a label of a time is that of a year or of a decade."""
    return len(label) <= len(f"{LABEL_MARK}2000")


def date_labels(mention: DateMention) -> list[str]:
    """Labels for a date: every passage of that time has one of them."""
    if not isinstance(mention, DayRange):
        return [f"{LABEL_MARK}m{mention.iso.replace('-', '')}"]
    first, last = _first_day(mention.first), _last_day(mention.last)
    return _cover(first, last) if first and last else []


def time_range_labels(since: str | None, before: str | None) -> list[str]:
    """Labels for a time range: every passage in it has one of them. Empty for all times, and for times that cannot be
    read."""
    first = _FIRST_DAY if since is None else _first_day(since)
    last = _LAST_DAY if before is None else _first_day(before)
    if (since is None and before is None) or first is None or last is None:
        return []
    if before is not None and len(before) <= 10:  # the range ends where this day begins
        last -= ONE_DAY
    return _cover(first, last) or [f"{LABEL_MARK}never"]


def _first_day(time: str) -> date | None:
    """The day of a time; the first day where it names only a month or a year."""
    match = _DATE_PREFIX.match(time)
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None
    except ValueError:
        return None


def _last_day(time: str) -> date | None:
    """The day of a time; the last day where it names only a month or a year."""
    day = _first_day(time)
    if day is None or len(time) >= 10:
        return day
    return _period_end(day, 6 if len(time) == 7 else 4)


def _period_end(day: date, digits: int) -> date:
    """The last day of the decade (3 digits), year (4) or month (6) that begins with a day."""
    if digits == 6:
        return (day.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY
    return date(day.year + (9 if digits == 3 else 0), 12, 31)


def _cover(first: date, last: date) -> list[str]:
    """The fewest decades, years, months and days that make up a range."""
    found = []
    first, last = max(first, _FIRST_DAY), min(last, _LAST_DAY)
    while first <= last:
        digits = next(
            (size for size in (3, 4, 6) if _starts_period(first, size) and _period_end(first, size) <= last), 8
        )
        found.append(f"{LABEL_MARK}{f'{first:%Y%m%d}'[:digits]}")
        first = (_period_end(first, digits) if digits < 8 else first) + ONE_DAY
    return found


def _starts_period(day: date, digits: int) -> bool:
    """Whether a decade (3 digits), year (4) or month (6) begins with a day."""
    return day.day == 1 and (digits == 6 or (day.month == 1 and (digits == 4 or day.year % 10 == 0)))
