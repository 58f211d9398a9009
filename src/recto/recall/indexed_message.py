"""A message as it is indexed: its searchable text, its speaker, its time, and whether it is complete."""

import re
from datetime import UTC, datetime, timedelta

from recto.chat.blocks import File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.search.index_item import IndexItem
from recto.sources.tools import RECALL
from recto.store.rows import NumberedMessage

TALK, TOOLS = 0, 1
"""Channels: tool results do not come between a question and its answer."""
# No reply takes that long: its process must have died.
GIVEN_UP = timedelta(hours=1)
_SPEAKER = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")


def is_settled(message: Message) -> bool:
    """Whether nothing more will come: it is finished, or its process was stopped long ago."""
    if message.status != "unfinished":
        return True
    try:
        return datetime.now(UTC) - datetime.fromisoformat(message.created) > GIVEN_UP
    except (ValueError, TypeError):
        return True


def searchable_text(message: Message) -> str:
    """Text, files, tool calls and tool results. What the `recall` tool returned is left out: it is found in its own
    message."""
    blocks = message.blocks
    if len(blocks) == 1 and isinstance(blocks[0], Text):  # as most are: a turn asks for hundreds
        return blocks[0].text
    parts = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append(block.text)
        elif isinstance(block, File):
            parts.append(f"{block.name}\n{block.text}")
        elif isinstance(block, ToolCall) and block.name != RECALL:
            parts.append(f"{block.name} {block.arguments}")
        elif isinstance(block, ToolResult) and block.name != RECALL:
            parts.append(block.text)
    return "\n".join(part for part in parts if part)


def speaker(text: str) -> str:
    """The name that a message begins with, as in transcripts; else empty."""
    found = _SPEAKER.match(text)
    return found[1] if found and found[1][0].isupper() else ""


def index_items(each: NumberedMessage) -> list[IndexItem]:
    message, text = each.message, searchable_text(each.message)
    if message.compaction is not None or not text.strip():
        return []
    channel = TOOLS if message.role == "tool" else TALK
    who = speaker(text) if channel == TALK else ""
    return [IndexItem(each.n, text, message.depth, each.branch, message.role, who, _local(message.created), channel)]


def _local(created: str) -> str:
    """The time on the user's own clock, which "yesterday" refers to."""
    try:
        return datetime.fromisoformat(created).astimezone().isoformat(timespec="seconds")[:19]
    except ValueError:
        return created
