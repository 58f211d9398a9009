"""Markdown as it streams: which blocks are finished, and how a block is drawn. Knows text only, no events."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.text import Text

# Lines longer than this are hard to read, however wide the terminal is.
WIDEST = 100


def _parser() -> MarkdownIt:
    # tags and link definitions would vanish from the screen, and with them what was said
    return MarkdownIt().enable(["strikethrough", "table"]).disable(["html_block", "html_inline", "reference"])


class LeftHeading(Heading):
    """At the left, as the text is."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class WholeMarkdown(Markdown):
    """Markdown with nothing that was said left out."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": LeftHeading}

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _parser().parse(text)


class Page:
    """A text drawn as Markdown, without the empty lines that some blocks bring along."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.update(max_width=min(options.max_width, WIDEST), height=None)
        try:
            lines = console.render_lines(WholeMarkdown(self._text), narrow, pad=False)
        except Exception:  # a renderer that stumbles over odd Markdown must not cost the user the reply
            lines = console.render_lines(Text(self._text), narrow, pad=False)
        told = [place for place, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
        for line in lines[told[0] : told[-1] + 1] if told else ():
            yield from line
            yield Segment.line()


@dataclass(slots=True)
class Growing:
    """A text that comes in pieces. Blocks that can no longer change are handed out; the rest is the tail."""

    tail: str = ""
    _parser: MarkdownIt = field(default_factory=_parser)

    def add(self, text: str) -> list[str]:
        """The blocks that are finished by this text."""
        self.tail += text
        if "\n" not in text:
            return []
        starts = self._starts()
        if len(starts) < 2:
            return []
        lines = self.tail.split("\n")
        self.tail = "\n".join(lines[starts[-1] :])
        return ["\n".join(lines[one:other]) for one, other in pairwise(starts)]

    def end(self) -> list[str]:
        """What is left, as blocks."""
        left, self.tail = self.tail, ""
        return [left] if left.strip() else []

    def _starts(self) -> list[int]:
        """The lines where top-level blocks begin. Only whole lines count: the last one may still become anything."""
        whole = self.tail[: self.tail.rindex("\n") + 1]
        return [token.map[0] for token in self._parser.parse(whole) if token.level == 0 and token.map]


def last_lines(tail: str, most: int) -> str:
    """The end of a long block, still drawn as what it is: a code block keeps its opening fence."""
    lines = tail.split("\n")
    if len(lines) <= most:
        return tail
    opening = lines[:1] if lines[0].lstrip().startswith(("```", "~~~")) else []
    return "\n".join([*opening, *lines[-most:]])
