"""ModelCatalog: facts about models, merged from their name, genai-prices, our own table and the user's files.

Each number records its origin. Knows no server; providers add what their server reports.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recto.providers.facts import PRICES, Facts, FactsFile, read_facts
from recto.providers.families import abilities, counting
from recto.providers.model import Model, Prices
from recto.window.defuse import COMMON_CONTROL

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

# Our provider name -> that of genai-prices. Only these are looked up: loading its data takes a third of a second.
PRICED = {
    "anthropic": "anthropic",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "gemini": "google",
    "groq": "groq",
    "mistral": "mistral",
    "moonshotai": "moonshotai",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together": "together",
    "xai": "x-ai",
}
# Providers of their own models: they tell control texts in messages from control tokens themselves.
MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})
NOT_CHAT = re.compile(
    r"audio|dall-e|davinci|embed|guard|image|live|moderation|ocr|realtime|rerank|sora|speech|transcri|tts|voice|whisper"
)
SHIPPED = Path(__file__).with_name("models.toml")
FILE = "models.toml"


class ModelCatalog:
    """`home/models.toml` overrides the built-in facts, `project/.recto/models.toml` overrides both."""

    def __init__(self, home: Path, project: Path | None) -> None:
        self.home, self.project = home, project

    def find(self, provider: str, id: str) -> Model:
        """All known facts; an unknown model has an unknown window and estimated counts."""
        model = _guess(provider, id)
        if info := _priced(provider, id):
            model = _with_prices(model, info)
        for file in (self._shipped, *self._own):
            model = _with_facts(model, file)
        return model

    def all(self) -> Iterator[Model]:
        """Every known chat model, sorted by name."""
        names = {name for file in (self._shipped, *self._own) for name in file.names()}
        names |= {f"{provider}:{id}" for provider, id in _priced_names()}
        for name in sorted(names):
            provider, _, id = name.partition(":")
            yield self.find(provider, id)

    @cached_property
    def _shipped(self) -> FactsFile:
        return read_facts(SHIPPED, "built in")

    @cached_property
    def _own(self) -> tuple[FactsFile, ...]:
        places = [self.home / FILE, *([self.project / ".recto" / FILE] if self.project else [])]
        return tuple(read_facts(place, FILE) for place in places)


def _guess(provider: str, id: str) -> Model:
    """The facts that the name alone implies."""
    count = counting(provider, id)
    return Model(
        f"{provider}:{id}",
        provider,
        id,
        window=None,
        window_from="unknown",
        tokenizer=count.tokenizer,
        factor=count.factor,
        exact=count.exact,
        control=() if provider in MAKERS else COMMON_CONTROL,
        **abilities(provider, id),
    )


def _with_facts(model: Model, file: FactsFile) -> Model:
    """The model with the facts of a file."""
    facts: Facts = file.about(model.name)
    values: dict[str, Any] = {name: value for name, value in facts.items() if name not in ("prices", "control")}
    if "window" in values:
        values |= {"window": values["window"] or None, "window_from": file.origin}
    if "max_output" in values:
        values["max_output_from"] = file.origin
    if "tokenizer" in values:  # factor and exactness of the previous tokenizer do not apply
        values = {"factor": 1.0, "exact": False} | values
    if "control" in facts:
        values["control"] = tuple(facts["control"])
    if "prices" in facts:
        prices = {name: float(price) for name, price in facts["prices"].items()}
        values |= {"prices": replace(model.prices or Prices(), **prices), "prices_from": file.origin}
    return replace(model, **values)


def _priced(provider: str, id: str) -> "ModelInfo | None":
    if provider not in PRICED:
        return None
    from genai_prices import data_snapshot  # a third of a second

    try:
        return data_snapshot.get_snapshot().find_provider_model(id, None, PRICED[provider], None)[1]
    except LookupError:
        return None


def _priced_names() -> Iterator[tuple[str, str]]:
    from genai_prices import data_snapshot  # a third of a second

    ours = {theirs: name for name, theirs in PRICED.items()}
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models:
            if provider.id in ours and not NOT_CHAT.search(model.id):
                yield ours[provider.id], model.id


def _with_prices(model: Model, info: "ModelInfo") -> Model:
    now = info.get_prices(datetime.now(UTC))
    prices = {name: _base(getattr(now, f"{name}_mtok")) for name in PRICES}
    if any(price is not None for price in prices.values()):
        model = replace(model, prices=Prices(**prices), prices_from="genai-prices")
    if info.context_window:
        model = replace(model, window=info.context_window, window_from="genai-prices")
    return model


def _base(price: Any) -> float | None:
    """The price; of a tiered price the first tier, which applies to nearly all requests."""
    return None if price is None else float(getattr(price, "base", price))
