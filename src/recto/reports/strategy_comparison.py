"""Strategies played over the stored turns of a conversation, side by side: tokens, cost, cache, compactions, facts.

No model is asked and nothing is stored: `Simulation` plans each request, and the replies are those that were given.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from recto.base.text import kept_text_caches
from recto.chat.blocks import Compaction
from recto.chat.message import Message, Usage
from recto.engine import Engine
from recto.errors import DoesNotFit, Invalid
from recto.reports.planned_again import TODAY, checked_changes
from recto.reports.request_use import RequestUse, recorded_use
from recto.reports.simulation import SimulatedRequest, Simulation, whole_path
from recto.reports.what_if import AS_IT_WAS, PlanChanges, StrategyComparison, StrategyRun
from recto.settings.strategy import STRATEGIES
from recto.summary.ledger import KeyStatement
from recto.turn.context import CallOptions
from recto.turn.planned_request import LEAST_CACHED
from recto.turn.session import ChatSession
from recto.turn.spending import priced

Progress = Callable[[int, int], object]
Blocks = list[tuple[int, Compaction | None]]
"""By the number of each reply, the Compaction that its window was made with."""
NOTES = (
    "replies and tool results are those that were given",
    "what comes first again counts as read from a cache, as if no cache expired",
    TODAY,
)
STANDS_IN = "chosen sentences stand in for summaries that a model would write"


@dataclass(slots=True)
class SimulatedRun:
    """What one strategy has come to so far."""

    name: str
    simulation: Simulation
    requests: list[RequestUse] = field(default_factory=list)
    summaries: list[Usage] = field(default_factory=list)
    too_large: list[int] = field(default_factory=list)
    compactions: int = 0
    blocks: Blocks = field(default_factory=list)

    async def answer(self, reply: Message) -> None:
        """Plans the request that was answered by this reply."""
        current = self.simulation.current
        assert current is not None
        try:
            planned = await self.simulation.answer()
        except DoesNotFit:
            self.too_large.append(reply.said)
            return
        self.requests.append(_use(planned, reply, current))
        self.summaries += _summary_usage(planned)
        self.compactions += planned.block is not None
        self.blocks.append((reply.said, planned.planned.loaded.view.compaction))


class StrategyPlayer:
    """Plays the path of one conversation."""

    def __init__(self, engine: Engine, session: ChatSession, changes: PlanChanges) -> None:
        self._engine, self._session, self._changes = engine, session, checked_changes(changes)
        self._path: list[Message] = []
        self._facts: list[KeyStatement] = []

    async def compare(self, strategies: Collection[str], progress: Progress | None = None) -> StrategyComparison:
        """`progress` takes how many requests are planned, and of how many."""
        unknown = [name for name in strategies if name not in STRATEGIES]
        if unknown:
            raise Invalid(f"there is no strategy {unknown[0]}; there are: {', '.join(STRATEGIES)}", name=unknown[0])
        names = list(dict.fromkeys(strategies)) or list(STRATEGIES)
        self._path = await self._engine.store.do(whole_path, self._engine.store, self._session.head)
        with kept_text_caches(), self._engine.archive.keeping_messages():
            return await self._compared(names, progress)

    async def _compared(self, names: Sequence[str], progress: Progress | None) -> StrategyComparison:
        replies = sum(message.role == "assistant" for message in self._path)
        if not replies:
            raise Invalid("nothing was answered in this conversation yet: there is no turn to plan again")
        self._facts = await asyncio.to_thread(_facts_in, self._path)
        runs, resolved = [], await self._engine.turns.resolve(self._session, self._options(names[0]))
        players = [SimulatedRun(name, Simulation(self._engine, self._session, self._options(name))) for name in names]
        await self._play(players, progress or (lambda done, of: None), len(names) * replies)
        for player in players:
            runs.append(await self._run_of(player))
        recorded = await self._engine.store.do(self._recorded)
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

    async def _play(self, players: Sequence[SimulatedRun], progress: Progress, total: int) -> None:
        """Message by message, one strategy after the other: they look up the same in the archive."""
        done = 0
        for message in self._path:
            for player in players:
                if message.role == "assistant" and player.simulation.current:
                    await player.answer(message)
                    done += 1
                    progress(done, total)
                await player.simulation.add(message)

    async def _run_of(self, player: SimulatedRun) -> StrategyRun:
        costs = [usage.cost_usd for usage in player.summaries]
        return StrategyRun(
            player.name,
            tuple(player.requests),
            player.compactions,
            sum(usage.input + usage.output for usage in player.summaries),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            *await asyncio.to_thread(_facts_kept, player.blocks, self._facts, self._path),
            too_large=tuple(player.too_large),
        )

    def _recorded(self) -> StrategyRun:
        """What the records of the path say."""
        store = self._engine.store
        beside = [each for each in store.records.sent(self._session.conversation) if each.purpose != "reply"]
        costs = [each.cost_usd for each in beside]
        blocks: Blocks = []
        made, block = 0, None
        for message in self._path:
            made += message.compaction is not None and message.compaction.action == "compact"
            block = message.compaction or block
            blocks += [(message.said, block)] if message.role == "assistant" else []
        return StrategyRun(
            AS_IT_WAS,
            tuple(recorded_use(store, self._path)),
            made,
            sum(each.usage.get("input", 0) + each.usage.get("output", 0) for each in beside),
            None if None in costs else sum(cost for cost in costs if cost is not None),
            *_facts_kept(blocks, self._facts, self._path),
            is_estimate=False,
        )


def _use(planned: SimulatedRequest, reply: Message, current: Message) -> RequestUse:
    window, model = planned.planned.window, planned.planned.context.model
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


def _usage(planned: SimulatedRequest, reply: Message) -> Usage:
    """What a provider would report: where it has a price for writing to its cache, what is marked is written."""
    total, prices = planned.planned.window.total, planned.planned.context.model.prices
    read = planned.repeated if planned.repeated >= LEAST_CACHED else 0
    writes = prices is not None and prices.cache_write is not None and planned.stable >= LEAST_CACHED
    output = reply.usage.output if reply.usage else reply.tokens.own or 0
    return Usage(total, output, read, max(0, planned.stable - read) if writes else 0, reported=False)


def _summary_usage(planned: SimulatedRequest) -> Iterator[Usage]:
    if summary := planned.summary:
        same = summary.writer.model.name == planned.planned.context.model.name
        read = summary.input if same and summary.input >= LEAST_CACHED else 0
        yield priced(summary.writer.model, Usage(summary.input, summary.output, read, reported=False))


def _facts_in(path: Sequence[Message]) -> list[KeyStatement]:
    from recto.summary.verification import CoveredMessages

    found = CoveredMessages()
    found.add(message for message in path if message.compaction is None)
    return found.statements


def _facts_kept(blocks: Blocks, facts: Sequence[KeyStatement], path: Sequence[Message]) -> tuple[int, float]:
    """How many facts the last window tells, and the mean share of those stated so far that a window tells."""
    from recto.summary.verification import lost_statements

    numbers = {message.id: message.said for message in path}
    shares, told, lost, before = list[float](), 0, 0, None
    for reply, block in blocks:
        if block is not None and block is not before:
            covered, lifted = numbers.get(block.last or "", 0), {numbers.get(id) for id in block.lifted}
            known = [each for each in facts if each.number <= covered and each.number not in lifted]
            lost = len(lost_statements(block, known))
        before = block
        stated = sum(each.number < reply for each in facts)
        told = stated - lost
        shares.append(told / stated if stated else 1.0)
    return told, sum(shares) / len(shares) if shares else 0.0
