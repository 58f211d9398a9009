"""Models: which can be asked, their windows and prices, and whether a key of their provider is set. No key is shown."""

import os

from markupsafe import Markup
from nicegui import ui

from recto.providers.model import Model
from recto.providers.registry import ModelOverview, key_variables, model_overview
from recto.settings.keys import KeyStore
from recto.web.built_in_models import BuiltInModels, Change, choices_html, download_html, missing
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.templates import fill

MOST = 200


class ModelsView(FullView):
    title = "Models"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._search, self._everything = "", False
        self._known: ModelOverview | None = None
        self._told = ""
        self._built_in = BuiltInModels(self.desk, live)
        self.handlers = {"look": self._look, "everything": self._choose, **self._built_in.handlers}

    async def _look(self, deed: Deed) -> None:
        self._search = str(deed.get("value", ""))

    async def _choose(self, deed: Deed) -> None:
        self._everything = bool(deed.get("checked"))

    def build(self) -> None:
        self._client = ui.context.client
        self._download = Fragment("", self.act)
        self._head = Fragment("", self.act)
        self._list = Fragment("", self.act)

        self._built_in.watch(self._hear)
        self._client.on_delete(lambda: self._built_in.unwatch(self._hear))

    def _hear(self, change: Change) -> None:
        if change == "progress":
            self._download.show(download_html())
        else:
            self._live.start(self._draw_anew(change))

    async def _draw_anew(self, change: Change) -> None:
        self._told = ""
        if change == "chosen":
            self._told = f"{(await self.desk.conversation()).model} answers in new conversations."
        with self._client:
            await self.draw()

    async def draw(self) -> None:
        if self._known is None:
            self._known = await model_overview(self.desk.home, self.desk.project, os.environ)
        found, part = self._known, self._search.strip().lower()
        models = [*found.usable, *(found.others if self._everything or part else [])]
        shown = [model for model in models if part in model.name.lower()]
        current = (await self.desk.conversation()).model
        values = {"search": self._search, "everything": self._everything, "current": current, "found": len(shown)}
        values |= {"told": self._told, "built_in": Markup(choices_html(current))}
        self._download.show(download_html())
        self._head.show(fill("models", keys=self._keys(), others=len(found.others), **values))
        asked = {model.name: "needs a download" if missing(model.name) else "yes" for model in found.usable}
        self._list.show(fill("models_list", models=shown[:MOST], asked=asked, price=_price, more=len(shown) - MOST))

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
