"""ModelCatalog: facts about models, merged from their name, genai-prices, our own table and the user's files.

Each number records its origin. Knows no server; providers add what their server reports.

Reads and checks models.toml, a file of facts about models. Knows the keys, not which file overrides which.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.toml_file import read_ordinary_file
from recto.errors import Invalid, NotFound
from recto.providers.families import LOCAL, abilities, counting
from recto.providers.model import Model
from recto.providers.prices import Prices
from recto.settings.strategy import STRATEGIES
from recto.weights import chat_models
from recto.window.request import COMMON_CONTROL

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo


VOCABULARIES = ("o200k_base", "cl100k_base", "llama3", "mistral_v3", "qwen3", "deepseek_v3", "gemma4", "server")
# Key in models.toml -> what genai-prices calls it.
PRICES = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok",
    "requests": "requests_kcount",
}
ALSO = {"context_limit": "window"}
"""Other names of keys."""
MAX_NUMBER = 100_000_000

Facts = Mapping[str, Any]
Check = Callable[[object], bool]


class FactsFile(Struct, frozen=True):
    """The tables of one file, by `provider:id`; a `*` in a name matches anything."""

    origin: str
    tables: Mapping[str, Facts]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The user's own names of models, and `provider:id` of each."""

    def about(self, name: str) -> Facts:
        """All facts about a model; a longer matching name overrides a shorter one."""
        fits = [pattern for pattern in self.tables if pattern == name or fnmatchcase(name, pattern)]
        facts: dict[str, Any] = {}
        for pattern in sorted(fits, key=lambda pattern: (pattern == name, len(pattern))):
            facts |= self.tables[pattern]
        return facts

    def names(self) -> list[str]:
        return [name for name in self.tables if "*" not in name]


def read_facts(path: Path, origin: str) -> FactsFile:
    """The checked facts of a file; empty where the file does not exist. Raises Invalid, naming the error."""
    try:
        data = tomllib.loads(read_ordinary_file(path).decode())
    except (FileNotFoundError, NotADirectoryError):
        return FactsFile(origin, {})
    except OSError as why:
        raise Invalid(f"{path} cannot be read: {why.strerror}.", path=str(path)) from why
    except UnicodeDecodeError as why:
        raise Invalid(f"{path} is not UTF-8 text (byte {why.start}).", path=str(path)) from why
    except tomllib.TOMLDecodeError as why:
        raise Invalid(f"{path} is not valid TOML: {why}.", path=str(path)) from why
    return _facts_file(path, origin, data)


def _facts_file(path: Path, origin: str, data: Mapping[str, object]) -> FactsFile:
    tables: dict[str, Facts] = {}
    aliases: dict[str, str] = {}
    for name, table in data.items():
        known, facts = _checked(path, name, table)
        tables[known] = {**tables.get(known, {}), **facts}
        if known != name:
            aliases[name] = known
    return FactsFile(origin, tables, aliases)


def _whole(value: object, low: int) -> bool:
    return type(value) is int and low <= value <= MAX_NUMBER


def _number(value: object, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]  # checked: it is a number


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) and len(text) > 1 for text in value)


CHECKS: dict[str, tuple[Check, str]] = {
    "window": (lambda value: value == 0 or _whole(value, 256), "0 for unknown, or a whole number from 256 on"),
    "max_output": (lambda value: _whole(value, 1), "a whole number from 1 on"),
    "max_tokens": (lambda value: _whole(value, 1), "a whole number from 1 on"),
    "temperature": (lambda value: _number(value, 0, 2), "a number from 0 to 2"),
    "summarizes": (lambda value: isinstance(value, bool), "true or false"),
    "answers_from_notes": (lambda value: isinstance(value, bool), "true or false"),
    "fixed_temperature": (lambda value: isinstance(value, bool), "true or false"),
    "thinking_budget": (lambda value: _whole(value, 0), "a whole number from 0 on"),
    "tokenizer": (lambda value: value in VOCABULARIES, f"one of {', '.join(VOCABULARIES)}"),
    "factor": (lambda value: _number(value, 0.1, 10), "a number from 0.1 to 10"),
    "exact": (lambda value: isinstance(value, bool), "true or false"),
    "tools": (lambda value: isinstance(value, bool), "true or false"),
    **{
        name: (lambda value: isinstance(value, bool), "true or false")
        for name in ("images", "files", "adaptive_thinking", "effort", "stop", "json_schema", "forced_tools")
    },
    "strategy": (lambda value: isinstance(value, str) and value in STRATEGIES, f"one of {', '.join(STRATEGIES)}"),
    "control": (_texts, "a list of texts of at least two characters"),
    "prices": (lambda value: isinstance(value, dict), f"a table with {', '.join(PRICES)}"),
}


def _checked(path: Path, name: str, table: object) -> tuple[str, Facts]:
    """`provider:id` of a table, and its facts. A table of any other name says both in `provider` and `id`."""
    if not isinstance(table, dict):
        _refuse_table(path, name)
    facts: dict[str, Any] = {ALSO.get(key) or key: value for key, value in table.items()}
    if len(facts) < len(table):
        _refuse(path, name, "context_limit", "is another name of window; give one of them")
    provider, id = facts.pop("provider", None), facts.pop("id", None)
    for key, value in facts.items():
        if key not in CHECKS:
            _refuse(path, name, key, f"is not a known key; use one of {', '.join(CHECKS)}")
        is_allowed, allowed = CHECKS[key]
        if not is_allowed(value):
            _refuse(path, name, key, f"must be {allowed}, not {value!r}")
    _check_prices(path, name, facts.get("prices", {}))
    if provider is None and id is None:
        provider, _, id = name.partition(":")
    if not (isinstance(provider, str) and isinstance(id, str) and provider and id):
        _refuse_table(path, name)
    return f"{provider.lower()}:{id}", facts


def _refuse_table(path: Path, name: str) -> NoReturn:
    raise Invalid(
        f'{path}: {name!r} is not a table for a model; write ["provider:model"] and the facts below it, or a name of '
        "your own with provider and id.",
        path=str(path),
        key=name,
    )


def _check_prices(path: Path, name: str, prices: Mapping[str, object]) -> None:
    for key, value in prices.items():
        if key not in PRICES:
            _refuse(path, name, f"prices.{key}", f"is not a known key; use one of {', '.join(PRICES)}")
        if not _number(value, 0, 1_000_000):
            _refuse(path, name, f"prices.{key}", f"must be US dollars per million tokens, not {value!r}")


def _refuse(path: Path, name: str, key: str, what: str) -> NoReturn:
    raise Invalid(f'{path}: {key} of "{name}" {what}.', path=str(path), model=name, key=key)


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
# Names of models that a gateway passes on: with a provider's name in front, or of makers who let nobody else run them.
PASSED_ON = re.compile(
    r"(anthropic|azure|azure_ai|bedrock|cerebras|cohere|deepseek|fireworks_ai|gemini|google|groq|mistral|moonshot|openai"
    r"|openrouter|perplexity|together_ai|vertex_ai|xai|x-ai)/|.*claude|(.*/)?(chatgpt|gpt-[3-9]|o[1-9](-|$)|gemini|grok)"
)
# Open models under their maker's name: a server of one's own runs them with any window.
OPEN_WEIGHTS = re.compile(r"(openai/)?gpt-oss|(google/)?gemma")
# Providers of their own models: they tell control texts in messages from control tokens themselves.
MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})
NOT_CHAT = re.compile(
    r"audio|dall-e|davinci|embed|guard|image|live|moderation|ocr|realtime|rerank|sora|speech|transcri|tts|voice|whisper"
)
# What can be a model's name where the user gave it none: `provider:` and anything, or signs that ids are made of.
_LIKE_ID = re.compile(r"[^\s:]*:.*|[\w./@+~-]*", re.ASCII | re.DOTALL)
SHIPPED = Path(__file__).with_name("models.toml")
FILE = "models.toml"


class ModelCatalog:
    """`home/models.toml` overrides the built-in facts, `project/.recto/models.toml` overrides both. Without a home only
    built-in facts are known."""

    def __init__(self, home: Path | None = None, project: Path | None = None) -> None:
        self.home, self.project = home, project
        self._known = lru_cache(maxsize=256)(self._find)  # every turn asks for the same

    def find(self, provider: str, id: str) -> Model:
        """All known facts; an unknown model has an unknown window and estimated counts."""
        return self._known(provider, id)

    def _find(self, provider: str, id: str) -> Model:
        model = _guess(provider, id)
        if found := _priced(provider, id) or _passed_on(provider, id):
            name, info = found
            model = _with_facts(_with_prices(model, info), self._shipped, name)
        for file in (self._shipped, *self._own[:1]):
            model = _with_facts(model, file)
        for file in self._own[1:]:
            changed = _with_facts(model, file)
            # a project must not lower what counts for the user's limits of spending
            is_priced = model.prices is not None and model.prices.are_known
            prices = model if is_priced else changed
            model = replace(changed, prices=prices.prices, prices_from=prices.prices_from)
        return model

    def full_name(self, name: str) -> str:
        """`provider:id` of a name that the user gave a model; any other name as it is.

        A project's file gives no names: they decide who gets to read what the user writes. Raises NotFound for a name
        that only a user gives, and none has given: no provider may guess at it."""
        folded = {alias.casefold(): known for alias, known in self.aliases.items()}
        if (known := folded.get(" ".join(name.split()).casefold())) is None and not _LIKE_ID.fullmatch(name.strip()):
            raise NotFound(f"there is no model {name!r}; {self._names_instead(name)}", model=name)
        return known or name

    def _names_instead(self, name: str) -> str:
        folded = {alias.casefold(): alias for alias in self.aliases}
        if near := get_close_matches(name.casefold(), folded, 1):
            return f"the nearest name in {FILE} is {folded[near[0]]!r}"
        if folded:
            return f"{FILE} has {', '.join(map(repr, sorted(self.aliases)))}; use one of them, or provider:model"
        return f"write provider:model, or give a model this name in {FILE} in RECTO_HOME"

    @property
    def aliases(self) -> Mapping[str, str]:
        """The user's own names of models, and `provider:id` of each."""
        return self._own[0].aliases

    def described(self) -> list[str]:
        """The names of models that a file describes, the user's own first; quicker than all that have a price."""
        own = [name for file in self._own for name in (*file.aliases, *file.names())]
        return list(dict.fromkeys((*own, *self._shipped.names())))

    def all(self) -> Iterator[Model]:
        """Every known chat model, sorted by name."""
        names = {name for file in (self._shipped, *self._own) for name in file.names()}
        names |= {f"{provider}:{id}" for provider, id in _priced_names()}
        for name in sorted(names):
            provider, _, id = name.partition(":")
            yield self.find(provider, id)

    @cached_property
    def _shipped(self) -> FactsFile:
        found = read_facts(SHIPPED, "built in")
        own = {f"embedded:{each.name}": each.facts for each in chat_models()}
        return replace(found, tables={**own, **found.tables})

    @cached_property
    def _own(self) -> tuple[FactsFile, ...]:
        if self.home is None:
            return (FactsFile(FILE, {}),)
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
        prices=Prices(0.0, 0.0) if provider in LOCAL else None,
        prices_from="your own server" if provider in LOCAL else "unknown",
        **abilities(provider, id),
    )


def _with_facts(model: Model, file: FactsFile, name: str = "") -> Model:
    """The model with the facts of a file, which may know it by another name."""
    facts: Facts = file.about(name or model.name)
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
        values |= {"prices": replace(model.prices or Prices(), above=(), **prices), "prices_from": file.origin}
    return replace(model, **values)


def _priced(provider: str, id: str) -> "tuple[str, ModelInfo] | None":
    """`provider:id` for our own table, and what the price data know."""
    if provider not in PRICED:
        return None
    from genai_prices import data_snapshot  # a third of a second

    try:
        return f"{provider}:{id}", data_snapshot.get_snapshot().find_provider_model(id, None, PRICED[provider], None)[1]
    except LookupError:
        return None


def _passed_on(provider: str, id: str) -> "tuple[str, ModelInfo] | None":
    """The same for a model that a gateway or any other server passes on under its own or a longer name."""
    name = id.lower()
    if provider in LOCAL or not PASSED_ON.match(name) or OPEN_WEIGHTS.match(name):
        return None
    from genai_prices import data_snapshot  # a third of a second

    ours = {theirs: ourselves for ourselves, theirs in PRICED.items()}
    bare = name.rsplit("/", 1)[-1]
    for tried in (name, bare, f"bedrock/{bare}"):
        try:
            # by the rules of LiteLLM: provider/model, or a model whose maker its name tells
            maker, info = data_snapshot.get_snapshot().find_provider_model(tried, None, "litellm", None)
        except LookupError:
            continue
        return f"{ours.get(maker.id, maker.id)}:{bare}", info
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
    found = {name: getattr(now, theirs) for name, theirs in PRICES.items()}
    if any(price is not None for price in found.values()):
        model = replace(model, prices=_read_prices(found), prices_from="genai-prices")
    if info.context_window:
        model = replace(model, window=info.context_window, window_from="genai-prices")
    return model


def _read_prices(found: Mapping[str, Any]) -> Prices:
    """A tiered price is another one for all tokens of a request whose input is larger than the tier's start."""
    starts = sorted({tier.start for price in found.values() for tier in getattr(price, "tiers", ())})
    at = [replace(Prices(), **{name: _price_at(found[name], start) for name in found}) for start in (0, *starts)]
    return replace(at[0], above=tuple(zip(starts, at[1:], strict=True)))


def _price_at(price: Any, start: int) -> float | None:
    if price is None:
        return None
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(tiers[-1] if tiers else getattr(price, "base", price))
