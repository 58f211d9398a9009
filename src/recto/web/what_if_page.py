"""What if: a past turn planned again beside what it was, and strategies side by side over a whole conversation."""

import asyncio
from collections.abc import Sequence
from typing import Any

from nicegui import ui

from recto.api.talk import AsyncTalk
from recto.errors import Invalid
from recto.reports.what_if import PlanOptions, StrategyComparison, StrategyRun, WhatIf
from recto.settings import settings as configuration
from recto.settings.strategy import STRATEGIES
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.plot import Colour, Plot, PlotData, Series
from recto.web.templates import fill
from recto.web.window_parts import bars, pick_values

# Replies to choose from; the latest ones.
MOST_REPLIES = 500
# After so many planned requests the progress is drawn again.
TOLD_EVERY = 5
COLOURS: dict[str, Colour] = {"as it was": "soft", "discard": "tools", "summarize": "accent", "hybrid": "history"}
FATES = {"verbatim": "word for word", "condensed": "as an excerpt", "summarised": "summed up", "left_out": "left out"}


class WhatIfView(FullView):
    title = "What if"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._form: dict[str, str] = {"conversation": asked.get("c", ""), "reply": asked.get("reply", "")}
        self._found: WhatIf | None = None
        self._compared: StrategyComparison | None = None
        self.handlers = {"choose-conversation": self._choose, "plan": self._plan, "compare": self._compare}
        self.quiet = {"typed": self._typed, "stop-comparison": self._stop}
        self._comparing: asyncio.Task[StrategyComparison] | None = None

    async def _choose(self, deed: Deed) -> None:
        self._form, self._found, self._compared = {"conversation": str(deed.get("value", ""))}, None, None

    async def _typed(self, deed: Deed) -> None:
        """What is typed holds for both, and stays in the form."""
        self._form[str(deed.get("name", ""))] = str(deed.get("value", ""))

    async def _plan(self, deed: Deed) -> None:
        names = ("reply", "strategy", "window", "model", "key", "value", "from_start")
        self._form |= {name: str(deed.get(name) or "") for name in names}
        talk = await self._talk()
        strategy, from_start = self._form.get("strategy") or None, bool(self._form.get("from_start"))
        reply = self._form.get("reply") or await self._last(talk)
        self._found = await talk.what_if(reply, strategy=strategy, from_start=from_start, **self._changes())

    async def _compare(self, deed: Deed) -> None:
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

    async def _stop(self, deed: Deed) -> None:
        if self._comparing:
            self._comparing.cancel()

    def _tell(self, done: int, of: int) -> None:
        if done % TOLD_EVERY == 0:
            self._status.show(fill("what_if_progress", done=done, of=of))

    def _changes(self) -> PlanOptions:
        form = self._form
        window, key = form.get("window", "").replace(",", "").strip(), form.get("key", "").strip()
        if window and not window.isdecimal():
            raise Invalid(f"the window is a whole number of tokens, not {window}")
        settings = {key: form.get("value", "")} if key else {}
        return {"window": int(window) if window else None, "model": form.get("model") or None, "settings": settings}

    async def _talk(self) -> AsyncTalk:
        found = await self.conversation(self._form.get("conversation", ""))
        if found is None:
            raise Invalid("there is no conversation yet: the chat starts one")
        return found.talk

    async def _last(self, talk: AsyncTalk) -> str:
        uses = await talk.request_use()
        if not uses:
            raise Invalid("no reply of this conversation has a recorded request: choose one by its number")
        return uses[-1].reply

    def build(self) -> None:
        self._top = Fragment("", self.act)
        self._result = Fragment("", self.act)
        self._whole = Fragment("", self.act)
        self._status = Fragment("", self.act)
        ui.context.client.on_delete(self._leave)
        self._tokens, self._costs = Plot(), Plot()
        self._table = Fragment("")

    def _leave(self) -> None:
        if self._comparing:
            self._comparing.cancel()

    async def draw(self) -> None:
        found = await self.conversation(self._form.get("conversation", ""))
        talk = found.talk if found else None
        uses = (await talk.request_use())[-MOST_REPLIES:] if talk else []
        keys = [spec.key for spec in configuration.specs() if spec.key.startswith("context.")]
        self._top.show(
            fill(
                "what_if",
                choices=await self.choices(),
                number=talk.number if talk else None,
                uses=uses[::-1],
                strategies=list(STRATEGIES),
                keys=keys,
                form=self._form,
            )
        )
        self._result.show(await self._result_html(talk))
        self._whole.show(fill("what_if_all", has_replies=bool(uses), compared=self._compared))
        runs = _runs(self._compared) if self._compared else []
        self._tokens.show(tokens_plot(runs))
        self._costs.show(cost_plot(runs))
        self._table.show(fill("what_if_runs", compared=self._compared, runs=runs) if self._compared else "")

    async def _result_html(self, talk: AsyncTalk | None) -> str:
        if talk is None or self._found is None:
            return ""
        found, told = self._found, await talk.numbered(self._found.to_json())
        sides = [
            (name, told[key], getattr(found, key)) for key, name in (("was", "As it was"), ("would", "As it would be"))
        ]
        return fill(
            "what_if_turn",
            found=found,
            told=told,
            sides=[
                {
                    "name": name,
                    "account": side,
                    "bars": bars(side) if side else [],
                    "messages": _messages(plan) if plan else {},
                }
                for name, side, plan in sides
            ],
            sections=(told["difference"] or {}).get("sections", ()),
            came_in=_picks(told, "came_in"),
            went_out=_picks(told, "went_out"),
        )


def _messages(side: Any) -> dict[str, str]:
    return {words: _ranges(getattr(side.messages, key)) for key, words in FATES.items() if getattr(side.messages, key)}


def _ranges(ranges: Sequence[tuple[int, int]]) -> str:
    shown = [f"#{first}" if first == last else f"#{first}–#{last}" for first, last in ranges]
    return ", ".join(shown[:8]) + (" …" if len(shown) > 8 else "")


def _picks(told: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [pick_values(pick) | {"section": pick["section"]} for pick in (told["difference"] or {}).get(key, ())]


def _runs(found: StrategyComparison) -> list[StrategyRun]:
    return [*([found.recorded] if found.recorded else []), *found.runs]


def tokens_plot(runs: Sequence[StrategyRun]) -> PlotData | None:
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


def cost_plot(runs: Sequence[StrategyRun]) -> PlotData | None:
    """Strategies side by side: tokens in all, and what they cost where that is known."""
    if not runs:
        return None
    series = [
        Series("tokens sent", [run.tokens for run in runs], "bar", "accent"),
        Series("tokens for summaries", [run.summary_tokens for run in runs], "bar", "summary"),
    ]
    if any(run.cost_usd is not None for run in runs):
        series.append(Series("estimated cost", [run.cost_usd for run in runs], "points", "warn", right=True))
    return PlotData("Tokens and cost by strategy", [run.name for run in runs], series, "", "tokens", "US dollars")
