"""Excerpts: the shorter text that is sent for a message or tool result that is too large."""

from collections.abc import Mapping

from recto.chat.blocks import File, Image, Text, ToolResult
from recto.chat.message import Message
from recto.summary.truncation import excerpt
from recto.turn.assembly import Turn
from recto.turn.token_cache import TokenCache
from recto.window.plan import Cut
from recto.window.request import Entry

MOST_TRIES = 8


async def excerpts(turn: Turn, cut: Cut) -> dict[str, str]:
    """Excerpts in force that are still sent after the cut, and those that the cut asks for, each within its tokens."""
    view, current = turn.loaded.view, turn.current.message
    _, stays = view.split(cut.last)
    still = {message.id for message in stays} | {*cut.lifted, current.id}
    before = view.compaction.excerpts if view.compaction else {}
    kept = {key: text for key, text in before.items() if key.partition("/")[0] in still}
    here = {message.id: message for message in (*view.tail, *view.lifted, current)}
    made = {key: await _excerpt(turn.token_cache, here, key, most) for key, most in cut.excerpts.items()}
    return kept | made


async def _excerpt(token_cache: TokenCache, here: Mapping[str, Message], key: str, most: int) -> str:
    """The beginning and end of a text with a line between them. Cut by the text's own token density, then counted."""
    id, _, call = key.partition("/")
    text = _whole(here[id], call)
    overhead, whole = await _tokens(token_cache, ".", call), await _tokens(token_cache, text, call)
    density = (whole - overhead) / max(1, len(text))
    aim = most
    for _ in range(MOST_TRIES):
        made = excerpt(text, max(1, aim - overhead), lambda part: round(len(part) * density), id)
        tokens = await _tokens(token_cache, made, call)
        if tokens <= most:
            return made
        aim = min(aim - 1, int(aim * most / tokens * 0.95))
    return text[: max(1, (most - overhead) // 4)]


def _whole(message: Message, call: str) -> str:
    if call:
        return "".join(result.text for result in message.results if result.call_id == call)
    texts = [block.text for block in message.blocks if isinstance(block, Text | File | ToolResult)]
    return "\n\n".join(texts) or "".join(block.media_type for block in message.blocks if isinstance(block, Image))


async def _tokens(token_cache: TokenCache, text: str, call: str) -> int:
    """Counted as it is sent: results carry the id of their call."""
    entry = Entry("tool", (ToolResult(call, "", text),)) if call else Entry("user", (Text(text),))
    return (await token_cache.count([entry]))[0].count.tokens
