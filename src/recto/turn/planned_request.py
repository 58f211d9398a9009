"""Turn: everything decided for one request: the plan, the window's sections, the pieces of bytes. Sends nothing."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import Block, Compaction, References, Text, Thinking, ToolCall
from recto.chat.message import Message, Role, Tokens, now
from recto.sources.source import Insert, Pick
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.loaded_view import LoadedView
from recto.turn.preamble import Preamble, list_pieces
from recto.turn.spending import at_most, largest_reply
from recto.turn.token_cache import Counted, TokenCache
from recto.window.account import RequestAccount, SentRange
from recto.window.compaction_block import PASSING
from recto.window.count import Count, proportional_shares
from recto.window.plan import Budget, Plan
from recto.window.planner import plan_window
from recto.window.request import Entry, Piece, Request, with_marks
from recto.window.window import NO_EXCERPTS, SectionTally, Window, current_entry, excerpted

# Providers cache no shorter prefix, whatever is marked.
LEAST_CACHED = 1024
TOLD_ALWAYS = ("strategy", "kept", "left_out", "because")


class CurrentMessage(Struct, frozen=True):
    """The user's message with what was put in front of it, counted alone and step by step."""

    message: Message
    counted: Counted
    own: Count
    inserts: tuple[tuple[Insert, int], ...]
    """Each with what it costs."""

    @property
    def for_inserts(self) -> int:
        return self.counted.count.tokens - self.own.tokens


class WindowNotes(Struct, frozen=True):
    """What is said about a window besides what is in it."""

    conversation: str
    notes: tuple[str, ...] = ()
    promised: int = 0
    """The room of a summary that is still to be written, for showing what would come."""
    not_picked: tuple[Pick, ...] = ()


class PlannedRequest(Struct, frozen=True):
    """Everything decided for one request."""

    context: TurnContext
    budget: Budget
    loaded: LoadedView
    current: CurrentMessage
    plan: Plan
    window: Window
    notes: WindowNotes

    @property
    def token_cache(self) -> TokenCache:
        return self.context.token_cache

    @property
    def preamble(self) -> Preamble:
        return self.context.preamble

    @property
    def needs_compaction(self) -> bool:
        """Whether it cannot be sent as it is."""
        return self.plan.cut is not None or self.window.free < 0

    @property
    def at_most_usd(self) -> float | None:
        """The most that it can cost, as far as a reply keeps to its `max_tokens`, or else to the reserve."""
        longest = self.context.parameters.max_tokens or self.window.reserve
        return at_most(self.context.model, self.window.total, longest)

    @property
    def longest_reply(self) -> int:
        return self.context.parameters.max_tokens or largest_reply(self.context.model)

    def pieces(self) -> tuple[tuple[Piece, ...], int]:
        """What is sent, and how many pieces of it precede what changes with every message."""
        before, rounds = self.loaded.before, self.loaded.entries(self.loaded.view.rounds)
        body = [entry.wire for entry in (*before, self.current.counted, *rounds)]
        preamble, format = self.preamble.pieces, self.token_cache.format
        listed = list_pieces(body, self.preamble.is_open)
        pieces = (*preamble, *listed, format.closing(self.context.parameters))
        stable = len(preamble) + sum(len(entry.wire) for entry in before)
        return with_marks(pieces, _marks(self, pieces, stable), format), stable


async def count_current(
    token_cache: TokenCache, message: Message, inserts: Sequence[Insert], block: Compaction | None = None
) -> CurrentMessage:
    """The message alone, then with one insert more at a time: each insert costs the difference."""
    sent = excerpted(message, block.excerpts if block else NO_EXCERPTS)
    steps = [current_entry(sent, [item.text for item in inserts[:take]]) for take in range(len(inserts) + 1)]
    counted = await token_cache.count(steps[:1])
    if inserts:  # with what is inserted it is sent only once
        counted += await token_cache.count(steps[1:], keep=False)
    costs = [after.count.tokens - before.count.tokens for before, after in pairwise(counted)]
    return CurrentMessage(message, counted[-1], counted[0].count, tuple(zip(inserts, costs, strict=True)))


def plan_turn(context: TurnContext, loaded: LoadedView, current: CurrentMessage, notes: WindowNotes) -> PlannedRequest:
    """Plan and window for one request. If the plan has a cut, the caller compacts and plans again."""
    budget = budget_of(context.budget, loaded, current)
    plan = plan_window(context.strategy, loaded.view, budget, loaded.counts)
    return _assemble(context, loaded, current, budget, plan, notes)


async def count_with(planned: PlannedRequest, insert: Insert) -> CurrentMessage:
    """The message of a turn with one insert more, in front of the others."""
    others = [item for item, _ in planned.current.inserts]
    block = planned.loaded.view.compaction
    return await count_current(planned.token_cache, planned.current.message, [insert, *others], block)


def with_current(planned: PlannedRequest, more: CurrentMessage, not_picked: Sequence[Pick] = ()) -> PlannedRequest:
    """The same turn with more in front of its message; its plan stays."""
    notes = replace(planned.notes, not_picked=(*planned.notes.not_picked, *not_picked))
    return _assemble(planned.context, planned.loaded, more, planned.budget, planned.plan, notes)


def _assemble(
    context: TurnContext, loaded: LoadedView, current: CurrentMessage, budget: Budget, plan: Plan, notes: WindowNotes
) -> PlannedRequest:
    before, rounds = loaded.before, loaded.entries(loaded.view.rounds)
    counts = (*context.preamble.counts, current.counted.count, *(entry.count for entry in (*before, *rounds)))
    estimated = [count.tokens for count in counts if not count.exact]
    window = Window(
        conversation=notes.conversation,
        model=context.model.name,
        strategy=plan.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=not estimated,
        sections=_tally(context.preamble, loaded, current, notes.promised).sections(budget),
        plan=plan,
        notes=notes.notes,
        not_picked=notes.not_picked,
        estimated=sum(estimated),
        calibration=context.token_cache.calibration,
        budgets=budget.by_component,
    )
    return PlannedRequest(context, budget, loaded, current, plan, window, notes)


def budget_of(budget: Budget, loaded: LoadedView, current: CurrentMessage) -> Budget:
    return replace(budget, picked=current.for_inserts, current=current.own.tokens)


def _marks(planned: PlannedRequest, pieces: Sequence[Piece], stable: int) -> list[int]:
    """Where a cache mark pays: after the instructions, after the history, and after the last message if the next one
    begins with the same bytes, which it does not if something was inserted for this message alone."""
    places, preamble = list[int](), len(planned.preamble.pieces)
    if planned.preamble.count.tokens >= LEAST_CACHED:
        places += [place for place in range(preamble) if pieces[place].kind in ("tool", "system")][-1:]
    if planned.window.total >= LEAST_CACHED:
        last = len(pieces) - 2
        places += [stable - 1] if stable > preamble else []
        places += [last] if last >= stable and (last > stable or not planned.current.inserts) else []
    return places


def _tally(preamble: Preamble, loaded: LoadedView, current: CurrentMessage, promised: int) -> SectionTally:
    tally, view = SectionTally(), loaded.view
    preamble.tally(tally)
    _add_summary(tally, loaded, promised)
    for message in view.still_sent:
        if entries := loaded.counted_units.get(message.id):
            tokens = sum(entry.count.tokens for entry in entries)
            tally.add("history", Pick("message", message.id, _lifted_because(message, view.compaction)), tokens)
    if history := loaded.entries(view.history):
        tokens = sum(entry.count.tokens for entry in history)
        tally.add("history", _history_pick(loaded, len(history)), tokens)
    for item, tokens in current.inserts:
        shares = proportional_shares(tokens, [pick.tokens for pick in item.picks])
        for pick, share in zip(item.picks, shares, strict=True):
            tally.add(item.section, pick, share)
    tally.add(
        "message", Pick("message", current.message.id, _current_because(current, view.compaction)), current.own.tokens
    )
    if rounds := loaded.entries(view.rounds):
        because = "tool calls and results of this turn"
        tally.add("message", Pick("rounds", f"{len(rounds)} messages", because), sum(e.count.tokens for e in rounds))
    return tally


def _add_summary(tally: SectionTally, loaded: LoadedView, promised: int) -> None:
    block = loaded.view.compaction
    if promised:
        tally.add("summary", Pick("summary", "to be written", f"at most {promised} tokens"), promised)
    elif loaded.summary and block:
        because = f"stands for {block.messages_archived} archived messages; {block.made_by}"
        if block.unread:
            because += f"; {block.unread_messages} of them are read at the next compaction"
        name = f"compaction {block.compaction_number}"
        tally.add("summary", Pick("summary", name, because), loaded.summary.count.tokens)


def _lifted_because(message: Message, block: Compaction | None) -> str:
    if block and message.id in block.pinned:
        return "pinned"
    return f"archived, but still sent: priority {message.priority}"


def _current_because(current: CurrentMessage, block: Compaction | None) -> str:
    if block and current.message.id in block.excerpts:
        return "the message that is answered, as an excerpt with its middle condensed: whole it does not fit"
    return "the message that is answered"


def _history_pick(loaded: LoadedView, count: int) -> Pick:
    view = loaded.view
    ends = f"{view.history[0].id}…{view.history[-1].id}"
    covering = view.compaction if view.compaction and view.compaction.last else None
    because = f"after what compaction {covering.compaction_number} covers" if covering else "the whole chat"
    shortened = {key.partition("/")[0] for key in (view.compaction.excerpts if view.compaction else ())}
    some = sum(message.id in shortened for message in view.history)
    excerpts = f", {some} of them as an excerpt" if some else ""
    return Pick("messages", ends, f"{count} message{'s' * (count != 1)}, {because}{excerpts}")


def account_of(planned: PlannedRequest) -> RequestAccount:
    """What the record says about the turn besides its bytes; empty values are left out."""
    view = planned.loaded.view
    stays = view.still_sent + view.history
    excerpts = sorted(view.compaction.excerpts) if view.compaction else []
    messages = SentRange(
        first=stays[0].id if stays else None,
        last=stays[-1].id if stays else None,
        count=len(stays),
        lifted=tuple(message.id for message in view.lifted),
        excerpts=tuple(excerpts) or None,
        current=planned.current.counted.entry.message,
        rounds=tuple(message.id for message in view.rounds),
    )
    return replace(
        planned.window.account(
            meter=planned.token_cache.counter.key, window_from=planned.token_cache.model.window_from
        ),
        plan={key: value for key, value in planned.plan.to_json().items() if key in TOLD_ALWAYS or _says(value)},
        messages=messages,
        compaction=view.compaction.compaction_number if view.compaction else None,
        passing=True if view.compaction and view.compaction.action == PASSING else None,
    )


def _says(value: object) -> bool:
    return bool(value) and not (isinstance(value, dict) and value.get("count") == 0)


def reply_request(planned: PlannedRequest, conversation: str, message: Message) -> Request:
    """What is sent for a message, with what its record keeps."""
    cache, (pieces, stable) = planned.token_cache, planned.pieces()
    return Request(
        id=new_id(),
        conversation=conversation,
        purpose="reply",
        model=cache.model.name,
        format=cache.format.name,
        parameters=planned.context.parameters.given(),
        pieces=pieces,
        account=account_of(planned),
        message=message.id,
        created=now(),
        stable=stable,
        mark_bytes=cache.format.mark_bytes,
        at_most_usd=planned.at_most_usd,
    )


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
