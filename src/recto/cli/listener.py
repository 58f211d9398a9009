"""Listeners show the events of a turn: the words for each event, and the plain listener for pipes and screen readers.

`screen.py` has the listener for terminals.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from recto import events
from recto.chat.blocks import ToolResult
from recto.cli import show
from recto.cli.drawing.transcripts import (
    ReferenceListener,
    event_in_words,
    plan_tree,
    progress_in_words,
    progress_line,
    remarks,
    request_in_words,
)
from recto.cli.drawing.windows import recalled_in_words
from recto.cli.options import has_keyboard
from recto.cli.terminal import revealed
from recto.events import Event
from recto.tasks.plan import UPDATE_PLAN

if TYPE_CHECKING:
    from rich.console import Console

    from recto.cli.terminal import Typeahead

ARGUMENTS_WIDTH = 60
KEPT = "stopped; the part received is kept"
NOT_RUN = {
    "denied": "not run: you said no",
    "unanswered": "not run: nobody was there to allow it",
    "changed": "not run: it has changed since you allowed it",
    "forbidden": "not run: its settings deny it",
}

Numbered = Callable[[Any], Any]
"""Replaces ids with numbers in a JSON value."""


class Listener(Protocol):
    """Receives a turn's events from the first to the end, even if it fails."""

    @property
    def answers(self) -> bool:
        """True if a user can answer questions."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def hear(self, event: Event) -> None: ...


def follow(turn: Generator[Event], listener: Listener, watch: Callable[[Event], None] | None = None) -> None:
    """Pass all events to the listener. Leaving early stops the reply and keeps the part received."""
    with closing(turn), listener:
        for event in turn:
            if watch:
                watch(event)
            listener.hear(event)


def in_words(event: Event) -> str | None:
    """The event in one line; None if the reply says it all."""
    match event:
        case events.Noticed(text=text) | events.Branched(text=text):
            return text
        case events.SummaryRequested():
            return request_in_words(event)
        case events.SummaryProgress():
            return progress_in_words(event)
        case events.Sent(window=window):
            return recalled_in_words(window)
        case events.FactLearned(number=number, text=text):
            return f"remembered: {show.shortened(text, 80)} (/memory forget {number} takes it back)"
        case events.Retrying():
            return f"{event.error.rstrip('.')}; trying again in {event.wait_s:.1f} s"
        case events.ToolFinished(call=call, result=result) if call.name == UPDATE_PLAN and not result.is_error:
            return None  # the plan itself is shown
        case events.PlanChanged(plan=plan):
            return progress_line(plan, event.step, event.max_steps)
        case events.ToolFinished(call=call, result=result):
            given = show.shortened(revealed(call.arguments, "\n\t"), ARGUMENTS_WIDTH)
            return f"{tool_named(call.name)} {given} → {show.shortened(_result(result), 100)}"
        case _:
            return None


def tool_named(call_name: str) -> str:
    """The display name (`github:create_issue`) of a tool's name for models (`github__create_issue`)."""
    server, parted, name = call_name.partition("__")
    return show.visible(f"{server}:{name}" if parted and server and name else call_name)


def _result(result: ToolResult) -> str:
    if result.approval in NOT_RUN:
        return NOT_RUN[result.approval]
    if result.is_error:
        return f"failed: {result.text}"
    files = f", {show.counted(len(result.media), 'file')} kept" if result.media else ""
    return show.counted(len(result.text), "character") + (" (cut; the whole is kept)" if result.whole else "") + files


class Lines:
    """The plain listener: streams the reply to stdout, ends it with a newline, and notes the rest on stderr."""

    def __init__(self, *, context: Numbered | None = None, console: "Console | None" = None) -> None:
        """`context` replaces ids with numbers, and turns on showing each window. `console` is where the user is asked;
        without it nobody is."""
        self._context, self._console = context, console if console and has_keyboard() else None
        self._at_start = True
        self._is_sent = False
        self._is_slow = False
        """True once a slow summary was reported."""
        is_terminal = sys.stderr is not None and sys.stderr.isatty() and not show.is_plain()
        self._gathered = ReferenceListener(is_terminal=is_terminal)

    @property
    def answers(self) -> bool:
        return self._console is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_line()
        if kind is KeyboardInterrupt and self._console:
            show.note(KEPT)

    def hear(self, event: Event) -> None:
        match event:
            case events.TextDelta(text=text):
                # set first, so that Ctrl-C right after the print still ends the line
                self._at_start = text.endswith("\n")
                show.hand_over(text)
            case events.Replied() | events.NotesQuoted():
                self._end_line()
            case events.Sent():
                self._tell_sent(event)
            case events.ContextCompacted():
                for line in (event_in_words(event), *remarks(event.notes, event.excerpts, event.checks)):
                    show.note(line)
                self._is_slow = False
            case events.SummaryProgress() if self._is_slow:
                pass  # told once: printed lines stay
            case events.ApprovalAsked() | events.CompactionProposed() | events.FactProposed() if self._console:
                from recto.cli.questions import answer  # prompt_toolkit: a fifth of a second

                self._end_line()
                answer(self._console, event)
            case _:
                self._is_slow = isinstance(event, events.SummaryProgress)
                if words := in_words(event):
                    show.note(words)
        if isinstance(event, events.PlanChanged):
            for line in plan_tree(event.goal, event.plan)[1:]:
                show.say(line, err=True)
        for line in self._gathered.hear(event):
            show.say_styled(line, err=True)

    def _tell_sent(self, event: events.Sent) -> None:
        """Report recalled messages once: later rounds of tool calls have the same ones."""
        if self._context and not self._is_sent:
            from recto.cli.drawing.windows import draw_window  # rich: a tenth of a second

            # on stderr: stdout is for the answer
            draw_window(show.console(err=True), self._context(event.window.to_json()))
        elif not self._is_sent and (words := in_words(event)):
            show.note(words)
        self._is_sent = True

    def _end_line(self) -> None:
        if not self._at_start:
            show.say("")
        self._at_start = True


def open_listener(
    *,
    thinking: bool = False,
    context: Numbered | None = None,
    stopped: str = KEPT,
    typeahead: "Typeahead | None" = None,
    waiting: Sequence[str] = (),
) -> Listener:
    """The listener for this stdout. `stopped` is printed after Ctrl-C; `typeahead` and `waiting` as in Screen."""
    if not sys.stdout.isatty():
        return Lines(context=context)
    if show.is_plain():
        return Lines(context=context, console=show.console())
    from recto.cli.screen import Screen  # rich: a tenth of a second

    return Screen(
        show.console(), thinking=thinking, context=context, stopped=stopped, typeahead=typeahead, waiting=waiting
    )
