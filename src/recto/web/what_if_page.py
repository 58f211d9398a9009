"""What if: a past turn planned again beside what it was, and strategies side by side over a whole conversation."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nicegui import ui

from recto.api.talk import AsyncTalk
from recto.errors import Invalid
from recto.reports.what_if import PlanOptions, StrategyComparison, StrategyRun, WhatIf
from recto.settings import settings as configuration
from recto.settings.strategy import STRATEGIES
from recto.web.components import Action, Colour, Fragment, Plot, PlotData, Series
from recto.web.page import FullView, PageDoor
from recto.web.panel import bars, pick_values
from recto.web.templates import fill

# Replies to choose from; the latest ones.
MOST_REPLIES = 500
# The progress is drawn again after as many planned requests.
TOLD_EVERY = 5
# Ranges of messages that are named.
MOST_RANGES = 8
COLOURS: dict[str, Colour] = {"as it was": "soft", "discard": "tools", "summarize": "accent", "hybrid": "history"}
FATES = {"verbatim": "word for word", "condensed": "as an excerpt", "summarised": "summed up", "left_out": "left out"}
OF_PLAN = ("reply", "strategy", "window", "model", "key", "value", "from_start")


class WhatIfView(FullView):
    address = "/whatif"
    fields: ClassVar = dict.fromkeys(("conversation", *OF_PLAN), "")
    quiet = frozenset({"type", "stop-comparison"})

    def __init__(self, door: PageDoor, asked: Mapping[str, str]) -> None:
        super().__init__(door, asked)
        self._found: WhatIf | None = None
        self._compared: StrategyComparison | None = None
        self._comparing: asyncio.Task[StrategyComparison] | None = None

    def build(self) -> None:
        self._top, self._result, self._whole, self._status = (Fragment("", self.act) for _ in range(4))
        self._tokens, self._costs, self._table = Plot(), Plot(), Fragment()
        ui.context.client.on_delete(self._stop)

    async def do_choose(self, name: str, value: str) -> None:
        """Another conversation: what was about the last one is gone."""
        self.form, self._found, self._compared = {**self.fields, "conversation": value}, None, None

    async def do_type(self, name: str, value: str) -> None:
        """What is typed holds for both, and stays in the form."""
        await super().do_choose(name, value)

    async def do_plan(self, action: Action) -> None:
        self.form |= {name: str(action.get(name) or "") for name in OF_PLAN}
        talk = await self._talk()
        strategy, from_start = self.form["strategy"] or None, bool(self.form["from_start"])
        reply = self.form["reply"] or await self._last(talk)
        self._found = await talk.what_if(reply, strategy=strategy, from_start=from_start, **self._changes())

    async def do_compare(self) -> None:
        talk, changes = await self._talk(), self._changes()
        self._comparing = asyncio.create_task(talk.compare_strategies((), self._tell, **changes))
        self._status.show(fill("what_if_progress", done=0, of=0))
        try:
            self._compared = await self._comparing
        except asyncio.CancelledError:
            if not self._comparing.cancelled():
                raise  # the page itself is gone
        finally:
            self._comparing.cancel()
            self._status.show("")

    async def do_stop_comparison(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._comparing:
            self._comparing.cancel()

    def _tell(self, done: int, of: int) -> None:
        if done % TOLD_EVERY == 0:
            self._status.show(fill("what_if_progress", done=done, of=of))

    def _changes(self) -> PlanOptions:
        window, key = self.form["window"].replace(",", "").strip(), self.form["key"].strip()
        if window and not window.isdecimal():
            raise Invalid(f"the window is a whole number of tokens, not {window}")
        settings = {key: self.form["value"]} if key else {}
        return {"window": int(window) if window else None, "model": self.form["model"] or None, "settings": settings}

    async def _talk(self) -> AsyncTalk:
        found = await self.conversation()
        if found is None:
            raise Invalid("there is no conversation yet: the chat starts one")
        return found.talk

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
        self._whole.show(fill("what_if_all", has_replies=bool(uses)))
        runs = _runs(self._compared)
        self._tokens.show(_tokens_plot(runs))
        self._costs.show(_cost_plot(runs))
        self._table.show(fill("what_if_runs", compared=self._compared, runs=runs) if self._compared else "")

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
    """Ranges of messages by what becomes of them."""
    found = {words: getattr(side.messages, key) for key, words in FATES.items()} if side else {}
    return {words: _ranges(ranges) for words, ranges in found.items() if ranges}


def _ranges(ranges: Sequence[tuple[int, int]]) -> str:
    shown = [f"#{first}" if first == last else f"#{first}–#{last}" for first, last in ranges]
    return ", ".join(shown[:MOST_RANGES]) + (" …" if len(shown) > MOST_RANGES else "")


def _runs(found: StrategyComparison | None) -> list[StrategyRun]:
    return [run for run in (found.recorded, *found.runs) if run] if found else []


def _tokens_plot(runs: Sequence[StrategyRun]) -> PlotData | None:
    """Tokens of each request, a line for each strategy; triangles are compactions."""
    if not runs:
        return None
    numbers = sorted({use.number for run in runs for use in run.requests})
    series = []
    for run in runs:
        sent = {use.number: use for use in run.requests}
        colour = COLOURS.get(run.name, "accent")
        data = [sent[number].tokens if number in sent else None for number in numbers]
        series.append(Series(run.name, data, "line", colour))
        made = [sent[number].tokens if number in sent and sent[number].compaction else None for number in numbers]
        if any(made):
            series.append(Series(f"{run.name}: compactions", made, "marks", colour))
    return PlotData("Tokens of each request by strategy", [f"#{each}" for each in numbers], series, "reply", "tokens")


def _cost_plot(runs: Sequence[StrategyRun]) -> PlotData | None:
    """Strategies side by side: tokens in all, and what they cost where that is known."""
    series = [
        Series("tokens sent", [run.tokens for run in runs], "bar", "accent"),
        Series("tokens for summaries", [run.summary_tokens for run in runs], "bar", "summary"),
    ]
    if any(run.cost_usd is not None for run in runs):
        series.append(Series("estimated cost", [run.cost_usd for run in runs], "points", "warn", right=True))
    names = [run.name for run in runs]
    return PlotData("Tokens and cost by strategy", names, series, "", "tokens", "US dollars") if runs else None
