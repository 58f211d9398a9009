"""The listener for terminals: prints finished Markdown once and redraws only the unfinished tail.

Unfinished lines never scroll, so a reply longer than the screen is neither torn nor doubled. Markdown: splitting off
finished blocks, and drawing blocks.
"""

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from types import TracebackType
from typing import ClassVar, Self

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct, field
from pygments.lexer import Lexer
from pygments.util import ClassNotFound
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.spinner import Spinner
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from recto import events
from recto.base.patient_lexer import PatientLexer
from recto.cli.drawing.transcripts import ReferenceListener, event_in_words, plan_tree, remarks, work_in_words
from recto.cli.drawing.windows import draw_window, rule
from recto.cli.listener import KEPT, Numbered, in_words, tool_named
from recto.cli.options import has_keyboard
from recto.cli.show import shortened, visible
from recto.cli.terminal import Typeahead, echo
from recto.events import Event

MARK = "› "
REFRESHES_PER_S = 12
READY = "getting ready"
RUNNING_WIDTH = 60
# Most waiting messages and lines of typed text shown below a reply.
MOST_QUEUED, MOST_TYPED = 3, 3
TAKE_BACK = " (↑ takes it back)"
# Shorter waits are not shown.
PATIENCE_S = 0.5
# Longer lines are hard to read, however wide the terminal is.
WIDEST = 100

log = logging.getLogger(__name__)


class Waiting:
    """A spinner with a word and the seconds, after a short delay."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._since = time.monotonic()
        self._spinner = Spinner("dots", style="dim")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        waited_s = time.monotonic() - self._since
        if self.label and waited_s >= PATIENCE_S:
            seconds = f" {waited_s:.0f} s" if waited_s >= 3 else ""
            self._spinner.update(text=Text(f"{visible(self.label)}…{seconds}", "dim"))
            yield self._spinner


class Bottom:
    """The last lines of something taller."""

    def __init__(self, shown: RenderableType, most: int) -> None:
        self._shown, self._most = shown, most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._shown, options, pad=False)[-self._most :]:
            yield from line
            yield Segment.line()


class Screen:
    def __init__(
        self,
        console: Console,
        *,
        thinking: bool = False,
        context: Numbered | None = None,
        stopped: str = KEPT,
        typeahead: Typeahead | None = None,
        waiting: Sequence[str] = (),
    ) -> None:
        """`typeahead` reads the keys during a reply and fills `waiting`. `context` as in Lines."""
        self._console = console
        self._thinking = thinking
        self._typeahead, self._queued = typeahead, waiting
        self._context = context
        self._stopped = stopped
        self._reply = Growing()
        self._thought = ""
        self._is_sent = False
        self._running: dict[str, str] = {}
        """Running tools: call id -> name."""
        self._gathered = ReferenceListener(is_terminal=True)
        self._last = ""
        """The last print: a "block" of the reply or another "line". An empty line separates the two."""
        self._waiting = Waiting(READY)
        self._live = self._new_live()
        # rich's refresh thread may draw between the two halves of a print, which then erases the wrong lines
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="recto-screen", daemon=True)
        self._open = ExitStack()

    def _new_live(self) -> Live:
        return Live(
            self,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    @property
    def answers(self) -> bool:
        return has_keyboard()

    def __enter__(self) -> Self:
        self._open.enter_context(echo(False))
        self._live.start()
        self._ticker.start()
        if self._typeahead:
            self._typeahead.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._typeahead:
            self._typeahead.stop()
        self._is_over.set()
        self._ticker.join()
        rest, self._reply = self._reply.end(), Growing()
        self._waiting = Waiting("")
        self._live.stop()
        self._open.close()
        self._end_thought()
        self._print_blocks(rest)
        if kind is KeyboardInterrupt:
            self._line(self._stopped)
        elif kind is not None and self._last:
            self._console.print()

    def _tick(self) -> None:
        while not self._is_over.wait(1 / REFRESHES_PER_S):
            with self._lock:
                self._live.refresh()

    def hear(self, event: Event) -> None:
        with self._lock:
            # first, because every print redraws the wait below itself
            self._wait_for(event)
            self._tell(event)
            for line in self._gathered.hear(event):
                self._print_line(Text.from_ansi(line))

    def _tell(self, event: Event) -> None:
        match event:
            case events.TextDelta(text=text):
                self._end_thought()
                self._print_blocks(self._reply.add(visible(text)))
            case events.ThinkingDelta(text=text) if self._thinking:
                *lines, self._thought = (self._thought + visible(text)).split("\n")
                for line in lines:
                    self._print_line(Text(line, "dim italic"))
            case events.Replied() | events.NotesQuoted():
                self._end_thought()
                self._print_blocks(self._reply.end())
            case events.Appended(waited=waited) if waited:
                self._enter(event.message.text)
            case events.ApprovalAsked() | events.CompactionProposed() | events.FactProposed():
                self._ask(event)
            case events.ContextCompacted():
                self._print_line(rule(event_in_words(event), self._console.width))
                for line in remarks(event.notes, event.excerpts, event.checks):
                    self._line(line)
            case events.Sent():
                self._tell_sent(event)
            case events.SummaryProgress():
                pass  # the wait shows it
            case _:
                if words := in_words(event):
                    self._line(words)
        if isinstance(event, events.PlanChanged):
            for line in plan_tree(event.goal, event.plan, width=self._console.width - 1)[1:]:
                self._print_line(Text(line, "dim", no_wrap=True))

    def _wait_for(self, event: Event) -> None:
        if isinstance(event, events.ToolStarted):
            self._running[event.call.id] = tool_named(event.call.name)
        elif isinstance(event, events.ToolFinished):
            self._running.pop(event.call.id, None)
        label = self._label(event)
        if label != self._waiting.label or isinstance(event, events.TextDelta | events.ThinkingDelta):
            self._waiting = Waiting(label)

    def _label(self, event: Event) -> str:
        match event:
            case events.Working():
                return work_in_words(event)
            case events.Sent():
                return f"waiting for {event.window.model}"
            case events.SummaryRequested() | events.SummaryProgress():
                return in_words(event) or ""
            case events.ToolStarted() | events.ToolFinished() | events.ContextCompacted():
                return self._at_work()
            case _:
                return self._waiting.label

    def _at_work(self) -> str:
        names = ", ".join(dict.fromkeys(self._running.values()))
        return f"calling {shortened(names, RUNNING_WIDTH)}" if names else READY

    def _enter(self, text: str) -> None:
        """Move waiting messages that entered the conversation above the reply."""
        if self._last:
            self._console.print()
        self._console.print(Text(f"{MARK}{visible(text)}"))
        self._last = "block"

    def _tell_sent(self, event: events.Sent) -> None:
        """Report recalled messages once: later rounds of tool calls have the same ones."""
        if self._context and not self._is_sent:
            draw_window(self._console, self._context(event.window.to_json()))
        elif not self._is_sent and (words := in_words(event)):
            self._line(words)
        self._is_sent = True

    def _ask(self, event: Event) -> None:
        """Ask the user. Without a keyboard the engine records that nobody was asked. Ctrl-C stops the turn."""
        from recto.cli.questions import answer  # it draws summaries with what is here

        if not has_keyboard():
            return
        if self._last == "block":
            self._console.print()
        self._last = "line"
        try:
            with self._paused():
                answer(self._console, event)
        except KeyboardInterrupt:
            self._print_line("")
            raise

    @contextmanager
    def _paused(self) -> Iterator[None]:
        """Stop drawing and let the user type. The caller holds the lock, so nothing is drawn meanwhile."""
        self._waiting = Waiting("")
        self._live.stop()
        if self._typeahead:
            self._typeahead.stop()
        try:
            with echo(True):
                yield
        finally:
            if self._typeahead:
                self._typeahead.start()
            # a restarted Live would move up over its earlier lines
            self._live, self._waiting = self._new_live(), Waiting(self._at_work())
            self._live.start()

    def _print_blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            if self._last:
                self._console.print()
            self._console.print(Page(block), crop=False)
            self._last = "block"

    def _end_thought(self) -> None:
        if self._thought:
            self._print_line(Text(self._thought, "dim italic"))
        self._thought = ""

    def _line(self, text: str) -> None:
        self._print_line(Text(f"· {visible(text)}", "dim"))

    def _print_line(self, line: RenderableType) -> None:
        if self._last == "block":
            self._console.print()
        self._console.print(line)
        self._last = "line"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The changeable bottom of the screen."""
        most = max(4, console.size.height - 3 - len(self._queued[-MOST_QUEUED:]) - MOST_TYPED)
        if tail := self._reply.tail:
            if self._last:
                yield Text()
            yield Bottom(Page(last_lines(tail, most)), most)
        elif self._thought:
            yield Bottom(Text(self._thought, "dim italic"), most)
        else:
            yield self._waiting
        for text in self._queued[-MOST_QUEUED:]:
            yield Text(f"waiting: {shortened(text, console.width - len(TAKE_BACK) - 10)}{TAKE_BACK}", "dim")
        if self._typeahead and self._typeahead.text:
            yield Text(f"{MARK}{last_lines(visible(self._typeahead.text), MOST_TYPED)}▏")


# -- Markdown


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
