"""Numbers with units, dates and times: patterns that find them, and one normal form for all spellings of a value.

Knows the spellings of English, German, French, Spanish, Dutch and East Asian counters. Ambiguous text stays as written.

Proper names: capitalised words whose capital is not due to the start of a sentence or a heading.

German capitalises every noun: there, only several such words in a row count as a name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache

from msgspec import Struct

from recto.chat.cues import SMALL_WORDS
from recto.summary.sentences import word_set

# Letters of scripts with spaces between words. Next to a token, they mean that it is only part of a word.
LETTER = "0-9A-Za-z_\u00c0-\u024f\u0370-\u052f"

# "canonical factor: spellings"; the factor converts a value into the canonical unit.
_UNIT_TABLE = """
%: % percent per\xa0cent prozent pour\xa0cent por\xa0ciento pct
s 1e-9: ns nanosecond nanoseconds; s 1e-6: µs μs us microsecond microseconds
s 0.001: ms millisecond milliseconds msec millisekunden; s 60: min mins minute minutes minuten minutos
s: s sec secs second seconds sekunde sekunden seconde secondes segundo segundos
s 3600: h hr hrs hour hours std stunde stunden heure heures hora horas
day: day days tag tage tagen jour jours día días; week: week weeks woche wochen semaine semaines semana semanas
month: month months monat monate monaten mois mes meses; year: year years jahr jahre jahren an ans année años año
B: byte bytes; kB: kB KB kb; MB: MB mb; GB: GB gb; TB: TB tb; KiB: KiB; MiB: MiB; GiB: GiB; TiB: TiB
bit: bit bits; Mbit: Mbit Mbps; Gbit: Gbit Gbps
m 0.001: mm; m 0.01: cm; m: m metre metres meter meters mètre mètres; m 1000: km kilometer kilometers kilometre
m 1000: kilometres kilomètres kilómetros; mi: mi mile miles; ft: ft foot feet; inch: inch inches; yd: yard yards
g 0.001: mg; g: g gram grams gramm; g 1000: kg kilo kilos kilogram kilograms; lb: lb lbs pound pounds; oz: oz
t: tonne tonnes tons; l: l litre litres liter liters; l 0.001: ml; °C: °C ℃; °F: °F; °: ° degrees
px: px pixel pixels; Hz: Hz; kHz: kHz; MHz: MHz; GHz: GHz; fps: fps; W: W watt watts; kW: kW; kWh: kWh; V: V volts
km/h: km/h kmh kph; mph: mph; rps: rps; req/s: req/s; token: token tokens
usd: $ usd dollar dollars US$; eur: € eur euro euros; gbp: £ gbp quid; yen: ¥ jpy yen 円; cny: cny yuan 元
chf: chf francs; inr: ₹ inr; day: 日 天; year: 年; month: 月; s 3600: 時間 小时; s 60: 分钟; s: 秒
"""
_MULTIPLIERS = {
    "k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "B": 1e9, "thousand": 1e3, "million": 1e6, "millions": 1e6,
    "billion": 1e9, "billions": 1e9, "tausend": 1e3, "mio": 1e6, "Mio": 1e6, "Mrd": 1e9, "Millionen": 1e6,
    "mille": 1e3, "milliards": 1e9, "mil": 1e3, "millones": 1e6, "万": 1e4, "億": 1e8, "亿": 1e8,
}  # fmt: skip
_NUMBER_WORD_TABLE = (
    "zero null zéro cero;one eins ein eine un une uno una;two zwei deux dos both twice pair couple;"
    "three drei trois tres;four vier quatre cuatro;five fünf cinq cinco;six sechs seis;"
    "seven sieben sept siete;eight acht huit ocho;"
    "nine neun neuf nueve;ten zehn dix diez;eleven elf onze once;twelve zwölf douze doce dozen;thirteen dreizehn;"
    "fourteen vierzehn;fifteen fünfzehn quinze;sixteen sechzehn;seventeen siebzehn;eighteen achtzehn;"
    "nineteen neunzehn;twenty zwanzig vingt veinte"
)
NUMBER_WORDS = {
    word: float(value) for value, words in enumerate(_NUMBER_WORD_TABLE.split(";")) for word in words.split()
}
NUMBER_WORDS |= {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "hundred": 100.0, "thousand": 1000.0, "half": 0.5}
_MONTH_TABLE = """
jan january januar januari janvier enero ene; feb february februar februari février fevrier febrero;
mar march märz maart mars marzo mär; apr april avril abril abr; may mai mayo; jun june juni juin junio;
jul july juli juillet julio; aug august augustus août aout agosto ago; sep sept september septembre septiembre;
oct october oktober octobre octubre okt; nov november novembre noviembre; dec december dezember décembre decembre
diciembre dez dic
"""
MONTHS = {name: month for month, names in enumerate(_MONTH_TABLE.split(";"), 1) for name in names.split()}
_WEEKDAY_TABLE = """
monday maandag montag lundi lunes; tuesday dinsdag dienstag mardi martes;
wednesday woensdag mittwoch mercredi miércoles; thursday donderdag donnerstag jeudi jueves;
friday vrijdag freitag vendredi viernes; saturday zaterdag samstag samedi sábado; sunday zondag sonntag dimanche domingo
"""
WEEKDAYS = {name: names.split()[0] for names in _WEEKDAY_TABLE.split(";") for name in names.split()}


@cache
def _units() -> dict[str, tuple[str, float]]:
    found: dict[str, tuple[str, float]] = {}
    for entry in _UNIT_TABLE.replace("\n", ";").split(";"):
        head, _, spellings = entry.strip().partition(": ")
        unit, _, factor = head.partition(" ")
        found |= {spelling: (unit, float(factor or 1)) for spelling in spellings.split(" ")} if spellings else {}
    return found


_CURRENCY = r"(?:US)?[$€£¥₹]|(?:USD|EUR|GBP|CHF)(?=[ \d])"
_DIGITS = r"\d++(?>(?:[.,'’]\d++)*)"
_MULTIPLIER = (
    rf"(?:[kKMB]|bn|[万億亿])(?![{LETTER}])|[ \xa0](?:thousand|[mb]illions?|Mio|Mrd|Millionen|millones|mille?)\b\.?"
)
NUMBER_PATTERN = rf"(?:(?:{_CURRENCY})\s?)?[-−+]?{_DIGITS}(?>(?:\s?[-–]\s?{_DIGITS}|/{_DIGITS})?)(?>(?:{_MULTIPLIER})?)"
_UNIT = re.compile(
    r"[ \xa0\u202f-]?(?:(per\scent|pour\scent|por\sciento|km/h|req/s"
    rf"|[{LETTER.removeprefix('0-9')}µμ°]{{1,12}}+)(?![{LETTER}])"
    r"|([%$€£¥₹°℃]|時間|小时|分钟|[円元日天年月秒]))"
)
_MONTH_NAMES = "|".join(sorted((name.capitalize() for name in MONTHS), key=len, reverse=True))
_SHORT_MONTHS = "(?:Jan|Feb|Mar|Mär|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|Dec|Dez|Ene|Abr|Ago|Dic)"
_DAY_OF_MONTH = r"\d{1,2}(?!\d)(?:st|nd|rd|th|\.|er|º)?"
_LOWER_MONTHS = "|".join(sorted((name for name in MONTHS if len(name) > 3), key=len, reverse=True))
_NUMERIC_DATE = "|".join(
    rf"\d{{4}}{separator}\d{{1,2}}{separator}\d{{1,2}}(?!\d)|\d{{1,2}}{separator}\d{{1,2}}{separator}\d{{4}}(?!\d)"
    for separator in ("-", "/", r"\.")
)
DATE_PATTERN = (
    rf"{_NUMERIC_DATE}|(?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}日)?"
    rf"|(?:{_SHORT_MONTHS}\.|{_MONTH_NAMES})\s+{_DAY_OF_MONTH}(?:,?\s+\d{{4}}(?!\d))?(?![{LETTER}:])"
    rf"|{_DAY_OF_MONTH}\s+(?:of\s+|de\s+)?(?:{_MONTH_NAMES}|{_LOWER_MONTHS})(?![{LETTER}])(?:[,.]?\s+(?:de\s+)?\d{{4}}(?!\d))?"
    rf"|(?:{_MONTH_NAMES})\.?,?\s+(?:de\s+|of\s+)?\d{{4}}(?!\d)"
)
_AM_PM = r"[aApP](?:\.[mM]\.|[mM]\b)"
TIME_PATTERN = (
    rf"\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?!\d)(?:\s?{_AM_PM})?"
    rf"|\d{{1,2}}\s?(?:{_AM_PM}|Uhr\b)(?![{LETTER}])"
)

_SPACE = re.compile(r"\s")
_DATE_TOKENS = re.compile(r"\d+|[^\W\d_]+")
_NUMBER_PARTS = re.compile(rf"(\D*?)([-−+]?)({_DIGITS})(?:\s?[-–]\s?({_DIGITS})|/({_DIGITS}))?")
_DATE_PARTS = re.compile(r"(-|\d{4})-(\d\d)(?:-(\d\d))?")
_THOUSANDS = re.compile(r"\D*(\d{1,3})\.(\d{3})\D*")
_MAX_DIGITS = 18


def unit_end(text: str, end: int) -> int | None:
    """Where a number that ends at `end` ends with its unit, if one follows; None if it is the start of a word."""
    found = _UNIT.match(text, end)
    if found is None:
        return None if text[end : end + 1].isascii() and text[end : end + 1].isalnum() else end
    unit = found[1] or found[2]
    unit = unit if unit.isalpha() else _SPACE.sub("\xa0", unit)
    if unit in _units() or (len(unit) > 2 and unit.lower() in _units()):
        return found.end()
    return end if text[end] in " \xa0\u202f-" else None


@lru_cache(1024)
def normalize_number(text: str) -> str:
    """A number with its unit: "3,200", "3200" and "3.2k" give the same result; a range keeps both ends."""
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return text.lstrip("0") or "0"
    found = _NUMBER_PARTS.match(text)
    if found is None or len(found[3]) > _MAX_DIGITS:
        return " ".join(text.split()).lower()
    rest = text[found.end() :].strip(" \xa0\u202f-.")
    multiplier, written_unit = _multiplier_and_unit(rest)
    sign = -1.0 if found[2] in ("-", "−") else 1.0
    unit, factor = _canonical_unit(written_unit or found[1].strip())
    ends = [sign * _parse_value(found[3]), *map(_parse_value, filter(None, found.groups()[3:]))]
    separator = "/" if found[5] else "–"
    return f"{separator.join(_format_value(end * multiplier * factor) for end in ends)} {unit}".strip()


def values_and_unit(normal: str) -> tuple[list[float], str]:
    """The values and the unit in a number's normal form."""
    numbers, _, unit = normal.partition(" ")
    if numbers.isdigit():
        return [float(numbers)], unit
    try:
        return [float(part) for part in re.split("[–/]", numbers) if part], unit
    except ValueError:
        return [], unit


def thousands_value(text: str) -> float | None:
    """The other value that "1.234" may have: some languages put a dot between thousands."""
    found = _THOUSANDS.fullmatch(text) if "." in text else None
    return float(found[1] + found[2]) if found else None


def _multiplier_and_unit(rest: str) -> tuple[float, str]:
    first, _, others = rest.partition(" ")
    if (multiplier := _MULTIPLIERS.get(first.rstrip("."))) is not None:
        return multiplier, others.strip(" -")
    for length in (2, 1):
        if rest[:length] in _MULTIPLIERS and rest[length:].strip() and rest not in _units():
            return _MULTIPLIERS[rest[:length]], rest[length:].strip()
    return 1.0, rest


def _canonical_unit(unit: str) -> tuple[str, float]:
    known = _units()
    unit = re.sub(r"\s", "\xa0", unit)
    return known.get(unit) or known.get(unit.lower()) or (unit.lower(), 1.0)


def _parse_value(written: str) -> float:
    digits = written.replace("'", "").replace("’", "")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and dot >= 0:
        digits = digits.replace("," if dot > comma else ".", "").replace(",", ".")
    elif comma >= 0:
        is_thousands = all(len(part) == 3 for part in digits.split(",")[1:])
        digits = digits.replace(",", "" if is_thousands or digits.count(",") > 1 else ".")
    # thousands, or a row of a table that looks like a number: "1730,3.5,4"
    return float(digits.replace(".", "") if digits.count(".") > 1 else digits)


def _format_value(value: float) -> str:
    return f"{value:.10g}" if abs(value) < 1e15 else f"{value:.0f}"


def normalize_date(text: str) -> str:
    """2024-05-01 in any spelling; --05-01 without a year, 2024-05 without a day, --05 for a month alone."""
    tokens = _DATE_TOKENS.findall(text)
    if not any(token.isalpha() and token not in "年月日" for token in tokens):
        return _normalize_numeric_date(text, [int(token) for token in tokens if token.isdigit()])
    month = next((MONTHS[token.lower()] for token in tokens if token.lower() in MONTHS), 0)
    numbers = [token for token in tokens if token.isdigit()]
    year = next((number for number in numbers if len(number) == 4), "-")
    day = next((f"-{int(number):02}" for number in numbers if len(number) < 3), "")
    return f"{year}-{month:02}{day}"


def _normalize_numeric_date(text: str, numbers: list[int]) -> str:
    if len(numbers) < 3:
        year = f"{numbers.pop(0)}" if "年" in text else "-"
        return "-".join((year, *(f"{number:02}" for number in numbers)))
    first, second, third = numbers[:3]
    if first > 31:
        return f"{first}-{second:02}-{third:02}"
    # day first with dots, month first with slashes unless that is no month
    month, day = (second, first) if "." in text or first > 12 else (first, second)
    return f"{third}-{month:02}-{day:02}"


def implied_dates(normal: str) -> set[str]:
    """The date and those that it implies: the day without its year, the month with and without."""
    found = _DATE_PARTS.fullmatch(normal)
    if found is None:
        return {normal}
    year, month, day = found.groups()
    return {normal, f"--{month}", f"{year}-{month}"} | ({f"--{month}-{day}"} if day else set())


def normalize_time(text: str) -> str:
    """14:30 on the 24-hour clock, with seconds where the text has them."""
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    hour, rest = numbers[0], numbers[1:3] or [0]
    lower = text.lower().replace(".", "")
    hour += 12 if "pm" in lower and hour < 12 else -12 if "am" in lower and hour == 12 else 0
    return ":".join(f"{part:02}" for part in (hour, *rest))


_JOINT = re.compile(r" (?:(?:of|de|der|van|von|del|da|la|le|the|&|and the) )?|-")
_MID_SENTENCE = frozenset(",&'’)+")
_MAX_WORDS = 6
_POSSESSIVE = re.compile(r"['’](?:s|S)?$")
_CONTRACTION = re.compile(r"['’](?:s|ll|d|re|ve|m|t)$", re.IGNORECASE)

# Capitalised words that name nothing: pronouns, courtesy, common abbreviations.
_NOT_NAMES = word_set(
    "i i'm i'll i've i'd i’m i’ll i’ve i’d ok okay mr mrs ms dr prof yes no hi hey thanks please note todo fixme ps "
    "etc am pm api apis url urls json http https html css sql xml yaml csv pdf ui ux id ids cli cpu gpu ram os ai "
    "llm io ci cd pr prs faq tl dr fyi asap eta tv pc us uk eu usa wip lol omg btw imo a an the and or not never "
    "always must only if in on at it ascii utf rest sdk ide dns ip tcp udp ssh ssl tls vpn usb qa hr ceo cto kpi "
    "sla mvp poc rfc"
)
_STARTERS = word_set(
    "the a an in on at by for from with after before when while if since until because although though as once then "
    "there this that these those it he she they we you my our your his her their its what which who why how where "
    "now today yesterday tomorrow yes no not never always please also but and or so let let's do don't did does is "
    "are was were has have had will would can could should must may might first second third finally next last all "
    "some any each every both one two three four five six seven eight nine ten here just only maybe perhaps well "
    "sure thanks thank great good nice wow oh hey hi hello okay ok use add run see try make get go keep set task "
    "progress facts decisions open done note summary user assistant tool error result der die das ein eine wir ich "
    "sie es und aber wenn dann am im bitte le la les il elle je nous vous un une el los las yo que sorry actually "
    "another during about many most more such even still earlier later meanwhile however instead besides between "
    "against under over through without within"
)
_NEVER_FIRST = _NOT_NAMES | _STARTERS | SMALL_WORDS
_VERB_FOLLOWS = re.compile(
    r"(?:['’]s)? (?:is|was|has|had|will|said|says|wants|wanted|asked|asks|lives|works|prefers|likes|joined|leads|owns|"
    r"moved|"
    r"bought|visited|agreed|decided|suggested|confirmed|wrote|runs|took|went|told|called|met|plans|needs|hates|loves)\b"
)
_COMMON_ENDING = re.compile(r"(?:ed|ing|tion|sion|ment|ly|ity|ness|ance|ence|ency|ism|ship|one|body|thing|s)$")
_GERMAN_WORDS = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|ich|wir|mit|auf|für|von|dem|den|zu|wird|auch)\b")
_BEFORE_MONTH = re.compile(
    r"\b(?:in|since|until|by|of|last|next|this|early|late|mid|im|seit|bis|en)[ -]$", re.IGNORECASE
)


class NameSpan(Struct, frozen=True, gc=False):
    """A capitalised word, or several that form a name."""

    start: int
    end: int
    text: str
    is_significant: bool = True


def find_names(text: str, words: Sequence[NameSpan]) -> Iterator[NameSpan]:
    """Names of one or more of the capitalised `words`. The first word of a sentence belongs to a name if it also
    occurs inside another sentence, if another name follows, or if a verb follows that people are the subject of."""
    starters = {word.start for word in words if _starts_sentence(text, word.start)}
    inside = {_without_possessive(word.text) for word in words if word.start not in starters}
    is_german: bool | None = None
    for run in _runs(text, words):
        if run[0].start in starters and not (_can_start(run, inside) or _is_acting(text, run[0])):
            run = run[1:]
        run = _trim(run)
        if run and not _is_heading(text, run):
            is_german = _is_german(text) if is_german is None else is_german
            yield from _name_of_run(text, run, is_german)


def _runs(text: str, words: Sequence[NameSpan]) -> Iterator[list[NameSpan]]:
    run: list[NameSpan] = []
    for word in words:
        # a word with an apostrophe at its end, "Ada's", ends a name
        if (
            0 < len(run) < _MAX_WORDS
            and _JOINT.fullmatch(text, run[-1].end, word.start)
            and not _CONTRACTION.search(run[-1].text)
        ):
            run.append(word)
            continue
        if run:
            yield run
        run = [word]
    if run:
        yield run


def _can_start(run: Sequence[NameSpan], inside: Iterable[str]) -> bool:
    first = run[0].text
    if _without_contraction(first).lower() in _NEVER_FIRST:
        return False
    return _without_possessive(first) in inside or len(_trim([*run])) > 1 or first.isupper()


def _is_acting(text: str, word: NameSpan) -> bool:
    """Whether a sentence starts with somebody who does something: "Ada leads …"."""
    if word.text.lower() in _NEVER_FIRST or _COMMON_ENDING.search(word.text):
        return False
    return _VERB_FOLLOWS.match(text, word.end) is not None


def _trim(run: list[NameSpan]) -> list[NameSpan]:
    while run and run[0].text.lower() in _NEVER_FIRST:
        run = run[1:]
    while run and (run[-1].text.lower() in _NOT_NAMES or _without_contraction(run[-1].text).lower() in _NOT_NAMES):
        run = run[:-1]
    return run


def _name_of_run(text: str, run: Sequence[NameSpan], is_german: bool) -> Iterator[NameSpan]:
    start, end = run[0].start, run[-1].end
    name = _CONTRACTION.sub("", text[start:end])
    lower = name.lower()
    if len(run) == 1 and lower in MONTHS:
        is_word_too = lower in ("may", "mars", "march")
        if len(name) > 3 and (not is_word_too or _BEFORE_MONTH.search(text[max(0, start - 8) : start])):
            yield NameSpan(start, start + len(name), name)
        return
    is_shouted = all(word.text.isupper() for word in run)
    if len(name) < 2 or (is_shouted and (len(run) > 1 or len(name) > 5)):
        return
    is_significant = not is_german or len(run) > 1 or lower in WEEKDAYS or (name.isupper() and len(name) > 1)
    yield NameSpan(start, start + len(name), name, is_significant)


def _starts_sentence(text: str, start: int) -> bool:
    """Whether a sentence, a line or a quotation starts here."""
    at = start - 1
    while at >= 0 and text[at] in " \t\xa0":
        at -= 1
    return at < 0 or not (text[at].isalnum() or text[at] in _MID_SENTENCE)


def _is_heading(text: str, run: Sequence[NameSpan]) -> bool:
    """Whether the line starts as a heading does, or consists of nothing but this name before a colon."""
    start, end = run[0].start, run[-1].end
    before = text[max(0, start - 40) : start].rpartition("\n")[2].strip(" *_-")
    return before.startswith("#") or (before in ("", "Next", "Open", "Key") and text[end : end + 1] == ":")


def _is_german(text: str) -> bool:
    sample = text[:4000]
    return len(_GERMAN_WORDS.findall(sample)) * 14 > len(sample.split()) > 3


def _without_possessive(word: str) -> str:
    return word if word.isalpha() else _POSSESSIVE.sub("", word)


def _without_contraction(word: str) -> str:
    return word if word.isalpha() else _CONTRACTION.sub("", word)


def normalize_name(name: str) -> str:
    lower = name.lower()
    if lower in MONTHS:
        return f"--{MONTHS[lower]:02}"
    return WEEKDAYS.get(lower, lower)


def kind_of_name(name: str) -> str:
    return "date" if name.lower() in WEEKDAYS or name.lower() in MONTHS else "name"
