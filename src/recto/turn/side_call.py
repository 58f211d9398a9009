"""SideCall: one call to a model outside the conversation: a summary, a line about a document, facts of a message.

Like every request, it is recorded before it is sent. Its answer is not streamed."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any

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
from recto.turn.planned_request import WindowNotes, window_of
from recto.turn.preamble import Preamble, list_pieces
from recto.turn.session import ChatSession
from recto.turn.spending import at_most, broken_off, check_limits, priced
from recto.turn.token_cache import Counted, total_of
from recto.window.account import RequestAccount
from recto.window.calibration import is_believable
from recto.window.plan import NOTHING, Plan
from recto.window.request import Entry, Parameters, Piece, Purpose, Request, with_marks
from recto.window.window import SectionTally

TEMPERATURE = 0.3
# Some models think unasked, and spend the answer's tokens on it.
ROOM_TO_THINK = 4096


class SideCall(Struct, frozen=True):
    """A preamble, entries that are already counted, and the prompt."""

    context: TurnContext
    preamble: Preamble
    entries: tuple[Counted, ...]
    order: Counted
    because: str
    most: int
    """The longest answer, in tokens."""
    compaction: int | None = None
    """The number of the Compaction in force, if `ahead` is set."""
    ahead: str | None = None
    """For a summary ahead: the last message it covers."""

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
    def sent(self) -> tuple[Counted, ...]:
        return (*self.entries, self.order)

    @property
    def tokens(self) -> int:
        return self.preamble.count.tokens + total_of(self.sent)

    @property
    def fits(self) -> bool:
        """True if prompt and answer fit in the model's own window."""
        return self.tokens + (self.parameters.max_tokens or 0) <= self.context.budget.limit

    @property
    def pieces(self) -> tuple[Piece, ...]:
        format, preamble = self.context.token_cache.format, self.preamble
        body = list_pieces([entry.wire for entry in self.sent], preamble.is_open)
        pieces = (*preamble.pieces, *body, format.closing(self.parameters))
        after_entries = len(pieces) - 2
        return with_marks(pieces, [after_entries - 1] if self.entries else [], format)


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
    """The answer, valid or not. Raises ProviderError if none came. The outcome is recorded."""
    context, model = question.context, question.context.model
    request = _request(question, session.conversation, message, purpose)
    clock = asyncio.get_running_loop().time
    started, attempts = clock(), list[dict[str, object]]()
    broken = broken_off(model, question.tokens, "", request.at_most_usd).cost_usd
    outcome: dict[str, Any] = {"attempts": attempts}
    has_left = False
    try:
        await store.do(_save, store, context, session, request)
        has_left = True
        async with asyncio.timeout(timeout_s):
            texts, called, done = await _gather(context, request, attempts)
    except TimeoutError as why:
        outcome |= {"finish": "error", "error": "timed out", "cost_usd": broken}
        await store.do(lambda: store.records.outcome(request.id, **outcome))
        raise Unreachable(f"the summariser did not answer within {timeout_s:g} s") from why
    except (RectoError, asyncio.CancelledError) as why:
        error = why.message if isinstance(why, RectoError) else None
        outcome |= {"finish": "error" if error else "stopped", "error": error}
        failed = why if isinstance(why, ProviderError) else None
        if not has_left or (failed and not failed.sent):
            outcome["not_sent"] = True
        may_cost = error is None or (failed and (failed.partial or failed.may_cost))
        outcome["cost_usd"] = broken if has_left and may_cost else 0.0
        with suppress(StoreError):
            await store.do(lambda: store.records.outcome(request.id, **outcome))
        raise
    text = clean("".join(texts))[0]
    usage = priced(model, done.usage) if done.usage and is_believable(done.usage) else None
    # without a report, the cost by our own count
    spent = usage or broken_off(model, question.tokens, text)
    took = round(clock() - started, 3)
    outcome |= {"finish": done.finish, "usage": asdict(usage) if usage else None, "text": text}
    outcome |= {"cost_usd": spent.cost_usd} | ({"called": called, "duration_s": took} if question.ahead else {})
    await store.do(lambda: store.records.outcome(request.id, **outcome))
    return SideAnswer(text, done.finish, called, Made(context.provider.name, model.name, took))


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


def _request(question: SideCall, conversation: str, message: str | None, purpose: Purpose) -> Request:
    context, pieces, parameters = question.context, question.pieces, question.parameters
    return Request(
        id=new_id(),
        conversation=conversation,
        purpose=purpose,
        model=context.model.name,
        format=context.token_cache.format.name,
        parameters=parameters.given(),
        pieces=pieces,
        account=_account(question, conversation),
        message=message,
        created=now(),
        stable=len(pieces) - 2,
        mark_bytes=context.token_cache.format.mark_bytes,
        at_most_usd=at_most(context.model, question.tokens, parameters.max_tokens or 0),
    )


def _account(question: SideCall, conversation: str) -> RequestAccount:
    context, tally = question.context, SectionTally()
    question.preamble.tally(tally)
    if question.entries:
        pick = Pick("messages", f"{len(question.entries)} messages", "to be summed up")
        tally.add("history", pick, total_of(question.entries))
    tally.add("message", Pick("order", "what to sum up, and how", question.because), question.order.count.tokens)
    counts = (*question.preamble.counts, *(entry.count for entry in question.sent))
    budget = replace(context.budget, reserve=question.parameters.max_tokens or 0)
    plan = Plan(context.settings.strategy, NOTHING, question.because)
    window = window_of(context, WindowNotes(conversation), budget, plan, tally, counts)
    account = window.account(meter=context.token_cache.counter.key, window_from=context.model.window_from)
    return replace(account, compaction=question.compaction, ahead=question.ahead) if question.ahead else account


def _save(store: Store, context: TurnContext, session: ChatSession, request: Request) -> None:
    # a line about a document and facts share no prefix with the conversation
    is_alone = request.purpose in ("gist", "facts")
    with store.database.write():
        check_limits(store, context.spend, request, session.run, session.cap)
        context.token_cache.save()
        base = None if is_alone else session.request or store.records.latest(session.conversation)
        store.records.save(request, base)


async def count_texts(context: TurnContext, texts: Sequence[str]) -> list[Counted]:
    return await context.token_cache.count([Entry("user", (Text(text),)) for text in texts])


def is_hopeless(why: Exception) -> bool:
    """True if the same call would fail again."""
    return isinstance(why, NoKey | Refused | SpendLimit)
