"""The statistics page: fill of a conversation's windows, tokens and costs by day and model, sources and notes."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

from nicegui import ui

from recto.api.talk import AsyncTalk
from recto.errors import Invalid
from recto.reports.conversation_stats import RequestUse
from recto.reports.what_if import PlanOptions, WhatIf
from recto.settings import settings as configuration
from recto.settings.strategy import STRATEGIES
from recto.web.components import Action, Fragment, Plot, Series
from recto.web.page import FullView
from recto.web.panel import bars, pick_values
from recto.web.templates import fill

if TYPE_CHECKING:
    from recto.store.spending import TokenUse

# Rows of the lists of most used items.
MOST = 12
# Latest replies to choose from.
MOST_REPLIES = 500
# Most ranges of messages named.
MOST_RANGES = 8
FATES = {"verbatim": "word for word", "condensed": "as an excerpt", "summarised": "summed up", "left_out": "left out"}
OF_PLAN = ("reply", "strategy", "window", "model", "key", "value")


class StatsView(FullView):
    address = "/stats"
    fields: ClassVar = {"conversation": ""}

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._use, self._turn_cost, self._turns = Plot(), Plot(), Fragment()
        with ui.element("div").classes("plots"):
            self._days, self._day_cost, self._models = Plot(), Plot(), Plot()
        self._tokens, self._lists = Fragment(), Fragment()

    async def draw(self) -> None:
        found = await self.conversation()
        uses = await found.talk.request_use() if found else []
        number = str(found.talk.number) if found else ""
        self._head.show(fill("stats_head", choices=await self.choices(), number=number, uses=uses))
        self._draw_turns(uses)
        self._turns.show(fill("stats_turns", uses=uses))
        if self.door.whole is None:  # the rest covers all keys
            return
        days, models = await self.desk.token_use("day"), await self.desk.token_use("model")
        self._draw_tokens(days, models[:MOST])
        self._tokens.show(fill("stats_tokens", days=days[::-1][:MOST], models=models[:MOST]))
        report = await self.desk.source_report()
        notes = await self.desk.document_stats() if self.desk.vault else []
        self._lists.show(fill("stats_lists", sources=report.stats[:MOST], advice=report.advice, notes=notes[:MOST]))

    def _draw_turns(self, uses: Sequence[RequestUse]) -> None:
        """Plot each reply's window fill and cost, with the compactions."""
        names = [f"#{each.number}" for each in uses]
        compacted = [each.tokens if each.compaction else None for each in uses]
        self._use.show(
            f"Tokens in the window of each of {len(uses)} replies; {sum(map(bool, compacted))} compactions",
            names,
            Series("window", [each.limit for each in uses], "line", "soft"),
            Series("tokens sent", [each.tokens for each in uses]),
            Series("from a cache", [each.usage.cache_read for each in uses], "line", "good", optional=True),
            Series("compaction before it", compacted, "marks", "warn", optional=True),
            axes=("reply", "tokens", ""),
        )
        costs = [each.usage.cost_usd for each in uses]
        self._turn_cost.show(
            "Cost of each reply in US dollars",
            names,
            Series("cost of the reply", costs),
            Series("so far", list(accumulate(cost or 0.0 for cost in costs)), "line", "warn", right=True),
            axes=("reply", "US dollars", "so far"),
        )

    def _draw_tokens(self, days: Sequence["TokenUse"], models: Sequence["TokenUse"]) -> None:
        names = [each.name for each in days]
        self._days.show(
            "Tokens of each day",
            names,
            Series("not from a cache", [each.input - each.cache_read for each in days], stack="tokens"),
            Series("from a cache", [each.cache_read for each in days], colour="good", stack="tokens"),
            Series("written", [each.output for each in days], colour="tools", stack="tokens"),
            axes=("day", "tokens", ""),
        )
        cost = Series("cost", [each.cost_usd for each in days], colour="warn")
        self._day_cost.show("Cost of each day in US dollars", names, cost, axes=("day", "US dollars", ""))
        self._models.show(
            "Tokens and cost of each model",
            [each.name for each in models],
            Series("tokens read", [each.input for each in models]),
            Series("tokens written", [each.output for each in models], colour="tools"),
            Series("cost", [each.cost_usd for each in models], "points", "warn", right=True, optional=True),
            axes=("", "tokens", "US dollars"),
        )


class WhatIfView(FullView):
    address = "/whatif"
    fields: ClassVar = dict.fromkeys(("conversation", *OF_PLAN), "")
    quiet = frozenset({"type"})

    _found: WhatIf | None = None

    def build(self) -> None:
        self._top, self._result = Fragment("", self.act), Fragment("", self.act)

    async def do_choose(self, name: str, value: str) -> None:
        """Switch to another conversation, dropping results of the last one."""
        self.form, self._found = {**self.fields, "conversation": value}, None

    async def do_type(self, name: str, value: str) -> None:
        """Keep the input."""
        await super().do_choose(name, value)

    async def do_plan(self, action: Action) -> None:
        self.form |= {name: str(action.get(name) or "") for name in OF_PLAN}
        talk = (await self.chosen()).talk
        self._found = await talk.what_if(self.form["reply"] or await self._last(talk), **self._changes())

    def _changes(self) -> PlanOptions:
        window, key = self.form["window"].replace(",", "").strip(), self.form["key"].strip()
        if window and not window.isdecimal():
            raise Invalid(f"the window is a whole number of tokens, not {window}")
        settings = {key: self.form["value"]} if key else {}
        strategy, model = self.form["strategy"] or None, self.form["model"] or None
        return {"strategy": strategy, "model": model, "window": int(window or 0) or None, "settings": settings}

    async def _last(self, talk: AsyncTalk) -> str:
        uses = await talk.request_use()
        if not uses:
            raise Invalid("no reply of this conversation has a recorded request: choose one by its number")
        return uses[-1].reply

    async def draw(self) -> None:
        found = await self.conversation()
        talk = found.talk if found else None
        uses = (await talk.request_use())[-MOST_REPLIES:] if talk else []
        self._top.show(
            fill(
                "what_if",
                choices=await self.choices(),
                number=str(talk.number) if talk else "",
                uses=uses[::-1],
                strategies=list(STRATEGIES),
                keys=[spec.key for spec in configuration.specs() if spec.key.startswith("context.")],
                form=self.form,
            )
        )
        self._result.show(await self._result_html(talk, self._found) if talk and self._found else "")

    async def _result_html(self, talk: AsyncTalk, found: WhatIf) -> str:
        told = await talk.numbered(found.to_json())
        difference = told["difference"] or {}
        sides = [
            {"name": name, "account": account, "bars": bars(account) if account else [], "messages": _messages(plan)}
            for name, account, plan in (
                ("As it was", told["was"], found.was),
                ("As it would be", told["would"], found.would),
            )
        ]
        picks = {
            title: [pick_values(pick) | {"section": pick["section"]} for pick in difference.get(key, ())]
            for title, key in (("Comes in", "came_in"), ("Goes out", "went_out"))
        }
        return fill("what_if_turn", found=found, sides=sides, sections=difference.get("sections", ()), picks=picks)


def _messages(side: Any) -> dict[str, str]:
    """Ranges of messages by what happens to them."""
    found = {words: getattr(side.messages, key) for key, words in FATES.items()} if side else {}
    return {words: _ranges(ranges) for words, ranges in found.items() if ranges}


def _ranges(ranges: Sequence[tuple[int, int]]) -> str:
    shown = [f"#{first}" if first == last else f"#{first}–#{last}" for first, last in ranges]
    return ", ".join(shown[:MOST_RANGES]) + (" …" if len(shown) > MOST_RANGES else "")
