"""Statistics: how full the windows of a conversation were, tokens and costs by day and model, sources and notes."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from nicegui import ui

from recto.reports.request_use import RequestUse
from recto.web.components import Fragment, Plot, PlotData, Series
from recto.web.page import FullView
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.store.token_use import TokenUse
    from recto.store.use_over_time import Period, SourcePeriod

# Rows of a list of the most used; models that are plotted.
MOST, MOST_MODELS = 12, 12
PERIODS: "dict[str, Period]" = {"month": "month", "day": "day"}


class StatsView(FullView):
    address = "/stats"
    fields: ClassVar = {"conversation": "", "period": "month"}

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._use, self._turn_cost, self._turns = Plot(), Plot(), Fragment()
        with ui.element("div").classes("plots"):
            self._days, self._day_cost, self._models = Plot(), Plot(), Plot()
        self._tokens, self._period, self._sources, self._lists = Fragment(), Fragment("", self.act), Plot(), Fragment()

    async def draw(self) -> None:
        found = await self.conversation()
        uses = await found.talk.request_use() if found else []
        number = str(found.talk.number) if found else ""
        self._head.show(fill("stats_head", choices=await self.choices(), number=number, uses=uses))
        self._use.show(_use_plot(uses))
        self._turn_cost.show(_turn_cost_plot(uses))
        self._turns.show(fill("stats_turns", uses=uses))
        if self.door.whole is None:  # what follows is about everybody
            return
        days, models = await self.desk.token_use("day"), await self.desk.token_use("model")
        self._days.show(_days_plot(days))
        self._day_cost.show(_cost_plot(days))
        self._models.show(_models_plot(models[:MOST_MODELS]))
        self._tokens.show(fill("stats_tokens", days=days[::-1][:MOST], models=models[:MOST]))
        period = self.form["period"]
        periods = await self.desk.source_periods(PERIODS.get(period, "month"))
        self._period.show(fill("stats_sources", period=period, periods=periods))
        self._sources.show(sources_plot(periods))
        report = await self.desk.source_report()
        notes = await self.desk.document_stats() if self.desk.vault else []
        self._lists.show(fill("stats_lists", sources=report.stats[:MOST], advice=report.advice, notes=notes[:MOST]))


def _use_plot(uses: Sequence[RequestUse]) -> PlotData | None:
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


def _turn_cost_plot(uses: Sequence[RequestUse]) -> PlotData | None:
    costs = [each.usage.cost_usd for each in uses]
    if not any(costs):
        return None
    whole = list(accumulate(cost or 0.0 for cost in costs))
    series = [Series("cost of the reply", costs, "bar", "accent"), Series("so far", whole, "line", "warn", right=True)]
    names = [f"#{each.number}" for each in uses]
    return PlotData("Cost of each reply in US dollars", names, series, "reply", "US dollars", "so far")


def _days_plot(days: Sequence["TokenUse"]) -> PlotData | None:
    series = [
        Series("read anew", [each.input - each.cache_read for each in days], "bar", "accent", "tokens"),
        Series("from a cache", [each.cache_read for each in days], "bar", "good", "tokens"),
        Series("written", [each.output for each in days], "bar", "tools", "tokens"),
    ]
    return PlotData("Tokens of each day", [each.name for each in days], series, "day", "tokens") if days else None


def _cost_plot(days: Sequence["TokenUse"]) -> PlotData | None:
    costs, names = [each.cost_usd for each in days], [each.name for each in days]
    plot = PlotData(
        "Cost of each day in US dollars", names, [Series("cost", costs, "bar", "warn")], "day", "US dollars"
    )
    return plot if any(costs) else None


def _models_plot(models: Sequence["TokenUse"]) -> PlotData | None:
    series = [
        Series("tokens read", [each.input for each in models], "bar", "accent"),
        Series("tokens written", [each.output for each in models], "bar", "tools"),
    ]
    if any(each.cost_usd for each in models):
        series.append(Series("cost", [each.cost_usd for each in models], "points", "warn", right=True))
    names = [each.name for each in models]
    return PlotData("Tokens and cost of each model", names, series, "", "tokens", "US dollars") if models else None


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
