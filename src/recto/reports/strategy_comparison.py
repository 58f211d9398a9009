"""Strategies simulated over the stored turns of a conversation, side by side: tokens, cost, cache, compactions, loss.

No model is called and nothing is stored: `Simulation` plans each request, with the original replies."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from recto.base.text import kept_text_caches
from recto.chat.blocks import Compaction
from recto.chat.message import Message, Usage
from recto.engine import Engine
from recto.errors import DoesNotFit, Invalid
from recto.reports.conversation_stats import RequestUse, recorded_use
from recto.reports.planned_again import TODAY, checked_changes
from recto.reports.simulation import SimulatedRequest, Simulation, whole_path
from recto.reports.what_if import AS_IT_WAS, PlanChanges, StrategyComparison, StrategyResult
from recto.settings.strategy import STRATEGIES
from recto.store.store import Store
from recto.summary.ledger import KeyStatement
from recto.turn.context import CallOptions
from recto.turn.planned_request import LEAST_CACHED
from recto.turn.session import ChatSession
from recto.turn.spending import priced

Progress = Callable[[int, int], object]
Blocks = list[tuple[int, Compaction | None]]
"""The number of each reply, and the Compaction of its window."""
NOTES = (
    "replies and tool results are those that were given",
    "what comes first again counts as read from a cache, as if no cache expired",
    TODAY,
)
STANDS_IN = "chosen sentences stand in for summaries that a model would write"


@dataclass(slots=True)
class SimulatedPath:
    name: str
    simulation: Simulation
    requests: list[RequestUse] = field(default_factory=list)
    summaries: list[Usage] = field(default_factory=list)
    too_large: list[int] = field(default_factory=list)
    compactions: int = 0
    blocks: Blocks = field(default_factory=list)

    async def answer(self, reply: Message, current: Message) -> None:
        try:
            planned = await self.simulation.answer()
        except DoesNotFit:
            self.too_large.append(reply.said)
            return
        window, model, block = planned.planned.window, planned.planned.context.model, planned.block
        at = (reply.said, reply.id, model.name, reply.created, window.total, window.limit)
        usage, number = priced(model, _usage(planned, reply)), block.compaction_number if block else None
        self.requests.append(RequestUse(*at, usage, number, current.said))
        if summary := planned.summary:
            repeats = summary.writer.model.name == model.name and summary.input >= LEAST_CACHED
            read = summary.input if repeats else 0
            usage = Usage(summary.input, summary.output, read, reported=False)
            self.summaries.append(priced(summary.writer.model, usage))
        self.compactions += block is not None
        self.blocks.append((reply.said, planned.planned.loaded.view.compaction))

    def result(self, statements: Sequence[KeyStatement], path: Sequence[Message]) -> StrategyResult:
        return StrategyResult(
            self.name,
            tuple(self.requests),
            self.compactions,
            sum(usage.input + usage.output for usage in self.summaries),
            _sum(usage.cost_usd for usage in self.summaries),
            *_statements_kept(self.blocks, statements, path),
            too_large=tuple(self.too_large),
        )


async def compare_strategies(
    engine: Engine,
    session: ChatSession,
    changes: PlanChanges,
    strategies: Collection[str],
    progress: Progress | None = None,
) -> StrategyComparison:
    """`progress` takes the number of planned requests, and the total."""
    changes = checked_changes(changes)
    unknown = [name for name in strategies if name not in STRATEGIES]
    if unknown:
        raise Invalid(f"there is no strategy {unknown[0]}; there are: {', '.join(STRATEGIES)}", name=unknown[0])
    names = list(dict.fromkeys(strategies)) or list(STRATEGIES)
    path = await engine.store.do(whole_path, engine.store, session.head)
    if all(message.role != "assistant" for message in path):
        raise Invalid("nothing was answered in this conversation yet: there is no turn to plan again")
    options = [
        CallOptions(model=changes.model, strategy=name, window=changes.window, settings=changes.settings)
        for name in names
    ]
    with kept_text_caches():
        statements = await asyncio.to_thread(_statements_in, path)
        resolved = await engine.turns.resolve(session, options[0])
        played = [SimulatedPath(str(each.strategy), Simulation(engine, session, each)) for each in options]
        await _play(played, path, progress)
        runs = tuple([await asyncio.to_thread(each.result, statements, path) for each in played])
        recorded = await engine.store.do(_recorded, engine.store, session.conversation, statements, path)
    estimates = [STANDS_IN] if any(run.summary_tokens for run in runs) else []
    return StrategyComparison(
        session.conversation,
        resolved.model.name,
        resolved.limit,
        changes,
        len(statements),
        runs,
        recorded if recorded.requests else None,
        (*resolved.notes, *estimates, *NOTES),
    )


async def _play(runs: Sequence[SimulatedPath], path: Sequence[Message], progress: Progress | None) -> None:
    """One strategy after the other at each message, because they search the archive for the same."""
    done, total = 0, len(runs) * sum(message.role == "assistant" for message in path)
    for message in path:
        for run in runs:
            if message.role == "assistant" and (current := run.simulation.current):
                await run.answer(message, current)
                done += 1
                if progress:
                    progress(done, total)
            await run.simulation.add(message)


def _recorded(
    store: Store, conversation: str, statements: Sequence[KeyStatement], path: Sequence[Message]
) -> StrategyResult:
    beside = [each for each in store.records.sent(conversation) if each.purpose != "reply"]
    blocks: Blocks = []
    made, block = 0, None
    for message in path:
        made += message.compaction is not None and message.compaction.action == "compact"
        block = message.compaction or block
        blocks += [(message.said, block)] if message.role == "assistant" else []
    return StrategyResult(
        AS_IT_WAS,
        tuple(recorded_use(store, path)),
        made,
        sum(each.usage.get("input", 0) + each.usage.get("output", 0) for each in beside),
        _sum(each.cost_usd for each in beside),
        *_statements_kept(blocks, statements, path),
        is_estimate=False,
    )


def _sum(costs: Iterable[float | None]) -> float | None:
    """None if one is unknown."""
    total: float = 0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _usage(planned: SimulatedRequest, reply: Message) -> Usage:
    """If writing to the cache has a price, marked parts are written."""
    total, prices = planned.planned.window.total, planned.planned.context.model.prices
    read = planned.repeated if planned.repeated >= LEAST_CACHED else 0
    writes = prices is not None and prices.cache_write is not None and planned.stable >= LEAST_CACHED
    output = reply.usage.output if reply.usage else reply.tokens.own or 0
    return Usage(total, output, read, max(0, planned.stable - read) if writes else 0, reported=False)


def _statements_in(path: Sequence[Message]) -> list[KeyStatement]:
    from recto.summary.verification import CoveredMessages

    found = CoveredMessages()
    found.add(message for message in path if message.compaction is None)
    return found.statements


def _statements_kept(blocks: Blocks, statements: Sequence[KeyStatement], path: Sequence[Message]) -> tuple[int, float]:
    """The number of statements in the last window, and the mean share of statements so far that each window
    contains."""
    from recto.summary.verification import lost_statements

    numbers = {message.id: message.said for message in path}
    shares, told, lost, before = list[float](), 0, 0, None
    for reply, block in blocks:
        if block is not None and block is not before:
            covered, lifted = numbers.get(block.last or "", 0), {numbers.get(id) for id in block.lifted}
            known = [each for each in statements if each.number <= covered and each.number not in lifted]
            lost = len(lost_statements(block, known))
        before = block
        stated = sum(each.number < reply for each in statements)
        told = stated - lost
        shares.append(told / stated if stated else 1.0)
    return told, sum(shares) / len(shares) if shares else 0.0
