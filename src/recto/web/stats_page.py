"""Statistics: how full the windows of a conversation were, tokens and costs by day and model, sources and notes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nicegui import ui

from recto.api.talk import AsyncTalk
from recto.reports.request_use import RequestUse
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk, whole_desk
from recto.web.plot import Plot, PlotData, Series
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.store.source_uses import Period, SourcePeriod
    from recto.store.spending import TokenUse

# Rows of a list of the most used; models that are plotted.
MOST, MOST_MODELS = 12, 12
PERIODS: "dict[str, Period]" = {"month": "month", "day": "day"}


class StatsView(FullView):
    title = "Statistics"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._conversation, self._period = asked.get("c", ""), "month"
        self.handlers = {"choose-conversation": self._choose, "choose-period": self._choose_period}

    async def _choose(self, deed: Deed) -> None:
        self._conversation = str(deed.get("value", ""))

    async def _choose_period(self, deed: Deed) -> None:
        self._period = str(deed.get("value", ""))

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._use, self._turn_cost = Plot(), Plot()
        self._turns = Fragment("")
        with ui.element("div").classes("plots"):
            self._days, self._day_cost, self._models = Plot(), Plot(), Plot()
        self._tokens = Fragment("")
        self._period_head = Fragment("", self.act)
        self._sources = Plot()
        self._lists = Fragment("")

    async def draw(self) -> None:
        found = await self.conversation(self._conversation)
        await self._draw_conversation(found.talk if found else None)
        if whole_desk(self.page_desk) is None:  # what follows is about everybody
            return
        days, models = await self.desk.token_use("day"), await self.desk.token_use("model")
        self._days.show(days_plot(days))
        self._day_cost.show(cost_plot(days))
        self._models.show(models_plot(models))
        self._tokens.show(fill("stats_tokens", days=days[::-1][:MOST], models=models[:MOST]))
        periods = await self.desk.source_periods(PERIODS.get(self._period, "month"))
        self._period_head.show(fill("stats_sources", period=self._period, periods=periods))
        self._sources.show(sources_plot(periods))
        report = await self.desk.source_report()
        notes = await self.desk.document_stats() if self.desk.vault else []
        self._lists.show(fill("stats_lists", sources=report.stats[:MOST], advice=report.advice, notes=notes[:MOST]))

    async def _draw_conversation(self, talk: AsyncTalk | None) -> None:
        uses = await talk.request_use() if talk else []
        choices = await self.choices()
        number = talk.number if talk else None
        self._head.show(fill("stats_head", choices=choices, number=number, uses=uses))
        self._use.show(use_plot(uses))
        self._turn_cost.show(turn_cost_plot(uses))
        self._turns.show(fill("stats_turns", uses=uses))


def use_plot(uses: Sequence[RequestUse]) -> PlotData | None:
    """How full the window of each reply was, with the compactions."""
    if not uses:
        return None
    cached = [each.usage.cache_read for each in uses]
    made: list[float | None] = [each.tokens if each.compaction else None for each in uses]
    series = [
        Series("window", [each.limit for each in uses], "line", "soft"),
        Series("tokens sent", [each.tokens for each in uses], "bar", "accent"),
        *([Series("from a cache", cached, "line", "good")] if any(cached) else []),
        *([Series("compaction before it", made, "marks", "warn")] if any(made) else []),
    ]
    label = f"Tokens in the window of each of {len(uses)} replies; {sum(map(bool, made))} compactions"
    return PlotData(label, [f"#{each.number}" for each in uses], series, "reply", "tokens")


def turn_cost_plot(uses: Sequence[RequestUse]) -> PlotData | None:
    costs = [each.usage.cost_usd for each in uses]
    if not any(costs):
        return None
    whole, total = list[float | None](), 0.0
    for cost in costs:
        total += cost or 0.0
        whole.append(total)
    series = [Series("cost of the reply", costs, "bar", "accent"), Series("so far", whole, "line", "warn", right=True)]
    names = [f"#{each.number}" for each in uses]
    return PlotData("Cost of each reply in US dollars", names, series, "reply", "US dollars", "so far")


def days_plot(days: Sequence["TokenUse"]) -> PlotData | None:
    if not days:
        return None
    series = [
        Series("read anew", [each.input - each.cache_read for each in days], "bar", "accent", "tokens"),
        Series("from a cache", [each.cache_read for each in days], "bar", "good", "tokens"),
        Series("written", [each.output for each in days], "bar", "tools", "tokens"),
    ]
    return PlotData("Tokens of each day", [each.name for each in days], series, "day", "tokens")


def cost_plot(days: Sequence["TokenUse"]) -> PlotData | None:
    if not any(each.cost_usd for each in days):
        return None
    series = [Series("cost", [each.cost_usd for each in days], "bar", "warn")]
    return PlotData("Cost of each day in US dollars", [each.name for each in days], series, "day", "US dollars")


def models_plot(models: Sequence["TokenUse"]) -> PlotData | None:
    if not models:
        return None
    shown = models[:MOST_MODELS]
    series = [
        Series("tokens read", [each.input for each in shown], "bar", "accent"),
        Series("tokens written", [each.output for each in shown], "bar", "tools"),
    ]
    if any(each.cost_usd for each in shown):
        series.append(Series("cost", [each.cost_usd for each in shown], "points", "warn", right=True))
    return PlotData("Tokens and cost of each model", [each.name for each in shown], series, "", "tokens", "US dollars")


def sources_plot(periods: Sequence["SourcePeriod"]) -> PlotData | None:
    if not any(each.chosen for each in periods):
        return None
    series = [
        Series("chosen", [each.chosen for each in periods], "bar", "accent"),
        Series("of these used", [each.used for each in periods], "bar", "good"),
        Series("mean score", [each.score for each in periods], "line", "rules", right=True),
    ]
    label = "Sources that were chosen for messages, how many of them replies used, and their mean score"
    return PlotData(label, [each.name for each in periods], series, "", "sources", "score")
