"""Segments: the sentences, list items, headings, table rows and lines of code of a text, found by form.

No word lists: libraries that split sentences need to know the language, and a chat mixes several with code and logs.
Knows no message.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import text_cache

Kind = Literal["prose", "item", "heading", "row", "code", "output", "quote"]

UNSPACED_SCRIPTS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces between words, as a character set for patterns."""
HANGUL = "\uac00-\ud7af"
"""Korean has spaces, but is also searched within its words."""
UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")
UNSPACED_OR_KOREAN = re.compile(f"[{UNSPACED_SCRIPTS}{HANGUL}]")

_FENCES = ("```", "~~~")
_ITEM = re.compile(r"\A\s*+(?:(?:[-*+•–—·]|\(?\d{1,3}[.)、]|\(?[a-zA-Z][.)])(?: ++|\t++)(?=\S)|\[[ xX]\] ++(?=\S))")
_RULE_SIGNS = "|:*=_+~- \t\r\n\f\v\xa0"
_STOP = re.compile(
    r"""[.!?…؟۔।॥։。！？｡](?:(?<![.!?…؟۔।॥։].)(?<![。！？｡])[.!?…؟۔।॥։]*+["'”’»)\]}*_`]*+(?=\s)"""
    r"""|(?<=[。！？｡])[。！？｡]*+["'”’»)\]}*_`」』】）]*+)"""
)
_WIDE_STOPS = "。！？｡"
_NEXT = re.compile(r"\s++(\S)")
_TIMED = re.compile(r"\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:)")
# Links and addresses do not count as symbols of a program: "See [[Harbour]] and [the prices](https://a.org/x)."
_LINK = re.compile(r"\[\[|\]\]|\]\([^\s()]{1,400}\)|https?://[^\s()]{1,400}")
_SYMBOLS = "{}[]<>=|\\;$/_"
_CLOSING = {"„": "“", "“": "”", "«": "»", "»": "«", "「": "」", "『": "』", '"': '"'}
_QUOTES = re.compile('[„“”«»「」『』"]')
# The length of a line of prose that may continue on the next line.
_MIN_WRAPPED, _MAX_WRAPPED = 50, 1000
_MAX_HEADING, _LONGEST, _MAX_LOOKED_AT = 80, 600, 400
# The share of symbols in a line of code; the share of letters in a program's output.
_MANY_SYMBOLS, _FEW_LETTERS = 0.12, 0.3
# The letters before a full stop that may be an abbreviation; the digits that may be an ordinal number.
_SHORT_WORD, _SHORT_NUMBER = 2, 2
_BEFORE_NUMBER = 4


class Segment(Struct, frozen=True):
    kind: Kind
    text: str
    """Without its list, heading or quotation mark."""
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def segments(text: str, *, is_output: bool = False) -> tuple[Segment, ...]:
    """The segments in order. `is_output`: a program wrote the text."""
    return _segments_kept(text, is_output) if len(text) <= _MAX_WRAPPED * 4 else tuple(_segments(text, is_output))


@text_cache(4096)  # summary, ledger and priorities read the same messages
def _segments_kept(text: str, is_output: bool) -> tuple[Segment, ...]:
    return tuple(_segments(text, is_output))


def sentences(text: str) -> list[str]:
    return [segment.text for segment in segments(text)]


def is_question(text: str) -> bool:
    return text.endswith(("?", "？", "؟"))


def readable(text: str) -> str:
    """A tool's output in readable form: JSON with one field per line."""
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text.replace("\\n", "\n")
    return "\n".join(_fields(value, "", 0))


_DEEPEST = 40


def _fields(value: object, name: str, depth: int) -> Iterator[str]:
    """`orders.3.total: 12.5`; a list of plain values stays on one line."""
    match value:
        case dict() if value and depth < _DEEPEST:
            for key, inner in value.items():
                yield from _fields(inner, f"{name}.{key}" if name else str(key), depth + 1)
        case list() if depth < _DEEPEST and any(isinstance(inner, dict | list) for inner in value):
            for place, inner in enumerate(value, 1):
                yield from _fields(inner, f"{name} {place}" if name else str(place), depth + 1)
        case list():
            yield f"{name}: {', '.join(map(str, value))}" if name else ", ".join(map(str, value))
        case _:
            shown = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{name}: {shown}" if name else shown


def _segments(text: str, is_output: bool) -> Iterator[Segment]:
    in_fence = False
    quoted = ""
    for start, line in _lines(text):
        if line.lstrip().startswith(_FENCES):
            in_fence = not in_fence
        elif in_fence:
            yield from _whole("code", line, start)
        elif line.strip(_RULE_SIGNS):
            for segment in _read_line(line, start, is_output):
                is_quoted, quoted = bool(quoted), _open_quotation(segment.text, quoted)
                yield replace(segment, kind="quote") if is_quoted and segment.kind == "prose" else segment
        if not line:
            quoted = ""


def _open_quotation(text: str, quoted: str) -> str:
    """The closing mark of a quotation left open by a text; a quotation ends with its paragraph at the latest."""
    for char in _QUOTES.findall(text):
        if char == quoted:
            quoted = ""
        elif not quoted:
            quoted = _CLOSING.get(char, "")
    return quoted


def _read_line(line: str, start: int, is_output: bool) -> Iterator[Segment]:
    if line.count("|") > 1:
        yield from _whole("row", line, start)
        return
    end, text = start + len(line), _unquoted(line)
    kind: Kind = "quote" if text is not line else "prose"
    heading = text.lstrip("#")
    if 0 < len(text) - len(heading) < 7 and heading[0:1] == " " and heading.lstrip(" ")[:1].strip():
        kind, text = "heading" if kind == "prose" else kind, heading.lstrip(" ")
    if sign := _ITEM.match(text):
        kind, text = kind if kind == "quote" else "item", text[sign.end() :]
    line, start = text, end - len(text)
    if kind == "heading" or (kind == "prose" and _is_heading(line)):
        yield from _whole("heading", line, start)
    elif kind == "prose" and _is_output(line):
        yield from _whole("output", line, start)
    else:
        for at, sentence in split_line(line):
            yield Segment("output" if is_output else kind, sentence, start + at)


def _unquoted(line: str) -> str:
    rest = line.lstrip()
    if not rest.startswith(">"):
        return line
    while rest.startswith(">"):
        rest = rest[2:] if rest[1:2].isspace() else rest[1:]
    return rest


def _whole(kind: Kind, line: str, start: int) -> Iterator[Segment]:
    stripped = line.strip()
    if stripped:
        yield Segment(kind, stripped, start + line.find(stripped))


def _is_heading(line: str) -> bool:
    if len(line) > _MAX_HEADING:
        return False
    bold = line.removesuffix(":")
    is_bold = len(bold) > 4 and bold.startswith("**") and bold.endswith("**") and "*" not in bold[2:-2]
    return is_bold or (line.endswith((":", "：")) and not _TIMED.match(line))


def _is_output(line: str) -> bool:
    if _TIMED.match(line):
        return True
    looked_at = line[:_MAX_LOOKED_AT]
    looked_at = _LINK.sub("", looked_at) if "[" in looked_at or "://" in looked_at else looked_at
    if _symbols(looked_at) > max(2, len(looked_at) * _MANY_SYMBOLS):
        return True
    return len(looked_at) > 12 and sum(map(str.isalpha, looked_at)) < len(looked_at) * _FEW_LETTERS


def _symbols(text: str) -> int:
    return sum(map(text.count, _SYMBOLS))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their positions, wrapped prose rejoined."""
    pending, at, offset = "", 0, 0
    for line in text.splitlines(keepends=True):
        if pending and _goes_on(pending, line):
            pending += line
        else:
            if pending:
                yield at, pending.rstrip()
            pending, at = line, offset
        offset += len(line)
    if pending:
        yield at, pending.rstrip()


def _goes_on(line: str, following: str) -> bool:
    """True if prose was wrapped here: a long line of words, then a lower-case letter in the first column."""
    if not following[:1].islower() or len(line) > _MAX_WRAPPED:
        return False
    last = line.rstrip("\r\n").rpartition("\n")[2]
    if len(last) < _MIN_WRAPPED or not (last[-1].isalpha() or last[-1] in ",;"):
        return False
    return not _symbols(last) and not _symbols(following)


def split_line(line: str) -> Iterator[tuple[int, str]]:
    start = 0
    for stop in _STOP.finditer(line):
        if _ends_sentence(line, start, stop) or stop.end() - start > _LONGEST:
            yield _part(line, start, stop.end())
            start = stop.end()
    if line[start:].strip():
        yield _part(line, start, len(line))


def _part(line: str, start: int, end: int) -> tuple[int, str]:
    part = line[start:end].lstrip()
    return end - len(part), part.rstrip()


def _ends_sentence(line: str, start: int, stop: re.Match[str]) -> bool:
    if stop[0][0] in _WIDE_STOPS:
        return True
    following = _NEXT.match(line, stop.end())
    if following is None:
        return True
    after = following[1]
    if stop[0].rstrip("\"'”’»)]}*_`") != ".":
        return not after.islower()
    word = line[max(start, stop.start() - 24) : stop.start()].rpartition(" ")[2].lstrip("([{\"'„“‘«*_`")
    if word.isdigit():
        return len(word) > _SHORT_NUMBER and not after.islower()
    if len(word) <= _SHORT_WORD and word.isalpha():
        return False  # "z. B.", "Dr. Smith", "p. 5"
    if after.isdigit() and len(word) <= _BEFORE_NUMBER and word.isalpha():
        return False  # "Abb. 3", "Art. 12"
    if "." in word:  # "e.g. this", "a.m. on Monday"
        return after.isupper()
    # people who begin a line in lower case begin sentences that way, too
    return not after.islower() or line[start : start + 1].islower()
