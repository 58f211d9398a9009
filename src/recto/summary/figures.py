"""Figures: numbers with their units, dates, times, each in the one form that all its spellings share. Pure.

Spellings of English, German, French and Spanish, and the counters of East Asia. What is ambiguous stays as written.
"""

import re
from functools import cache


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Letters of scripts that put spaces between words: what may not stand beside a token for it to be whole.
LETTER = "0-9A-Za-z_\u00c0-\u024f\u0370-\u052f"

# "canonical factor: spellings"; the first figure turns the value into the canonical unit.
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
_TIMES = {
    "k": 1e3, "K": 1e3, "M": 1e6, "bn": 1e9, "B": 1e9, "thousand": 1e3, "million": 1e6, "millions": 1e6,
    "billion": 1e9, "billions": 1e9, "tausend": 1e3, "mio": 1e6, "Mio": 1e6, "Mrd": 1e9, "Millionen": 1e6,
    "mille": 1e3, "milliards": 1e9, "mil": 1e3, "millones": 1e6, "万": 1e4, "億": 1e8, "亿": 1e8,
}  # fmt: skip
_SPELLED = (
    "zero null zéro cero;one eins ein eine un une uno una;two zwei deux dos both twice pair couple;"
    "three drei trois tres;four vier quatre cuatro;five fünf cinq cinco;six sechs seis;"
    "seven sieben sept siete;eight acht huit ocho;"
    "nine neun neuf nueve;ten zehn dix diez;eleven elf onze once;twelve zwölf douze doce dozen;thirteen dreizehn;"
    "fourteen vierzehn;fifteen fünfzehn quinze;sixteen sechzehn;seventeen siebzehn;eighteen achtzehn;"
    "nineteen neunzehn;twenty zwanzig vingt veinte"
)
WORDS = {word: float(value) for value, words in enumerate(_SPELLED.split(";")) for word in words.split()}
WORDS |= {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "hundred": 100.0, "thousand": 1000.0, "half": 0.5}
_MONTHS = """
jan january januar janvier enero ene; feb february februar février fevrier febrero; mar march märz mars marzo mär;
apr april avril abril abr; may mai mayo; jun june juni juin junio; jul july juli juillet julio;
aug august août aout agosto ago; sep sept september septembre septiembre; oct october oktober octobre octubre okt;
nov november novembre noviembre; dec december dezember décembre decembre diciembre dez dic
"""
MONTHS = {name: place for place, names in enumerate(_MONTHS.split(";"), 1) for name in names.split()}
_DAYS = """
monday montag lundi lunes; tuesday dienstag mardi martes; wednesday mittwoch mercredi miércoles;
thursday donnerstag jeudi jueves; friday freitag vendredi viernes; saturday samstag samedi sábado;
sunday sonntag dimanche domingo
"""
WEEKDAYS = {name: names.split()[0] for names in _DAYS.split(";") for name in names.split()}


@cache
def _units() -> dict[str, tuple[str, float]]:
    found: dict[str, tuple[str, float]] = {}
    for entry in _UNIT_TABLE.replace("\n", ";").split(";"):
        head, _, spellings = entry.strip().partition(": ")
        unit, _, factor = head.partition(" ")
        found |= {spelling: (unit, float(factor or 1)) for spelling in spellings.split(" ")} if spellings else {}
    return found


_MONEY = r"(?:US)?[$€£¥₹]|(?:USD|EUR|GBP|CHF)(?=[ \d])"
_COUNT = r"\d++(?:[.,'’]\d++)*+"
_TIMED = (
    rf"(?:[kKMB]|bn|[万億亿])(?![{LETTER}])|[ \xa0](?:thousand|[mb]illions?|Mio|Mrd|Millionen|millones|mille?)\b\.?"
)
NUMBER = rf"(?:(?:{_MONEY})\s?)?[-−+]?{_COUNT}(?:\s?[-–]\s?{_COUNT}|/{_COUNT})?+(?:{_TIMED})?+"
_UNIT_NEXT = re.compile(
    r"[ \xa0\u202f-]?(?:(per\scent|pour\scent|por\sciento|km/h|req/s"
    rf"|[{LETTER.removeprefix('0-9')}µμ°]{{1,12}}+)(?![{LETTER}])"
    r"|([%$€£¥₹°℃]|時間|小时|分钟|[円元日天年月秒]))"
)
_MONTH_NAMES = "|".join(sorted((name.capitalize() for name in MONTHS), key=len, reverse=True))
_SHORT_MONTHS = "(?:Jan|Feb|Mar|Mär|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|Dec|Dez|Ene|Abr|Ago|Dic)"
_OF_MONTH = r"\d{1,2}(?!\d)(?:st|nd|rd|th|\.|er|º)?"
_LOWER_MONTHS = "|".join(sorted((name for name in MONTHS if len(name) > 3), key=len, reverse=True))
_BY_FIGURES = "|".join(
    rf"\d{{4}}{sign}\d{{1,2}}{sign}\d{{1,2}}(?!\d)|\d{{1,2}}{sign}\d{{1,2}}{sign}\d{{4}}(?!\d)"
    for sign in ("-", "/", r"\.")
)
DATE = (
    rf"{_BY_FIGURES}|(?:\d{{4}}年)?\d{{1,2}}月(?:\d{{1,2}}日)?"
    rf"|(?:{_SHORT_MONTHS}\.|{_MONTH_NAMES})\s+{_OF_MONTH}(?:,?\s+\d{{4}}(?!\d))?(?![{LETTER}:])"
    rf"|{_OF_MONTH}\s+(?:of\s+|de\s+)?(?:{_MONTH_NAMES}|{_LOWER_MONTHS})(?![{LETTER}])(?:[,.]?\s+(?:de\s+)?\d{{4}}(?!\d))?"
    rf"|(?:{_MONTH_NAMES})\.?,?\s+(?:de\s+|of\s+)?\d{{4}}(?!\d)"
)
_HALF_DAY = r"[aApP](?:\.[mM]\.|[mM]\b)"
TIME = (
    rf"\d{{1,2}}:\d\d(?::\d\d(?:[.,]\d+)?)?(?!\d)(?:\s?{_HALF_DAY})?"
    rf"|\d{{1,2}}\s?(?:{_HALF_DAY}|Uhr\b)(?![{LETTER}])"
)

_PARTS = re.compile(r"\d+|[^\W\d_]+")
_NUMBER_PARTS = re.compile(rf"(\D*?)([-−+]?)({_COUNT})(?:\s?[-–]\s?({_COUNT})|/({_COUNT}))?")
_DATE_PARTS = re.compile(r"(-|\d{4})-(\d\d)(?:-(\d\d))?")
_LONGEST = 18


def unit_end(text: str, end: int) -> int | None:
    """Where a number ends with its unit, if one follows; None when it is no number but the start of a word."""
    found = _UNIT_NEXT.match(text, end)
    if found is None:
        return None if text[end : end + 1].isascii() and text[end : end + 1].isalnum() else end
    written = re.sub(r"\s", "\xa0", found[1] or found[2])
    if written in _units() or (len(written) > 2 and written.lower() in _units()):
        return found.end()
    return end if text[end] in " \xa0\u202f-" else None


def number(text: str) -> str:
    """A number with its unit: "3,200", "3200" and "3.2k" are the same; a range keeps both its ends."""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST:
        return text.lstrip("0") or "0"
    found = _NUMBER_PARTS.match(text)
    if found is None or len(found[3]) > _LONGEST:
        return " ".join(text.split()).lower()
    rest = text[found.end() :].strip(" \xa0\u202f-.")
    times, unit = _times_and_unit(rest)
    sign = -1.0 if found[2] in ("-", "−") else 1.0
    canonical, factor = _unit(unit or found[1].strip())
    ends = [
        value * times * factor for value in (sign * _value(found[3]), *map(_value, filter(None, found.groups()[3:])))
    ]
    joint = "/" if found[5] else "–"
    return f"{joint.join(map(_shown, ends))} {canonical}".strip()


def values(normal: str) -> tuple[list[float], str]:
    """The values and the unit that a number's normal form holds."""
    figures, _, unit = normal.partition(" ")
    try:
        return [float(part) for part in re.split("[–/]", figures) if part], unit
    except ValueError:
        return [], unit


def other_value(text: str) -> float | None:
    """What "1.234" may mean besides: some put a dot between thousands."""
    found = re.fullmatch(r"\D*(\d{1,3})\.(\d{3})\D*", text)
    return float(found[1] + found[2]) if found else None


def _times_and_unit(rest: str) -> tuple[float, str]:
    first, _, others = rest.partition(" ")
    if (times := _TIMES.get(first.rstrip("."))) is not None:
        return times, others.strip(" -")
    for length in (2, 1):
        if rest[:length] in _TIMES and rest[length:].strip() and rest not in _units():
            return _TIMES[rest[:length]], rest[length:].strip()
    return 1.0, rest


def _unit(written: str) -> tuple[str, float]:
    known = _units()
    written = re.sub(r"\s", "\xa0", written)
    return known.get(written) or known.get(written.lower()) or (written.lower(), 1.0)


def _value(written: str) -> float:
    digits = written.replace("'", "").replace("’", "")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and dot >= 0:
        digits = digits.replace("," if dot > comma else ".", "").replace(",", ".")
    elif comma >= 0:
        is_thousands = all(len(part) == 3 for part in digits.split(",")[1:])
        digits = digits.replace(",", "" if is_thousands or digits.count(",") > 1 else ".")
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    return float(digits)


def _shown(value: float) -> str:
    return f"{value:.10g}" if abs(value) < 1e15 else f"{value:.0f}"


def date(text: str) -> str:
    """2024-05-01 however it was written; --05-01 without a year, 2024-05 without a day, --05 for a month alone."""
    parts = _PARTS.findall(text)
    if not any(part.isalpha() and part not in "年月日" for part in parts):
        return _of_figures(text, [int(part) for part in parts if part.isdigit()])
    month = next((MONTHS[part.lower()] for part in parts if part.lower() in MONTHS), 0)
    figures = [part for part in parts if part.isdigit()]
    year = next((part for part in figures if len(part) == 4), "-")
    day = next((f"-{int(part):02}" for part in figures if len(part) < 3), "")
    return f"{year}-{month:02}{day}"


def _of_figures(text: str, figures: list[int]) -> str:
    if len(figures) < 3:
        year = f"{figures.pop(0)}" if "年" in text else "-"
        return "-".join((year, *(f"{each:02}" for each in figures)))
    first, second, third = figures[:3]
    if first > 31:
        return f"{first}-{second:02}-{third:02}"
    # day first with dots, month first with slashes unless that is no month
    month, day = (second, first) if "." in text or first > 12 else (first, second)
    return f"{third}-{month:02}-{day:02}"


def date_parts(normal: str) -> set[str]:
    """What a text also says that says this date: the day without its year, the month with and without."""
    found = _DATE_PARTS.fullmatch(normal)
    if found is None:
        return {normal}
    year, month, day = found.groups()
    return {normal, f"--{month}", f"{year}-{month}"} | ({f"--{month}-{day}"} if day else set())


def time(text: str) -> str:
    """14:30, by the clock of 24 hours; seconds where they were given."""
    figures = [int(part) for part in re.findall(r"\d+", text)]
    hour, rest = figures[0], figures[1:3] or [0]
    mark = text.lower().replace(".", "")
    hour += 12 if "pm" in mark and hour < 12 else -12 if "am" in mark and hour == 12 else 0
    return ":".join(f"{part:02}" for part in (hour, *rest))
