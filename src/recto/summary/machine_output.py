"""Machine output: tells logs, code, tables and encoded data from the prose that people write, by how a line looks."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from recto.text import text_cache

FENCES = ("```", "~~~")
PROSE, MACHINE, OUTCOME, ROW, QUOTED = "prose", "machine", "outcome", "row", "quoted"
"""Kinds of lines. An outcome is machine output that reports a result; a row is one of many lines that look alike; what
is quoted, others than the author have said."""

_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b"
# "[10-Feb-2026 08:12:44 UTC]", "Feb 10 08:12:44 web1", "10.0.0.7 - - [10/Feb/2026:08:12:44"
_DATED = (
    r"(?:\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ )?\[?(?:\w{3} )?\d{1,2}[-/ ][A-Z][a-z]{2}[-/ ]\d{4}[ :T]\d\d:\d\d"
    r"|\[?(?:\w{3} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
)
_MACHINE_START = re.compile(
    rf"\s*(?:\d+[:|]|{_DATED}|\[?\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|\[?{_LEVEL}|at \S+\(|File \"|bash-"
    r"|\$ |>>>"
    r"|(?:import|from|def|class|return|const|let|var|func|fn|pub|static|void|int|#include)\s+[\w.{*<]+\s*[\w({=;:<,]*$"
    r"|[{}\[\]<>|+]+\s*$|//|/\*|#!|@@ |diff |[-+]{3} |\S+\s*[:=]\s*[\[{\"'\d])"
)
_CODE_CHAR = re.compile(r"[{}\[\]()<>=;|\\]")
_OUTCOME = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure)?|exception|warnings?|pass(?:ed|es)?|success\w*|found|total|results?|version|took|"
    r"expected|assert\w*|denied|not found|timed? ?out|completed|finished|coverage|exit code|flag)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_MAX_INSPECTED = 400
# A text with this many lines that start alike, digits aside, contains a table.
_ROW_PREFIX, _MIN_ROWS = 14, 4


class LineKinds(Struct, frozen=True):
    """Where each line of a text starts, its kind, and which ranges lie between fences."""

    starts: tuple[int, ...]
    kinds: tuple[str, ...]
    fences: tuple[tuple[int, int], ...]

    def at(self, offset: int) -> str:
        index = bisect_right(self.starts, offset) - 1
        return self.kinds[index] if index >= 0 else PROSE

    def fence_at(self, offset: int) -> tuple[int, int] | None:
        index = bisect_right(self.fences, offset, key=lambda fence: fence[0]) - 1
        return self.fences[index] if index >= 0 and offset < self.fences[index][1] else None


def readable_output(text: str) -> str:
    """Tool output as a person reads it: the texts in JSON have their line breaks."""
    return text.replace("\\n", "\n") if text.lstrip()[:1] in ("{", "[") else text


def classify_lines(text: str, *, author: str = "") -> LineKinds:
    """Classifies lines by their looks, unless `author` says that all of the text is PROSE or MACHINE output."""
    starts: list[int] = []
    kinds: list[str] = []
    fences: list[tuple[int, int]] = []
    similar: dict[str, list[int]] = {}
    offset, fence_start = 0, -1
    for line in text.splitlines(keepends=True):
        if line == "\n":
            offset += 1
            continue
        is_fence = line.lstrip().startswith(FENCES)
        in_code = fence_start >= 0 or is_fence
        is_machine = author == MACHINE or (not author and (in_code or _looks_like_machine(line[:_MAX_INSPECTED])))
        starts.append(offset)
        kinds.append(_machine_kind(line) if is_machine else PROSE)
        if kinds[-1] == MACHINE:
            similar.setdefault(_DIGITS.sub("0", line[:_MAX_INSPECTED])[:_ROW_PREFIX], []).append(len(kinds) - 1)
        if is_fence and fence_start >= 0:
            fences.append((fence_start, offset + len(line)))
            fence_start = -1
        elif is_fence and line.strip().count(line.strip()[:3]) == 1:
            fence_start = offset
        offset += len(line)
    if fence_start >= 0:
        fences.append((fence_start, offset))
    if kinds == [MACHINE] and not author and _LABELLED.match(text.strip()):
        kinds = [PROSE]  # a message of one line, as people write
    _mark_rows(kinds, similar.values())
    return LineKinds(tuple(starts), tuple(kinds), tuple(fences))


# "final: 580, 30 days"
_LABELLED = re.compile(
    r"(?!(?:error|status|exit|code|line|warning|total|pid|port|info|debug|count|size|time|duration)\b)"
    r"[^\W\d_]+(?: [^\W\d_]+){0,2}: [€$£]?\d[^{}=<>|\\_\n]{2,120}$",
    re.IGNORECASE,
)


def _machine_kind(line: str) -> str:
    return OUTCOME if _OUTCOME.search(line, 0, _MAX_INSPECTED) else MACHINE


def _mark_rows(kinds: list[str], groups: Iterable[list[int]]) -> None:
    for rows in groups:
        for row in rows if len(rows) >= _MIN_ROWS else ():
            kinds[row] = ROW


# So many prose lines of the same shape, or short ones in a row that end no sentence, were pasted.
_MIN_SHAPED, _MIN_LISTED, _MAX_LISTED_LENGTH = 6, 16, 80
_WORDS = re.compile(r"[^\W\d_]+(?:['’ -]{1,2}[^\W\d_]+)*")
_AMOUNTS = re.compile(r"\d[\d.,:/ -]*")
_CELL_MARKS = re.compile(r"[,;\t|0]|\s{2}")
_ENDS_SENTENCE = re.compile(r"[.!?:。！？][\"'”’)*_]*$")


def mark_pasted(text: str, lines: LineKinds) -> LineKinds:
    """The lines with those marked as rows that nobody wrote one by one: tables, lists, exported records."""
    if len(lines.starts) <= MIN_CELL_ROWS:
        return lines
    kinds = list(lines.kinds)
    ends = (*lines.starts[1:], len(text))
    for row in table_rows([text[start:end].strip() for start, end in zip(lines.starts, ends, strict=True)]):
        kinds[row] = ROW if kinds[row] == PROSE else kinds[row]
    if len(lines.starts) < _MIN_SHAPED:
        return LineKinds(lines.starts, tuple(kinds), lines.fences)
    shapes: dict[str, list[int]] = {}
    listed: list[int] = []
    for at, (start, end) in enumerate(zip(lines.starts, ends, strict=True)):
        line = text[start:end].strip()[:_MAX_INSPECTED]
        shape = _AMOUNTS.sub("0", _WORDS.sub("a", line)) if kinds[at] in (PROSE, OUTCOME) else ""
        if len(_CELL_MARKS.findall(shape)) > 1:
            shapes.setdefault(shape, []).append(at)
        if kinds[at] != PROSE:
            continue
        if len(line) > _MAX_LISTED_LENGTH or _ENDS_SENTENCE.search(line):
            listed = _mark_list(kinds, listed)
        else:
            listed.append(at)
    _mark_list(kinds, listed)
    for rows in shapes.values():
        for row in rows if len(rows) >= _MIN_SHAPED else ():
            kinds[row] = ROW
    _fill_gaps(kinds)
    return LineKinds(lines.starts, tuple(kinds), lines.fences)


_BARS = re.compile(r"\s*\|\s*")
# Of names: "Nadia van Dijk".
_PARTICLES = frozenset(["van", "von", "der", "den", "del", "della", "dos", "das", "ten", "ter", "bin", "ibn"])


def is_row(line: str) -> bool:
    """Whether a single line has cells and no words between them."""
    shape = _AMOUNTS.sub("0", _WORDS.sub("a", line))
    if len(_CELL_MARKS.findall(shape)) < 2:
        return False
    if all(cell.count(" ") < 2 for cell in _BARS.split(line.strip(" |"))) and line.count("|") > 1:
        return True
    return not any(len(word) > 2 and word.islower() and word not in _PARTICLES for word in line.split())


MIN_CELL_ROWS, _MAX_CELLS = 3, 160
"""So many lines with two figures or more, and few words before them, are a table."""
_CELLS = re.compile(
    r"(?:\|? ?[^\s|;]++[ \t|;]++){1,4}(?>(?:[-+]?[€$£]?\d[\d.,:]*+(?>(?:%|[^\W\d_]{1,2}+)?)(?:[ \t|;]++|$)){2,})[^\d]*$"
)


# Every row has two figures with a gap between them.
_TWO_FIGURES = re.compile(r"\d[^\d]*[ \t|;][^\d]*\d")


@text_cache(4096)  # the summary and the ledger ask
def has_cells(line: str) -> bool:
    """Whether a line has figures side by side, as a row of a table that is written without bars."""
    return len(line) <= _MAX_CELLS and _TWO_FIGURES.search(line) is not None and _CELLS.match(line) is not None


def table_rows(lines: Sequence[str]) -> set[int]:
    """The places of rows with figures, which say nothing alone, and of the headings above them."""
    is_row, rows = [has_cells(line) for line in lines], _separated_rows(lines)
    for at in range(len(lines) - MIN_CELL_ROWS + 1):
        if all(is_row[at : at + MIN_CELL_ROWS]):
            is_heading = at and at - 1 not in rows and not _ENDS_SENTENCE.search(lines[at - 1])
            rows.update(range(at - bool(is_heading), at + MIN_CELL_ROWS))
    return rows


# So many lines in a row with the same marks between short cells are a list that somebody exported; a short one may be
# written by hand.
_MIN_SEPARATED, _MAX_SEPARATED = 9, 160
_SEPARATORS = {";": 2, "\t": 2, "|": 2, ",": 3}


def _separated_rows(lines: Sequence[str]) -> set[int]:
    """Rows by their marks alone: "Vogel; Ines; ines@choir.example". With commas they look like sentences, so they must
    end like none."""
    rows, run = set[int](), list[int]()
    for mark, least in _SEPARATORS.items() if len(lines) >= _MIN_SEPARATED else ():
        counts = [line.count(mark) if len(line) <= _MAX_SEPARATED else 0 for line in lines]
        for at, (number, line) in enumerate(zip((*counts, 0), (*lines, ""), strict=True)):
            is_cells = number >= least and (mark != "," or not _ENDS_SENTENCE.search(line))
            if run and not (is_cells and number == counts[run[0]]):
                rows.update(run if len(run) >= _MIN_SEPARATED else ())
                run = []
            run += [at] if is_cells else []
    return rows


def _mark_list(kinds: list[str], listed: list[int]) -> list[int]:
    for row in listed if len(listed) >= _MIN_LISTED else ():
        kinds[row] = ROW
    return []


def _fill_gaps(kinds: list[str]) -> None:
    """A line between two rows is one too, of another shape."""
    for at in range(1, len(kinds) - 1):
        if kinds[at] == PROSE and kinds[at - 1] == ROW and ROW in kinds[at + 1 : at + 3]:
            kinds[at] = ROW


def _looks_like_machine(line: str) -> bool:
    """By its start, by its punctuation, or by having few words for its length."""
    if _MACHINE_START.match(line) or has_code_punctuation(line):
        return True
    return len(line) > 28 and line.isascii() and 14 * (line.count(" ") + 1) < len(line)


def has_code_punctuation(line: str) -> bool:
    return len(_CODE_CHAR.findall(line)) * 12 > len(line)


_MACHINE_SENTENCE = re.compile(
    rf"{_DATED}|"
    r"\W*(?:\d{2,4}[-/.]\d\d[-/.]\d\d[T ,]+)?\d\d:\d\d:\d\d|\[?(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL)\b"
    r"|\d+:\s|\s*(?:at \S+\(|File \"|Traceback \(|\[(?:\*|x|\+|-|File:)|[{}<|>]|\(\w+ \w+: )"
)


def is_machine_made(sentence: str) -> bool:
    """Whether a single sentence looks like a line of a log, a traceback or a listing."""
    return _MACHINE_SENTENCE.match(sentence) is not None


# Sentences of this kind that fill most of an output, at least so many, are reading matter.
_SENTENCE_OF_DOCUMENT = re.compile(r"(?<![^\s\"“(])[A-ZÄÖÜÉ¿][^.!?\n{}=<>|]{28,}[.!?。]")
_MIN_DOCUMENT, _DOCUMENT_SHARE, _MAX_READ = 4, 0.6, 4000


def is_document(output: str) -> bool:
    """Whether a tool returned a text that somebody wrote, as a page or a note."""
    read = output[:_MAX_READ]
    found = _SENTENCE_OF_DOCUMENT.findall(read)
    return len(found) >= _MIN_DOCUMENT and sum(map(len, found)) >= _DOCUMENT_SHARE * len(read.strip())


_WORD_CHAR = re.compile(r"[^\W_]")
_PROSE_WORDS = re.compile(r"[^\W\d_]{3,} [^\W\d_]{2,} ")
_UNBROKEN = re.compile(r"[A-Za-z0-9+/=_\-]{40,}+")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{2,}[:,.]?")
_FENCE_LINE = re.compile(r"(?:```|~~~)\S*$")


def is_noise(sentence: str) -> bool:
    """Whether it is brackets, a fence, base64 or hexadecimal: characters that tell a reader nothing."""
    start = sentence[:_MAX_INSPECTED]
    if not start[:1].isalnum() and (not _WORD_CHAR.search(start) or _FENCE_LINE.match(start)):
        return True
    if len(start) < 40 or (len(start) < 160 and _PROSE_WORDS.search(start)):
        return False
    encoded = sum(len(run) for run in _UNBROKEN.findall(start) if _is_encoded(run))
    return encoded * 5 > len(start) * 3 or _is_hex(start.split())


def _is_encoded(run: str) -> bool:
    """Base64 mixes cases and hexadecimal is never a word; paths and slugs consist of short pieces."""
    pieces = max(run.count("/"), run.count("-"), run.count("_"))
    if pieces * 20 > len(run) or not any(char.isdigit() for char in run):
        return False
    return (run != run.lower() and run != run.upper()) or _HEX.fullmatch(run) is not None


def _is_hex(words: list[str]) -> bool:
    found = [word for word in words if _HEX.fullmatch(word)]
    return len(found) >= 8 and len(found) * 5 > len(words) * 3 and not all(word.isdigit() for word in found)
