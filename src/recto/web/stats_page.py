"""The statistics page: fill and cost of a conversation's windows, tokens and costs by day and model, most used sources
and notes."""

from collections.abc import Sequence
from typing import ClassVar

from nicegui import ui

from recto.reports.conversation_stats import RequestUse
from recto.web.components import Fragment, Plot, Series
from recto.web.page import FullView
from recto.web.templates import fill

# Rows of the tables.
MOST = 12


class StatsView(FullView):
    address = "/stats"
    fields: ClassVar = {"conversation": ""}

    def build(self) -> None:
        self._head, self._use = Fragment("", self.act), Plot()
        with ui.element("div").classes("plots"):
            self._tokens, self._costs = Plot(), Plot()
        self._tables = Fragment()

    async def draw(self) -> None:
        found = await self.conversation()
        uses = await found.talk.request_use() if found else []
        number = str(found.talk.number) if found else ""
        self._head.show(fill("stats_head", choices=await self.choices(), number=number, uses=uses))
        self._draw_turns(uses)
        if self.door.whole is None:  # the rest covers all keys
            return
        days, models = await self.desk.token_use("day"), await self.desk.token_use("model")
        names = [each.name for each in days]
        self._tokens.show(
            "Tokens of each day",
            names,
            Series("not from a cache", [each.input - each.cache_read for each in days], stack="tokens"),
            Series("from a cache", [each.cache_read for each in days], colour="good", stack="tokens"),
            Series("written", [each.output for each in days], colour="tools", stack="tokens"),
            axes=("day", "tokens"),
        )
        costs = Series("cost", [each.cost_usd for each in days], colour="warn")
        self._costs.show("Cost of each day in US dollars", names, costs, axes=("day", "US dollars"))
        report = await self.desk.source_report()
        notes = await self.desk.document_stats() if self.desk.vault else []
        lists = {"sources": report.stats[:MOST], "advice": report.advice, "notes": notes[:MOST]}
        self._tables.show(fill("stats_lists", days=days[::-1][:MOST], models=models[:MOST], **lists))

    def _draw_turns(self, uses: Sequence[RequestUse]) -> None:
        """Plot each reply's window fill, with the compactions."""
        compacted = [each.tokens if each.compaction else None for each in uses]
        self._use.show(
            f"Tokens in the window of each of {len(uses)} replies; {sum(map(bool, compacted))} compactions",
            [f"#{each.number}" for each in uses],
            Series("window", [each.limit for each in uses], "line", "soft"),
            Series("tokens sent", [each.tokens for each in uses]),
            Series("from a cache", [each.usage.cache_read for each in uses], "line", "good", optional=True),
            Series("compaction before it", compacted, "marks", "warn", optional=True),
            axes=("reply", "tokens"),
        )
