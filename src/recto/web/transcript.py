"""The messages of a tab: the end of the conversation, and older ones as far as the user has scrolled.

`items` renders stored messages with speaker, time, tools and documents; compactions are markers.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import to_builtins

from recto.base.text import counted
from recto.chat.blocks import Compaction, ToolResult
from recto.chat.compaction_words import archived_in_words, counts_in_words, writer_in_words
from recto.chat.message import Message
from recto.errors import Invalid
from recto.reports.transcript import ArchivedPart, TranscriptEntry
from recto.web.components import Act, ActingElement
from recto.web.files import SHOWN_TYPES
from recto.web.first_start import FirstStart, SharedStart
from recto.web.live import LiveConversation
from recto.web.live_turn import TurnChange
from recto.web.templates import fill

# Messages loaded per step, and at most to show one further back.
PAGE, MOST_JUMPED = 60, 2000
LONGEST_MODEL = 40
EMPTY = "empty"
SPEAKERS = {"user": "You", "assistant": "Reply", "tool": "Tools", "system": "System"}
MARKS = {"unfinished": "is being written", "stopped": "stopped", "error": "failed"}
APPROVALS = {
    "allowed": "you allowed it",
    "always": "always allowed",
    "denied": "you said no",
    "unanswered": "nobody was asked",
    "changed": "changed since you allowed it",
    "forbidden": "forbidden by its settings",
}
NO_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {}


class TranscriptView(ActingElement, component="assets/messages.js"):
    """Messages, with older ones loaded on scrolling up, and the running turn below."""

    def __init__(self, live: Callable[[], LiveConversation], start: FirstStart | SharedStart, act: Act) -> None:
        super().__init__(act)
        self.classes("grow")
        self._live, self._start = live, start
        self._shown: dict[str, str] = {}
        """The HTML of each message, oldest first."""
        self._has_more = False
        self._archived = ArchivedPart()

    async def build(self) -> None:
        await self._read()
        self._props["items"], self._props["more"] = _as_items(self._shown), self._has_more

    async def show(self) -> None:
        """Show another conversation, from its end."""
        await self._read()
        self.run_method("show", _as_items(self._shown), self._has_more)
        self.show_turn()

    async def refresh(self) -> None:
        """Reload the end and draw changes."""
        before, archived = dict(self._shown), self._archived
        await self._read(keep=True)
        if archived != self._archived and len(self._shown) > PAGE:
            await self._read(limit=len(self._shown))
        self._draw(before)
        self.show_turn()

    def show_turn(self) -> None:
        """Show the whole running turn, or why the last one ended early."""
        live = self._live()
        self.run_method("setTurn", to_builtins(live.turn.all_parts()) if live.turn else None, live.failure)

    def draw_turn(self, changes: Sequence[TurnChange]) -> None:
        self.run_method("draw", to_builtins(changes))

    async def do_older(self) -> None:
        if not self._has_more:
            return
        before, first = dict(self._shown), next(iter(self._shown))
        entries = await self._live().talk.transcript(limit=PAGE, before=first)
        self._has_more = len(entries) == PAGE
        self._shown = await self._rendered(entries) | self._shown
        self._draw(before)

    async def show_message(self, named: str) -> bool:
        """Scroll to a message. True if that switched to another branch."""
        talk = self._live().talk
        message = await talk.message(named)
        is_elsewhere = False
        if message.id not in self._shown:
            before = dict(self._shown)
            entries = await talk.transcript(limit=MOST_JUMPED, since=message.id)
            if is_elsewhere := not _holds(entries, message.id) and len(entries) < MOST_JUMPED:
                self._live().check_idle()
                await talk.switch(message.id)
                entries = await talk.transcript(limit=MOST_JUMPED, since=message.id)
            if not _holds(entries, message.id):
                raise Invalid(f"#{message.said} is too far back: more than {MOST_JUMPED:,} messages follow it")
            self._shown, self._has_more = await self._rendered(entries), message.said > 1
            self._draw(before)
        self.run_method("jump", message.id)
        return is_elsewhere

    def _draw(self, before: dict[str, str]) -> None:
        changed = {id: html for id, html in self._shown.items() if before.get(id) != html}
        if changed or list(before) != list(self._shown):
            self.run_method("patch", list(self._shown), _as_items(changed), self._has_more)

    async def _read(self, *, limit: int = PAGE, keep: bool = False) -> None:
        """Read the last messages; `keep` also keeps the older ones shown."""
        live = self._live()
        talk = live.talk
        entries = await talk.transcript(limit=limit) if talk.id else []
        self._archived = await talk.archived() if talk.id else ArchivedPart()
        has_more = len(entries) >= limit
        while live.is_running and entries and entries[-1].message.status == "unfinished":
            entries.pop()  # the running turn shows it
        is_empty = not entries and not live.is_running
        fresh = {EMPTY: await self._start.html(talk)} if is_empty else await self._rendered(entries)
        shown, first = list(self._shown), next(iter(fresh), None)
        if keep and first in self._shown:
            self._shown = {id: self._shown[id] for id in shown[: shown.index(first)]} | fresh
        else:
            self._shown, self._has_more = fresh, has_more

    async def _rendered(self, entries: list[TranscriptEntry]) -> dict[str, str]:
        alternatives = await self._live().talk.alternatives([entry.message.id for entry in entries]) if entries else {}
        return await asyncio.to_thread(items, entries, alternatives)


def _holds(entries: list[TranscriptEntry], id: str) -> bool:
    return any(entry.message.id == id for entry in entries)


def _as_items(shown: dict[str, str]) -> list[dict[str, str]]:
    return [{"id": id, "html": html} for id, html in shown.items()]


def items(
    entries: Iterable[TranscriptEntry], alternatives: Mapping[str, tuple[str, ...]] = NO_ALTERNATIVES
) -> dict[str, str]:
    """The HTML of each message by id, oldest first. `alternatives` are its siblings on other branches."""
    # a pin is shown at its message
    shown = [each for each in entries if not (made := each.message.compaction) or made.action not in ("pin", "unpin")]
    return {entry.message.id: _html(entry, alternatives.get(entry.message.id, ())) for entry in shown}


def _html(entry: TranscriptEntry, alternatives: Sequence[str]) -> str:
    message = entry.message
    if message.compaction:
        return fill("compaction", message=message, active=entry.active, **_compaction_values(message.compaction))
    facts = [_short_model(message.model or "")] if message.role == "assistant" else []
    if message.tokens.own is not None:
        facts.append(counted(message.tokens.own, "token"))
    return fill(
        "message",
        entry=entry,
        message=message,
        speaker=SPEAKERS.get(message.role, message.role),
        mark=MARKS.get(message.status, ""),
        facts=" · ".join(filter(None, facts)),
        blocks=[(type(block).__name__, block) for block in message.blocks],
        about=_about,
        shown_types=SHOWN_TYPES,
        others=_others(message, alternatives),
    )


def _short_model(model: str) -> str:
    """A model's name, cut at the front: the end distinguishes long names."""
    return model if len(model) <= LONGEST_MODEL else f"…{model[-LONGEST_MODEL:]}"


def _about(result: ToolResult) -> str:
    return ", ".join(filter(None, (counted(len(result.text), "character"), APPROVALS.get(result.approval, ""))))


def _others(message: Message, ids: Sequence[str]) -> dict[str, str] | None:
    """The position of a message among its alternatives, and its neighbours there."""
    if len(ids) < 2 or message.id not in ids:
        return None
    at = ids.index(message.id)
    before, after = ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""
    return {"words": f"{at + 1}/{len(ids)}", "before": before, "after": after}


def _compaction_values(block: Compaction) -> dict[str, object]:
    from recto.summary.ledger import ledger_rows  # compiles patterns: a tenth of a second

    archived = archived_in_words(block.messages_archived, block.context_size_before, block.context_size_after)
    return {
        "block": block,
        "title": f"Context compacted #{block.compaction_number} — {archived}",
        "writer": writer_in_words(block),
        "ledger": [(number, item) for number, _, item in ledger_rows(block.ledger)],
        "set_aside": block.set_aside,
        "counts": counts_in_words(block.checks),
    }
