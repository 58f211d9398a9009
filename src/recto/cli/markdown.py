"""Streaming Markdown: splitting off finished blocks, and drawing blocks. Knows no events."""

import logging
from itertools import pairwise
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct, field
from pygments.lexer import Lexer
from pygments.util import ClassNotFound
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from recto.base.patient_lexer import PatientLexer

# Longer lines are hard to read, however wide the terminal is.
WIDEST = 100

log = logging.getLogger(__name__)


def _parser() -> MarkdownIt:
    # rendering would drop tags and link definitions
    return MarkdownIt().enable(["strikethrough", "table"]).disable(["html_block", "html_inline", "reference"])


class LeftHeading(Heading):
    """A left-aligned heading."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class WholeCode(CodeBlock):
    """Code line by line as written: the terminal wraps long lines, so that they are copied whole."""

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> CodeBlock:
        # in a list or a quotation lines are prefixed, and long ones would be cut
        return super().create(markdown, token) if token.level == 0 else CodeBlock.create(markdown, token)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip("\n")
        coloured = Syntax(code, _lexer(self.lexer_name), theme=self.theme).highlight(code)
        for line in coloured.split("\n", allow_blank=True)[: code.count("\n") + 1]:
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def _lexer(name: str) -> Lexer | str:
    try:
        return PatientLexer(name, tabsize=4)
    except ClassNotFound:
        return name


class WholeTable(TableElement):
    """A table that wraps cells instead of cutting them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for drawn in super().__rich_console__(console, options):
            for column in drawn.columns if isinstance(drawn, Table) else ():
                column.overflow = "fold"
            yield drawn


class WholeMarkdown(Markdown):
    """Markdown without rich's omissions."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": LeftHeading,
        "fence": WholeCode,
        "code_block": WholeCode,
        "table_open": WholeTable,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _parser().parse(text)


class Page:
    """A text drawn as Markdown, without the empty lines that some blocks add. Print with `crop=False`, which keeps long
    lines of code whole."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.update(max_width=min(options.max_width, WIDEST), height=None)
        try:
            lines = list(Segment.split_lines(console.render(WholeMarkdown(self._text), narrow)))
        except Exception:  # show the reply even if the renderer fails
            log.exception("Markdown could not be drawn; it is shown as plain text")
            lines = console.render_lines(Text(self._text), narrow, pad=False)
        told = [place for place, line in enumerate(lines) if any(segment.text.strip() for segment in line)]
        for line in lines[told[0] : told[-1] + 1] if told else ():
            yield from line
            yield Segment.line()


class Growing(Struct):
    """A streamed text. `add()` returns the blocks that can no longer change; the rest is the tail."""

    tail: str = ""
    _parser: MarkdownIt = field(default_factory=_parser)

    def add(self, text: str) -> list[str]:
        """Add text, and return the blocks that it finishes."""
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

        left, self.tail = self.tail, ""
        return [left] if left.strip() else []

    def _starts(self) -> list[int]:
        """The lines where top-level blocks begin. The last, unfinished line does not count: it may still change."""
        whole = self.tail[: self.tail.rindex("\n") + 1]
        return [token.map[0] for token in self._parser.parse(whole) if token.level == 0 and token.map]


def last_lines(tail: str, most: int) -> str:
    """The last lines of a long block; a code block keeps its opening fence."""
    lines = tail.split("\n")
    if len(lines) <= most:
        return tail
    opening = lines[:1] if lines[0].lstrip().startswith(("```", "~~~")) else []
    return "\n".join([*opening, *lines[-most:]])
