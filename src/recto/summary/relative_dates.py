"""Relative dates: "by Friday" becomes "by Friday [2026-03-13]", so that a sentence stays clear long after it was said.
The words are in `sentences/words.toml`; those of a date are of one language. Ambiguous dates are left unchanged."""

import re
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from itertools import chain, pairwise

from recto.base.text import text_cache
from recto.sentences.words import tables

_STEPS = {"days": 1, "ago": -1, "ahead": 1, "last": -1, "last_week": -1, "this": 0, "next": 1, "next_week": 1, "by": 1}
_KEYS, _NUMBERS = frozenset(("days", "weekdays", "units", "plurals", "key")), frozenset(("numbers", "before_numbers"))
_DAY, _WEEK, _MONTH, _YEAR, _WEEKEND = range(5)
_VAGUE = ((_DAY, -1), (_DAY, 0), (_DAY, 1), (_YEAR, 0), (_WEEKEND, 1))  # "next day", "this year", "next weekend"
_TODAY, _MAX_NUMBER, _LONGEST_PHRASE, _ENDINGS = 2, 1000, 3, range(4)
_SENTENCE_END = re.compile(r"(?<=[!?\n\u3002\uff01\uff1f])|(?<=\D\.)(?=\s)")
# A word, a number, or a sign; in scripts without spaces, each character. Apostrophes separate words.
_TOKEN = re.compile(r"[^\s\d!-@[-`{-\xbf\u060c\u061f\u0964\u2000-\u9fff\uac00-\U0010ffff]+|\d+(?:[.,]\d+)*|[^\s_'’]")
_DATE = re.compile(r"\d{4}-\d\d|\b\d\d?(?:\.\d\d?\.|/\d|[snrt][tdh]\b(?! \w)|[号號])|\d ?[年년月월] ?\d| \[\d{4}\]")
# After a day: "14", "Nov 14", "den 14.", but not "9 am".
_NTH = re.compile(r"[ ,(]*(?:\w{2,3} \d\d?(?:\.\B|[snrt][tdh])|(?:[A-Z]\w+ )?\d\d?(?![\d:h]|\.\d| ?[apUu][.uh]?[mr]))")
_SUFFIX = re.compile(r"( \[[\d–-]+\])(['’-][^\W\d_]+)")
Roles = dict[str, int]  # the tables of a word, with its index there; "#ago" goes after "two days", "ago#" before
Words = list[tuple[int, dict[str, Roles]]]  # the end of each, and its roles by language; a number has none


def day_of(created: str) -> date | None:
    """The day of a message in the user's time zone; None for a time that cannot be parsed."""
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(created).astimezone().date()
    return None


@text_cache(1024)  # a summary that is too long is rewritten many times, each time a sentence shorter
def add_dates(text: str, day: date | None) -> str:
    """The text with the date after each relative one, in brackets."""
    keys = {token for token in set(_TOKEN.findall(text)) if not _KEYS.isdisjoint(chain(*_senses(token).values()))}
    if day is None or not keys:
        return text
    sentences = _SENTENCE_END.split(text)
    return "".join(each if keys.isdisjoint(_TOKEN.findall(each)) else _dated(each, day) for each in sentences)


def _dated(sentence: str, day: date) -> str:
    words = _words(sentence)
    months = [at for at, (_, senses) in enumerate(words) if "months" in chain(*senses.values())]
    if _DATE.search(sentence) or any("" in senses for at in months for _, senses in words[max(0, at - 3) : at + 4]):
        return sentence
    spoken = Counter(language for _, senses in words for language in senses)
    found = {end: when for language in spoken for end, when in _dates(words, language, spoken, day).items()}
    ends = [0, *sorted(end for end in found if len(found[end]) != len("2026-03-13") or not _NTH.match(sentence, end))]
    dated = "".join(f"{sentence[start:end]} [{found[end]}]" for start, end in pairwise(ends)) + sentence[ends[-1] :]
    return _SUFFIX.sub(r"\2\1", dated)  # "tomorrow's [2026-03-11] plan"


def _words(sentence: str) -> Words:
    """The words and phrases. Names and parts of longer numbers have no roles."""
    tokens, words, before, at = list(_TOKEN.finditer(sentence)), Words([(0, {})]), "", 0
    while at < len(tokens):
        for size in range(min(_LONGEST_PHRASE, len(tokens) - at), 0, -1):
            text = " ".join(token[0] for token in tokens[at : at + size])
            if senses := _senses(text) if size == 1 else _lexicon().get(text.lower(), {}):
                break
        roles, last = set(chain(*senses.values())), words[-2 if len(before) <= 2 else -1 :]
        near = chain.from_iterable(roles for _, each in last for roles in each.values())
        is_part = "numbers" in roles and _KEYS.isdisjoint(roles) and (before == "-" or not _NUMBERS.isdisjoint(near))
        is_name = "days" in roles and text.istitle() and before.isalpha()
        at, before = at + size, text
        words.append((tokens[at - 1].end(), {} if is_name or is_part else senses))
    return [*words, (0, {}), (0, {})]


def _dates(words: Words, language: str, spoken: Counter[str], day: date) -> dict[int, str]:
    """The dates by where they end."""
    roles = [senses.get(language, senses.get("", {})) for _, senses in words]
    told, dates, deadlines = set(chain(*roles)), dict[int, str](), dict[int, str]()
    is_past = "no_deadline" in told and "future" not in told
    lasts = "future" not in told and language in tables()["future"]  # "built in two days"
    weekdays = {each["weekdays"] for each in roles if "weekdays" in each}
    hidden = {"by": is_past or len(weekdays) != 1 or day.weekday() in weekdays, "ahead": is_past or lasts}
    for at in (at for at, each in enumerate(roles) if each and told & _KEYS):
        rivals = (spoken[other] + ("undated" in each) for other, each in words[at][1].items())
        hidden["days"] = "days" in roles[at] and ("days" in roles[at - 1] or max(rivals) > spoken[language])
        for kind in _STEPS:
            size = 2 if kind in ("ago", "ahead") else 1 if kind != "days" else 0
            start, end = at + (f"{kind}#" in roles[at]), words[at + size][0]
            if (start > at or kind in roles[at] or f"#{kind}" in roles[at + size]) and not hidden.get(kind):
                with suppress(KeyError, ValueError, OverflowError):
                    (deadlines if kind == "by" else dates)[end] = _when(day, kind, *roles[start : start + 2])
    return dates or deadlines


def _when(day: date, kind: str, first: Roles, second: Roles) -> str:
    """As exact as the words: two weeks give a week, three years a year. KeyError if they do not fit together."""
    unit, count, step = _DAY, first.get("days", 0) - _TODAY, _STEPS[kind]
    if kind in ("ago", "ahead"):
        unit, count = second["units" if "units" in second else "plurals"], step * first["numbers"]
    elif "units" in first and kind not in ("days", "by") and (first["units"], step) not in _VAGUE:
        unit, count = first["units"], step
    elif kind != "days":
        away = first["weekdays"] - day.weekday()
        nearest = away % 7 - 7 if kind == "last" else away % 7 or 7
        count = nearest if kind in ("last", "next", "by") else away + 7 * step
    if unit == _DAY:
        return str(day + timedelta(days=count))
    if unit in (_MONTH, _YEAR):
        years, month = divmod(day.month - 1 + count * (12 if unit == _YEAR else 1), 12)
        return str(date(day.year + years, month + 1, 1))[: len("2026-03" if unit == _MONTH else "2026")]
    monday = day + timedelta(weeks=count, days=-day.weekday())
    start, end = monday + timedelta(days=5 * (unit == _WEEKEND)), monday + timedelta(days=6)
    return f"{start}–{end.day:02}" if start.month == end.month else f"{start}–{end:%m-%d}"


@lru_cache(16384)
def _senses(token: str) -> dict[str, Roles]:
    lower, lexicon = token.lower().replace("\u0307", ""), _lexicon()
    forms = (lower, *(f"{lower[: len(lower) - cut]} *" for cut in _ENDINGS), *(f"* {lower[-cut:]}" for cut in _ENDINGS))
    return next((lexicon[form] for form in forms if form in lexicon), {}) | lexicon.get(token, {})


@cache
def _lexicon() -> dict[str, dict[str, Roles]]:
    """Words, phrases, beginnings and endings by their tokens: "il y a", "nächste *", "* ed"."""
    found: dict[str, dict[str, Roles]] = defaultdict(lambda: defaultdict(dict))
    for table, languages in tables().items():
        for language, entries in languages.items():
            for place, form in ((place, form) for place, entry in enumerate(entries) for form in entry.split("/")):
                role = "#" * (form[0] == "#") + table.removesuffix("_cases") + "#" * (form[-1] == "#")
                phrase = " ".join(_TOKEN.findall(form.strip("#") + "*" * (table == "weekdays")))
                for key in (phrase, phrase.removesuffix(" *")):
                    found[key][language]["plurals" if role == "units" and key.endswith("*") else role] = place
                if role in _KEYS and "*" not in phrase:
                    found[phrase.split(" ")[-1]][language].setdefault("key", 0)
    return found | {str(number): {"": {"numbers": number}} for number in range(_MAX_NUMBER)}
