"""Figures: numbers with units, dates, times and versions, each with one normal form for all its spellings.

A figure is recognised by its digits: what joins them, and the words around them, distinguish a date from a time or an
amount. A figure with two meanings has two `readings`. Reads any text in linear time.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache, lru_cache

from msgspec import Struct
from msgspec.structs import replace

from recto.sentences.words import tables

_MAX_DIGITS = 18


class Value(Struct, frozen=True, gc=False):
    kind: str
    """number, date, time, version, name, path, url, identifier, code or quote."""
    text: str
    normal: str
    """The same for all spellings; a range has both ends."""
    start: int = 0
    end: int = 0
    is_significant: bool = True
    """A reader would miss it; any other only proves that something was said."""
    written: tuple[float, ...] = ()
    """The figures of a number or a day, before conversion to another unit."""

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.normal


FIGURES = ("number", "date", "time", "version")

# -- units: "canonical factor: spellings"; the factor converts a value into the canonical unit

_UNIT_TABLE = """
%: % percent prozent procent pct procento ٪; s 0.001: ms; s: s sec second seconds sekunde sekunden 秒
s 60: min mins minute minutes minuten minuto minutos minuter minuti минут минуты мин хвилин minut minuty
s 60: dakika 分钟 分 분 دقيقة
s 3600: h hr hrs hour hours std stunde stunden heure heures hora horas ora ore uur uren час часа часов ч годин години
s 3600: godzin godziny godz saat timme timmar tim 小时 時間 시간 ساعة ساعات; token: token tokens
m 0.001: mm; m 0.01: cm; m: m meter metre meters metres metro metros metri; m 1000: km; km/h: km/h kmh; mph: mph
g 0.001: mg; g: g gram grams gramm; g 1000: kg kilo kilos кг; g 1000000: t tonne tonnes tons tonnen тонн
l: l litre litres liter liters; l 0.001: ml
°C: °C ℃; °: °; W: W; kW: kW; kWh: kWh; V: V; Hz: Hz; MHz: MHz; GHz: GHz; x: x ×; m²: m² qm ㎡
usd: $ usd dollar dollars dólares доллар долларов 美元 ドル 달러; eur: € eur euro euros евро 欧元 ユーロ 유로
gbp: £ gbp pound pounds; yen: ¥ jpy yen 円; cny: cny yuan 元 块; krw: ₩ won krw 원; brl: R$ brl reais; chf: chf
rub: ₽ руб рублей рубля; uah: ₴ грн; inr: ₹ inr; pln: zł pln złotych; try: ₺ TL lira; sek: kr sek kronor; thb: บาท
kB: kB KB; MB: MB; GB: GB; TB: TB
"""
_CALENDAR = ("s 86400", "s 604800", "month 1", "month 12")
_MULTIPLIER_TABLE = """
3: k K thousand tausend tsd mille mil mila tys тыс тысяч bin ألف हज़ार; 4: 万 萬 만; 8: 億 亿 억; 5: lakh
6: M million millions mio millionen millones milioni milhões miljoen miljoner mln млн миллионов milyon mn
9: B bn billion billions mrd milliarden milliards miliardi млрд
"""


def _entries(table: str) -> Iterator[tuple[str, list[str]]]:
    for entry in table.strip().replace("\n", ";").split(";"):
        head, _, spellings = entry.strip().partition(": ")
        yield head, spellings.split()


@cache
def _units() -> dict[str, tuple[str, float]]:
    entries = [*_entries(_UNIT_TABLE)]
    for language in tables()["units"].values():
        entries += [(head, words.split("/")) for head, words in zip(_CALENDAR, language, strict=False)]
    found: dict[str, tuple[str, float]] = {}
    for head, spellings in entries:
        unit, _, factor = head.partition(" ")
        for spelling in spellings:
            found.setdefault(spelling.replace("**", "*"), (unit, float(factor or 1)))
    return found


def _unit(word: str) -> tuple[str, float] | None:
    """Allows an ending of up to three letters if the table of the calendar does."""
    known, lower = _units(), word.lower()
    if found := known.get(word) or known.get(lower):
        return found if word in known or len(word) > 2 or not word.isascii() else None
    return next((known[stem] for cut in range(4) if (stem := f"{lower[: len(lower) - cut]}*") in known), None)


@cache
def _multipliers() -> dict[str, float]:
    return {word: 10.0 ** int(power) for power, words in _entries(_MULTIPLIER_TABLE) for word in words}


@cache
def number_words() -> dict[str, float]:
    return {word: float(at) for words in tables()["numbers"].values() for at, word in enumerate(words)}


_ABBREVIATED, LEAST_LETTERS = ("en", "de", "fr", "es", "nl"), 4


@cache
def weekdays() -> dict[str, frozenset[str]]:
    """The names of the same day in all languages, by each of them."""
    return {name: names for names in _days() for name in names}


@cache
def _days() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names) for names in zip(*tables()["weekdays"].values(), strict=True))


def weekday_of(normal: str) -> frozenset[str]:
    """The names of the weekday of a date with a year."""
    try:
        return _days()[date.fromisoformat(normal).weekday()]
    except ValueError:
        return frozenset()


@cache
def months() -> dict[str, int]:
    """Names of months, and their unambiguous beginnings."""
    names = [
        (name, at, language)
        for table in ("months", "months_cases")
        for language, words in tables()[table].items()
        for at, word in enumerate(words, 1)
        for name in word.split("/")
    ]
    begins = {(name[:3], at) for name, at, language in names if language in _ABBREVIATED}
    begins |= {(name[:size], at) for name, at, _ in names for size in range(LEAST_LETTERS, len(name))}
    meant = Counter(start for start, _ in begins)
    return {start: at for start, at in begins if meant[start] == 1} | {name: at for name, at, _ in names}


# -- patterns

_LETTER, _SPACES, _DASHES = r"[^\W\d_\u0e00-\uffff]", " \xa0\u202f", "–—−‑‒~〜～"
_JOIN = rf"[.,:/'’٫٬]|\.?[ \xa0]?[-{_DASHES}×x][ \xa0]?"
_THOUSAND = rf"(?<!\d{{4}})(?<![.,:/]\d)(?<![.,:/]\d\d)(?<![.,:/]\d{{3}})(?<!-\d\d-\d\d)[{_SPACES}]\d{{3}}(?!\d)"
_FIGURE = re.compile(rf"\d++(?>(?:(?:{_JOIN})\d++|{_THOUSAND}){{0,8}})")
_RANGE = re.compile(rf"\.?[ \xa0]?[{_DASHES}×x][ \xa0]?|\.-[ \xa0]?|[ \xa0]-[ \xa0]?|-[ \xa0]")
_EAST_DATE = re.compile(r"(?:(\d{4}) ?[年년] ?)?(\d{1,2}) ?[月월](?: ?(\d{1,2}) ?[日号號일])?")
_MONTH_AFTER = re.compile(
    r"(?:[.°]|-?[^\W\d_]{1,2}(?!\w))?[ \xa0]([^\s\d.,;:!?()]{2,12})"
    r"(?:\.?,? (?:[^\W\d_]{2,3} )?(\d{4})(?!\d))?"
)
_YEAR_AFTER = re.compile(r"(?:[^\W\d_]{2}(?!\w))?(?:,? (\d{4})(?!\d))?")
_CLOCK = re.compile(
    r"[ \xa0]?(?:([aApP])\.?[mM]\b\.?|[Uu]hr\b|h(\d\d)(?!\w)|[時时点點시](?![間间간])(?: ?(\d{1,2}) ?[分분])?)"
)
_UNIT = re.compile(
    rf"[{_SPACES}-]?(km/h|[\u0e00-\u0eff\u3040-\u9fff\uac00-\ud7af]{{1,3}}|{_LETTER}{{1,12}}+(?![^\W\u0e00-\uffff])|°C?|[%٪℃$€£¥₹₽₩₺₴×])"
)
_CURRENCIES = frozenset("$€£¥₹₽₩₺₴")


def find_figures(text: str, spaced: str) -> Iterator[Value]:
    at = 0
    while (match := _FIGURE.search(text, at)) is not None:
        start, end = match.span()
        before = spaced[start - 1 : start]
        if _joins(before) or (before == "-" and _joins(spaced[start - 2 : start - 1])):
            at = next((at for at in range(start, end) if not text[at].isdecimal()), end)
            if before in ("v", "V") and not _joins(spaced[start - 2 : start - 1]) and "-" not in match[0]:
                yield Value("version", text[start - 1 : end], match[0], start - 1, end)
                at = end
        elif (value := _figure(text, start, end, at)) is not None:
            yield value
            at = max(end, value.end)
        else:
            at = end


def _joins(char: str) -> bool:
    """True if what follows this character belongs to its word."""
    return char.isalnum() or char in ("_", ".", "@", "/", "\\")


def _figure(text: str, start: int, end: int, done: int) -> Value | None:
    chunk = text[start:end]
    if text[end : end + 2].lstrip()[:1] in tuple("年월月년") and (found := _east_date(text, start)):
        return found
    ends = [chunk] if chunk.isdecimal() else _RANGE.split(chunk)
    if all(dates := [_numeric_date(each) for each in ends]):
        return Value("date", chunk, "–".join(filter(None, dates)), start, end)
    if len(ends) == 1:
        ends = chunk.replace("-", "/").split("/")
    if text[start - 1 : start] == "#" or (len(ends) > 2 and "x" not in chunk and "×" not in chunk):
        start -= text[start - 1 : start] == "#"
        return Value("identifier", text[start:end], text[start:end].lower(), start, end)
    return _named_date(text, start, end, ends) or _time(text, start, end, ends) or _amount(text, start, end, done, ends)


def _east_date(text: str, start: int) -> Value | None:
    found = _EAST_DATE.match(text, start)
    if found is None or not 0 < int(found[2]) < 13:
        return None
    return _date(text, start, found.end(), found[1], int(found[2]), [found[3]])


def _date(text: str, start: int, end: int, year: str | None, month: int, days: Sequence[str | None]) -> Value:
    written = tuple(float(day) for day in days if day)
    dates = [f"{int(year) if year else '-'}-{month:02}" + (f"-{int(day):02}" if day else "") for day in days]
    return Value("date", text[start:end], "–".join(dates), start, end, True, written)


def _numeric_date(chunk: str) -> str | None:
    for sign in "-/.":
        fields = chunk.split(sign)
        if len(fields) == 3 and all(map(str.isdecimal, fields)):
            first, second, third = map(int, fields)
            match [len(field) for field in fields]:
                case [4, 1 | 2, 1 | 2]:
                    return f"{first}-{second:02}-{third:02}"
                case [1 | 2, 1 | 2, 4]:
                    # day first with dots, month first with slashes unless that is not a month
                    month, day = (second, first) if sign == "." or first > 12 else (first, second)
                    return f"{third}-{month:02}-{day:02}"
    if len(chunk) == 7 and chunk[4] == "-" and chunk[:2] in ("19", "20") and 0 < int(chunk[5:]) < 13:
        return chunk
    return None


def _named_date(text: str, start: int, end: int, ends: Sequence[str]) -> Value | None:
    before = text[max(0, start - 14) : start]
    word = before.split()[-1].rstrip(".") if before[-1:] in (" ", "\xa0") and before.strip() else ""
    month = months().get(word.lower(), 0) if word else 0
    if all(len(each) < 3 and each.isdecimal() and 0 < int(each) < 32 for each in ends):
        after = _MONTH_AFTER.match(text, end)
        if after and len(after[1]) < 4 and after[1].lower() not in months():  # "1 de mayo", "1 of May"
            after = _MONTH_AFTER.match(text, after.end(1))
        if after and (found := months().get(after[1].lower())):
            return _date(text, start, after.end(), after[2], found, ends)
        year = _YEAR_AFTER.match(text, end)
        if month and word[0].isupper() and year:
            return _date(text, start - len(before) + before.rindex(word), year.end(), year[1], month, ends)
    elif month and len(ends) == 1 and len(ends[0]) == 4 and ends[0].isdecimal():
        return _date(text, start - len(before) + before.rindex(word), end, ends[0], month, [None])
    return None


def _time(text: str, start: int, end: int, ends: Sequence[str]) -> Value | None:
    clock = _CLOCK.match(text, end)
    times = []
    for each in ends if clock or all(":" in each for each in ends) else ():
        hour, *rest = each.replace(".", ":").replace(",", ":").split(":")
        if len(hour) > 2 or int(hour) > 24 or not all(part.isdecimal() and len(part) >= 2 for part in rest):
            return None
        half = (clock[1] or "").lower() if clock else ""
        late = 12 if half == "p" and int(hour) < 12 else -12 if half == "a" and int(hour) == 12 else 0
        minutes = rest or [(clock and (clock[2] or clock[3])) or "0"]
        times.append(":".join(f"{part:02}" for part in (int(hour) + late, *map(int, minutes))))
    if not times:
        return None
    end = clock.end() if clock else end
    return Value("time", text[start:end], "–".join(times), start, end)


def _amount(text: str, start: int, end: int, done: int, ends: Sequence[str]) -> Value | None:
    """A version, or a number with its sign, currency, multiplier and unit."""
    chunk = text[start:end]
    if len(ends) == 1 and chunk.count(".") > 1 and not _is_grouped(chunk):
        is_longer = text[end : end + 2].removeprefix("-")[:1].islower()
        end = _word_end(text, end + (text[end : end + 1] == "-")) if is_longer else end
        return Value("version", text[start:end], text[start:end].lower(), start, end)
    multiplier, known, after = _multiplier_and_unit(text, end)
    if after == end and text[end : end + 1].isascii() and text[end : end + 1].isalpha():
        word = text[start : _word_end(text, end)]
        is_code = chunk.isdecimal() and (any(map(str.isdigit, word[len(chunk) :])) or word.startswith("0x"))
        return Value("identifier", word, word.lower(), start, start + len(word)) if is_code else None
    begin, currency = _currency_before(text, start, done)
    is_negative = text[begin - 1 : begin] in ("-", "−") and begin > done
    if after == end and begin == start and not is_negative and len(ends) == 1 and _is_numbering(text, start, end):
        return None
    unit, factor = known or (_unit(currency) if currency else None) or ("", 1.0)
    start = begin - is_negative
    values = [_parse_value(each) for each in ends]
    if None in values:  # too long for a figure
        return Value("identifier", text[start:after], " ".join(text[start:after].lower().split()), start, after)
    written = tuple((-multiplier if is_negative else multiplier) * value for value in values if value is not None)
    sign = "/" if "/" in chunk else "x" if "x" in chunk or "×" in chunk else "–"
    normal = f"{sign.join(_format_value(each * factor) for each in written)} {unit}".strip()
    is_digit = len(text[start:after]) == 1
    return Value("number", text[start:after], normal, start, after, not is_digit, written)


def _word_end(text: str, at: int) -> int:
    while at < len(text) and text[at].isalnum():
        at += 1
    return at


def _multiplier_and_unit(text: str, end: int) -> tuple[float, tuple[str, float] | None, int]:
    """The multiplier and unit after a number, and where they end."""
    multiplier, at = 1.0, end
    while (found := _UNIT.match(text, at if text[at : at + 2] != ". " or at == end else at + 1)) is not None:
        word = found[1]
        if word[0] >= "\u0e00":
            word = next((word[:size] for size in (3, 2, 1) if word[:size] in _multipliers() or _unit(word[:size])), "")
        is_near = found.start(1) == at or len(word) > 1 or not word.isascii()
        power = _multipliers().get(word) or (_multipliers().get(word.lower()) if len(word) > 2 else None)
        if power and is_near and multiplier == 1:
            multiplier, at = power, found.start(1) + len(word)
            continue
        if word and (unit := _unit(word)):
            return multiplier, unit, found.start(1) + len(word)
        break
    return multiplier, None, at


def _currency_before(text: str, start: int, done: int) -> tuple[int, str]:
    """The currency before a number ("US$", "€ " or "EUR "), and where it begins."""
    at = start - (text[start - 1 : start] in (" ", "\xa0"))
    if text[at - 1 : at] in _CURRENCIES and at - 1 >= done:
        begin = at - 1
        while begin > done and at - begin < 3 and "A" <= text[begin - 1] <= "Z":
            begin -= 1
        return begin, text[begin:at] if _unit(text[begin:at]) else text[at - 1]
    code = text[max(done, at - 3) : at]
    is_code = len(code) == 3 and code.isupper() and code.lower() in _units() and not text[at - 4 : at - 3].isalnum()
    return (at - 3, code) if is_code else (start, "")


def _is_numbering(text: str, start: int, end: int) -> bool:
    """True if this is the number of a list item."""
    is_marked = text[end : end + 1] in (".", ")", ":") and not text[end + 1 : end + 2].strip()
    return is_marked and not text[max(0, start - 8) : start].rpartition("\n")[2].strip(" *>#-")


# -- normal forms


@lru_cache(1024)
def normalize_number(text: str) -> str:
    """A number without its unit: "3,200" and "3200" give the same result."""
    value = _parse_value(text)
    return text if value is None else _format_value(value)


def values_and_unit(normal: str) -> tuple[list[float], str]:
    """The values and the unit in a number's normal form."""
    numbers, _, unit = normal.partition(" ")
    try:
        return [float(part) for part in numbers.replace("/", "–").replace("x", "–").split("–") if part], unit
    except ValueError:
        return [], unit


def thousands_value(text: str) -> float | None:
    """The other possible value of "1.234" or "1,234": some languages put a dot between thousands, or a comma before
    decimals."""
    figures = [char for char in text if char.isdecimal() or char in ".,"]
    whole, sign, rest = "".join(figures).replace(",", ".").partition(".")
    if not sign or len(rest) != 3 or not rest.isdecimal() or not 0 < len(whole) < 4:
        return None
    if "." in figures:
        return float(whole + rest)
    return None if rest == "000" else float(f"{whole}.{rest}")


def _is_grouped(digits: str) -> bool:
    first, *groups = digits.partition(",")[0].split(".")
    return 0 < len(first) < 4 and all(len(group) == 3 for group in groups)


def _parse_value(written: str) -> float | None:
    digits = "".join(char for char in written if char not in " \xa0\u202f'’٬").replace("٫", ".")
    comma, dot = digits.rfind(","), digits.rfind(".")
    if comma >= 0 and dot >= 0:
        digits = digits.replace("," if dot > comma else ".", "").replace(",", ".")
    elif comma >= 0:
        is_thousands = all(len(part) == 3 for part in digits.split(",")[1:])
        digits = digits.replace(",", "" if is_thousands or digits.count(",") > 1 else ".")
    digits = digits.replace(".", "") if digits.count(".") > 1 else digits
    is_number = len(digits) <= _MAX_DIGITS and digits.replace(".", "").isdecimal()
    return float(digits) if is_number else None


def _format_value(value: float) -> str:
    return f"{value:.10g}" if abs(value) < 1e15 else f"{value:.0f}"


def readings(value: Value) -> Iterator[Value]:
    """The value and its alternative, if any: "1.234" and "5/6/2024" have two readings, as do "14.30" and "3:00"."""
    yield value
    parts = [part for part in value.text.replace("/", ".").replace(",", ".").split(".") if part]
    short = [int(part) for part in parts if part.isdecimal() and len(part) < 3]
    match value.kind:
        case "number":
            if (other := thousands_value(value.text)) is not None:
                _, unit = values_and_unit(value.normal)
                factor = _units().get(unit, (unit, 1.0))[1]
                yield replace(value, normal=f"{_format_value(other * factor)} {unit}".strip(), written=(other,))
            if len(parts) == len(short) == 2:
                first, second = short
                if first < 25 and second < 60 and len(parts[1]) == 2:
                    yield Value("time", value.text, f"{first:02}:{second:02}")
                for month, day in ((second, first), (first, second)):
                    if 0 < month < 13 and 0 < day < 32:
                        yield Value("date", value.text, f"--{month:02}-{day:02}")
            elif value.normal.endswith(" s") and value.text.endswith("h") and value.written[0] < 25:
                yield Value("time", value.text, f"{int(value.written[0]):02}:00")
        case "version" if len(parts) == len(short) == 3 and 0 < short[1] < 13:
            yield Value("date", value.text, f"{2000 + short[2]}-{short[1]:02}-{short[0]:02}")
        case "date" if "/" in value.text and len(value.normal) == 10:
            yield replace(value, normal=f"{value.normal[:4]}{value.normal[7:]}{value.normal[4:7]}")
        case "time" if value.text.endswith(value.normal[-2:]) and "–" not in value.normal:
            hour = int(value.normal[:2])
            yield replace(value, normal=f"{(hour + 12) % 24:02}{value.normal[2:]}")


def precision(value: float) -> float:
    """The value of one unit in the last written digit."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    digits = f"{abs(value):.10g}"
    if "e" in digits:
        return 0.0
    whole, _, fraction = digits.partition(".")
    return 10.0 ** -len(fraction) if fraction else 10.0 ** (len(whole) - len(whole.rstrip("0")))


def implied_dates(normal: str) -> set[str]:
    """The dates of a range, and those that they imply: the day without its year, the month with and without."""
    found = set[str]()
    for each in normal.split("–"):
        year, month, day = each[:-6], each[-5:-3], each[-2:]
        if len(each) == len("--05") or (len(each) == len("2024-05") and each[0] != "-"):
            year, month, day = each[:-3], each[-2:], ""
        found |= {each, f"--{month}", f"{year}-{month}"} | ({f"--{month}-{day}"} if day else set())
    return found
