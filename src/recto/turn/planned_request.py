"""PlannedRequest: everything decided for one request: the plan, the window's sections, the bytes. Sends nothing."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.blocks import Compaction
from recto.chat.message import Message, now
from recto.sources.source import Insert, Pick
from recto.turn.context import TurnContext
from recto.turn.loaded_view import LoadedView
from recto.turn.preamble import Preamble, list_pieces
from recto.turn.spending import at_most, largest_reply
from recto.turn.token_cache import Counted, TokenCache, total_of
from recto.window.account import RequestAccount, SentRange
from recto.window.compaction_block import PASSING
from recto.window.count import Count, proportional_shares
from recto.window.plan import Budget, Plan
from recto.window.planner import plan_window
from recto.window.request import Piece, Request, with_marks
from recto.window.window import NO_EXCERPTS, SectionTally, Window, current_entry, excerpted

# Providers cache no shorter prefix, even if it is marked.
LEAST_CACHED = 1024


class CurrentMessage(Struct, frozen=True):
    message: Message
    counted: Counted
    own: Count
    inserts: tuple[tuple[Insert, int], ...]
    """Each with its tokens."""

    @property
    def for_inserts(self) -> int:
        return self.counted.count.tokens - self.own.tokens


class WindowNotes(Struct, frozen=True):
    conversation: str
    notes: tuple[str, ...] = ()
    promised: int = 0
    """The room of a summary yet to be written, for previews."""
    not_picked: tuple[Pick, ...] = ()


class PlannedRequest(Struct, frozen=True):
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
        return self.plan.cut is not None or self.window.free < 0

    @property
    def at_most_usd(self) -> float | None:
        """The most it can cost, if the reply keeps to its `max_tokens`, or else to the reserve."""
        longest = self.context.parameters.max_tokens or self.window.reserve
        return at_most(self.context.model, self.window.total, longest)

    @property
    def longest_reply(self) -> int:
        return self.context.parameters.max_tokens or largest_reply(self.context.model)

    def pieces(self) -> tuple[tuple[Piece, ...], int]:
        """The pieces, and how many of them precede what changes with every message."""
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
    """Counts the message alone, then with one more insert at a time: each insert costs the difference."""
    sent = excerpted(message, block.excerpts if block else NO_EXCERPTS)
    steps = [current_entry(sent, [item.text for item in inserts[:take]]) for take in range(len(inserts) + 1)]
    found = await token_cache.count(steps[:1])
    if inserts:  # a message with inserts is sent only once
        found += await token_cache.count(steps[1:], keep=False)
    costs = [after.count.tokens - before.count.tokens for before, after in pairwise(found)]
    return CurrentMessage(message, found[-1], found[0].count, tuple(zip(inserts, costs, strict=True)))


def plan_turn(context: TurnContext, loaded: LoadedView, current: CurrentMessage, notes: WindowNotes) -> PlannedRequest:
    """If the plan has a cut, the caller compacts and plans again."""
    budget = replace(context.budget, picked=current.for_inserts, current=current.own.tokens)
    plan = plan_window(context.strategy, loaded.view, budget, loaded.counts)
    return _assemble(context, loaded, current, budget, plan, notes)


async def count_with(planned: PlannedRequest, insert: Insert) -> CurrentMessage:
    """Puts the insert in front of the others."""
    others = [item for item, _ in planned.current.inserts]
    block = planned.loaded.view.compaction
    return await count_current(planned.token_cache, planned.current.message, [insert, *others], block)


def with_current(planned: PlannedRequest, more: CurrentMessage, not_picked: Sequence[Pick] = ()) -> PlannedRequest:
    """Adds to the inserts of the message; the plan stays."""
    notes = replace(planned.notes, not_picked=(*planned.notes.not_picked, *not_picked))
    return _assemble(planned.context, planned.loaded, more, planned.budget, planned.plan, notes)


def _assemble(
    context: TurnContext, loaded: LoadedView, current: CurrentMessage, budget: Budget, plan: Plan, notes: WindowNotes
) -> PlannedRequest:
    entries = (*loaded.before, current.counted, *loaded.entries(loaded.view.rounds))
    tally = _tally(context.preamble, loaded, current, notes.promised)
    counts = (*context.preamble.counts, *(entry.count for entry in entries))
    window = window_of(context, notes, budget, plan, tally, counts)
    return PlannedRequest(context, budget, loaded, current, plan, window, notes)


def window_of(
    context: TurnContext, notes: WindowNotes, budget: Budget, plan: Plan, tally: SectionTally, counts: Sequence[Count]
) -> Window:
    estimated = [count.tokens for count in counts if not count.exact]
    return Window(
        conversation=notes.conversation,
        model=context.model.name,
        strategy=plan.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=not estimated,
        sections=tally.sections(budget),
        plan=plan,
        notes=notes.notes,
        not_picked=notes.not_picked,
        estimated=sum(estimated),
        calibration=context.token_cache.calibration,
        budgets=budget.by_component,
    )


def _marks(planned: PlannedRequest, pieces: Sequence[Piece], stable: int) -> list[int]:
    """Cache marks pay after the instructions, after the history, and after the last message, unless it has inserts,
    which the next request will not repeat."""
    places, preamble = list[int](), len(planned.preamble.pieces)
    if planned.preamble.count.tokens >= LEAST_CACHED:
        places += [place for place in range(preamble) if pieces[place].kind in ("tool", "system")][-1:]
    if planned.window.total >= LEAST_CACHED:
        last = len(pieces) - 2
        places += [stable - 1] if stable > preamble else []
        places += [last] if last >= stable and (last > stable or not planned.current.inserts) else []
    return places


def _tally(preamble: Preamble, loaded: LoadedView, current: CurrentMessage, promised: int) -> SectionTally:
    tally, view, block = SectionTally(), loaded.view, loaded.view.compaction
    excerpts = {key.partition("/")[0] for key in block.excerpts} if block else set()
    preamble.tally(tally)
    if promised:
        tally.add("summary", Pick("summary", "to be written", f"at most {promised} tokens"), promised)
    elif loaded.summary and block:
        because = f"stands for {block.messages_archived} archived messages; {block.made_by}"
        if block.unread:
            because += f"; {block.unread_messages} of them are read at the next compaction"
        pick = Pick("summary", f"compaction {_stored_number(block)}", because)
        tally.add("summary", pick, loaded.summary.count.tokens)
    for message in view.still_sent:
        if entries := loaded.counted_units.get(message.id):
            is_pinned = block and message.id in block.pinned
            because = "pinned" if is_pinned else f"archived, but still sent: priority {message.priority}"
            tally.add("history", Pick("message", message.id, because), total_of(entries))
    if history := loaded.entries(view.history):
        since = _since(block) if block and block.last else "the whole chat"
        some = sum(message.id in excerpts for message in view.history)
        number = f"{len(history)} message{'s' * (len(history) != 1)}"
        because = f"{number}, {since}" + (f", {some} of them as an excerpt" if some else "")
        ends = f"{view.history[0].id}…{view.history[-1].id}"
        tally.add("history", Pick("messages", ends, because), total_of(history))
    for item, tokens in current.inserts:
        shares = proportional_shares(tokens, [pick.tokens for pick in item.picks])
        for pick, share in zip(item.picks, shares, strict=True):
            tally.add(item.section, pick, share)
    because = "the message that is answered"
    if block and current.message.id in block.excerpts:
        because += ", as an excerpt with its middle condensed: whole it does not fit"
    tally.add("message", Pick("message", current.message.id, because), current.own.tokens)
    if rounds := loaded.entries(view.rounds):
        pick = Pick("rounds", f"{len(rounds)} messages", "tool calls and results of this turn")
        tally.add("message", pick, total_of(rounds))
    return tally


def _stored_number(block: Compaction) -> int | None:
    """The number of the newest stored compaction: a cut for one request alone is not stored and follows it."""
    return block.compaction_number - (block.action == PASSING) or None


def _since(block: Compaction) -> str:
    if block.action == PASSING:
        return "after those that this request leaves out"
    return f"after what compaction {block.compaction_number} covers"


def account_of(planned: PlannedRequest) -> RequestAccount:
    """The account without the bytes; empty values are omitted."""
    view, block, cache = planned.loaded.view, planned.loaded.view.compaction, planned.token_cache
    stays = view.still_sent + view.history
    messages = SentRange(
        first=stays[0].id if stays else None,
        last=stays[-1].id if stays else None,
        count=len(stays),
        lifted=tuple(message.id for message in view.lifted),
        excerpts=tuple(sorted(block.excerpts)) or None if block else None,
        current=planned.current.counted.entry.message,
        rounds=tuple(message.id for message in view.rounds),
    )
    return replace(
        planned.window.account(meter=cache.counter.key, window_from=cache.model.window_from),
        messages=messages,
        compaction=_stored_number(block) if block else None,
        passing=True if block and block.action == PASSING else None,
    )


def reply_request(planned: PlannedRequest, conversation: str, message: Message) -> Request:
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
