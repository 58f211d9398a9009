"""The token record of a message: what it costs as history, block by block, and what its tool calls and results cost."""

from msgspec.structs import replace

from recto.chat.blocks import Block, References, Text, Thinking, ToolCall
from recto.chat.message import Message, Role, Tokens
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest, count_current
from recto.turn.token_cache import TokenCache
from recto.window.count import proportional_shares
from recto.window.request import Entry


async def message_tokens(cache: TokenCache, role: Role, blocks: tuple[Block, ...], own: int | None = None) -> Tokens:
    """`own` where it is known already. Tokens of the blocks add up to it, but for thinking that is not sent back."""
    if own is None:
        sent = tuple(block for block in blocks if not isinstance(block, References))
        own = (await cache.count([Entry(role, sent)]))[0].count.tokens
    shares = (own,) if len(blocks) == 1 else await _shares(cache, role, blocks, own)
    calls = sum(share for block, share in zip(blocks, shares, strict=True) if isinstance(block, ToolCall))
    return Tokens(own, tools=calls if role == "assistant" else None, blocks=shares if len(blocks) > 1 else ())


async def _shares(cache: TokenCache, role: Role, blocks: tuple[Block, ...], own: int) -> tuple[int, ...]:
    """A message is counted as one text, so its blocks get their shares of that."""
    entries = [Entry(role, (Text(block.told) if isinstance(block, References) else block,)) for block in blocks]
    frame, *counts = [each.count.tokens for each in await cache.count([Entry(role, (Text(""),)), *entries])]
    alone = [max(0, tokens - frame) for tokens in counts]
    shares = proportional_shares(own, alone) if any(alone) else [0] * len(blocks)
    return tuple(
        [
            await _thought(cache, block) if isinstance(block, Thinking) and not tokens else share
            for block, tokens, share in zip(blocks, alone, shares, strict=True)
        ]
    )


async def _thought(cache: TokenCache, block: Thinking) -> int:
    counted = await cache.count([Entry("user", (Text(text),)) for text in ("", block.text)])
    return max(0, counted[1].count.tokens - counted[0].count.tokens)


def add_results(store: Store, reply: Message, results: int | None) -> None:
    """Adds the tokens of results to the reply that made the calls. Runs in the store's thread."""
    if results is not None:
        tokens = replace(reply.tokens, tools=(reply.tokens.tools or 0) + results)
        store.tree.count(replace(reply, tokens=tokens))


async def count_results(store: Store, cache: TokenCache, reply: str | None, results: str | None) -> None:
    """Counts results that the caller gave for the calls of a reply; nothing where no reply waited for any."""
    if not reply or not results:
        return
    called = await store.do(store.tree.message, reply)
    given = await store.do(store.tree.message, results)
    tokens = await message_tokens(cache, "tool", given.blocks)

    def write() -> None:
        with store.database.write():
            store.tree.count(replace(given, tokens=tokens))
            add_results(store, called, tokens.own)

    await store.do(write)


async def count_sent(planned: PlannedRequest, message: Message) -> Message:
    """The user's message with its counts as it is sent."""
    tools = sum(section.tokens for section in planned.window.sections if section.name == "tools")
    whole = (await count_current(planned.token_cache, message, ())).own.tokens
    tokens = await message_tokens(planned.token_cache, message.role, message.blocks, whole)
    return replace(message, tokens=replace(tokens, augmented=planned.current.counted.count.tokens, descriptions=tools))
