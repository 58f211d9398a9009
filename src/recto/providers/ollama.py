"""OllamaProvider: uses Ollama through the OpenAI format, and asks its own API how much of a prompt it reads."""

import asyncio

from msgspec.structs import replace

from recto.errors import NotFound, Unreachable
from recto.providers.model import Model, positive
from recto.providers.openai import OpenAIProvider
from recto.wire import Json

# The part of a prompt that Ollama reads by default. It silently cuts off the rest, whatever the model could read; so no
# larger window is assumed before the model runs.
DEFAULT_WINDOW = 4096


class OllamaProvider(OpenAIProvider):
    """Ollama: the windows of its models are those that they run with."""

    async def model(self, name: str) -> Model:
        model = self.known(name)
        try:
            status, shown = await self.ask_root("/api/show", {"model": model.id})
            running = (await self.ask_root("/api/ps"))[1]
        except Unreachable:
            return model
        if status == 404 and isinstance(shown, dict) and "error" in shown:
            raise NotFound(f"Ollama has no model {model.id}; run `ollama pull {model.id}`.", model=model.name)
        return _with_reported(model, shown, running) if isinstance(shown, dict) else model

    async def offered(self) -> list[Model]:
        return list(await asyncio.gather(*(self.model(model.name) for model in await super().offered())))


def _with_reported(model: Model, shown: Json, running: Json) -> Model:
    abilities = shown.get("capabilities")
    if isinstance(abilities, list):
        model = replace(model, tools=model.tools and "tools" in abilities, images=model.images or "vision" in abilities)
    if model.window_from == "models.toml":
        return model
    if window := _running_window(running, model.id) or _set_window(shown.get("parameters")):
        return replace(model, window=window, window_from="the server")
    facts = shown.get("model_info")
    found = facts.items() if isinstance(facts, dict) else ()
    trained = next((positive(value) for name, value in found if name.endswith(".context_length")), None)
    return replace(model, window=min(trained or DEFAULT_WINDOW, DEFAULT_WINDOW), window_from="built in")


def _running_window(running: Json, id: str) -> int | None:
    models = running.get("models") if isinstance(running, dict) else None
    for model in models if isinstance(models, list) else ():
        if isinstance(model, dict) and model.get("name") in (id, f"{id}:latest"):
            return positive(model.get("context_length"))
    return None


def _set_window(parameters: Json) -> int | None:
    """`num_ctx` of the model's own file, which Ollama returns as lines of text."""
    lines = map(str.split, parameters.splitlines() if isinstance(parameters, str) else ())
    counts = (line[1] for line in lines if line[:1] == ["num_ctx"] and len(line) == 2)
    return next((int(count) for count in counts if count.isdecimal() and len(count) < 10), None) or None
