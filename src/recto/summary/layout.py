"""Layout: which lines of a text people wrote and which a machine did, by their looks. Pure."""

import re
from bisect import bisect_right
from dataclasses import dataclass

PROSE, MACHINE, OUTCOME, ROW = "prose", "machine", "outcome", "row"
"""An outcome is a machine's line that says what came of something, a row one of many that look alike."""

_FENCE = ("```", "~~~")
_LEVEL = r"(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b"
_LOOKS_WRITTEN = re.compile(
    rf"\s*(?:\d+[:|]|\[?\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|\[?{_LEVEL}|at \S+\(|File \"|bash-|\$ |>>>"
    r"|(?:import|from|def|class|return|const|let|var|func|fn|pub|static|void|int|#include)\s+[\w.{*<]+\s*[\w({=;:<,]*$"
    r"|[{}\[\]<>|+]+\s*$|//|/\*|#!|@@ |diff |[-+]{3} |\S+\s*[:=]\s*[\[{\"'\d])"
)
_CODE_SIGN = re.compile(r"[{}\[\]()<>=;|\\]")
_OUTCOME = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure)?|exception|warnings?|pass(?:ed|es)?|success\w*|found|total|results?|version|took|"
    r"expected|assert\w*|denied|not found|timed? ?out|completed|finished|coverage|exit code|flag)\b",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_LOOKED_AT = 400
# So many lines of one text that begin alike, figures aside, are a table.
_BEGINS, _MANY = 14, 4


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each line starts, what it is, and which stretches stand between fences."""

    starts: tuple[int, ...]
    kinds: tuple[str, ...]
    fences: tuple[tuple[int, int], ...]

    def at(self, place: int) -> str:
        at = bisect_right(self.starts, place) - 1
        return self.kinds[at] if at >= 0 else PROSE

    def fence_around(self, place: int) -> tuple[int, int] | None:
        at = bisect_right(self.fences, place, key=lambda fence: fence[0]) - 1
        return self.fences[at] if at >= 0 and place < self.fences[at][1] else None


def layout(text: str, *, by: str = "") -> Layout:
    """By their looks, unless `by` says that all of it is prose, or a machine's."""
    starts: list[int] = []
    kinds: list[str] = []
    fences: list[tuple[int, int]] = []
    alike: dict[str, list[int]] = {}
    place, opened = 0, -1
    for line in text.splitlines(keepends=True):
        if line == "\n":
            place += 1
            continue
        is_fence = line.lstrip().startswith(_FENCE)
        is_written = by == MACHINE or (not by and (opened >= 0 or is_fence or _is_written(line[:_LOOKED_AT])))
        starts.append(place)
        kinds.append((OUTCOME if _OUTCOME.search(line, 0, _LOOKED_AT) else MACHINE) if is_written else PROSE)
        if kinds[-1] == MACHINE:
            alike.setdefault(_DIGITS.sub("0", line[:_LOOKED_AT])[:_BEGINS], []).append(len(kinds) - 1)
        if is_fence and opened >= 0:
            fences.append((opened, place + len(line)))
            opened = -1
        elif is_fence and line.strip().count(line.strip()[:3]) == 1:
            opened = place
        place += len(line)
    if opened >= 0:
        fences.append((opened, place))
    for rows in alike.values():
        for row in rows if len(rows) >= _MANY else ():
            kinds[row] = ROW
    return Layout(tuple(starts), tuple(kinds), tuple(fences))


def _is_written(line: str) -> bool:
    """By how it begins, by its signs, or by having few words for its length."""
    if _LOOKS_WRITTEN.match(line) or len(_CODE_SIGN.findall(line)) * 12 > len(line):
        return True
    return len(line) > 28 and line.isascii() and 14 * (line.count(" ") + 1) < len(line)
