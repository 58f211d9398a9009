"""Asking: one call to a summariser, recorded before it leaves like every request, its answer gathered whole."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, replace

from recto.chat.blocks import Made, Text
from recto.chat.message import now
from recto.errors import ProviderError, RectoError, StoreError, Unreachable
from recto.ids import new_id
from recto.providers.provider import Attempt, CallPart, Done, TextPart
from recto.sources.pick import Pick
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.walk.opening import Opening, listed
from recto.walk.scale import Weighed
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.window.plan import NOTHING, Plan
from recto.window.request import Entry, Parameters, Piece, Purpose, Request, marked
from recto.window.window import Tally, Window

TEMPERATURE = 0.3
# Models that think unasked spend on it what they are given for the answer.
ROOM_TO_THINK = 4096


@dataclass(frozen=True, slots=True)
class Question:
    """What a summariser is sent: an opening, entries that are weighed already, and the order."""

    ready: Ready
    opening: Opening
    entries: tuple[Weighed, ...]
    order: Weighed
    because: str
    most: int
    """The longest answer."""

    @property
    def parameters(self) -> Parameters:
        model = self.ready.model
        thinking = self.ready.parameters.thinking_budget or 0
        extra = thinking or (ROOM_TO_THINK if model.fixed_temperature else 0)
        return Parameters(
            max_tokens=self.most + extra,
            temperature=None if model.fixed_temperature else TEMPERATURE,
            thinking_budget=thinking or None,
            tool_choice="none" if self.opening.tools else None,
        )

    @property
    def tokens(self) -> int:
        return self.opening.count.tokens + sum(entry.count.tokens for entry in (*self.entries, self.order))

    @property
    def fits(self) -> bool:
        """Whether question and answer are within the summariser's own window."""
        return self.tokens + (self.parameters.max_tokens or 0) <= self.ready.budget.limit

    @property
    def pieces(self) -> tuple[Piece, ...]:
        body = [entry.wire for entry in (*self.entries, self.order)]
        format, opening = self.ready.scale.format, self.opening
        pieces = (*opening.pieces, *listed(body, opening.is_open), format.closing(self.parameters))
        behind_entries = len(pieces) - 2
        return marked(pieces, [behind_entries - 1] if self.entries else [], format)


@dataclass(frozen=True, slots=True)
class Answer:
    text: str
    finish: str
    called: bool
    made: Made


async def ask(
    question: Question,
    store: Store,
    clerk: Clerk,
    standing: Standing,
    message: str | None,
    timeout_s: float,
    *,
    purpose: Purpose = "summary",
) -> Answer:
    """The answer, valid or not. A ProviderError when none came; either way the record says what became of it."""
    request = _request(question, standing, message, purpose)
    await clerk.do(_save, store, question.ready, standing, request)
    started = asyncio.get_running_loop().time()
    attempts: list[dict[str, object]] = []
    try:
        async with asyncio.timeout(timeout_s):
            texts, called, done = await _gather(question.ready, request, attempts)
    except TimeoutError as why:
        await clerk.do(store.records.outcome, request.id, finish="error", error="timed out", attempts=attempts)
        raise Unreachable(f"the summariser did not answer within {timeout_s:g} s") from why
    except (RectoError, asyncio.CancelledError) as why:
        error = why.message if isinstance(why, RectoError) else None
        told = {"finish": "error" if error else "stopped", "error": error, "attempts": attempts}
        with suppress(StoreError):
            await clerk.do(store.records.outcome, request.id, **told)
        raise
    usage = asdict(done.usage) if done.usage else None
    text = clean("".join(texts))[0]
    await clerk.do(store.records.outcome, request.id, finish=done.finish, usage=usage, text=text, attempts=attempts)
    took = round(asyncio.get_running_loop().time() - started, 3)
    made = Made(question.ready.provider.name, question.ready.model.name, took)
    return Answer(text, done.finish, called, made)


async def _gather(ready: Ready, request: Request, attempts: list[dict[str, object]]) -> tuple[list[str], bool, Done]:
    texts: list[str] = []
    called, done = False, Done("stop")
    async with aclosing(ready.provider.stream(request.body, request.purpose)) as parts:
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


def _request(question: Question, standing: Standing, message: str | None, purpose: Purpose) -> Request:
    ready, pieces = question.ready, question.pieces
    return Request(
        id=new_id(),
        conversation=standing.conversation,
        purpose=purpose,
        model=ready.model.name,
        format=ready.scale.format.name,
        parameters=question.parameters.given(),
        pieces=pieces,
        account=_account(question, standing.conversation),
        message=message,
        created=now(),
        stable=len(pieces) - 2,
        mark_bytes=ready.scale.format.mark_bytes,
    )


def _account(question: Question, conversation: str) -> dict[str, object]:
    ready = question.ready
    tally = Tally()
    question.opening.tally(tally)
    if question.entries:
        tokens = sum(entry.count.tokens for entry in question.entries)
        tally.add("history", Pick("messages", f"{len(question.entries)} messages", "to be summed up"), tokens)
    tally.add("message", Pick("order", "what to sum up, and how", question.because), question.order.count.tokens)
    exact = all(entry.count.exact for entry in (*question.entries, question.order)) and question.opening.count.exact
    budget = replace(ready.budget, reserve=question.parameters.max_tokens or 0)
    window = Window(
        conversation=conversation,
        model=ready.model.name,
        strategy=ready.context.strategy,
        limit=budget.limit,
        reserve=budget.reserve,
        exact=exact,
        sections=tally.sections(budget),
        plan=Plan(ready.context.strategy, NOTHING, question.because),
    )
    told = {key: value for key, value in window.to_json().items() if key not in ("conversation", "model")}
    return {**told, "meter": ready.scale.meter.key, "window_from": ready.model.window_from}


def _save(store: Store, ready: Ready, standing: Standing, request: Request) -> None:
    with store.database.write():
        ready.scale.save()
        # what is asked beside the conversation shares nothing with it
        base = None if request.purpose == "gist" else standing.request or store.records.latest(standing.conversation)
        store.records.save(request, base)


async def weigh_text(ready: Ready, texts: Sequence[str]) -> list[Weighed]:
    return await ready.scale.weigh([Entry("user", (Text(text),)) for text in texts])


def is_hopeless(why: ProviderError) -> bool:
    """Whether asking the same again would fail the same way."""
    return why.type in ("NoKey", "Refused")
