"""What-if: a past turn planned with another strategy, window, model or setting, beside the window that it had.

No model is called and nothing is stored: it is a draft at a point of the past, by the same pickers, planner and
compaction. Sources, memory and notes are those of today."""

from collections.abc import Iterator, Mapping
from typing import Any, TypedDict

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from recto import wire
from recto.chat.blocks import Compaction, MessageRange
from recto.chat.conversation import ranges_of
from recto.chat.message import Message
from recto.engine import Engine
from recto.errors import DoesNotFit, Invalid, NotFound
from recto.settings import settings as configuration
from recto.settings.strategy import STRATEGIES
from recto.store.comparison import Difference, compare
from recto.store.records import Record
from recto.store.store import Store
from recto.tasks.run import TaskRun, read_run, run_entry
from recto.turn.context import CallOptions
from recto.turn.planned_request import PlannedRequest, account_of
from recto.turn.session import ChatSession
from recto.window.account import NO_ACCOUNT, RequestAccount
from recto.window.compaction_block import cleared_at
from recto.window.request import Parameters
from recto.window.window import too_large

STRATEGY, MAX_PROMPT = "context.strategy", "context.max_prompt_tokens"
TODAY = "rules, references, tools, notes and memory are those of today"


class PlanOptions(TypedDict, total=False):
    """Changes to a past plan; the rest stays as it was."""

    strategy: str | None
    window: int | None
    """A window size in tokens, in place of the model's own."""
    model: str | None
    settings: dict[str, Any] | None
    """Context settings by key."""


class PlanChanges(Struct, frozen=True):
    """Changes to a plan; the rest stays as it was."""

    strategy: str | None = None
    window: int | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        own = {"strategy": self.strategy, "window": self.window, "model": self.model}
        return {name: value for name, value in own.items() if value is not None} | dict(self.settings)


class WindowMessages(Struct, frozen=True):
    """The messages before a reply, by number."""

    verbatim: tuple[MessageRange, ...] = ()
    condensed: tuple[MessageRange, ...] = ()
    """Sent as an excerpt, or with lines in place of tool results."""
    summarised: tuple[MessageRange, ...] = ()
    left_out: tuple[MessageRange, ...] = ()


class WindowPlan(Struct, frozen=True):
    """One side of a what-if."""

    account: RequestAccount
    messages: WindowMessages

    def to_json(self) -> dict[str, Any]:
        return self.account.to_json() | {"messages": to_builtins(self.messages)}


class WhatIf(Struct, frozen=True):
    conversation: str
    message: str
    number: int
    reply: str | None
    changes: PlanChanges
    was: WindowPlan | None
    """None if no request is recorded."""
    would: WindowPlan | None
    """None if nothing would fit: `error` says why."""
    difference: Difference | None = None
    compaction: Compaction | None = None
    """The Compaction that would be made for this turn."""
    is_estimate: bool = False
    """True if a model would write a summary: it counts with the most that it may take."""
    because: str = ""
    notes: tuple[str, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        names = ("conversation", "message", "number", "reply", "changes", "was", "would", "compaction", "because")
        told = wire.fields_to_json(self, *names, "is_estimate", "difference", "notes")
        return told | {"error": self.error or None}


def checked_changes(options: PlanOptions) -> PlanChanges:
    """Expands the names of settings. Raises Invalid."""
    changes = PlanChanges(**{name: value for name, value in options.items() if value is not None})  # type: ignore[arg-type]
    if changes.strategy is not None:
        configuration.check(STRATEGY, changes.strategy, "strategy")
    named = {configuration.conversation_key(key, "what-if"): value for key, value in changes.settings.items()}
    return replace(changes, settings={key: configuration.check(key, value, key) for key, value in named.items()})


class PastTurn(Struct, frozen=True):
    """A turn up to one of its requests."""

    said: tuple[Message, ...]
    """The user message, then the rounds of tool calls before the request."""
    reply: Message | None
    record: Record | None

    @property
    def head(self) -> Message:
        return self.said[-1]


def find_past_turn(store: Store, named: Message) -> PastTurn:
    """The turn of a reply or a user message."""
    if named.compaction:
        raise Invalid("this message is a compaction: name a reply, or the message that it answers", id=named.id)
    try:
        record: Record | None = store.records.record(store.records.named(named.id))
    except NotFound:
        record = None
    found = record.outcome.get("reply") if record else None
    reply = named if named.role == "assistant" else store.tree.message(found) if found else None
    end = reply.parent if reply else named.id
    said: list[Message] = []
    while end and not (said and said[-1].role == "user"):
        (message,) = store.tree.page(end, most=1)
        said += [message] if message.compaction is None else []
        end = message.parent
    if not said or said[-1].role != "user":
        raise Invalid(f"there is no user message before #{named.said}", id=named.id)
    return PastTurn(tuple(reversed(said)), reply, record)


async def plan_again(engine: Engine, session: ChatSession, named: Message, options: PlanOptions) -> WhatIf:
    """`named`: the reply or the message of the turn."""
    changes, store, do = checked_changes(options), engine.store, engine.store.do
    past = await do(find_past_turn, store, named)
    current, record = past.said[0], past.record
    was = await do(_recorded_window, store, record, past) if record else None
    reply = past.reply.id if past.reply else None
    shown = WhatIf(session.conversation, current.id, current.said, reply, changes, was, None)
    account = record.account if record else NO_ACCOUNT
    try:
        planned = await _planned(engine, session, past, changes, account)
        if planned.window.free < 0:
            raise too_large(planned.window)
    except DoesNotFit as why:
        return replace(shown, error=why.message)
    context, format = planned.context, planned.token_cache.format.name
    account = replace(
        account_of(planned), model=context.model.name, format=format, parameters=context.parameters.given()
    )
    block, is_promised = planned.loaded.view.compaction, planned.notes.promised > 0
    plan = planned.window.plan
    return replace(
        shown,
        would=WindowPlan(account, await do(_messages, store, account, block, past, is_promised)),
        difference=compare(record.account, account, (record.id, "what-if")) if record else None,
        compaction=replace(block, context_size_after=planned.window.total) if plan.cut and block else None,
        is_estimate=is_promised,
        because=plan.because,
        notes=(*planned.window.notes, *_notes(planned), TODAY),
    )


async def _planned(
    engine: Engine, session: ChatSession, past: PastTurn, changes: PlanChanges, was: RequestAccount
) -> PlannedRequest:
    then = ChatSession(
        session.conversation,
        past.head.id,
        **{name: getattr(session, name) for name in ("model", "vault", "agent", "project", "chosen", "is_guest")},
        run=await engine.store.do(_run, engine.store, past),
    )
    options = await _options(engine, then, changes, was, past.reply)
    turn = await engine.turns.new(then, past.said[0], options, is_draft=True)
    return await engine.preview(await engine.turns.prepare(turn, is_continued=True))


def _run(store: Store, past: PastTurn) -> TaskRun | None:
    """The agent's run in its state at the time of the message."""
    found = read_run(store.tree.page, past.head.id) if run_entry(past.said[0]) else None
    return found.run if found else None


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


def _recorded_window(store: Store, record: Record, past: PastTurn) -> WindowPlan:
    at = past.reply.parent if past.reply else past.head.id
    block = store.tree.compaction_block(at) if at else None
    return WindowPlan(record.account, _messages(store, record.account, block, past))


def _messages(
    store: Store, account: RequestAccount, block: Compaction | None, past: PastTurn, is_promised: bool = False
) -> WindowMessages:
    """What becomes of every message before the reply. `block` is the Compaction in force."""
    sent = account.messages
    shortened = {key.partition("/")[0] for key in sent.excerpts or ()} if sent else set()
    ranges = [pick.name.split("…") for pick in account.picks("history")]
    told = [sent.current, *sent.rounds] if sent else []
    ids = {id for id in (*(end for ends in ranges for end in ends), *told, *shortened, cleared_at(block)) if id}
    numbers = store.tree.numbers(ids, past.head.id)
    found = {numbers[id] for id in told if id in numbers}
    for ends in ranges:
        if ends[0] in numbers and ends[-1] in numbers:
            found |= {*range(numbers[ends[0]], numbers[ends[-1]] + 1)}
    condensed = {numbers[id] for id in shortened if id in numbers} & found
    rest = {*range(1, past.head.said + 1)} - found
    has_summary = block is not None and block.last is not None and bool(block.summary or is_promised)
    covered = block.messages_archived + len(block.lifted) if block and has_summary else 0
    cleared = numbers.get(cleared_at(block) or "", 0)
    summarised = {number for number in rest if cleared < number <= covered}
    return WindowMessages(*map(ranges_of, (found - condensed, condensed, summarised, rest - summarised)))


def _notes(planned: PlannedRequest) -> Iterator[str]:
    if planned.notes.promised:
        model = planned.context.settings.summary_model or planned.context.model.name
        yield f"{model} would write the summary: it counts with the most tokens that it may take"
