"""OllamaProvider: uses Ollama through the OpenAI format, and asks its own API how much of a prompt it reads."""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from recto.errors import NotFound, Unreachable
from recto.providers.local_server import PROBE_S, LocalServer
from recto.providers.model import Model
from recto.providers.openai import OpenAIProvider
from recto.providers.provider import ReplyPart
from recto.window.count import TokenCounter
from recto.window.request import Purpose
from recto.wire import Json

# The part of a prompt that Ollama reads by default. It silently cuts off the rest, whatever the model could read; so no
# larger window is assumed before the model runs.
DEFAULT_WINDOW = 4096


class OllamaProvider:
    def __init__(self, talk: OpenAIProvider, server: LocalServer) -> None:
        self.name, self.format = talk.name, talk.format
        self._talk, self._server = talk, server

    async def model(self, name: str) -> Model:
        """The model with its window and abilities as Ollama reports them, if it runs."""
        model = await self._talk.model(name)
        try:
            status, shown = await self._server.ask("POST", "/api/show", {"model": model.id}, PROBE_S)
            running = (await self._server.ask("GET", "/api/ps", timeout_s=PROBE_S))[1]
        except Unreachable:
            return model
        if status == 404 and isinstance(shown, dict) and "error" in shown:
            raise NotFound(f"Ollama has no model {model.id}; run `ollama pull {model.id}`.", model=model.name)
        return _with_reported(model, shown, running) if isinstance(shown, dict) else model

    async def counter(self, model: Model) -> TokenCounter:
        return await self._talk.counter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        async with aclosing(self._talk.stream(body, purpose)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        await self._talk.close()
        await self._server.close()


def _with_reported(model: Model, shown: Json, running: Json) -> Model:
    abilities = shown.get("capabilities")
    if isinstance(abilities, list):
        model = replace(model, tools=model.tools and "tools" in abilities, images=model.images or "vision" in abilities)
    if model.window_from == "models.toml":
        return model
    if window := _running_window(running, model.id) or _set_window(shown.get("parameters")):
        return replace(model, window=window, window_from="the server")
    return replace(model, window=min(_trained_window(shown) or DEFAULT_WINDOW, DEFAULT_WINDOW), window_from="built in")


def _running_window(running: Json, id: str) -> int | None:
    """The actual window of a loaded model."""
    models = running.get("models") if isinstance(running, dict) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, dict) and model.get("name") in (id, f"{id}:latest"):
            return _whole(model.get("context_length"))
    return None


def _set_window(parameters: Json) -> int | None:
    """`num_ctx` of the model's own file, which Ollama returns as lines of text."""
    found = re.search(r"^num_ctx\s+(\d+)\s*$", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    return _whole(int(found[1])) if found else None


def _trained_window(shown: Json) -> int | None:
    facts = shown.get("model_info")
    values = facts.items() if isinstance(facts, dict) else ()
    return next((_whole(value) for name, value in values if name.endswith(".context_length")), None)


def _whole(value: Json) -> int | None:
    return value if type(value) is int and value > 0 else None
