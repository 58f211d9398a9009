"""PlainLines: the listener for screen readers. Whole lines, and a sentence for a wait; nothing is redrawn."""

import threading
from types import TracebackType

from rich.console import Console

from recto.cli.drawing.transcripts import work_in_words
from recto.cli.listener import KEPT, Lines, Numbered, tool_named
from recto.cli.options import has_keyboard
from recto.cli.questions import ask_approval, ask_compaction, ask_fact
from recto.cli.show import say
from recto.events import ApprovalAsked, CompactionProposed, Event, FactProposed, Sent, ToolStarted, Working

# A shorter wait is not told.
PATIENCE_S = 0.5


class PlainLines(Lines):
    def __init__(self, console: Console, *, context: Numbered | None = None) -> None:
        super().__init__(context=context)
        self._console = console
        self._wait: threading.Timer | None = None
        self.answers = has_keyboard()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_wait()
        super().__exit__(kind, error, at)
        if kind is KeyboardInterrupt:
            say(KEPT)

    def hear(self, event: Event) -> None:
        self._end_wait()
        super().hear(event)
        match event:
            case Working():
                say(f"{work_in_words(event)}.", err=True)
            case Sent():
                self._begin_wait(f"waiting for {event.window.model}.")
            case ToolStarted():
                self._begin_wait(f"calling {tool_named(event.call.name)}.")
            case ApprovalAsked() if self.answers:
                answer = ask_approval(self._console, event)
                {"allowed": event.allow, "always": event.allow_always, "denied": event.deny}[answer]()
            case FactProposed() if self.answers:
                event.accept() if ask_fact(self._console, event) else event.refuse()
            case CompactionProposed() if self.answers:
                summary = ask_compaction(self._console, event.block)
                event.refuse() if summary is None else event.accept(summary)
            case _:
                pass

    def _begin_wait(self, sentence: str) -> None:
        self._wait = threading.Timer(PATIENCE_S, say, (sentence,), {"err": True})
        self._wait.daemon = True
        self._wait.start()

    def _end_wait(self) -> None:
        if self._wait:
            self._wait.cancel()
        self._wait = None
