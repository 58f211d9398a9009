"""Past plans: what was to be on a day that is over by now. Knows one sentence at a time, when it was said, and the
day of the last message.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta

from recto.summary.entities import MONTHS
from recto.summary.relative_dates import add_dates
from recto.summary.small_talk import FULL_NAME, SPECIFIC
from recto.text import LazyPattern, text_cache

# Names that are words or people elsewhere; here a day stands beside them.
_MORE_MONTHS = """
gennaio janeiro stycznia; febbraio fevereiro lutego; março marca; aprile kwietnia; mei maggio maio maja;
giugno junho czerwca; luglio julho lipca; sierpnia; settembre setembro września; ottobre outubro października;
novembro listopada; dicembre dezembro grudnia
"""
_MONTHS = MONTHS | {name: at for at, names in enumerate(_MORE_MONTHS.split(";"), 1) for name in names.split()}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_NAMED_DAY = LazyPattern(
    r"(?P<iso>\d{4}-\d\d-\d\d)(?:–(?:(?P<to_month>\d\d)-)?(?P<to_day>\d\d))?"
    rf"|(?P<day>\d{{1,2}})(?!\d)(?:st|nd|rd|th|er|\.|º|ª)? ?(?:of |de )?(?P<month>{_MONTH})\b"
    r"(?:[,.]? (?:de )?(?P<year>\d{4}))?"
    rf"|\b(?P<month2>{_MONTH})\.? (?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])(?:,? (?P<year2>\d{{4}}))?"
    r"|\b(?:am|bis|zum|vom|den|dem|do|od|dnia) (?P<day3>\d{1,2})\.(?P<month3>0?[1-9]|1[0-2])\.(?!\d\d?\b)"
    r"(?P<year3>\d{4})?"
    r"|(?P<month4>\d{1,2})月(?P<day4>\d{1,2})日"
)
# From that day on something holds: it is not over after it.
_FROM = LazyPattern(
    r"(?:\b(?:from|since|as of|starting|effective|ab|seit|vom|von|desde|a partir del?|à partir d[ue]|depuis|vanaf|sinds"
    r"|da|dal|od)\s+(?:(?:the|dem|den|el|le|il|o|dia)\s+)?)$"
)
_STARTS_AFTER = ("から", "以降")
# Of a day without its year, the one that is meant: at most so long before it was said, or else in the year after.
_DAYS_BACK = 90
# What was due yesterday may not be done yet.
_GRACE = timedelta(days=2)
_AMOUNT = re.compile(r"[€$£¥%]|\d{3}|\d ?(?:euros?|eur|pounds|dollars|zł|kr)\b|[^\W\d_]\d|\d[^\W\d_]")


def is_only_plan(sentence: str) -> bool:
    """Whether it tells nothing but what was to be on a day: no price, no number of anything, no name in full."""
    rest = _NAMED_DAY.sub(" ", sentence.lower())
    return not (_AMOUNT.search(rest) or FULL_NAME.search(sentence) or SPECIFIC.search(sentence))


@text_cache(8192)  # the summary and the ledger ask
def is_over(sentence: str, said: date | None, today: date | None, *, is_former: bool = False) -> bool:
    """Whether it tells what was to be on a day, and that day is over. What was over already when it was said is
    history, and stays as it is. `is_former`: it was said before that day, and was not over then."""
    if said is None or today is None or said + _GRACE >= today:
        return False
    text = sentence if is_former else add_dates(sentence, said)
    days = list(_named_days(text, said - (_GRACE if is_former else timedelta(days=_DAYS_BACK))))
    return bool(days) and said < max(days) <= today - _GRACE


def _named_days(sentence: str, earliest: date) -> Iterator[date]:
    lower = sentence.lower()
    for match in _NAMED_DAY.finditer(lower):
        is_start = _FROM.search(lower[max(0, match.start() - 24) : match.start()])
        if is_start or lower.startswith(_STARTS_AFTER, match.end()):
            # never over
            yield date.max
        elif (found := _day(match, earliest)) is not None:
            yield found


def _day(match: re.Match[str], earliest: date) -> date | None:
    part = match.groupdict()
    try:
        if part["iso"]:
            start = date.fromisoformat(part["iso"])
            if not part["to_day"]:
                return start
            return start.replace(month=int(part["to_month"] or start.month), day=int(part["to_day"]))
        name = part["month"] or part["month2"]
        month = _MONTHS[name] if name else int(part["month3"] or part["month4"])
        day = int(part["day"] or part["day2"] or part["day3"] or part["day4"])
        if year := part["year"] or part["year2"] or part["year3"]:
            return date(int(year), month, day)
        found = date(earliest.year, month, day)
        return found if found >= earliest else found.replace(year=earliest.year + 1)
    except (ValueError, OverflowError):
        return None
