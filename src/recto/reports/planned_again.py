"""What-if: a past turn, or a whole conversation, planned with another strategy, window, model or setting.

No model is called and nothing is stored. `Simulation` plans; this file finds the turns and compares the results with
the records."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.engine import Engine
from recto.errors import DoesNotFit, Invalid, NotFound
from recto.providers.registry import format_named
from recto.reports.simulation import SimulatedRequest, Simulation, whole_path
from recto.reports.what_if import PlanChanges, WhatIf, WindowMessages, WindowPlan, window_messages
from recto.settings import settings as configuration
from recto.settings.strategy import STRATEGIES
from recto.store.comparison import ComparedRequest, SentMessage, compare
from recto.store.store import Store
from recto.turn.context import CallOptions
from recto.turn.planned_request import PlannedRequest, account_of
from recto.turn.session import ChatSession
from recto.window.account import NO_ACCOUNT, RequestAccount
from recto.window.compaction_block import cleared_at
from recto.window.request import Parameters

STRATEGY, MAX_PROMPT = "context.strategy", "context.max_prompt_tokens"
TODAY = "rules, references, tools, notes and memory are those of today"


def checked_changes(changes: PlanChanges) -> PlanChanges:
    """Expands the names of settings. Raises Invalid."""
    if changes.strategy is not None:
        configuration.check(STRATEGY, changes.strategy, "strategy")
    named = {configuration.conversation_key(key, "what-if"): value for key, value in changes.settings.items()}
    return replace(changes, settings={key: configuration.check(key, value, key) for key, value in named.items()})


class AnsweredTurn(Struct, frozen=True):
    """A turn up to one of its requests."""

    said: tuple[Message, ...]
    """The user message, then the rounds of tool calls before the request."""
    reply: Message | None
    request: str | None

    @property
    def current(self) -> Message:
        return self.said[0]


def find_past_turn(store: Store, named: Message) -> AnsweredTurn:
    """The turn of a reply or a user message."""
    if named.compaction:
        raise Invalid("this message is a compaction: name a reply, or the message that it answers", id=named.id)
    try:
        request: str | None = store.records.named(named.id)
    except NotFound:
        request = None
    found = store.records.record(request).outcome.get("reply") if request else None
    reply = named if named.role == "assistant" else store.tree.message(found) if found else None
    end = reply.parent if reply else named.id
    said: list[Message] = []
    while end and not (said and said[-1].role == "user"):
        (message,) = store.tree.page(end, most=1)
        said += [message] if message.compaction is None else []
        end = message.parent
    if not said or said[-1].role != "user":
        raise Invalid(f"there is no user message before #{named.said}", id=named.id)
    return AnsweredTurn(tuple(reversed(said)), reply, request)


async def plan_again(engine: Engine, session: ChatSession, named: Message, changes: PlanChanges) -> WhatIf:
    """`named`: the reply or the message of the turn."""
    changes, store, do = checked_changes(changes), engine.store, engine.store.do
    past = await do(find_past_turn, store, named)
    was = await do(store.records.compared, past.request, format_named) if past.request else None
    options = await _options(engine, session, changes, was.account if was else NO_ACCOUNT, past.reply)
    simulation = Simulation(engine, session, options)
    await _go_to(past, simulation, store if changes.from_start else None)
    last = past.said[-1].said
    shown = WhatIf(
        session.conversation,
        past.current.id,
        past.current.said,
        past.reply.id if past.reply else None,
        changes,
        await do(_recorded_window, store, was, past) if was else None,
        None,
    )
    try:
        planned = await simulation.answer()
    except DoesNotFit as why:
        return replace(shown, error=why.message)
    would = _compared(planned.planned, session.conversation)
    messages = await do(_messages, store, would, simulation.compaction, last)
    difference = await asyncio.to_thread(compare, was, would, store.records.text) if was else None
    return replace(
        shown,
        would=WindowPlan(would.account, messages),
        difference=difference,
        compaction=planned.block,
        is_estimate=planned.summary is not None,
        because=planned.plan.because,
        notes=(*planned.planned.window.notes, *_notes(planned), TODAY),
    )


async def _go_to(past: AnsweredTurn, simulation: Simulation, store: Store | None) -> None:
    """Starts from what was stored before the turn, or with `store` plans everything from the first message."""
    if store is None:
        await simulation.begin_at(past.current)
    else:
        for message in await store.do(whole_path, store, past.current.parent):
            if message.role == "assistant" and simulation.current:
                with suppress(DoesNotFit):
                    await simulation.answer()
            await simulation.add(message)
    for message in past.said:
        await simulation.add(message)


async def _options(
    engine: Engine, session: ChatSession, changes: PlanChanges, was: RequestAccount, reply: Message | None
) -> CallOptions:
    """The options of the record, with the changes."""
    asked = (was.parameters or {}).get("max_tokens") if changes.model is None else None
    options = CallOptions(
        model=changes.model or was.model or (reply.model if reply else None),
        strategy=changes.strategy or (was.strategy if was.strategy in STRATEGIES else None),
        parameters=Parameters(max_tokens=asked if isinstance(asked, int) else None),
        window=changes.window,
        settings=changes.settings,
    )
    if changes.window is None and changes.model is None and MAX_PROMPT not in changes.settings and was.limit:
        resolved = await engine.turns.resolve(session, options)
        if resolved.limit != was.limit:
            return replace(options, window=was.limit)
    return options


def _recorded_window(store: Store, was: ComparedRequest, past: AnsweredTurn) -> WindowPlan:
    at = past.reply.parent if past.reply else past.said[-1].id
    block = store.tree.compaction_block(at) if at else None
    return WindowPlan(was.account, _messages(store, was, block, past.said[-1].said))


def _messages(store: Store, side: ComparedRequest, block: Compaction | None, last: int) -> WindowMessages:
    sent, cleared = side.account.messages, cleared_at(block)
    until = store.tree.message(cleared).said if cleared else 0
    return window_messages(side.sent, (sent.excerpts or ()) if sent else (), block, last, until)


def _compared(planned: PlannedRequest, conversation: str) -> ComparedRequest:
    """The side of a comparison that is not sent."""
    (pieces, stable), view, context = planned.pieces(), planned.loaded.view, planned.context
    account = replace(
        account_of(planned),
        model=context.model.name,
        format=planned.token_cache.format.name,
        parameters=context.parameters.given(),
    )
    messages = (*view.still_sent, *view.history, planned.current.message, *view.rounds)
    return ComparedRequest(
        id="what-if",
        conversation=conversation,
        purpose="reply",
        account=account,
        pieces=tuple(piece.data for piece in pieces),
        stable=stable,
        sent=tuple(SentMessage(message.id, message.said, message.role) for message in messages),
        format=planned.token_cache.format,
    )


def _notes(planned: SimulatedRequest) -> Iterator[str]:
    if planned.summary:
        model = planned.summary.writer.model.name
        yield f"{model} would write the summary: chosen sentences stand in for it, so its tokens are an estimate"
