"""Sentences: where one ends, which terms are in it, whether it is noise. Any script, any text; knows no message."""

import re
from collections.abc import Iterator

# Scripts written without spaces between words: pairs of characters stand in for words there.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
# One set of signs at the very start keeps the scan fast; what follows the stop is looked at afterwards.
_STOP = re.compile(r"""[.!?…؟۔।॥։።。！？｡]++["'”’»)\]}*_`」』】）]*+""")
_SOLID = re.compile(r"""[.!?…؟۔।॥։።]*[。！？｡]""")
_NEXT = re.compile(r"\s++(\S)")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
_OPENING = "([{\"'„“‘«*_`"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = _set(
    "dr mr mrs ms prof st rev gen sen gov capt lt sgt mt vs e.g i.e eg ie cf al ca approx est resp incl excl viz "
    "z.b d.h u.a o.ä s.o s.u i.d.r m.e v.a bzw evtl ggf inkl exkl vgl bspw sog hr fr frl mio mrd tel "
    "p.ej ej sr sra srta dra ud uds mme mlle mm p.ex ex"
)
_SELDOM_LAST = _set("etc usw inc ltd co corp jr a.m p.m u.s u.k u.s.a u.s.w ph.d b.c a.d")
_BEFORE_NUMBERS = _set("no nos nr fig figs p pp vol art sec eq ch chap par abs núm num pág pag tab § v")
_MONTH = re.compile(r"\s+(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahr)")

_FENCES = ("```", "~~~")
_WRAPPED_FROM = 50
_REJOINED_TO = 1000
_CODE_SIGNS = re.compile(r"[{}<>=|\\/_]")


def sentences(text: str) -> list[str]:
    """The sentences in their order, stripped; only whitespace lies between them.

    A line break ends a sentence, but for prose that was wrapped; a line of fenced code is one sentence.
    """
    return [sentence for sentence, _ in marked(text)]


def placed(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence and where it begins."""
    place = 0
    for sentence in sentences(text):
        start = text.find(sentence, place)
        if start >= 0:
            yield start, sentence
            place = start + len(sentence)


def marked(text: str) -> list[tuple[str, bool]]:
    """The same, and whether each is a line of fenced code; the fences count as code."""
    found: list[tuple[str, bool]] = []
    for line, is_code in _lines(text):
        found += [(line, True)] if is_code else [(sentence, False) for sentence in _split(line)]
    return found


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines that are not blank, stripped, wrapped ones rejoined; and whether a line is code."""
    in_fence, held = False, ""
    for line in text.splitlines():
        is_fence = line.lstrip().startswith(_FENCES)
        if held and not in_fence and not is_fence and _runs_on(held, line):
            held = f"{held}\n{line.rstrip()}"
            continue
        if held:
            yield held, in_fence
        held = line.strip()
        if is_fence:
            yield held, True
            in_fence, held = in_fence != (held.count(held[:3]) == 1), ""
    if held:
        yield held, in_fence


def _runs_on(line: str, following: str) -> bool:
    """Whether prose goes on in the next line: a long line of words, then a small letter in the first column."""
    if not following or not following[0].islower():
        return False
    if len(line) > _REJOINED_TO:
        return False
    last = line[line.rfind("\n") + 1 :]
    if len(last) < _WRAPPED_FROM or not (last[-1].isalpha() or last[-1] in ",;") or last.count(" ") < 5:
        return False
    return not _CODE_SIGNS.search(last) and not _CODE_SIGNS.search(following)


def _split(line: str) -> list[str]:
    found, start = [], 0
    for stop in _STOP.finditer(line):
        if _is_end(line, stop):
            found.append(line[start : stop.end()].strip())
            start = stop.end()
    rest = line[start:].strip()
    return [*found, rest] if rest else found


def _is_end(line: str, stop: re.Match[str]) -> bool:
    """The full stops of East Asia end a sentence by themselves, all others by what follows."""
    signs, following = stop[0], _NEXT.match(line, stop.end())
    if _SOLID.match(signs):
        return True
    if following is None:
        return signs[-1] in "!?" and _IS_UNSPACED.match(line, stop.end()) is not None
    if signs.rstrip("\"'”’»)]}*_`") == ".":
        return _is_full_stop(line, stop.start(), following)
    return not following[1].islower() or (signs[0] not in ".…" and signs[-1] in "!?")


def _is_full_stop(line: str, at: int, following: re.Match[str]) -> bool:
    before = line[max(0, at - 24) : at].split()
    written = before[-1].lstrip(_OPENING) if before else ""
    word = written.lower()
    if word in _NEVER_LAST or (len(word) == 1 and written.isupper()):
        return False
    if following[1].isdigit() and word in _BEFORE_NUMBERS:
        return False
    if word.isdigit() and (at == len(word) or _MONTH.match(line, following.start())):
        return False
    # who begins a line with a small letter begins sentences so too
    return not following[1].islower() or (line[0].islower() and word not in _SELDOM_LAST)


_ASCII_WORD = re.compile(r"[a-z0-9_]+(?:['.\-/:@][a-z0-9_]+)*")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:['’.\-/:@][^\W{_UNSPACED}]+)*")
_CLOCK = re.compile(r"\W*\d{2,4}[-/.:]\d\d[-/.:]\d\d\S*(?:\s+\d\d:\d\d\S*)?")
_LOOKED_AT = 400
_STEM = 7


def terms(sentence: str) -> set[str]:
    """What a sentence is about: words cut to a stem, pairs of characters where words are not spaced.

    The time at the beginning of a log line is no term: the same line a second later says the same.
    """
    start = sentence[:_LOOKED_AT].lower()
    if start[:1].isdigit() or start[:1] == "[":
        start = _CLOCK.sub("", start, count=1) or start
    if start.isascii():
        words = _ASCII_WORD.findall(start)
    else:
        words = [term for word in _WORD.findall(start) for term in _pairs(word)]
    return {word if len(word) <= _STEM or not word.isalpha() else word[:_STEM] for word in words}


def _pairs(word: str) -> list[str]:
    if not _IS_UNSPACED.match(word) or len(word) < 3:
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]


_WORDLIKE = re.compile(r"[^\W_]")
_PROSE = re.compile(r"[^\W\d_]{3,} [^\W\d_]{2,} ")
_UNBROKEN = re.compile(r"[A-Za-z0-9+/=_\-]{40,}+")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{2,}[:,.]?")
_FENCE_LINE = re.compile(r"(?:```|~~~)\S*$")


def is_noise(sentence: str) -> bool:
    """Brackets, fences, base64, hexadecimal: characters that tell a reader nothing."""
    beginning = sentence[:_LOOKED_AT]
    if not _WORDLIKE.search(beginning) or _FENCE_LINE.match(beginning):
        return True
    if len(beginning) < 40 or (len(beginning) < 160 and _PROSE.search(beginning)):
        return False
    encoded = sum(len(run) for run in _UNBROKEN.findall(beginning) if _is_encoded(run))
    return encoded * 5 > len(beginning) * 3 or _is_hex(beginning.split())


def _is_encoded(run: str) -> bool:
    """Base64 mixes cases, hexadecimal is never a word; paths and slugs come in short pieces."""
    pieces = max(run.count("/"), run.count("-"), run.count("_"))
    if pieces * 20 > len(run) or not any(sign.isdigit() for sign in run):
        return False
    return (run != run.lower() and run != run.upper()) or _HEX.fullmatch(run) is not None


def _is_hex(words: list[str]) -> bool:
    found = [word for word in words if _HEX.fullmatch(word)]
    return len(found) >= 8 and len(found) * 5 > len(words) * 3 and not all(word.isdigit() for word in found)


# How far back a cut looks for an edge in a text without spaces.
_RUN = 24
_FINISHED = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？]""")
_SPACE = re.compile(r"\s+")
# What belongs to the sign before it: accents, joiners, variants and tones of an emoji.
_JOINED = re.compile("[\u0300-\u036f\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\u200d).", re.DOTALL)


def beginning(text: str, size: int) -> str:
    """At most `size` characters from the start, to the end of a word unless that takes away half of them."""
    if size >= len(text):
        return text
    at = max(size, 0)
    if at and _IS_UNSPACED.match(text, at):
        at = next((edge for edge in range(at, max(at // 2, at - _RUN), -1) if _is_edge(text, edge)), at)
    elif at and not text[at].isspace():
        at = max(text.rfind(" ", at // 2, at), text.rfind("\n", at // 2, at)) + 1 or at
    while at and _JOINED.match(text, at):
        at -= 1
    return text[:at].rstrip()


def _is_edge(text: str, at: int) -> bool:
    """Whether a word may end here: at a space, behind a sign, or where the script changes; an ending in hiragana
    belongs to what is before it."""
    before, after = _script(text[at - 1]), _script(text[at])
    return before == "" or after == " " or (before != after and (before, after) != ("han", "hiragana"))


def _script(sign: str) -> str:
    if sign.isspace():
        return " "
    if "\u3041" <= sign <= "\u309f":
        return "hiragana"
    if "\u30a1" <= sign <= "\u30ff":
        return "katakana"
    if "\u3400" <= sign <= "\u9fff":
        return "han"
    return "other" if sign.isalnum() else ""


def first_lines(text: str, size: int) -> str:
    """At most `size` characters from the start, whole lines or sentences if one ends in the second half."""
    lines = text.rfind("\n", size // 2, size)
    said = [found.end() for found in _FINISHED.finditer(text, size // 2, size)] if lines < 0 else [lines]
    return text[: said[-1]].rstrip() if said else beginning(text, size)


def last_lines(text: str, size: int) -> str:
    """At most `size` characters to the end, from where a line, a sentence or at least a word begins."""
    start, half = len(text) - size, len(text) - size // 2
    lines = text.find("\n", start, half)
    if lines >= 0:
        return text[lines + 1 :].rstrip().lstrip("\r\n")
    said = _FINISHED.search(text, start, half) or _SPACE.search(text, start, half)
    return text[said.end() if said else start :].strip()
