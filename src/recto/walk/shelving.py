"""Shelving: a message as it is put into an index: what of it can be found, who speaks, when, and whether it is done."""

import re
from datetime import UTC, datetime, timedelta

from recto.chat.blocks import File, Text, ToolCall, ToolResult
from recto.chat.message import Message
from recto.search.index import Item
from recto.sources.tools import RECALL
from recto.store.rows import Numbered

TALK, TOOLS = 0, 1
"""Lanes: what tools gave out does not stand between a question and its answer."""
# No reply takes that long: its process has died.
GIVEN_UP = timedelta(hours=1)
_SPEAKER = re.compile(r"([^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}): ")


def is_settled(message: Message) -> bool:
    """Whether nothing more comes: it is finished, or whoever wrote it was stopped long ago."""
    if message.status != "unfinished":
        return True
    try:
        return datetime.now(UTC) - datetime.fromisoformat(message.created) > GIVEN_UP
    except (ValueError, TypeError):
        return True


def said(message: Message) -> str:
    """All of a message that can be found: what was said, files, calls and what tools gave out. What the `recall` tool
    brought back is found where it was said."""
    parts = []
    for block in message.blocks:
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
    """Whose words a message gives by beginning with a name, as transcripts do."""
    found = _SPEAKER.match(text)
    return found[1] if found and found[1][0].isupper() else ""


def items_of(each: Numbered) -> list[Item]:
    message, text = each.message, said(each.message)
    if message.compaction is not None or not text.strip():
        return []
    lane = TOOLS if message.role == "tool" else TALK
    who = speaker(text) if lane == TALK else ""
    return [Item(each.n, text, message.depth, each.branch, message.role, who, _local(message.created), lane)]


def _local(created: str) -> str:
    """When it was said on the user's own clock: "yesterday" is meant by that."""
    try:
        return datetime.fromisoformat(created).astimezone().isoformat(timespec="seconds")[:19]
    except ValueError:
        return created
