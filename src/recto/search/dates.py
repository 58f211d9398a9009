"""Dates: which days a question speaks of, as far as words tell: "in May 2023", "on 8 May", "yesterday", "last week"."""

import re
from dataclasses import dataclass
from datetime import date, timedelta

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
# Words that are more often something else: a month only beside a day or a year.
_DOUBTFUL = frozenset(("may", "mar", "mars", "march", "jan", "mai"))

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_DATED = re.compile(
    rf"\b(?:(?P<before>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?(?P<month>{_MONTH})\b\.?"
    r"(?:,?\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b(?!\s*(?:am|pm|:)))?(?:,?\s+(?:of\s+|de\s+)?(?P<year>(?:19|20)\d\d)\b)?"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six) (day|week|month|year)s? ago\b")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_SPANS = {"day": 1, "week": 7, "month": 30, "year": 365}
_LAST = re.compile(r"\b(yesterday|today|last (?:week|month|year|night)|this (?:morning|week|month|year))\b")
_IN = re.compile(r"\b(?:in|since|until|during|by|of|last|this|im|en|of)\s+$")


@dataclass(frozen=True, slots=True)
class Days:
    """From one day to another, both included; as they begin a stored time: 2023-05-08."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Part:
    """A month or a day of any year."""

    month: int
    day: int | None = None

    @property
    def said(self) -> str:
        """As it stands in a stored time, behind the year."""
        return f"{self.month:02}" + (f"-{self.day:02}" if self.day else "")


When = Days | Part


def mentioned(folded: str, today: date) -> list[When]:
    """What a folded text says about days, each once; a day also counts as its month and its year."""
    found: dict[When, None] = {}
    for match in _ISO.finditer(folded):
        found |= dict.fromkeys(_exact(match[1], match[2], match[3]))
    for match in _DATED.finditer(folded):
        found |= dict.fromkeys(_named(match, folded))
    for match in _YEAR.finditer(folded):
        found |= {Days(match[0], match[0]): None}
    for match in _AGO.finditer(folded):
        found |= {_ago(match, today): None}
    for match in _LAST.finditer(folded):
        found |= {_relative(match[1], today): None}
    return list(found)


def _exact(year: str, month: str, day: str | None) -> list[When]:
    out: list[When] = [Days(f"{year}-{month}", f"{year}-{month}")]
    return [*out, Days(f"{year}-{month}-{day}", f"{year}-{month}-{day}")] if day else out


def _named(match: re.Match[str], text: str) -> list[When]:
    month, day = MONTHS[match["month"]], match["before"] or match["after"]
    if match["month"] in _DOUBTFUL and not (day or match["year"] or _IN.search(text[: match.start("month")])):
        return []
    return [Part(month), Part(month, int(day))] if day and 0 < int(day) < 32 else [Part(month)]


def _ago(match: re.Match[str], today: date) -> When:
    count = _COUNTS.get(match[1]) or int(match[1])
    size = _SPANS[match[2]]
    middle, slack = today - timedelta(days=min(count * size, 36_000)), max(0, size // 2)
    return Days(str(middle - timedelta(days=slack)), str(middle + timedelta(days=slack)))


def _relative(said: str, today: date) -> When:
    if said in ("today", "this morning"):
        return Days(str(today), str(today))
    if said in ("yesterday", "last night"):
        return Days(str(today - timedelta(days=1)), str(today - timedelta(days=1)))
    which, span = said.split()
    if which == "this":
        first = {"week": today - timedelta(days=today.weekday()), "month": today.replace(day=1)}
        return Days(str(first.get(span, today.replace(month=1, day=1))), str(today))
    if span == "week":
        start = today - timedelta(days=today.weekday() + 7)
        return Days(str(start), str(start + timedelta(days=6)))
    end = today.replace(day=1) if span == "month" else today.replace(month=1, day=1)
    last = end - timedelta(days=1)
    return Days(str(last)[:7], str(last)[:7]) if span == "month" else Days(str(last.year), str(last.year))
