"""Stored messages as HTML: who said what, when, with which tools and documents; compactions as markers."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from recto.base.text import counted
from recto.chat.blocks import Compaction, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.compaction_words import archived_in_words, counts_in_words, writer_in_words
from recto.chat.message import Message
from recto.reports.transcript import TranscriptEntry
from recto.web.templates import fill

_BY_NUMBER = re.compile(r"#(\d{1,9}):? ")
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
LONGEST_MODEL = 40
# Pictures that a browser shows without running anything in them.
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Alternatives(Struct, frozen=True):
    """The messages that stand in each other's place on branches, and which of them is shown."""

    ids: tuple[str, ...]
    shown: int

    @property
    def words(self) -> str:
        return f"{self.shown + 1}/{len(self.ids)}"

    @property
    def before(self) -> str | None:
        return self.ids[self.shown - 1] if self.shown else None

    @property
    def after(self) -> str | None:
        return self.ids[self.shown + 1] if self.shown + 1 < len(self.ids) else None


NO_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {}


def items(
    entries: Iterable[TranscriptEntry], alternatives: Mapping[str, tuple[str, ...]] = NO_ALTERNATIVES
) -> list[dict[str, str]]:
    """What the list of messages shows, oldest first: an id and the HTML of each."""
    shown = [entry for entry in entries if not _is_silent(entry.message)]
    return [{"id": entry.message.id, "html": _html(entry, alternatives.get(entry.message.id, ()))} for entry in shown]


def _is_silent(message: Message) -> bool:
    """A pin is a mark at its message, not a marker of its own."""
    return message.compaction is not None and message.compaction.action in ("pin", "unpin")


def _html(entry: TranscriptEntry, alternatives: Sequence[str]) -> str:
    message = entry.message
    if message.compaction:
        return fill("compaction", message=message, **compaction_values(message.compaction), active=entry.active)
    others = None
    if len(alternatives) > 1 and message.id in alternatives:
        others = Alternatives(tuple(alternatives), alternatives.index(message.id))
    return fill(
        "message",
        entry=entry,
        message=message,
        speaker=SPEAKERS.get(message.role, message.role),
        mark=MARKS.get(message.status, ""),
        facts=_facts(message),
        blocks=[_block(message, number) for number in range(len(message.blocks))],
        others=others,
    )


def _facts(message: Message) -> str:
    told = [_short(message.model or "")] if message.role == "assistant" else []
    if message.tokens.own is not None:
        told.append(counted(message.tokens.own, "token"))
    return " · ".join(filter(None, told))


def _short(model: str) -> str:
    """A name as long as most are; of a longer one the end tells it from others."""
    return model if len(model) <= LONGEST_MODEL else f"…{model[-LONGEST_MODEL:]}"


def _block(message: Message, number: int) -> dict[str, object]:
    block = message.blocks[number]
    match block:
        case Text(text=text):
            return {"kind": "text", "text": text}
        case Thinking(text=text):
            return {"kind": "thinking", "text": text}
        case ToolCall():
            return {"kind": "call", "name": tool_name(block.name), "given": pretty(block.arguments)}
        case ToolResult():
            told = filter(None, (counted(len(block.text), "character"), APPROVALS.get(block.approval, "")))
            return {"kind": "result", "name": tool_name(block.name), "result": block, "about": ", ".join(told)}
        case Image():
            is_shown = block.media_type in SHOWN_TYPES and bool(block.sha256 or block.base64)
            address = f"/attached?message={message.id}&block={number}" if is_shown else ""
            return {"kind": "image", "name": block.name or block.media_type, "address": address}
        case File():
            return {"kind": "file", "name": block.name, "text": block.text}
        case Compaction():
            return {"kind": "nothing"}
        case references:
            return {"kind": "references", "block": references}


def compaction_values(block: Compaction) -> dict[str, object]:
    """What the template of a compaction shows."""
    from recto.summary.ledger import ledger_rows  # compiles patterns: a tenth of a second

    archived = archived_in_words(block.messages_archived, block.context_size_before, block.context_size_after)
    return {
        "block": block,
        "title": f"Context compacted #{block.compaction_number} — {archived}",
        "writer": writer_in_words(block),
        "ledger": [(number, item) for number, _, item in ledger_rows(block.ledger)],
        "set_aside": [_numbered(line) for line in block.set_aside],
        "counts": counts_in_words(block.checks),
        "when": block.timestamp,
    }


def _numbered(line: str) -> tuple[int | None, str]:
    """The number of the message that a line begins with, and the rest."""
    found = _BY_NUMBER.match(line)
    return (int(found[1]), line[found.end() :]) if found else (None, line)


def tool_name(call_name: str) -> str:
    """The name that people read (`github:create_issue`) for the name that a model calls (`github__create_issue`)."""
    server, parted, name = call_name.partition("__")
    return f"{server}:{name}" if parted and server and name else call_name


def pretty(arguments: str) -> str:
    """JSON on several lines; whatever is none, as it is. A user has to judge it: what cannot be seen is written as its
    number."""
    with suppress(ValueError, RecursionError):
        arguments = json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    return "".join(sign if sign.isprintable() or sign in "\n\t" else f"\\u{ord(sign):04x}" for sign in arguments)
