"""Strategies played over the stored turns of a conversation, side by side: tokens, cost, cache, compactions, facts.

No model is asked and nothing is stored: `Simulation` plans each request, and the replies are those that were given.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence

from recto.chat.blocks import Compaction
from recto.chat.message import Message, Usage
from recto.engine import Engine
from recto.errors import DoesNotFit, Invalid
from recto.reports.request_use import RequestUse, recorded_use
from recto.reports.what_if import AS_IT_WAS, PlanChanges, StrategyComparison, StrategyRun
from recto.simulation import PlannedRequest, Simulation
from recto.store.sent_requests import sent_requests
from recto.strategy import STRATEGIES
from recto.summary.ledger import LedgerEntry
from recto.turn.assembly import LEAST_CACHED
from recto.turn.context import CallOptions
from recto.turn.session import ChatSession
from recto.turn.spending import priced
from recto.what_if import TODAY, checked_changes

Progress = Callable[[int, int], object]
PAGE = 500
NOTES = (
    "replies and tool results are those that were given",
    "what comes first again counts as read from a cache, as if no cache expired",
    TODAY,
)
STANDS_IN = "chosen sentences stand in for summaries that a model would write"


class StrategyPlayer:
    """Plays the path of one conversation."""

    def __init__(self, engine: Engine, session: ChatSession, changes: PlanChanges) -> None:
        self._engine, self._session, self._changes = engine, session, checked_changes(changes)
        self._path: list[Message] = []
        self._facts: list[LedgerEntry] = []

    async def compare(self, strategies: Collection[str], progress: Progress | None = None) -> StrategyComparison:
        """`progress` takes how many requests are planned, and of how many."""
        unknown = [name for name in strategies if name not in STRATEGIES]
        if unknown:
            raise Invalid(f"there is no strategy {unknown[0]}; there are: {', '.join(STRATEGIES)}", name=unknown[0])
        names = list(dict.fromkeys(strategies)) or list(STRATEGIES)
        self._path = await self._engine.store_thread.do(_path, self._engine, self._session.head)
        replies = sum(message.role == "assistant" for message in self._path)
        if not replies:
            raise Invalid("nothing was answered in this conversation yet: there is no turn to plan again")
        self._facts = await asyncio.to_thread(_facts_in, self._path)
        runs, resolved = [], await self._engine.resolve(self._session, self._options(names[0]))
        for place, name in enumerate(names):
            tell = _shifted(progress, place * replies, len(names) * replies)
            runs.append(await self._play(name, tell))
        recorded = await self._engine.store_thread.do(self._recorded)
        estimates = [STANDS_IN] if any(run.summary_tokens for run in runs) else []
        return StrategyComparison(
            self._session.conversation,
            resolved.model.name,
            resolved.limit,
            self._changes,
            len(self._facts),
            tuple(runs),
            recorded if recorded.requests else None,
            (*resolved.notes, *estimates, *NOTES),
        )

    def _options(self, strategy: str) -> CallOptions:
        changes = self._changes
        return CallOptions(model=changes.model, strategy=strategy, window=changes.window, settings=changes.settings)

    async def _play(self, strategy: str, tell: Callable[[int], object]) -> StrategyRun:
        simulation = Simulation(self._engine, self._session, self._options(strategy))
        requests, summaries, too_large, compactions = list[RequestUse](), list[Usage](), list[int](), 0
        known, done = {message.id: message for message in self._path}, 0
        said, current = list[Message](), None
        for message in self._path:
            if message.compaction:
                said = [] if await simulation.revise(message.compaction, said, known) else said
                continue
            if message.role == "assistant" and current and said:
                try:
                    planned = await simulation.plan(said, current)
                    requests.append(_use(planned, message, current))
                    summaries += _summary_usage(planned)
                    compactions += planned.block is not None
                except DoesNotFit:
                    too_large.append(message.said)
                said = []
                tell(done := done + 1)
            said.append(message)
            current = message if message.role == "user" else current
        costs = [usage.cost_usd for usage in summaries]
        return StrategyRun(
            strategy,
            tuple(requests),
            compactions,
            sum(usage.input + usage.output for usage in summaries),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            await asyncio.to_thread(_told, simulation.compaction, self._facts, self._path),
            tuple(too_large),
        )

    def _recorded(self) -> StrategyRun:
        """What the records of the path say."""
        store, head = self._engine.store, self._session.head
        beside = [each for each in sent_requests(store.database, self._session.conversation) if each.purpose != "reply"]
        costs = [each.cost_usd for each in beside]
        block = store.tree.compaction_block(head) if head else None
        blocks = [message.compaction for message in self._path if message.compaction]
        return StrategyRun(
            AS_IT_WAS,
            tuple(recorded_use(store, self._path)),
            sum(each.action == "compact" for each in blocks),
            sum(each.usage.get("input", 0) + each.usage.get("output", 0) for each in beside),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            _told(block, self._facts, self._path),
            is_estimate=False,
        )


def _path(engine: Engine, head: str | None) -> list[Message]:
    """From the first message to the head."""
    found: list[Message] = []
    while head:
        page = engine.store.tree.page(head, most=PAGE)
        found += page
        head = page[-1].parent if len(page) == PAGE else None
    return found[::-1]


def _shifted(progress: Progress | None, before: int, total: int) -> Callable[[int], object]:
    return lambda done: progress(before + done, total) if progress else None


def _use(planned: PlannedRequest, reply: Message, current: Message) -> RequestUse:
    window, model = planned.turn.window, planned.turn.context.model
    block = planned.block
    return RequestUse(
        reply.said,
        reply.id,
        model.name,
        reply.created,
        window.total,
        window.limit,
        priced(model, _usage(planned, reply)),
        block.compaction_number if block else None,
        current.said,
    )


def _usage(planned: PlannedRequest, reply: Message) -> Usage:
    """What a provider would report: where it has a price for writing to its cache, what is marked is written."""
    total, prices = planned.turn.window.total, planned.turn.context.model.prices
    read = planned.repeated if planned.repeated >= LEAST_CACHED else 0
    writes = prices is not None and prices.cache_write is not None and planned.stable >= LEAST_CACHED
    output = reply.usage.output if reply.usage else reply.tokens.own or 0
    return Usage(total, output, read, max(0, planned.stable - read) if writes else 0, reported=False)


def _summary_usage(planned: PlannedRequest) -> Iterator[Usage]:
    if summary := planned.summary:
        same = summary.writer.model.name == planned.turn.context.model.name
        read = summary.input if same and summary.input >= LEAST_CACHED else 0
        yield priced(summary.writer.model, Usage(summary.input, summary.output, read, reported=False))


def _facts_in(path: Sequence[Message]) -> list[LedgerEntry]:
    from recto.summary.verification import CoveredFacts  # compiles patterns: a tenth of a second

    found = CoveredFacts()
    found.add(message for message in path if message.compaction is None)
    return list(found.entries.values())


def _told(block: Compaction | None, facts: Sequence[LedgerEntry], path: Sequence[Message]) -> int:
    """How many of these facts a window with this Compaction tells."""
    from recto.summary.verification import count_told  # compiles patterns: a tenth of a second

    ends = {message.id: message.said for message in path}
    covered = ends.get(block.last or "", 0) if block else 0
    lifted = set(block.lifted) if block else set()
    sent = {message.said for message in path if message.said > covered or message.id in lifted}
    return count_told(block, facts, sent)
