"""SideCall: one call to a model beside the conversation: a summary, a line about a document, facts of a message.

It is recorded before it leaves, like every request; its answer is gathered whole.
"""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress

from msgspec import Struct
from msgspec.structs import asdict, replace

from recto.base.ids import new_id
from recto.base.text import clean
from recto.chat.blocks import Made, Text
from recto.chat.message import now
from recto.errors import NoKey, ProviderError, RectoError, Refused, SpendLimit, StoreError, Unreachable
from recto.providers.model import Attempt, CallPart, Done, TextPart, accepted, limited
from recto.sources.source import Pick
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.preamble import Preamble, list_pieces
from recto.turn.session import ChatSession
from recto.turn.spending import at_most, broken_off, check_limits, priced
from recto.turn.token_cache import Counted
from recto.window.account import RequestAccount
from recto.window.calibration import is_believable
from recto.window.plan import NOTHING, Plan
from recto.window.request import Entry, Parameters, Piece, Purpose, Request, with_marks
from recto.window.window import SectionTally, Window

TEMPERATURE = 0.3
# Some models think without being asked, and spend the tokens of the answer on it.
ROOM_TO_THINK = 4096


class SideCall(Struct, frozen=True):
    """What the model is sent: a preamble, entries that are counted already, and the prompt."""

    context: TurnContext
    preamble: Preamble
    entries: tuple[Counted, ...]
    order: Counted
    because: str
    most: int
    """The longest answer."""
    compaction: int | None = None
    """The number of the Compaction in force, where `ahead` is set."""
    ahead: str | None = None
    """The last message that a summary covers which is written before it is due."""

    @property
    def parameters(self) -> Parameters:
        model = self.context.model
        thinking = self.context.parameters.thinking_budget or 0
        thinks = model.fixed_temperature or self.context.parameters.thinking == "adaptive"
        extra = thinking or (ROOM_TO_THINK if thinks else 0)
        asked = Parameters(
            max_tokens=self.most + extra,
            temperature=TEMPERATURE,
            thinking_budget=thinking or None,
            tool_choice="none" if self.preamble.tools else None,
            thinking=self.context.parameters.thinking,
        )
        return accepted(asked, model)[0]

    @property
    def tokens(self) -> int:
        return self.preamble.count.tokens + sum(entry.count.tokens for entry in (*self.entries, self.order))

    @property
    def fits(self) -> bool:
        """Whether prompt and answer fit in the model's own window."""
        return self.tokens + (self.parameters.max_tokens or 0) <= self.context.budget.limit

    @property
    def pieces(self) -> tuple[Piece, ...]:
        body = [entry.wire for entry in (*self.entries, self.order)]
        format, preamble = self.context.token_cache.format, self.preamble
        pieces = (*preamble.pieces, *list_pieces(body, preamble.is_open), format.closing(self.parameters))
        behind_entries = len(pieces) - 2
        return with_marks(pieces, [behind_entries - 1] if self.entries else [], format)


class SideAnswer(Struct, frozen=True):
    text: str
    finish: str
    called: bool
    made: Made


async def call_model(
    question: SideCall,
    store: Store,
    session: ChatSession,
    message: str | None,
    timeout_s: float,
    *,
    purpose: Purpose = "summary",
) -> SideAnswer:
    """The answer, valid or not; ProviderError when none came. The record says what became of the call."""
    request = _request(question, session, message, purpose)
    started = asyncio.get_running_loop().time()
    attempts: list[dict[str, object]] = []
    has_left = False
    try:
        await store.do(_save, store, question.context, session, request)
        has_left = True
        async with asyncio.timeout(timeout_s):
            texts, called, done = await _gather(question.context, request, attempts)
    except TimeoutError as why:
        late, cost = {"finish": "error", "error": "timed out", "attempts": attempts}, _broken_off(question, request)
        await store.do(lambda: store.records.outcome(request.id, cost_usd=cost, **late))
        raise Unreachable(f"the summariser did not answer within {timeout_s:g} s") from why
    except (RectoError, asyncio.CancelledError) as why:
        error = why.message if isinstance(why, RectoError) else None
        told = {"finish": "error" if error else "stopped", "error": error, "attempts": attempts}
        was_refused = isinstance(why, ProviderError) and not why.sent
        unsent = {"not_sent": True} if was_refused or not has_left else {}
        may_cost = isinstance(why, ProviderError) and (why.partial or why.may_cost)
        has_begun = has_left and (error is None or may_cost)
        cost = _broken_off(question, request) if has_begun else 0.0
        with suppress(StoreError):
            await store.do(lambda: store.records.outcome(request.id, cost_usd=cost, **told, **unsent))
        raise
    text = clean("".join(texts))[0]
    usage, cost = _reported(question, done, text)
    took = round(asyncio.get_running_loop().time() - started, 3)
    later = {"called": called, "duration_s": took} if question.ahead else {}
    facts: dict[str, object] = {"finish": done.finish, "usage": usage, "text": text, "attempts": attempts, **later}
    await store.do(lambda: store.records.outcome(request.id, cost_usd=cost, **facts))
    made = Made(question.context.provider.name, question.context.model.name, took)
    return SideAnswer(text, done.finish, called, made)


def _reported(question: SideCall, done: Done, text: str) -> tuple[dict[str, object] | None, float | None]:
    """The usage that the provider reported, and the cost of it, or of our own count where it reported none."""
    model = question.context.model
    if done.usage is None or not is_believable(done.usage):
        return None, broken_off(model, question.tokens, text).cost_usd
    usage = priced(model, done.usage)
    return asdict(usage), usage.cost_usd


def _broken_off(question: SideCall, request: Request) -> float | None:
    return broken_off(question.context.model, question.tokens, "", request.at_most_usd).cost_usd


async def _gather(
    context: TurnContext, request: Request, attempts: list[dict[str, object]]
) -> tuple[list[str], bool, Done]:
    texts: list[str] = []
    called, done = False, Done("stop")
    stream = context.provider.stream(request.body, request.purpose)
    async with aclosing(limited(stream, context.reply_limit, request.max_tokens)) as parts:
        async for part in parts:
            if isinstance(part, TextPart):
                texts.append(part.text)
            elif isinstance(part, CallPart):
                called = True
            elif isinstance(part, Attempt):
                attempts.append({"error": part.error, "wait_s": part.wait_s})
            elif isinstance(part, Done):
                done = part
    return texts, called, done


def _request(question: SideCall, session: ChatSession, message: str | None, purpose: Purpose) -> Request:
    context, pieces = question.context, question.pieces
    return Request(
        id=new_id(),
        conversation=session.conversation,
        purpose=purpose,
        model=context.model.name,
        format=context.token_cache.format.name,
        parameters=question.parameters.given(),
        pieces=pieces,
        account=_account(question, session.conversation),
        message=message,
        created=now(),
        stable=len(pieces) - 2,
        mark_bytes=context.token_cache.format.mark_bytes,
        at_most_usd=at_most(context.model, question.tokens, question.parameters.max_tokens or 0),
    )


def _account(question: SideCall, conversation: str) -> RequestAccount:
    context = question.context
    tally = SectionTally()
    question.preamble.tally(tally)
    if question.entries:
        tokens = sum(entry.count.tokens for entry in question.entries)
        tally.add("history", Pick("messages", f"{len(question.entries)} messages", "to be summed up"), tokens)
    tally.add("message", Pick("order", "what to sum up, and how", question.because), question.order.count.tokens)
    counts = (*question.preamble.counts, *(entry.count for entry in (*question.entries, question.order)))
    estimated = [count.tokens for count in counts if not count.exact]
    budget = replace(context.budget, reserve=question.parameters.max_tokens or 0)
    window = Window(
        conversation=conversation,
        model=context.model.name,
        strategy=context.settings.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=not estimated,
        sections=tally.sections(budget),
        plan=Plan(context.settings.strategy, NOTHING, question.because),
        estimated=sum(estimated),
        calibration=context.token_cache.calibration,
        budgets=budget.by_component,
    )
    account = window.account(meter=context.token_cache.counter.key, window_from=context.model.window_from)
    return replace(account, compaction=question.compaction, ahead=question.ahead) if question.ahead else account


def _save(store: Store, context: TurnContext, session: ChatSession, request: Request) -> None:
    with store.database.write():
        check_limits(store, context.resolved.spend, request, session.run, session.cap)
        context.token_cache.save()
        # the others share no prefix with the conversation
        base = (
            None
            if request.purpose in ("gist", "facts")
            else session.request or store.records.latest(session.conversation)
        )
        store.records.save(request, base)


async def count_texts(context: TurnContext, texts: Sequence[str]) -> list[Counted]:
    return await context.token_cache.count([Entry("user", (Text(text),)) for text in texts])


def is_hopeless(why: Exception) -> bool:
    """Whether the same call would fail again."""
    return isinstance(why, NoKey | Refused | SpendLimit)
