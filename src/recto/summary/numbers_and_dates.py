"""Numbers with units, dates and times: patterns that find them, and one normal form for all spellings of a value.

Knows the spellings of English, German, French and Spanish and East Asian counters. Ambiguous text stays as written.
"""

import re
from functools import cache

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
jan january januar janvier enero ene; feb february februar février fevrier febrero; mar march märz mars marzo mär;
apr april avril abril abr; may mai mayo; jun june juni juin junio; jul july juli juillet julio;
aug august août aout agosto ago; sep sept september septembre septiembre; oct october oktober octobre octubre okt;
nov november novembre noviembre; dec december dezember décembre decembre diciembre dez dic
"""
MONTHS = {name: month for month, names in enumerate(_MONTH_TABLE.split(";"), 1) for name in names.split()}
_WEEKDAY_TABLE = """
monday montag lundi lunes; tuesday dienstag mardi martes; wednesday mittwoch mercredi miércoles;
thursday donnerstag jeudi jueves; friday freitag vendredi viernes; saturday samstag samedi sábado;
sunday sonntag dimanche domingo
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
_DIGITS = r"\d++(?:[.,'’]\d++)*+"
_MULTIPLIER = (
    rf"(?:[kKMB]|bn|[万億亿])(?![{LETTER}])|[ \xa0](?:thousand|[mb]illions?|Mio|Mrd|Millionen|millones|mille?)\b\.?"
)
NUMBER_PATTERN = rf"(?:(?:{_CURRENCY})\s?)?[-−+]?{_DIGITS}(?:\s?[-–]\s?{_DIGITS}|/{_DIGITS})?+(?:{_MULTIPLIER})?+"
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

_DATE_TOKENS = re.compile(r"\d+|[^\W\d_]+")
_NUMBER_PARTS = re.compile(rf"(\D*?)([-−+]?)({_DIGITS})(?:\s?[-–]\s?({_DIGITS})|/({_DIGITS}))?")
_DATE_PARTS = re.compile(r"(-|\d{4})-(\d\d)(?:-(\d\d))?")
_MAX_DIGITS = 18


def unit_end(text: str, end: int) -> int | None:
    """Where a number that ends at `end` ends with its unit, if one follows; None if it is the start of a word."""
    found = _UNIT.match(text, end)
    if found is None:
        return None if text[end : end + 1].isascii() and text[end : end + 1].isalnum() else end
    unit = re.sub(r"\s", "\xa0", found[1] or found[2])
    if unit in _units() or (len(unit) > 2 and unit.lower() in _units()):
        return found.end()
    return end if text[end] in " \xa0\u202f-" else None


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
    try:
        return [float(part) for part in re.split("[–/]", numbers) if part], unit
    except ValueError:
        return [], unit


def thousands_value(text: str) -> float | None:
    """The other value that "1.234" may have: some languages put a dot between thousands."""
    found = re.fullmatch(r"\D*(\d{1,3})\.(\d{3})\D*", text)
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
    elif digits.count(".") > 1:
        digits = digits.replace(".", "")
    return float(digits)


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
