"""Labels: what a passage holds without saying it, its kind and its day, as words of the index.

So that "said by a tool, in May" is looked up like any other word, however much there is. What a label finds may be a
little more than was asked for, never less.
"""

import re
from datetime import date, timedelta

from recto.search.dates import Days, When
from recto.search.terms import words

# Folding leaves none of these in a text: a label is never a word that somebody said.
SIGN = "\u00b6"
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_SAID = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
# Nothing that is searched is older, or younger.
_FIRST, _LAST = date(1900, 1, 1), date(2099, 12, 31)
ONE_DAY = timedelta(days=1)


def labels(kind: str, at: str) -> str:
    """All of a passage: its kind; its day, month, year and decade; its day and month of any year."""
    found = [of_kind(kind)] if kind else []
    if said := _DAY.match(at):
        year, month, day = said.groups()
        found += [f"{SIGN}{(year + month + day)[:size]}" for size in (3, 4, 6, 8)]
        found += [f"{SIGN}m{month}", f"{SIGN}m{month}{day}"]
    return " ".join(found)


def of_kind(kind: str) -> str:
    return f"{SIGN}k{''.join(words(kind))}"


def of_days(days: When) -> list[str]:
    """Labels of which each passage of these days holds one."""
    if not isinstance(days, Days):
        return [f"{SIGN}m{days.said.replace('-', '')}"]
    first, last = _first(days.first), _last(days.last)
    return _covering(first, last) if first and last else []


def between(since: str | None, before: str | None) -> list[str]:
    """Labels of which each passage between two times holds one; none for all times, and for such as cannot be read."""
    first = _FIRST if since is None else _first(since)
    last = _LAST if before is None else _first(before)
    if (since is None and before is None) or first is None or last is None:
        return []
    if before is not None and len(before) <= 10:  # the day begins then, and does not count
        last -= ONE_DAY
    return _covering(first, last) or [f"{SIGN}never"]


def _first(time: str) -> date | None:
    """The day that a time is on; the first of a month or a year."""
    said = _SAID.match(time)
    try:
        return date(int(said[1]), int(said[2] or 1), int(said[3] or 1)) if said else None
    except ValueError:
        return None


def _last(time: str) -> date | None:
    """The day that a time is on; the last of a month or a year."""
    day = _first(time)
    if day is None or len(time) >= 10:
        return day
    return _end(day, 6 if len(time) == 7 else 4)


def _end(day: date, digits: int) -> date:
    """The last day of the decade, year or month that begins with a day."""
    if digits == 6:
        return (day.replace(day=28) + 4 * ONE_DAY).replace(day=1) - ONE_DAY
    return date(day.year + (9 if digits == 3 else 0), 12, 31)


def _covering(first: date, last: date) -> list[str]:
    """The fewest decades, years, months and days from one to another."""
    found = []
    first, last = max(first, _FIRST), min(last, _LAST)
    while first <= last:
        said = f"{first:%Y%m%d}"
        digits = next((size for size in (3, 4, 6) if _begins(first, size) and _end(first, size) <= last), 8)
        found.append(f"{SIGN}{said[:digits]}")
        first = (_end(first, digits) if digits < 8 else first) + ONE_DAY
    return found


def _begins(day: date, digits: int) -> bool:
    """Whether a decade, year or month begins with a day."""
    return day.day == 1 and (digits == 6 or (day.month == 1 and (digits == 4 or day.year % 10 == 0)))
