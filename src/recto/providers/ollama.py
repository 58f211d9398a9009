"""OllamaProvider: the OpenAI format to Ollama, which tells through its own API how much of a prompt it will read."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from recto.errors import NotFound, Unreachable
from recto.providers.model import Model
from recto.providers.near import PROBE_S, NearServer
from recto.providers.openai import OpenAIProvider
from recto.providers.provider import Part
from recto.window.count import Meter
from recto.window.request import Purpose
from recto.wire import Json

# What Ollama reads of a prompt unless it is told otherwise. It cuts off the rest without a word, whatever the model
# itself could take; so nothing larger is believed before the model runs.
DEFAULT_WINDOW = 4096


class OllamaProvider:
    def __init__(self, talk: OpenAIProvider, server: NearServer) -> None:
        self.name, self.format = talk.name, talk.format
        self._talk, self._server = talk, server

    async def model(self, name: str) -> Model:
        """With its window and whether it calls tools, where Ollama runs; else what is known without it."""
        model = await self._talk.model(name)
        try:
            status, shown = await self._server.ask("POST", "/api/show", {"model": model.id}, PROBE_S)
            running = (await self._server.ask("GET", "/api/ps", timeout_s=PROBE_S))[1]
        except Unreachable:
            return model
        if status == 404 and isinstance(shown, dict) and "error" in shown:
            raise NotFound(f"Ollama has no model {model.id}; run `ollama pull {model.id}`.", model=model.name)
        return _told(model, shown, running) if isinstance(shown, dict) else model

    async def meter(self, model: Model) -> Meter:
        return await self._talk.meter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[Part]:
        async with aclosing(self._talk.stream(body, purpose)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self._talk.close()
        await self._server.close()


def _told(model: Model, shown: Json, running: Json) -> Model:
    abilities = shown.get("capabilities")
    if isinstance(abilities, list):
        model = replace(model, tools=model.tools and "tools" in abilities)
    if model.window_from == "models.toml":
        return model
    if window := _running_window(running, model.id) or _set_window(shown.get("parameters")):
        return replace(model, window=window, window_from="the server")
    return replace(model, window=min(_trained_window(shown) or DEFAULT_WINDOW, DEFAULT_WINDOW), window_from="built in")


def _running_window(running: Json, id: str) -> int | None:
    """What a loaded model was really given."""
    models = running.get("models") if isinstance(running, dict) else None
    for each in models if isinstance(models, list) else ():
        if isinstance(each, dict) and each.get("name") in (id, f"{id}:latest"):
            return _whole(each.get("context_length"))
    return None


def _set_window(parameters: Json) -> int | None:
    """`num_ctx` of the model's own file, which comes as lines of text."""
    found = re.search(r"^num_ctx\s+(\d+)\s*$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return _whole(int(found[1])) if found else None


def _trained_window(shown: Json) -> int | None:
    facts = shown.get("model_info")
    values = facts.items() if isinstance(facts, dict) else ()
    return next((_whole(value) for name, value in values if name.endswith(".context_length")), None)


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value > 0 else None
