"""Passages and sentences: splits long texts into pieces that can be found individually."""

import re
from collections.abc import Callable, Iterator

# About two hundred tokens: what the embedder reads in one pass, and a fair share of a small window.
MAX_PASSAGE_CHARS = 900
# A shorter remainder is joined to the last passage.
MIN_PASSAGE_CHARS = 150

# Where to split, in order of preference: paragraphs, lines, sentences, words.
_BREAKS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?;。！？；])\s*(?=\S)"),
    re.compile(r"\s+"),
)

QUESTION_MARKS = ("?", "？", "؟")
# Excludes the numbers of list items.
_STATEMENT = re.compile(r"[^\W\d][.!](?=\s|$)|[。！]")

Span = tuple[int, int]


def split_passages(text: str, limit: int = MAX_PASSAGE_CHARS) -> list[Span]:
    """The spans of a text's passages. Only white space lies between them."""
    at, found = 0, list[Span]()
    while len(text) - at > limit + MIN_PASSAGE_CHARS:
        end = _end(text, at, limit)
        found.append((at, end))
        at = end
    return [span for span in (*found, (at, len(text))) if text[slice(*span)].strip()]


def asks_only(text: str) -> bool:
    """True if a text ends with a question, or is a list of questions."""
    questions = sum(map(text.count, QUESTION_MARKS))
    if not questions:  # most texts
        return False
    is_list = questions > 2 and questions > 2 * len(_STATEMENT.findall(text))
    return is_list or text.rstrip().endswith(QUESTION_MARKS)


def _end(text: str, at: int, limit: int) -> int:
    """The best break in the second half of a passage, or within a word if there is none."""
    earliest, latest = at + limit // 2, at + limit
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, earliest, latest)]
        if ends:
            return ends[-1]
    return latest


MAX_SENTENCES = 8
# The total length of all sentences. An embedder takes about a millisecond for forty characters, and one per text.
MAX_TOTAL_CHARS, SENTENCE_OVERHEAD = 260, 40
# Longer sentences are cut at a word.
MAX_SENTENCE_CHARS = 200
# Of a longer message only the beginning and the end are read: this many characters and sentences.
MAX_MESSAGE_CHARS, MAX_CANDIDATES = 16_000, 40
# A message of this length is kept whole.
SHORT_MESSAGE_CHARS = 60

_FENCED = re.compile(r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
# Possessive, with a lookbehind: a thousand stops in a row take no longer than a thousand letters.
_STOP = re.compile(r"""(?<![.!?…؟۔।॥։።])[.!?…؟۔।॥։።]++["'”’»)\]*_`]*+(?=\s)|[。！？｡]++["'”’」』）]*+|\n++""")
_LAST_WORD = re.compile(r"[^\s(\[{\"'„“]+$")
_ABBREVIATION_LIST = """
    dr mr mrs ms prof st vs e.g i.e eg ie cf ca approx nr z.b d.h u.a bzw ggf vgl inkl p.ej p.ex sr sra mme incl"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_MAX_ABBREVIATION, _MAX_ORDINAL = 12, 24
_ITEM_NUMBER = re.compile(r"\s*+\d{1,12}+")
_DAY = re.compile(r"(?<![\d.,])\d{1,2}$")
_ORDINAL = re.compile(
    r"\b(?:de[rmns]|die|das|am|im|vom|zum|zur|ab|bis|seit|nach|vor|jede[nrms]?|unsere[nrms]?|ihre[nrms]?) \d{1,2}$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\s+(?:[a-zäöüß]|(?:Jan|Jän|Feb|März|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-zä]*\b|Jahrhundert)")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, stripped. A line break ends one, and so does a full stop that is not part of an
    abbreviation. Code blocks are omitted."""
    prose = _FENCED.sub("\n", text)
    found = _sentences(prose if any(map(str.isalnum, prose)) else text)
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(text):
        if stop[0][0] == "." and (_is_abbreviation(text, start, stop.start()) or _is_ordinal(text, start, stop)):
            continue
        yield " ".join(text[start : stop.end()].split())
        start = stop.end()
    yield " ".join(text[start:].split())


def _is_abbreviation(text: str, start: int, end: int) -> bool:
    """True if the sentence from `start` continues after a full stop at `end`. Avoids copying its parts, which may be
    as many as its letters."""
    found = _LAST_WORD.search(text[max(start, end - _MAX_ABBREVIATION) : end])
    word = found[0] if found else ""
    # "J. Smith", or the number of a list item
    is_letter, is_item = len(word) == 1 and word.isupper(), _ITEM_NUMBER.fullmatch(text, start, end) is not None
    return word.lower() in _ABBREVIATIONS or is_letter or is_item


def _is_ordinal(text: str, start: int, stop: re.Match[str]) -> bool:
    """ "am 17. Mai", "der 2. Weltkrieg", "vom 9. bis 23. August"."""
    before = text[max(start, stop.start() - _MAX_ORDINAL) : stop.start()]
    after = text[stop.end() : stop.end() + _MAX_ABBREVIATION]
    return _ORDINAL.search(before) is not None or (
        _DAY.search(before) is not None and _GOES_ON.match(after) is not None
    )


def shorten_message(text: str) -> str:
    """The beginning and the end of a long message."""
    earliest = MAX_MESSAGE_CHARS // 2
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:earliest]}\n\n{text[-earliest:]}"


def key_sentences(text: str, score: Callable[[str], float] = len) -> list[str]:
    """The sentences worth looking up, in order: all of a short message; of a long one first the questions, then those
    with the highest `score`, then the first and the last."""
    sentences = split_sentences(text)
    if len(text) <= SHORT_MESSAGE_CHARS and sentences:
        return [" ".join(sentences)]
    candidates, earliest = list(enumerate(sentences)), MAX_CANDIDATES // 2
    if len(candidates) > MAX_CANDIDATES:
        candidates = candidates[:earliest] + candidates[-earliest:]
    ends = (0, len(sentences) - 1)
    rank = {at: (_is_question(each), score(each), at in ends, -at) for at, each in candidates}
    chosen, room = list[int](), MAX_TOTAL_CHARS
    for at in sorted(rank, key=lambda at: rank[at], reverse=True):
        cost = min(len(sentences[at]), MAX_SENTENCE_CHARS) + SENTENCE_OVERHEAD
        if len(chosen) < MAX_SENTENCES and (cost <= room or not chosen):
            chosen.append(at)
            room -= cost
    return [_cut(sentences[at]) for at in sorted(chosen)]


def _is_question(sentence: str) -> bool:
    return any(mark in sentence[-3:] for mark in QUESTION_MARKS)


def _cut(sentence: str) -> str:
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return sentence
    head = sentence[:MAX_SENTENCE_CHARS]
    return head.rpartition(" ")[0] or head
