"""Relative dates: "tomorrow" with its day behind it, so that a sentence can be read long after it was said.

In English, German, Spanish, French and Dutch. "By Friday" is the next one, unless the sentence tells what happened or
what happens every week. What could mean several days, as "soon", stays as it is.
"""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import cache

_DAYS = {
    "today|tonight|this (?:morning|afternoon|evening)|vandaag|heute|hoy|esta (?:mañana|tarde|noche)|aujourd['’]hui"
    "|ce (?:matin|soir)|cet après-midi": 0,
    "(?<!the day after )tomorrow|(?<!pasado )(?<!la )(?<!esta )(?<!de )(?<!ayer )(?<!cada )mañana|(?<!après-)demain": 1,
    "the day after tomorrow|overmorgen|übermorgen|pasado mañana|après-demain": 2,
    "(?<!the day before )yesterday|last night|gisteren|gestern|ayer|anoche|(?<!avant-)hier": -1,
    "the day before yesterday|eergisteren|vorgestern|anteayer|antier|avant-hier": -2,
}
# "Morgen" with a capital is the morning.
_GERMAN_TOMORROW = (
    r"(?<!heute )(?<!gestern )(?<!guten )(?<!jeden )(?<!am )(?<!de )(?<!elke )(?<!goede )\bmorgen\b(?! ist Morgen)"
)
# At the start of a sentence, what follows tells.
_FIRST_TOMORROW = (
    r"(?:^|(?<=[.!?:] ))Morgen(?= (?:um|ab|bis|früh|[Vv]ormittag|[Nn]achmittag|[Mm]ittag|[Aa]bend|kommt?|kommen|muss"
    r"|müssen|wird|werden|ist|sind|gehe?n?|geht|holen?|gibt|habe?n?|hat|fahren?|bringen?|treffen|machen?|soll"
    r"|will|kann"
    r"|können|ga|gaan|moet|moeten|wordt|komen?)\b)"
)
_COUNTS = {
    word: number
    for number, words in enumerate(
        (
            "a an one ein eine einem einer einen un una une",
            "two zwei dos deux",
            "three drei tres trois",
            "four vier cuatro quatre",
            "five fünf cinco cinq",
            "six sechs seis",
            "seven sieben siete sept",
            "eight acht ocho huit",
            "nine neun nueve neuf",
            "ten zehn diez dix",
        ),
        1,
    )
    for word in words.split()
}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(sorted(_COUNTS, key=len, reverse=True))})"
_UNITS = {
    "day": r"days?|dag(?:en)?|tag(?:e|en)?|días?|jours?",
    "week": r"weeks?|weken|wochen?|semanas?|semaines?",
    "month": r"months?|maand(?:en)?|monat(?:e|en)?|mes(?:es)?|mois",
    "year": r"years?|jaar|jahr(?:e|en)?|años?|ans?|années?",
}
_UNIT = "(?:" + "|".join(f"(?P<{unit}>{words})" for unit, words in _UNITS.items()) + ")"
_AGO = (rf"{_COUNT} {_UNIT} ago", rf"(?:vor|hace|il y a) {_COUNT} {_UNIT}")
_AHEAD = rf"(?:in|dentro de|en|dans) {_COUNT} {_UNIT}"
_WEEKDAYS = (
    "monday|maandag|montag|lunes|lundi",
    "tuesday|dinsdag|dienstag|martes|mardi",
    "wednesday|woensdag|mittwoch|miércoles|mercredi",
    "thursday|donderdag|donnerstag|jueves|jeudi",
    "friday|vrijdag|freitag|viernes|vendredi",
    "saturday|zaterdag|samstag|sonnabend|sábado|samedi",
    "sunday|zondag|sonntag|domingo|dimanche",
)
_WEEKDAY = "|".join(_WEEKDAYS)
_SPAN = rf"weekend|wochenende|fin de semana|week-end|{'|'.join(list(_UNITS.values())[1:])}|{_WEEKDAY}"
_LAST = r"last|afgelopen|letzte[nrms]?|vorige[nrms]?|vergangene[nrms]?"
_NEXT = r"next|volgende|komende|nächste[nrms]?|kommende[nrms]?"
_THIS = r"this|diese[nrms]?|est[ea]|cette|ce"
_BEFORE_SPAN = rf"(?:(?P<last>{_LAST}|el pasado|la pasada)|(?P<next>{_NEXT}|próxim[oa])|(?P<this>{_THIS}))"
_AFTER_SPAN = r"(?:(?P<last>pasad[oa]|derni(?:er|ère)|passée?)|(?P<next>que viene|próxim[oa]|prochaine?))"
# "We built it in two days" is a duration.
_FUTURE = re.compile(
    r"\b(?:will|won['’]t|going to|gonna|due|starts?|leaves?|ends?|expires?|wird|werden?|fällig|beginnt|endet"
    r"|v(?:oy|as|a|amos|an) a|empieza|termina|vence|v(?:ais|as|a|ons|ez|ont)|commence|aura|sera)\b|['’]ll\b",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"today|tonight|this|tomorrow|yesterday|last|next|ago|in \w+ (?:day|week|month|year|tag|woche|monat|jahr)"
    r"|vandaag|gisteren|volgende|komende|afgelopen|heute|gestern|morgen|vor |letzte|nächste|vorige|kommende"
    r"|vergangene|diese|hoy|mañana|ayer|anoche|antier"
    r"|hace|dentro|pasad|próxim|que viene|est[ea] |aujourd|demain|hier|il y a|dans|derni|prochain|passée?"
    r"|ce(?:tte|t)? |(?:on|tues|nes|hurs|fri|tur|sun|maan|dins|der|vrij|ter|zon)da[yg]|tag\b|woch|nes\b|artes"
    r"|coles|eves\b"
    r"|bado|mingo|undi|ardi|redi|eudi|amedi|anche",
    re.IGNORECASE,
)
# A figure behind it is its date, but "Friday 8:15" and "Friday 4 pm" tell the hour.
_DATED = re.compile(
    r"\s*[(\[,]?\s*(?:the |den |dem |der |el |le |de )?\d(?!\d?(?:[:h]\d|\.\d\d\b| ?(?:[ap]\.?m\b|uhr|h\b|uur)))",
    re.IGNORECASE,
)
# A deadline is near. "On Friday" may be past, every week, or a day of the journey that is planned.
_BY_WEEKDAY = (
    rf"(?:by|before|until|till|due|bis|bis zum|vor|antes del?|hasta|para el|avant|d['’]ici|jusqu['’]à|voor|vóór|tot"
    rf"|uiterlijk) (?P<weekday>{_WEEKDAY})(?! (?:que viene|próxim|pasado|prochain|derni|passé))"
)
# A sentence with one of these tells what happened, what happens every week, or names the day itself.
_NO_NEXT = (
    r"\b(?:was|were|had|did|went|got|came|saw|said|took|made|last|every|each|always|usually|or|(?!need|speed"
    r"|indeed|feed"
    r"|seed|shed|bed)[a-z]{2,}ed|war|waren|hat|haben|hatten?|habe|hab|wurden?|jeden?|immer|oder|letzten?"
    r"|ge[a-zäöü]{3,}(?:t|en)"
    r"|fue|era|estuv\w+|hemos|han|ha|cada|siempre|suele\w*|pasad[oa]|o|était|étaient|avons|ont|ai|chaque|toujours"
    r"|derni\w+|ou"
    r"|heeft|hebben|heb|elke|iedere|altijd|of|vorige|afgelopen)\b"
    r"|\b\d{1,2}(?:st|nd|rd|th|\.)? (?:de )?(?:jan|feb|mar|mär|maart|apr|avr|abr|ma[iy]|mei|jun|jui|jul|aug|août"
    r"|ago|sep"
    r"|oct|okt|nov|dec|dez|dic|déc|ene)|\d{1,2}\.\d{1,2}\.|\d{4}-\d\d-\d\d"
)
# "Hier" is yesterday in French, and here in German.
_FRENCH = (
    r"\b(?:la|les|une|et|je|j['’]|nous|on|il|elle|vous|tu|ai|est|était|avons|ont|soir|matin|pas|chez|dans|pour"
    r"|avec|mon|ma"
    r"|notre|sur|au|aux|que|qui|le|c['’]|d['’]|l['’])(?!\w)"
)
_MOST_DAYS = 36_000


@cache
def _pattern(words: str) -> re.Pattern[str]:
    """Compiled when first needed: few commands ever summarise."""
    return re.compile(words, re.IGNORECASE)


def day_of(created: str) -> date | None:
    """The day of a message where the user is; None for a time that cannot be read."""
    try:
        return datetime.fromisoformat(created).astimezone().date() if created else None
    except (ValueError, OverflowError):
        return None


_GERMAN = re.compile(
    r"\b(?:der|die|das|den|dem|ein|eine|einen|und|ist|sind|war|nicht|wer|wir|ich|sich|zu|auf|mit)\b", re.IGNORECASE
)


def is_german(sentence: str) -> bool:
    """Whether nouns in it have capitals, and "hier" is a place."""
    return _GERMAN.search(sentence) is not None


def add_dates(text: str, day: date | None) -> str:
    """The text with the date behind each relative one, in brackets."""
    if day is None or not _HINT.search(text):
        return text
    found: dict[int, str] = {}
    taken = 0
    matches = sorted(
        ((match, make) for pattern, make in _patterns() for match in pattern.finditer(text)),
        key=lambda pair: (pair[0].start(), -pair[0].end()),
    )
    for match, make in matches:
        is_here = match[0].lower() == "hier" and (is_german(text) or not _pattern(_FRENCH).search(text))
        if match.start() >= taken and not is_here and not _DATED.match(text, match.end()):
            taken = match.end()
            try:
                when = make(match, day)
            except (ValueError, OverflowError):  # before the first year or behind the last
                continue
            found |= {match.end(): f" [{when}]"} if when else {}
    for end in sorted(found, reverse=True):
        text = text[:end] + found[end] + text[end:]
    return text


Resolve = Callable[[re.Match[str], date], str]


@cache
def _patterns() -> list[tuple[re.Pattern[str], Resolve]]:
    def word(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)

    plain = [(word(pattern), _shifted(days)) for pattern, days in _DAYS.items()]
    spans = [word(rf"{_BEFORE_SPAN} (?P<span>{_SPAN})"), word(rf"(?P<span>{_SPAN}) {_AFTER_SPAN}")]
    return [
        *plain,
        (re.compile(_GERMAN_TOMORROW), _shifted(1)),
        *((word(ago), _ago) for ago in _AGO),
        (word(_AHEAD), _ahead),
        *((span, _span) for span in spans),
        (re.compile(_FIRST_TOMORROW), _shifted(1)),
        (word(_BY_WEEKDAY), _next_weekday),
    ]


def _shifted(days: int) -> Resolve:
    return lambda _, day: str(day + timedelta(days=days))


def _ago(match: re.Match[str], day: date) -> str:
    return _moved(match, day, -1)


def _ahead(match: re.Match[str], day: date) -> str:
    return _moved(match, day, 1) if _FUTURE.search(match.string) else ""


def _moved(match: re.Match[str], day: date, sign: int) -> str:
    """As exact as the words are: two weeks are a week, three years a year."""
    found = match.groupdict()
    count = sign * (_COUNTS.get(found["count"].lower()) or int(found["count"]))
    if found["day"]:
        return str(day + timedelta(days=count))
    if found["week"]:
        return _week(day + timedelta(days=max(-_MOST_DAYS, 7 * count)))
    return _month(day, count) if found["month"] else f"{day.year + count:04}"


def _month(day: date, count: int) -> str:
    months = day.year * 12 + day.month - 1 + count
    return f"{date(months // 12, months % 12 + 1, 1):%Y-%m}"


def _week(day: date, first: int = 0) -> str:
    start = day - timedelta(days=day.weekday() - first)
    end = start + timedelta(days=6 - first)
    return f"{start}–{end.day:02}" if start.month == end.month else f"{start}–{end:%m-%d}"


def _span(match: re.Match[str], day: date) -> str:
    found, span = match.groupdict(), match["span"].lower()
    step = -1 if found["last"] else 1 if found["next"] else 0
    for number, names in enumerate(_WEEKDAYS):
        if re.fullmatch(names, span):
            return str(_weekday(day, number, step))
    if re.fullmatch("weekend|wochenende|fin de semana|week-end", span):
        return _week(day + timedelta(days=7 * step), 5)
    if re.fullmatch(_UNITS["week"], span):
        return _week(day + timedelta(days=7 * step))
    if re.fullmatch(_UNITS["month"], span):
        return _month(day, step)
    return f"{day.year + step:04}" if step else ""  # which year this is, a reader knows by the other dates


def _next_weekday(match: re.Match[str], day: date) -> str:
    """The next one. On the same day of the week, it could be today or in a week."""
    if _pattern(_NO_NEXT).search(match.string):
        return ""
    name = match["weekday"].lower()
    number = next(number for number, names in enumerate(_WEEKDAYS) if re.fullmatch(names, name))
    return str(_weekday(day, number, 1)) if number != day.weekday() else ""


def _weekday(day: date, number: int, step: int) -> date:
    """The last one before this day, the next one after it, or the one of this week."""
    ahead = (number - day.weekday()) % 7
    if step > 0:
        return day + timedelta(days=ahead or 7)
    return day + timedelta(days=ahead - 7 if step < 0 else number - day.weekday())
