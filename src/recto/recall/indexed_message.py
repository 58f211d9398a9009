"""A message as it is indexed: its searchable text, its speaker, its time, whether it is complete."""

import re
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from recto.chat.blocks import File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.search.keyword_index import IndexItem
from recto.sources.tools import RECALL
from recto.store.rows import NumberedMessage

TALK, TOOLS = 0, 1
"""Channels: tool results do not come between a question and its answer."""
# No reply takes that long: its process must have died.
GIVEN_UP = timedelta(hours=1)
# How many messages are indexed in a batch. In the background more, since each batch is a commit with its own cost.
BATCH, BACKGROUND_BATCH = 64, 1024
_SPEAKER = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")


def is_settled(message: Message) -> bool:
    """True if the message is complete, or its process was stopped long ago."""
    if message.status != "unfinished":
        return True
    try:
        return datetime.now(UTC) - datetime.fromisoformat(message.created) > GIVEN_UP
    except (ValueError, TypeError):
        return True


def searchable_text(message: Message) -> str:
    """Output of the `recall` tool is left out: it is found in its own message."""
    blocks = message.blocks
    if len(blocks) == 1 and isinstance(blocks[0], Text):  # as most are: a turn asks for hundreds
        return blocks[0].text
    parts = list[str]()
    for block in blocks:
        match block:
            case Text(text=text) | ToolResult(text=text) if getattr(block, "name", "") != RECALL:
                parts.append(text)
            case File():
                parts.append(f"{block.name}\n{block.text}")
            case ToolCall() if block.name != RECALL:
                parts.append(f"{block.name} {block.arguments}")
    return "\n".join(filter(None, parts))


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
    return [IndexItem(each.n, text, message.depth, each.branch, message.role, who, _local(message.time), channel)]


def _local(created: str) -> str:
    """The time on the user's own clock, which "yesterday" refers to."""
    try:
        return datetime.fromisoformat(created).astimezone().isoformat(timespec="seconds")[:19]
    except ValueError:
        return created


class IndexStatus(Struct, frozen=True):
    messages: int
    indexed: int
    vectors: int
    waiting: int
    """Passages without a vector."""
    embedder: str | None
    why: str = ""
    """Why there is no embedder, or what went wrong with it."""
    renewed: str = ""
    """Why the index had to be rebuilt; empty if it was not."""
