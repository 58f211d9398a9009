"""AsyncTalkReports: reports on one conversation: statistics, use turn by turn, what if, strategies compared."""

import asyncio
from collections.abc import Collection
from typing import Unpack

from recto.api.arguments import checked_door
from recto.api.talk_reader import AsyncTalkReader
from recto.errors import RectoError
from recto.reports.conversation_stats import ConversationStats, SaidCounter, WindowStats, recall_stats, request_totals
from recto.reports.request_use import RequestUse, recorded_use
from recto.reports.what_if import PlanOptions, StrategyComparison, TurnPlanOptions, WhatIf, changes_of
from recto.search.hybrid_index import Progress


@checked_door
class AsyncTalkReports(AsyncTalkReader):
    async def stats(self) -> ConversationStats:
        """Messages, tokens, compactions, window, requests and cost."""
        sent = await asyncio.to_thread(self._engine.store.records.sent, self.id) if self.id else []
        counter = SaidCounter(await self.archived())
        async for message in self.path():
            counter.count(message)
        strategy, window, error = await self._window_stats()
        summaries = [request for request in sent if request.purpose == "summary"]
        return ConversationStats(
            self.id,
            counter.total(),
            strategy,
            window,
            error,
            request_totals(sent),
            recall_stats(sent),
            request_totals(summaries),
        )

    async def _window_stats(self) -> tuple[str | None, WindowStats | None, str]:
        """The strategy in force and how full the window is; without the model an error in its place."""
        try:
            context, window = await self._context(), await self.window()
        except RectoError as why:
            return self.strategy, None, why.message
        return context.strategy.name, WindowStats.of(window, context.budget), ""

    async def what_if(self, message: str, **changes: Unpack[TurnPlanOptions]) -> WhatIf:
        """The window of a past turn, named by its reply or its message, as it was and as it would be with these
        changes. No model is asked, and nothing is stored."""
        from recto.reports.planned_again import TurnPlanner  # compiles the patterns of summaries: a tenth of a second

        return await TurnPlanner(self._engine, self.session).plan(await self.message(message), changes_of(changes))

    async def compare_strategies(
        self, names: Collection[str] = (), progress: Progress | None = None, **changes: Unpack[PlanOptions]
    ) -> StrategyComparison:
        """All turns of the path planned again with each of these strategies (by default with all), side by side."""
        from recto.reports.strategy_comparison import StrategyPlayer  # compiles patterns too

        return await StrategyPlayer(self._engine, self.session, changes_of(changes)).compare(names, progress)

    async def request_use(self) -> list[RequestUse]:
        """How full the window of each reply on the path was and what it cost, oldest first."""
        path = [message async for message in self.path()]
        return await self._engine.store_thread.do(lambda: list(recorded_use(self._engine.store, path[::-1])))
