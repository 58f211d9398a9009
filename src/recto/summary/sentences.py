"""Sentences: where one ends, and which terms it holds. Works for any script and any text; knows no message.

This is not a library because those need to know the language, and a chat mixes several with code and logs.
"""

import re
from collections.abc import Iterator

# Scripts without spaces between words: pairs of characters serve as words there.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")
# One character set at the very start keeps the scan fast; what follows the stop is inspected afterwards.
_STOP = re.compile(r"""[.!?…؟۔।॥։።。！？｡]++["'”’»)\]}*_`」』】）]*+""")
_EAST_ASIAN_STOP = re.compile(r"""[.!?…؟۔।॥։።]*[。！？｡]""")
_NEXT = re.compile(r"\s++(\S)")
_OPENING = "([{\"'„“‘«*_`"

FENCES = ("```", "~~~")
_MIN_WRAPPED_LINE = 50
_MAX_REJOINED = 1000
_CODE_CHARS = re.compile(r"[{}<>=|\\/_]")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = word_set(
    "dr mr mrs ms prof st rev gen sen gov capt lt sgt mt vs e.g i.e eg ie cf al ca approx est resp incl excl viz "
    "z.b d.h u.a o.ä s.o s.u i.d.r m.e v.a bzw evtl ggf inkl exkl vgl bspw sog hr fr frl mio mrd tel "
    "p.ej ej sr sra srta dra ud uds mme mlle mm p.ex ex"
)
_SELDOM_LAST = word_set("etc usw inc ltd co corp jr a.m p.m u.s u.k u.s.a u.s.w ph.d b.c a.d")
_BEFORE_NUMBERS = word_set("no nos nr fig figs p pp vol art sec eq ch chap par abs núm num pág pag tab § v")
_GERMAN_MONTH = re.compile(r"\s+(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahr)")


def sentences(text: str) -> list[str]:
    """The sentences in order, stripped; only whitespace lies between them.

    A line break ends a sentence, except in wrapped prose. A line of fenced code is one sentence.
    """
    return [sentence for sentence, _ in tagged_sentences(text)]


def sentence_positions(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence with the offset where it starts."""
    offset = 0
    for sentence in sentences(text):
        start = text.find(sentence, offset)
        if start >= 0:
            yield start, sentence
            offset = start + len(sentence)


def tagged_sentences(text: str) -> list[tuple[str, bool]]:
    """The sentences, each with whether it is a line of fenced code. The fences count as code."""
    found: list[tuple[str, bool]] = []
    for line, is_code in _unwrapped_lines(text):
        found += [(line, True)] if is_code else [(sentence, False) for sentence in _split_line(line)]
    return found


def _unwrapped_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines that are not blank, stripped, with wrapped prose rejoined; and whether a line is code."""
    in_fence, pending = False, ""
    for line in text.splitlines():
        is_fence = line.lstrip().startswith(FENCES)
        if pending and not in_fence and not is_fence and _is_wrapped(pending, line):
            pending = f"{pending}\n{line.rstrip()}"
            continue
        if pending:
            yield pending, in_fence
        pending = line.strip()
        if is_fence:
            yield pending, True
            in_fence, pending = in_fence != (pending.count(pending[:3]) == 1), ""
    if pending:
        yield pending, in_fence


def _is_wrapped(line: str, following: str) -> bool:
    """Whether prose continues in the next line: a long line of words, then a lower-case letter in the first column."""
    if not following or not following[0].islower():
        return False
    if len(line) > _MAX_REJOINED:
        return False
    last = line[line.rfind("\n") + 1 :]
    if len(last) < _MIN_WRAPPED_LINE or not (last[-1].isalpha() or last[-1] in ",;") or last.count(" ") < 5:
        return False
    return not _CODE_CHARS.search(last) and not _CODE_CHARS.search(following)


def _split_line(line: str) -> list[str]:
    found, start = [], 0
    for stop in _STOP.finditer(line):
        if _ends_sentence(line, stop):
            found.append(line[start : stop.end()].strip())
            start = stop.end()
    rest = line[start:].strip()
    return [*found, rest] if rest else found


def _ends_sentence(line: str, stop: re.Match[str]) -> bool:
    """East Asian full stops always end a sentence; for all others the following text decides."""
    marks, following = stop[0], _NEXT.match(line, stop.end())
    if _EAST_ASIAN_STOP.match(marks):
        return True
    if following is None:
        return marks[-1] in "!?" and IS_UNSPACED.match(line, stop.end()) is not None
    if marks.rstrip("\"'”’»)]}*_`") == ".":
        return _is_full_stop(line, stop.start(), following)
    return not following[1].islower() or (marks[0] not in ".…" and marks[-1] in "!?")


def _is_full_stop(line: str, at: int, following: re.Match[str]) -> bool:
    before = line[max(0, at - 24) : at].split()
    written = before[-1].lstrip(_OPENING) if before else ""
    word = written.lower()
    if word in _NEVER_LAST or (len(word) == 1 and written.isupper()):
        return False
    if following[1].isdigit() and word in _BEFORE_NUMBERS:
        return False
    if word.isdigit() and (at == len(word) or _GERMAN_MONTH.match(line, following.start())):
        return False
    # people who start a line in lower case start sentences in lower case too
    return not following[1].islower() or (line[0].islower() and word not in _SELDOM_LAST)


_ASCII_WORD = re.compile(r"[a-z0-9_]+(?:['.\-/:@][a-z0-9_]+)*")
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:['’.\-/:@][^\W{_UNSPACED}]+)*")
_TIMESTAMP = re.compile(r"\W*\d{2,4}[-/.:]\d\d[-/.:]\d\d\S*(?:\s+\d\d:\d\d\S*)?")
_MAX_INSPECTED = 400
_STEM_LENGTH = 7


def terms(sentence: str) -> set[str]:
    """The topic of a sentence: words cut to a stem, or pairs of characters in scripts without spaces.

    The timestamp at the start of a log line is left out: the same line a second later says the same.
    """
    start = sentence[:_MAX_INSPECTED].lower()
    if start[:1].isdigit() or start[:1] == "[":
        start = _TIMESTAMP.sub("", start, count=1) or start
    if start.isascii():
        words = _ASCII_WORD.findall(start)
    else:
        words = [term for word in _WORD.findall(start) for term in _character_pairs(word)]
    return {word if len(word) <= _STEM_LENGTH or not word.isalpha() else word[:_STEM_LENGTH] for word in words}


def _character_pairs(word: str) -> list[str]:
    if not IS_UNSPACED.match(word) or len(word) < 3:
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]
