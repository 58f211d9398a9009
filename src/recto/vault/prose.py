"""Prose: finds a note's front matter, and masks its code and comments.

The time is proportional to the length, whatever the text is. This is our own code because Markdown parsers do not say
where in a line something is, and do not know %% comments.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FRONT_END = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# Every alternative starts with its own literal, so that the search can skip ahead.
_OPENING = re.compile(r"``*|~~~~*|%%|<!--")
_FENCE_INDENT = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?")
_MAX_FENCE_INDENT = 1000
_FENCE_END = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t>\r]*\n")


def front_matter(text: str) -> tuple[int, int, int] | None:
    """Where the properties start and end, and where the text continues; None if there are none."""
    opening = _FRONT.match(text)
    closing = _FRONT_END.search(text, opening.end()) if opening else None
    return (opening.end(), closing.start(), closing.end()) if opening and closing else None


def mask_code(text: str) -> str:
    """The text with spaces in place of code and comments; same length, same lines. Front matter stays."""
    front = front_matter(text)
    start = front[2] if front else 0
    if not _OPENING.search(text, start):
        return text
    parts, done = [], 0
    for begin, end in _Scanner(text).spans(start):
        parts += [text[done:begin], _blank(text[begin:end])]
        done = end
    return "".join([*parts, text[done:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


class _Scanner:
    """Finds code and comments from the beginning of a text to its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tick_starts: dict[int, list[int]] | None = None
        self._paragraph_end = -1
        self._unclosed: set[str] = set()

    def spans(self, at: int) -> Iterator[tuple[int, int]]:
        while opening := _OPENING.search(self.text, at):
            end = self._end(opening)
            if end is None:
                at = opening.end()
                continue
            yield opening.start(), end
            at = end

    def _end(self, opening: re.Match[str]) -> int | None:
        """Where the code or comment ends; None if the marker is ordinary text."""
        marker = opening[0]
        if marker[0] in "`~" and len(marker) >= 3 and self._is_fence(opening):
            return self._fence_end(marker, opening.end())
        if marker[0] == "`":
            return self._code_end(*opening.span())
        return None if marker[0] == "~" else self._comment_end("%%" if marker == "%%" else "-->", opening.end())

    def _is_fence(self, opening: re.Match[str]) -> bool:
        start, end = opening.span()
        line = self.text.rfind("\n", max(0, start - _MAX_FENCE_INDENT), start) + 1
        if not _FENCE_INDENT.fullmatch(self.text, line, start):
            return False
        # backticks with more backticks on their line are inline code
        return opening[0][0] == "~" or self.text.find("`", end, self._line_end(end)) < 0

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _comment_end(self, marker: str, at: int) -> int | None:
        """An unclosed comment is ordinary text: `100 %% sure` hides nothing."""
        closing = -1 if marker in self._unclosed else self.text.find(marker, at)
        if closing < 0:
            self._unclosed.add(marker)
        return closing + len(marker) if closing >= 0 else None

    def _fence_end(self, fence: str, at: int) -> int:
        """An unclosed fence extends to the end, as in Markdown."""
        for closing in _FENCE_END.finditer(self.text, at):
            if closing[1].startswith(fence):
                return closing.end()
        return len(self.text)

    def _code_end(self, start: int, end: int) -> int | None:
        size = end - start
        if self.text[start - 1 : start] == "\\":
            size -= 1
        following = _TICKS.search(self.text, end)
        if (
            following
            and following.end() - following.start() == size
            and following.start() <= self._paragraph_end_after(end)
        ):
            return following.end()
        starts = self._tick_runs().get(size, [])
        at = bisect_right(starts, start)
        if at == len(starts) or starts[at] > self._paragraph_end_after(end):
            return None
        return starts[at] + size

    def _tick_runs(self) -> dict[int, list[int]]:
        if self._tick_starts is None:
            self._tick_starts = {}
            for run in _TICKS.finditer(self.text):
                self._tick_starts.setdefault(run.end() - run.start(), []).append(run.start())
        return self._tick_starts

    def _paragraph_end_after(self, at: int) -> int:
        if at > self._paragraph_end:
            blank = _BLANK_LINE.search(self.text, at)
            self._paragraph_end = blank.start() if blank else len(self.text)
        return self._paragraph_end
