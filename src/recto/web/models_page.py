"""Models: which can be asked, their windows and prices, and whether a key of their provider is set. No key is shown."""

import os
from typing import Any, ClassVar

from markupsafe import Markup
from nicegui import ui

from recto.providers.model import Model
from recto.providers.registry import ModelOverview, key_variables, model_overview
from recto.settings.keys import KeyStore
from recto.web.built_in_models import BuiltInModels, Change, choices_html, download_html, missing
from recto.web.components import Fragment
from recto.web.page import FullView

MOST = 200


class ModelsView(FullView):
    address = "/models"
    template = "models"
    fields: ClassVar = {"search": "", "everything": ""}
    _known: ModelOverview | None = None

    def build(self) -> None:
        client = ui.context.client
        self._download = Fragment("", self.act)
        super().build()

        def hear(change: Change) -> None:
            if change == "progress":
                self._download.show(download_html())
            else:
                self.live.start(draw_again(change))

        async def draw_again(change: Change) -> None:
            self.said = f"{await self._current()} answers in new conversations." if change == "chosen" else ""
            with client:
                await self.draw()

        built_in = BuiltInModels(self.desk, self.live, hear)
        self.actors.append(built_in)
        client.on_delete(built_in.leave)

    async def draw(self) -> None:
        self._download.show(download_html())
        await super().draw()

    async def values(self) -> dict[str, Any]:
        if self._known is None:
            self._known = await model_overview(self.desk.home, self.desk.project, os.environ)
        found, part = self._known, self.form["search"].strip().lower()
        models = [*found.usable, *(found.others if self.form["everything"] or part else [])]
        shown = [model for model in models if part in model.name.lower()]
        current = await self._current()
        return {
            "current": current,
            "built_in": Markup(choices_html(current)),
            "keys": self._keys(),
            "others": len(found.others),
            "found": len(shown),
            "models": shown[:MOST],
            "asked": {model.name: "needs a download" if missing(model.name) else "yes" for model in found.usable},
            "price": _price,
        }

    async def _current(self) -> str:
        return (await self.desk.conversation()).model

    def _keys(self) -> list[tuple[str, str, str]]:
        """Providers, the variable of their key, and where it comes from; empty where there is none."""
        places = KeyStore(self.desk.home).places()
        rows = []
        for provider, variable in key_variables(os.environ).items():
            is_set = any(os.environ.get(name, "").strip() for name in (f"RECTO_{variable}", variable))
            rows.append((provider, variable, "environment" if is_set else places.get(variable, "")))
        return sorted(rows, key=lambda row: (not row[2], row[0]))


def _price(model: Model) -> str:
    """US dollars for a million tokens, in and out."""
    prices = model.prices
    if prices is None or prices.input is None or prices.output is None:
        return "unknown"
    cached = f", {prices.cache_read:g} from a cache" if prices.cache_read is not None else ""
    return f"${prices.input:g} in{cached}, ${prices.output:g} out"
