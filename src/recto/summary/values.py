"""Values: the verifiable parts of a text – figures, names, paths, addresses, identifiers, code and quotations – each
with one normal form for all its spellings.

Ambiguous text is left unchanged. Reads any text in linear time and knows no message.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from recto.base.text import pieces_of, text_cache
from recto.sentences.segments import UNSPACED_OR_KOREAN
from recto.sentences.words import tables
from recto.summary.figures import LEAST_LETTERS, Value, find_figures, months

_MAX_LENGTH, _PIECE_LENGTH = 160, 1 << 16
_ADDRESS = re.compile(
    r"""\b[a-z][a-z+]{1,9}://[^\s"'<>()\[\]{}`|\\^,;]++|(?<![\w.+-])[\w.+-]{1,64}+@[\w-]{1,63}+(?>(?:\.[\w-]{2,63}+)+)"""
)
_PATH = re.compile(
    r"(?<![\w.@/\\-])(?:(?:~|\.{1,2})?/[\w.@-]++(?>(?:/[\w.@-]++)*)/?+|[A-Za-z]:\\[\w.\\-]++"
    r"|(?!\d)[\w.@-]++(?>(?:/[\w.@-]++)+)/?+)(?:[:#]L?\d++(?!\w))?"
)
# Ordinary words of most languages are skipped.
_WORD = re.compile(
    r"(?<![\w.@/\\-])(?:(?![a-zß-ÿа-я]++(?![\w(]|[.:_-]+\w))[^\W\d_]\w*+(?:['’][a-zA-Z]++)?"
    r"(?>(?:(?:[._-]|::)\w++)*)(?:\(\))?|--[a-z][\w-]++)"
)
_QUOTE = re.compile(
    r'"[^"\n]{3,80}+"|“[^”\n]{3,80}+”|„[^“”\n]{3,80}+[“”]|«[^»\n]{3,80}+»|[「『《][^」』》\n]{2,80}+[」』》]'
)
_CODE = re.compile(r"(?<!`)`([^`\n]{2,120}+)`(?!`)")
_FILE = re.compile(r"(?<![\w-])[\w-]{2,}\.[A-Za-z]{1,5}$")
_CAMEL = re.compile(r"[a-zß-ÿ\d][A-Z]|[A-Z]{2}[a-z]{2}")
_MID_SENTENCE = frozenset(",&'’)+")
# German nouns have capitals: assumed if this share of the words inside sentences has them.
_NOUN_CAPITALS, _MAX_NAME_WORDS, _LONGEST_ENDING = 0.05, 5, 3


@text_cache(4096)
def find_values(text: str) -> Sequence[Value]:
    """All values in order of position, with repetitions."""
    spaced = text if text.isascii() else UNSPACED_OR_KOREAN.sub("\u3001", text)
    outer = sorted((*_addresses(text), *find_figures(text, spaced)), key=lambda value: (value.start, -value.end))
    kept, end = list[Value](), 0
    for value in outer:
        if value.start >= end:
            kept.append(value)
            end = value.end
    found = [*kept, *_words(text, spaced, kept), *_quotations(text)]
    return sorted(found, key=lambda value: (value.start, -value.end))


def _addresses(text: str) -> Iterator[Value]:
    for match in _ADDRESS.finditer(text) if "://" in text or "@" in text else ():
        url = match[0].rstrip(".,:;!?'")
        if len(match[0]) <= _MAX_LENGTH:
            yield Value("url", url, url.lower().rstrip("/"), match.start(), match.start() + len(url))
    for match in _PATH.finditer(text) if "/" in text or "\\" in text else ():
        if len(match[0]) <= _MAX_LENGTH and (value := _path(text, match.start(), match[0])):
            yield value


def _path(text: str, start: int, path: str) -> Value | None:
    """Recognised by its start, extension or length; "and/or" is not a path."""
    path = path.rstrip(".,:-")
    bare = path.partition(":")[0].partition("#")[0] if "\\" not in path else path
    parts = [part for part in bare.replace("\\", "/").split("/") if part]
    is_rooted = path[:1] in ("/", "~", ".") or "\\" in path
    is_long = len(parts) > 2 and all(len(part) > 1 and not part.isdigit() for part in parts)
    if not any(map(str.isalpha, path)) or text[start - 1 : start] == "<":
        return None
    if not (_FILE.search(parts[-1]) or is_long or (is_rooted and len(path) > 2)):
        return None
    return Value("path", path, path.lower().removeprefix("./").rstrip("/") or "/", start, start + len(path))


def _quotations(text: str) -> Iterator[Value]:
    for match in _QUOTE.finditer(text):
        inner = match[0][1:-1].strip()
        if any(map(str.isalpha, inner)):
            is_significant = len(inner.split()) > 1 or not inner.isascii()
            yield Value("quote", match[0], plain_text(inner), match.start(), match.end(), is_significant)
    for match in _CODE.finditer(text) if "`" in text else ():
        if any(map(str.isalpha, match[1])):
            yield Value("code", match[1].strip(), plain_text(match[1]), match.start(), match.end())


# -- words: identifiers, files, and names by capitals that are not due to the start of a sentence


def _words(text: str, spaced: str, outer: Sequence[Value]) -> Iterator[Value]:
    starts = [value.start for value in outer]
    capitals = list[tuple[int, int]]()
    for match in _WORD.finditer(spaced):
        start, end = match.span()
        at = bisect_right(starts, start)
        if (at and outer[at - 1].end > start) or end - start > _MAX_LENGTH:
            continue
        word = text[start:end]
        if (kind := _kind_of_word(word)) == "name":
            capitals.append((start, end))
        elif kind:
            yield Value(kind, word, word.lower(), start, end)
    if capitals:
        yield from _names(text, capitals)


def _kind_of_word(word: str) -> str | None:
    """The kind of a token of letters, digits and joining characters; None for an ordinary word."""
    if word.isalpha():
        return "identifier" if _CAMEL.search(word) else "name" if word[0].isupper() else None
    if _FILE.match(word):
        return "path" if word[: word.rindex(".")].islower() or "_" in word else None
    if "_" in word or "::" in word or word.startswith("--") or word.endswith("()") or any(map(str.isdigit, word)):
        return "identifier"
    return "name" if word[0].isupper() else None


def _names(text: str, words: Sequence[tuple[int, int]]) -> Iterator[Value]:
    starts = {start for start, _ in words if _starts_sentence(text, start)}
    inside = {_bare(text[start:end]) for start, end in words if start not in starts}
    has_noun_capitals = _has_noun_capitals(text, len(words) - len(starts))
    for run in _runs(text, words):
        if run[0][0] in starts and _bare(text[slice(*run[0])]) not in inside:
            run = run[1:]  # the capital of a sentence
        if not run:
            continue
        start, end = run[0][0], run[-1][1]
        name = _bare(text[start:end])
        if len(run) == 1 and (month := months().get(name.lower())) and len(name) >= LEAST_LETTERS - 1:
            yield Value("date", name, f"--{month:02}", start, start + len(name))
        elif len(name) > 1 and not (name.isupper() and len(name) > 5):
            alone = len(run) == 1 and not name.isupper()
            may_be_noun = alone and has_noun_capitals and not _is_english(_line_at(text, start))
            yield Value("name", name, name.lower(), start, start + len(name), not may_be_noun)


def _has_noun_capitals(text: str, inside: int) -> bool:
    """True if the text is in a language that capitalises nouns, and does so."""
    words = text.split()
    return inside > _NOUN_CAPITALS * len(words) and not frozenset(tables()["articles"]["de"]).isdisjoint(words)


def _is_english(line: str) -> bool:
    articles, words = tables()["articles"], line.split()
    return articles["en"][0] in words and frozenset(articles["de"]).isdisjoint(words)


def _line_at(text: str, start: int) -> str:
    """Enough of the line to show its language."""
    before, after = text[max(0, start - _MAX_LENGTH) : start], text[start : start + _MAX_LENGTH]
    return before.rpartition("\n")[2] + after.partition("\n")[0]


def _runs(text: str, words: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    run: list[tuple[int, int]] = []
    for word in words:
        is_next = run and len(run) < _MAX_NAME_WORDS and text[run[-1][1] : word[0]] in (" ", "-")
        if run and not (is_next and _bare(last := text[slice(*run[-1])]) == last):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _bare(word: str) -> str:
    at = max(word.rfind("'"), word.rfind("’"))
    return word[:at] if at >= 0 and len(word) - at <= _LONGEST_ENDING else word


def _starts_sentence(text: str, start: int) -> bool:
    at = start - 1
    while at >= 0 and text[at] in " \t\xa0":
        at -= 1
    return at < 0 or not (text[at].isalnum() or text[at] in _MID_SENTENCE)


def plain_text(text: str) -> str:
    """In lower case, with single spaces."""
    return " ".join([" ".join(part.lower().split()) for part in pieces_of(text, _PIECE_LENGTH)])
