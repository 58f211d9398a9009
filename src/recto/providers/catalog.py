"""ModelCatalog: facts about models, merged from their name, genai-prices, our own table and the user's models.toml.

Each number records its origin. Knows no server; providers add what their server reports.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase, translate
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert, defstruct, field
from msgspec.structs import replace

from recto.base.file_cache import FileEntry, stat_file
from recto.base.toml_file import read_ordinary_file
from recto.errors import Invalid, NotFound
from recto.providers.model import Model, Prices
from recto.settings.strategy import STRATEGIES, SUMMARIZE
from recto.weights import chat_models
from recto.window.request import COMMON_CONTROL

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

LOCAL = frozenset({"embedded", "llamacpp", "lmstudio", "ollama", "vllm"})
Facts = Mapping[str, Any]

# -- facts implied by a name; `*` and `[4-9]` as in file names, separated by spaces

OPENAI_CHATS = "chatgpt-4o* gpt-4o* gpt-4.1* gpt-4.5*"
# OpenAI does not publish how these are rendered: reported usage of o4-mini and gpt-5 was one token below its rule for
# chats, so counts are close but not exact.
OPENAI_REASONS = "gpt-[5-9]* gpt-oss* gpt-chat* codex* computer-use* o[1-9] o[1-9]-*"
# 5.1 and 5.2 accept a temperature only while they do not reason.
OPENAI_FIXED = "gpt-[5-9]* codex* o[1-9] o[1-9]-*"
ALWAYS_FREE = "gpt-5-chat*"
# Models by OpenAI, Google and xAI that hide all of their thinking.
THINKS_UNSEEN = f"{OPENAI_FIXED} gpt-chat* gemini-2.5* gemini-[3-9]* grok-3-mini* grok-[4-9]*"
OPENAI_VISION = "chatgpt-4o* gpt-4o* gpt-4.[1-9]* gpt-4-turbo* gpt-4-vision* gpt-[5-9]* gpt-chat* computer-use*"
OPENAI_VISION += " o[134] o[134]-*"
OPENAI_TEXT_ONLY = "gpt-4o-*audio* gpt-4-turbo-preview* o[13]-mini* o1-preview* gpt-5.5-cyber*"
# Names of models that accept images at every provider; "vl" is a word.
VISION_NAMES = "*[-_.0-9]vl[-_:0-9]* *vision* *llava* *pixtral* *moondream* *minicpm-v*"
# Families that accept images when hosted; a local copy may lack its vision weights.
HOSTED_VISION = "*gemini* *gemma-[34]* *grok-[4-9]* *llama-4* *mistral-medium* *magistral* *ministral-*2512*"
HOSTED_VISION += " *ministral-*latest* *deepseek-flash* *deepseek-v4-flash*"
HOSTED_VISION += " *mistral-large-[34]* *mistral-large-2512* *mistral-large-26[0-9][0-9]* *mistral-large-latest*"
HOSTED_VISION += " *mistral-small-[34]* *mistral-small-2512* *mistral-small-26[0-9][0-9]* *mistral-small-latest*"
OPENAI_WITHOUT_SCHEMA = "gpt-3.5* gpt-4 gpt-4-* gpt-4o-2024-05-13* chatgpt-4o* o1-mini* o1-preview*"
TAKES_FILES = frozenset({"anthropic", "openai", "openrouter"})
"""Providers whose API accepts PDFs."""
# A distilled model has the vocabulary of its target, hence llama and qwen before deepseek.
VOCABULARY_NAMES = {
    "llama3": "*llama*",
    "qwen3": "*qwen* *qwq*",
    "deepseek_v3": "*deepseek*",
    "mistral_v3": "*mistral* *ministral* *mixtral* *codestral* *devstral* *magistral* *pixtral*",
    "gemma4": "*gemini* *gemma*",
}


# Claude's vocabulary is not public. Relative to o200k: 1.14 (English) to 1.27 (code) up to 4.6, about 1.6 from 4.7 on.
# These are upper bounds, used until reported usage corrects them.
CLAUDE_UNTIL_4_6, CLAUDE_SINCE_4_7, UNKNOWN = 1.3, 1.8, 1.1


@cache
def _pattern(globs: str) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, globs.split())))


def _fits(name: str, globs: str) -> bool:
    return _pattern(globs).match(name) is not None


def counting(provider: str, id: str) -> Facts:
    """How to count a model's tokens, judged by its name alone, as fields of Model."""
    name, o200k = _bare(id), {"tokenizer": "o200k_base"}
    if "claude" in name:
        return o200k | {"factor": CLAUDE_UNTIL_4_6 if claude_version(name) <= (4, 6) else CLAUDE_SINCE_4_7}
    if _fits(name, OPENAI_CHATS):
        return o200k | {"exact": provider == "openai"}
    if _fits(name, OPENAI_REASONS):
        return o200k
    if name.startswith(("gpt-4", "gpt-3.5")):
        return {"tokenizer": "cl100k_base", "exact": provider == "openai"}
    found = next((known for known, globs in VOCABULARY_NAMES.items() if _fits(name, globs)), None)
    return {"tokenizer": found} if found else o200k | {"factor": UNKNOWN}


def abilities(provider: str, id: str) -> Facts:
    """The inputs and options that a model accepts, judged by its name and provider, as fields of Model."""
    name = _bare(id)
    images = _takes_images(provider, name)
    known = {"images": images, "fixed_temperature": has_fixed_temperature(id)}
    if "claude" in name:
        version = claude_version(name)
        return known | {
            "files": provider in TAKES_FILES and version >= (3, 5),
            "adaptive_thinking": version >= (4, 6),
            "effort": version >= (4, 6) or (version >= (4, 5) and "opus" in name),
            "json_schema": version >= (4, 5),
        }
    reasons = known["fixed_temperature"]
    return known | {
        "files": images and provider in TAKES_FILES,
        "effort": reasons or "gpt-oss" in name,
        "stop": not reasons,
        "json_schema": not _fits(name, OPENAI_WITHOUT_SCHEMA),
    }


def _takes_images(provider: str, name: str) -> bool:
    if "claude" in name:
        return claude_version(name) >= (3, 0)
    if _fits(name, OPENAI_VISION):
        return not _fits(name, OPENAI_TEXT_ONLY)
    return _fits(f"-{name}-", VISION_NAMES) or (provider not in LOCAL and _fits(name, HOSTED_VISION))


def has_fixed_temperature(id: str) -> bool:
    """True if a model rejects any temperature but 1: OpenAI's reasoning models, and Claude from 4.7 on."""
    name = _bare(id)
    if "claude" in name:
        return claude_version(name) > (4, 6)
    return _fits(name, OPENAI_FIXED) and not _fits(name, ALWAYS_FREE)


def thinks_unseen(id: str) -> bool:
    """True if a model may hide some of its thinking, which is paid for and counted only by its provider."""
    name = _bare(id)
    return _fits(name, THINKS_UNSEEN) and not _fits(name, ALWAYS_FREE)


def _bare(id: str) -> str:
    """The id without prefixes, as in openai/gpt-4o, accounts/fireworks/models/llama-v3p1 and ft:gpt-4o-mini:me::x."""
    return id.lower().rsplit("/", 1)[-1].removeprefix("ft:")


def claude_version(name: str) -> tuple[int, int]:
    """(4, 5) for claude-sonnet-4-5-20250929 and claude-4.5-sonnet; a name without a number counts as the newest."""
    found = re.search(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", name)
    return (int(found[1]), int(found[2] or 0)) if found else (99, 0)


# -- models.toml

SHIPPED = Path(__file__).with_name("models.toml")
FILE = "models.toml"
Vocabulary = Literal["o200k_base", "cl100k_base", "llama3", "mistral_v3", "qwen3", "deepseek_v3", "gemma4", "server"]
VOCABULARIES: tuple[str, ...] = get_args(Vocabulary)
# Key in models.toml -> name in genai-prices.
PRICES = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "reasoning": "output_reasoning_mtok",
    "requests": "requests_kcount",
}
MAX_NUMBER = 100_000_000


class FactsFile(Struct, frozen=True):
    """The tables of one file, by `provider:id`; a `*` in a name matches anything."""

    origin: str
    tables: Mapping[str, Facts]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The user's own names of models, with the `provider:id` of each."""
    problems: tuple[str, ...] = ()
    """Why entries are ignored."""

    def about(self, name: str) -> Facts:
        """All facts about a model; a longer matching name overrides a shorter one."""
        fits = [pattern for pattern in self.tables if pattern == name or fnmatchcase(name, pattern)]
        facts: dict[str, Any] = {}
        for pattern in sorted(fits, key=lambda pattern: (pattern == name, len(pattern))):
            facts |= self.tables[pattern]
        return facts

    def names(self) -> list[str]:
        return [name for name in self.tables if "*" not in name]


FLAGS: tuple[str, ...] = ("summarizes", "answers_from_notes", "fixed_temperature", "exact", "tools", "images", "files")
FLAGS += ("adaptive_thinking", "effort", "stop", "json_schema", "forced_tools")
_Prices = dict[
    Literal["input", "output", "cache_read", "cache_write", "reasoning", "requests"], Annotated[float, Meta(ge=0)]
]
CHECKS: Mapping[str, Any] = {
    "window": Annotated[int, Meta(ge=0, le=MAX_NUMBER)],
    **dict.fromkeys(("max_output", "max_tokens"), Annotated[int, Meta(ge=1, le=MAX_NUMBER)]),
    "temperature": Annotated[float, Meta(ge=0, le=2)],
    "thinking_budget": Annotated[int, Meta(ge=0, le=MAX_NUMBER)],
    "tokenizer": Vocabulary,
    "factor": Annotated[float, Meta(ge=0.1, le=10)],
    **dict.fromkeys(FLAGS, bool),
    "strategy": str,
    "control": list[Annotated[str, Meta(min_length=2)]],
    "prices": _Prices,
}
"""The keys of an entry, and what each takes."""
_Entry = defstruct("_Entry", [(name, kind, None) for name, kind in CHECKS.items()], forbid_unknown_fields=True)


def read_facts(path: Path, origin: str) -> FactsFile:
    """The facts of a file without entries that are wrong; empty if the file does not exist. Raises Invalid if it cannot
    be read as a whole."""
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
    tables: dict[str, Facts] = {}
    aliases: dict[str, str] = {}
    problems: list[str] = []
    for name, table in data.items():
        try:
            known, facts = _checked(path, name, table)
        except Invalid as why:
            problems.append(f"{why.message.removesuffix('.')}. The entry is ignored.")
            continue
        tables[known] = {**tables.get(known, {}), **facts}
        if known != name:
            aliases[name] = known
    return FactsFile(origin, tables, aliases, tuple(problems))


def _checked(path: Path, name: str, table: object) -> tuple[str, Facts]:
    """A table's `provider:id` and its facts. Tables with other names have `provider` and `id` fields."""
    facts = dict(table) if isinstance(table, dict) else {}
    provider, id = facts.pop("provider", None), facts.pop("id", None)
    if provider is None and id is None:
        provider, _, id = name.partition(":")
    if not (isinstance(table, dict) and isinstance(provider, str) and isinstance(id, str) and provider and id):
        sentence = f'{path}: {name!r} is not a table for a model; write ["provider:model"] and its facts, or '
        raise Invalid(sentence + "your own name with provider and id.", path=str(path), key=name)
    try:
        convert(facts, _Entry)
        if facts.get("strategy", SUMMARIZE.name) not in STRATEGIES:
            raise ValidationError(f"There is no strategy {facts['strategy']!r}; use one of {', '.join(STRATEGIES)}")
    except ValidationError as why:
        raise Invalid(f'{path}: "{name}" is wrong: {why}.', path=str(path), model=name) from why
    return f"{provider.lower()}:{id}", facts


# Our provider name -> that of genai-prices. Only these are looked up: loading its data takes a third of a second.
_SAME = "anthropic cerebras cohere deepseek fireworks groq mistral moonshotai openai openrouter perplexity together"
PRICED = {"gemini": "google", "xai": "x-ai", **{name: name for name in _SAME.split(" ")}}
OURS = {theirs: ours for ours, theirs in PRICED.items()}
# Names of models passed on by a gateway: prefixed with a provider, or by makers who are the only ones to run them.
PREFIXES = "anthropic azure azure_ai bedrock cerebras cohere deepseek fireworks_ai gemini google groq mistral moonshot"
PREFIXES += " openai openrouter perplexity together_ai vertex_ai xai x-ai"
MAKERS_ALONE = "*claude* chatgpt* gpt-[3-9]* o[1-9] o[1-9]-* gemini* grok*"
MAKERS_ALONE += " */chatgpt* */gpt-[3-9]* */o[1-9] */o[1-9]-* */gemini* */grok*"
# Open models under their maker's name: a private server runs them with any window.
OPEN_WEIGHTS = ("gpt-oss", "openai/gpt-oss", "gemma", "google/gemma")
# Providers of their own models: they separate control texts in messages from control tokens themselves.
MAKERS = frozenset({"anthropic", "cohere", "deepseek", "gemini", "mistral", "openai", "xai"})
NOT_CHAT = "*audio* *dall-e* *davinci* *embed* *guard* *image* *live* *moderation* *ocr* *realtime* *rerank* *sora*"
NOT_CHAT += " *speech* *transcri* *tts* *voice* *whisper*"
# Possible model names, if the user has not defined the name: `provider:` and anything, or characters used in ids.
_LIKE_ID = re.compile(r"[^\s:]*:.*|[\w./@+~-]*", re.ASCII | re.DOTALL)


class ModelCatalog:
    """`home/models.toml` overrides the built-in facts, `project/.recto/models.toml` overrides both. Without a home only
    built-in facts are known."""

    def __init__(self, home: Path | None = None, project: Path | None = None) -> None:
        self._places = [home / FILE, *([project / ".recto" / FILE] if project else [])] if home else []
        self._read_at: list[FileEntry | None] = []
        self._files: tuple[FactsFile, ...] = (FactsFile(FILE, {}),)
        self._known = lru_cache(maxsize=256)(self._find)  # every turn asks for the same one

    def find(self, provider: str, id: str) -> Model:
        """All known facts; an unknown model has an unknown window and estimated counts."""
        self._read_changes()
        return self._known(provider, id)

    def _find(self, provider: str, id: str) -> Model:
        model = _guess(provider, id)
        if found := _priced(provider, id) or _passed_on(provider, id):
            name, info = found
            model = _with_facts(_with_prices(model, info), self._shipped, name)
        for file in (self._shipped, *self._files[:1]):
            model = _with_facts(model, file)
        for file in self._files[1:]:
            changed = _with_facts(model, file)
            # a project must not lower what counts towards the user's spending limits
            is_priced = model.prices is not None and model.prices.are_known
            prices = model if is_priced else changed
            model = replace(changed, prices=prices.prices, prices_from=prices.prices_from)
        return model

    def full_name(self, name: str) -> str:
        """`provider:id` for a name that the user defined; other names unchanged.

        A project's file defines no names: they decide who reads what the user writes. Raises NotFound for a name that
        only a user could have defined, but did not: no provider may guess its meaning."""
        folded = {alias.casefold(): alias for alias in self.aliases}
        if alias := folded.get(" ".join(name.split()).casefold()):
            return self.aliases[alias]
        if _LIKE_ID.fullmatch(name.strip()):
            return name
        names = f", which has {', '.join(map(repr, sorted(self.aliases)))}" if self.aliases else ""
        instead = f"write provider:model, or give a model this name in {FILE} in RECTO_HOME{names}"
        raise NotFound(f"there is no model {name!r}; {instead}", model=name)

    @property
    def aliases(self) -> Mapping[str, str]:
        """The user's own names of models, with the `provider:id` of each."""
        return self._own[0].aliases

    def described(self) -> list[str]:
        """The names of models described in a file, the user's own first; faster than listing all with a price."""
        own = [name for file in self._own for name in (*file.aliases, *file.names())]
        return list(dict.fromkeys((*own, *self._shipped.names())))

    def all(self) -> Iterator[Model]:
        """Every known chat model, sorted by name."""
        from genai_prices import data_snapshot  # a third of a second

        names = {name for file in (self._shipped, *self._own) for name in file.names()}
        for provider in data_snapshot.get_snapshot().providers:
            if ours := OURS.get(provider.id):
                names |= {f"{ours}:{model.id}" for model in provider.models if not _fits(model.id, NOT_CHAT)}
        for name in sorted(names):
            provider_name, _, id = name.partition(":")
            yield self.find(provider_name, id)

    @cached_property
    def _shipped(self) -> FactsFile:
        found = read_facts(SHIPPED, "built in")
        own = {f"embedded:{each.name}": each.facts for each in chat_models()}
        return replace(found, tables={**own, **found.tables})

    def counts_at_server(self, provider: str) -> bool:
        """True if a model of this provider is counted by its server, because the user's files say so."""
        entries = (entry for file in self._own for entry in file.tables.items())
        return any(name.startswith(f"{provider}:") and facts.get("tokenizer") == "server" for name, facts in entries)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why entries of the user's files are ignored."""
        return tuple(problem for file in self._own for problem in file.problems)

    @property
    def _own(self) -> tuple[FactsFile, ...]:
        self._read_changes()
        return self._files

    def _read_changes(self) -> None:
        entries = list(map(stat_file, self._places))
        if entries != self._read_at:
            self._files = tuple(read_facts(place, FILE) for place in self._places)
            self._known.cache_clear()
            is_settled = all(entry is None or entry.is_settled for entry in entries)
            self._read_at = entries if is_settled else []


def _guess(provider: str, id: str) -> Model:
    """The facts implied by the name alone."""
    return Model(
        f"{provider}:{id}",
        provider,
        id,
        window=None,
        window_from="unknown",
        control=() if provider in MAKERS else COMMON_CONTROL,
        prices=Prices(0.0, 0.0) if provider in LOCAL else None,
        prices_from="your own server" if provider in LOCAL else "unknown",
        **counting(provider, id),
        **abilities(provider, id),
    )


def _with_facts(model: Model, file: FactsFile, name: str = "") -> Model:
    """The model with the facts of a file, which may list it under another name."""
    values = dict(file.about(name or model.name))
    if "window" in values:
        values |= {"window": values["window"] or None, "window_from": file.origin}
    if "max_output" in values:
        values["max_output_from"] = file.origin
    if "tokenizer" in values:  # factor and exactness of the previous tokenizer do not apply
        values = {"factor": 1.0, "exact": False} | values
    if "control" in values:
        values["control"] = tuple(values["control"])
    if "prices" in values:
        prices = {name: float(price) for name, price in values["prices"].items()}
        values |= {"prices": replace(model.prices or Prices(), above=(), **prices), "prices_from": file.origin}
    return replace(model, **values)


def _look_up(id: str, provider: str) -> "tuple[str, ModelInfo] | None":
    """The maker, and the price data for a model at a provider, by their names in genai-prices."""
    from genai_prices import data_snapshot  # a third of a second

    try:
        maker, info = data_snapshot.get_snapshot().find_provider_model(id, None, provider, None)
    except LookupError:
        return None
    return maker.id, info


def _priced(provider: str, id: str) -> "tuple[str, ModelInfo] | None":
    """`provider:id` for our own table, and the price data."""
    found = _look_up(id, PRICED[provider]) if provider in PRICED else None
    return found and (f"{provider}:{id}", found[1])


def _passed_on(provider: str, id: str) -> "tuple[str, ModelInfo] | None":
    """The same for a model that a gateway or other server passes on under its own or a longer name."""
    name = id.lower()
    first, slash, _ = name.partition("/")
    is_passed_on = (slash and first in PREFIXES.split()) or _fits(name, MAKERS_ALONE)
    if provider in LOCAL or not is_passed_on or name.startswith(OPEN_WEIGHTS):
        return None
    bare = name.rsplit("/", 1)[-1]
    for tried in (name, bare, f"bedrock/{bare}"):
        # by LiteLLM's rules: provider/model, or a model whose name shows its maker
        if found := _look_up(tried, "litellm"):
            return f"{OURS.get(found[0], found[0])}:{bare}", found[1]
    return None


def _with_prices(model: Model, info: "ModelInfo") -> Model:
    now = info.get_prices(datetime.now(UTC))
    found = {name: getattr(now, theirs) for name, theirs in PRICES.items()}
    if any(price is not None for price in found.values()):
        model = replace(model, prices=_read_prices(found), prices_from="genai-prices")
    if info.context_window:
        model = replace(model, window=info.context_window, window_from="genai-prices")
    return model


def _read_prices(found: Mapping[str, Any]) -> Prices:
    """A tiered price applies to all tokens of a request whose input exceeds the tier's start."""
    starts = sorted({tier.start for price in found.values() for tier in getattr(price, "tiers", ())})
    at = [replace(Prices(), **{name: _price_at(found[name], start) for name in found}) for start in (0, *starts)]
    return replace(at[0], above=tuple(zip(starts, at[1:], strict=True)))


def _price_at(price: Any, start: int) -> float | None:
    if price is None:
        return None
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(tiers[-1] if tiers else getattr(price, "base", price))
