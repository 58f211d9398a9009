"""Folding: a line that is wider than the terminal continues on the next one between words, and a name that is too long
even for a whole line after one of its signs: a terminal itself would cut both anywhere. Pure.
"""

import re
from collections.abc import Iterator, Sequence

# A number stays with its %.
_WORD = re.compile(r"(?:(?<!\s)\s++)?(?>(?:(?<=\d) (?=%)|\S)+)\s*+")
# A path or a model's name continues after these; a name in it that is too long itself after the others.
_PART = re.compile(r"[^/\\:=]*[/\\:=]+|[^/\\:=]+")
_SMALLER_PART = re.compile(r"[^_\-]*[_\-]+|[^_\-]+")
# "name   value": what follows continues below the value. Prose may have two spaces after a sentence.
_LABEL = re.compile(r"\s*\S+(?: \S+)*(?<![.!?,;]) {2,}(?=\S)")
# A row of a tree, up to its text.
_BRANCH = re.compile(r"[│ ]*[├└]─ (?:[^\w\s] )?")
_PADDING = re.compile(r"(?<=\S) {3,}(?=\S)")
# A label may take so much of the width; values would be too narrow below a longer one.
LABEL_SHARE = 0.4
# A long name begins on a line that has so much room left.
ROOM_SHARE = 0.5


def fold(parts: Sequence[str], width: int) -> str:
    """A line in parts, of which every other one (the second, the fourth …) is a code that takes no room."""
    texts = list(parts)
    if width_of("".join(texts[::2])) <= width:
        return "".join(texts)
    label = _label(texts[0], width)
    texts[0] = texts[0][:label] + _PADDING.sub("  ", texts[0][label:])
    texts[2::2] = [_PADDING.sub("  ", text) for text in texts[2::2]]
    line = "".join(texts[::2])
    hang = _hang(line, label, width)
    return "".join(_broken(texts, line, fold_offsets(line, width, hang), hang))


def fold_offsets(text: str, width: int, hang: int = 0) -> list[int]:
    """Where a line is broken; every line but the first has `hang` less room."""
    offsets: list[int] = []
    room, whole = width, width - hang
    for word in _WORD.finditer(text):
        size = width_of(word[0].rstrip())
        is_long = size > whole
        if word.start() and size > room and (not is_long or room < ROOM_SHARE * whole):
            offsets.append(word.start())
            room = whole
        for at, piece in _pieces(word, whole) if is_long and size > room else ((word.start(), word[0]),):
            if at and width_of(piece.rstrip()) > room and [at] != offsets[-1:]:
                offsets.append(at)
                room = whole
            room -= width_of(piece)
    return offsets


def _pieces(word: re.Match[str], width: int) -> Iterator[tuple[int, str]]:
    """The pieces of a long word, with their places: up to a sign, or as much as fits on a line."""
    for part in _PART.finditer(word[0]):
        is_long = width_of(part[0].rstrip()) > width
        for smaller in _SMALLER_PART.finditer(part[0]) if is_long else ():
            yield from _chopped(word.start() + part.start() + smaller.start(), smaller[0], width)
        if not is_long:
            yield word.start() + part.start(), part[0]


def _chopped(at: int, text: str, width: int) -> Iterator[tuple[int, str]]:
    left, start, taken = sum(map(width_of, text.rstrip())), 0, 0
    for end, sign in enumerate(text):
        size = width_of(sign)
        if start < end and taken + size > width and left > width:
            yield at + start, text[start:end]
            left, start, taken = left - taken, end, 0
        taken += size
    yield at + start, text[start:]


def _label(text: str, width: int) -> int:
    """The length of the label that a line begins with; 0 where it has none, or a long one."""
    found = _LABEL.match(text)
    return found.end() if found and width_of(found[0]) <= LABEL_SHARE * width else 0


def _hang(line: str, label: int, width: int) -> int:
    if branch := _BRANCH.match(line):
        return branch.end()
    indent = len(line) - len(line.lstrip())
    hang = label or indent + (2 if _LABEL.match(line) else 0)
    return hang if hang < width / 2 else 0


def _broken(parts: Sequence[str], line: str, offsets: Sequence[int], hang: int) -> Iterator[str]:
    """The parts with line ends at these places of the line, which every other part is a part of. Blanks before a line
    end are left out."""
    begins = set(offsets)
    blanks = {at for offset in offsets for at in _blanks_before(line, offset)}
    at = 0
    for number, part in enumerate(parts):
        if number % 2:
            yield part
            continue
        for sign in part:
            if at in begins:
                yield "\n" + " " * hang
            if at not in blanks:
                yield sign
            at += 1


def _blanks_before(line: str, offset: int) -> Iterator[int]:
    while offset and line[offset - 1].isspace():
        offset -= 1
        yield offset


def width_of(text: str) -> int:
    """In cells of the terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only for other signs than letters of English

    return cell_len(text)
