"""LiveTurn: a running turn in parts: text, thinking, tools, notices, questions. Returns the HTML that changed."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from recto import events
from recto.base.text import counted
from recto.chat.blocks import ToolCall, ToolResult
from recto.web.markdown import StreamedMarkdown
from recto.web.templates import fill

Asked = events.ApprovalAsked | events.CompactionProposed | events.FactProposed
Stored = events.Appended | events.Referenced | events.Replied | events.ContextCompacted
"""After these events everything shown so far is a stored message."""
PartKind = Literal["text", "thinking", "tool", "notice", "question", "quotes", "status"]
ANSWERED = {
    "allow": "You allowed it.",
    "always": "You allowed it, and later calls of it.",
    "accept": "You agreed.",
}


class TurnChange(Struct, frozen=True):
    """The blocks of a part from number `first` to its end."""

    part: int
    kind: PartKind
    first: int
    blocks: Sequence[str]


class _Part:
    def __init__(self, kind: PartKind, html: str = "", *, call: str = "", question: Asked | None = None) -> None:
        self.kind, self.html, self.call, self.question = kind, html, call, question
        self.text = StreamedMarkdown() if kind in ("text", "thinking") else None
        self.blocks: list[str] = [html] if html else []

    def change(self, number: int) -> TurnChange:
        first, blocks = self.text.changes() if self.text else (0, [self.html])
        self.blocks[first:] = blocks
        return TurnChange(number, self.kind, first, blocks)


class LiveTurn:
    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._parts: list[_Part] = []
        self._dirty: set[int] = set()
        self._was_cut = False
        """The number of parts left: those after it are gone."""

    def hear(self, event: events.Event) -> bool:
        """Take an event. True if everything shown so far is stored now, so that the messages show it."""
        match event:
            case events.TextDelta(text=text):
                self._grow("text", text)
            case events.ThinkingDelta(text=text):
                self._grow("thinking", text)
            case events.ToolStarted(call=call):
                self._add("tool", fill("live_tool", call=call, result=None), call=call.id)
            case events.ToolFinished(call=call):
                self._finish_tool(call, event.result)
            case events.NotesQuoted(quotes=quotes) if quotes:
                self._add("quotes", fill("quotes", quotes=quotes))
            case events.Working() | events.SummaryRequested() | events.SummaryProgress() | events.Retrying():
                self._set_status(_status(event))
            case events.Noticed(text=text) | events.Branched(text=text):
                self._add("notice", fill("notice", text=text))
            case events.FactLearned(number=number, text=text):
                self._add("notice", fill("notice", text=f"Remembered as fact {number}: {text}"))
            case events.ApprovalAsked() | events.CompactionProposed() | events.FactProposed():
                self._add("question", _question(event, self._count()), question=event)
            case events.Sent():
                self._set_status("")
        is_next_round = isinstance(event, events.Sent) and any(part.kind == "tool" for part in self._parts)
        return is_next_round or isinstance(event, Stored)

    def answer(self, part: int, answer: str) -> None:
        match self._parts[part].question if 0 <= part < len(self._parts) else None:
            case events.ApprovalAsked() as asked:
                {"allow": asked.allow, "always": asked.allow_always}.get(answer, asked.deny)()
            case events.CompactionProposed() | events.FactProposed() as asked:
                (asked.accept if answer == "accept" else asked.refuse)()
            case None:
                return
        self._parts[part] = _Part("notice", fill("notice", text=ANSWERED.get(answer, "You said no.")))
        self._mark(part)

    def clear(self) -> None:
        """Drop all parts, which are stored now, except notices, which are not."""
        self._parts = [part for part in self._parts if part.kind in ("notice", "question")]
        self._dirty, self._was_cut = set(range(len(self._parts))), True
        self.changed.set()

    def take_changes(self) -> list[TurnChange]:
        self.changed.clear()
        changes = [self._parts[number].change(number) for number in sorted(self._dirty)]
        if self._was_cut:
            changes.append(TurnChange(len(self._parts), "status", 0, ()))
        self._dirty, self._was_cut = set(), False
        return changes

    def all_parts(self) -> list[TurnChange]:
        """All parts, for a page that joins later. Undrawn text follows with the next change."""
        return [TurnChange(number, part.kind, 0, list(part.blocks)) for number, part in enumerate(self._parts)]

    def _grow(self, kind: PartKind, text: str) -> None:
        self._set_status("")
        if not self._parts or self._parts[-1].kind != kind:
            self._parts.append(_Part(kind))
        growing = self._parts[-1].text
        assert growing is not None
        growing.add(text)
        self._mark(len(self._parts) - 1)

    def _add(self, kind: PartKind, html: str, *, call: str = "", question: Asked | None = None) -> None:
        self._parts[self._count() :] = [_Part(kind, html, call=call, question=question)]
        self._mark(len(self._parts) - 1)

    def _count(self) -> int:
        """The number of parts without the status, which anything replaces."""
        return len(self._parts) - (bool(self._parts) and self._parts[-1].kind == "status")

    def _set_status(self, words: str) -> None:
        """Show the current activity as the last part."""
        count = self._count()
        if words:
            self._parts[count:] = [_Part("status", fill("status", text=words))]
            self._mark(count)
        elif count < len(self._parts):
            self._parts.pop()
            self._dirty.discard(count)
            self._was_cut = True
            self.changed.set()

    def _finish_tool(self, call: ToolCall, result: ToolResult) -> None:
        html = fill("live_tool", call=call, result=result)
        place = next((at for at, part in enumerate(self._parts) if part.call == call.id), None)
        if place is None:
            self._add("tool", html, call=call.id)
        else:
            self._parts[place].html = html
            self._mark(place)

    def _mark(self, part: int) -> None:
        self._dirty.add(part)
        self.changed.set()


def _question(event: Asked, part: int) -> str:
    match event:
        case events.ApprovalAsked(call=call, tool=tool, change=change):
            name = f"{tool.server}:{tool.own_name or tool.name}"
            return fill("question_tool", part=part, name=name, call=call, change=change)
        case events.CompactionProposed(block=block):
            return fill("question_compaction", part=part, block=block)
        case events.FactProposed(text=text):
            return fill("question_fact", part=part, text=text)


def _status(event: events.Working | events.SummaryRequested | events.SummaryProgress | events.Retrying) -> str:
    match event:
        case events.Working(stage="store"):
            return "Waiting until other processes have stored theirs"
        case events.Working(stage="model", model=model):
            return f"Loading {model}"
        case events.Working(stage="notes", notes=notes):
            return f"Indexing {counted(notes, 'note')}"
        case events.Working(stage="sources"):
            return "Choosing sources"
        case events.Working():
            return "Searching earlier messages"
        case events.SummaryRequested(size=size, model=model):
            return f"Summing up {size:,} tokens with {model}"
        case events.SummaryProgress(read=read, of=of):
            return f"Summing up {of:,} messages, {read:,} read so far"
        case events.Retrying(error=error, wait_s=wait_s):
            return f"{error.rstrip('.')}; trying again in {wait_s:.1f} s"
