"""Prose: what of a note is read, and what is not: its front matter's place, code and comments blanked out.

Everything here takes time in proportion to the text, whatever the text is.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FRONT_END = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# Every alternative starts with a letter of its own, so that the expression is skipped through, not tried everywhere.
_SIGN = re.compile(r"``*|~~~~*|%%|<!--")
_BEFORE_FENCE = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?")
_DEEPEST_FENCE = 1000
_FENCE_END = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t>\r]*\n")


def front_matter(text: str) -> tuple[int, int, int] | None:
    """Where the properties start and end, and where the text goes on; None when there are none."""
    opening = _FRONT.match(text)
    closing = _FRONT_END.search(text, opening.end()) if opening else None
    return (opening.end(), closing.start(), closing.end()) if opening and closing else None


def masked(text: str) -> str:
    """The same length and lines, with spaces where code and comments are. Front matter stays as it is."""
    front = front_matter(text)
    start = front[2] if front else 0
    if not _SIGN.search(text, start):
        return text
    parts, kept = [], 0
    for begin, end in _Masks(text).after(start):
        parts += [text[kept:begin], _blank(text[begin:end])]
        kept = end
    return "".join([*parts, text[kept:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


class _Masks:
    """Code and comments of one text, from the front to the back."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._runs: dict[int, list[int]] | None = None
        self._paragraph_end = -1
        self._unclosed: set[str] = set()

    def after(self, at: int) -> Iterator[tuple[int, int]]:
        while found := _SIGN.search(self.text, at):
            end = self._end(found)
            if end is None:
                at = found.end()
                continue
            yield found.start(), end
            at = end

    def _end(self, found: re.Match[str]) -> int | None:
        """Where what begins here ends; None when it is only a sign in the text."""
        sign = found[0]
        if sign[0] in "`~" and len(sign) >= 3 and self._is_fence(found):
            return self._fence_end(sign, found.end())
        if sign[0] == "`":
            return self._code_end(*found.span())
        return None if sign[0] == "~" else self._comment_end("%%" if sign == "%%" else "-->", found.end())

    def _is_fence(self, found: re.Match[str]) -> bool:
        start, end = found.span()
        line = self.text.rfind("\n", max(0, start - _DEEPEST_FENCE), start) + 1
        if not _BEFORE_FENCE.fullmatch(self.text, line, start):
            return False
        # backticks with more of them in their line are code within the text
        return found[0][0] == "~" or self.text.find("`", end, self._line_end(end)) < 0

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _comment_end(self, sign: str, at: int) -> int | None:
        """A comment that nobody closes is no comment: `100 %% sure` hides nothing."""
        closing = -1 if sign in self._unclosed else self.text.find(sign, at)
        if closing < 0:
            self._unclosed.add(sign)
        return closing + len(sign) if closing >= 0 else None

    def _fence_end(self, fence: str, at: int) -> int:
        """A fence that nobody closes goes on to the end, as everywhere in Markdown."""
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
            and following.start() <= self._end_of_paragraph(end)
        ):
            return following.end()
        starts = self._all_runs().get(size, [])
        at = bisect_right(starts, start)
        if at == len(starts) or starts[at] > self._end_of_paragraph(end):
            return None
        return starts[at] + size

    def _all_runs(self) -> dict[int, list[int]]:
        if self._runs is None:
            self._runs = {}
            for run in _TICKS.finditer(self.text):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        return self._runs

    def _end_of_paragraph(self, at: int) -> int:
        if at > self._paragraph_end:
            blank = _BLANK_LINE.search(self.text, at)
            self._paragraph_end = blank.start() if blank else len(self.text)
        return self._paragraph_end
