"""Opens a provider by name: a known one, or any other whose address is set in the environment."""

import asyncio
import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from recto.errors import Invalid, NotFound, ProviderError
from recto.plugins import find_plugin, is_plugin
from recto.providers.anthropic import AnthropicFormat, AnthropicProvider
from recto.providers.catalog import FILE, OURS, ModelCatalog
from recto.providers.embedded import NAME, EmbeddedProvider
from recto.providers.http import RETRY_POLICY, RetryPolicy, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.model import Model, Provider
from recto.providers.ollama import OllamaProvider
from recto.providers.openai import OpenAIFormat, OpenAIProvider
from recto.providers.remote import RemoteProvider, checked_key
from recto.providers.scripted import ScriptedProvider
from recto.search.embedding_endpoint import EmbeddingAddress
from recto.settings.keys import KeyedEnvironment
from recto.weights import chat_models
from recto.window.request import Format


class EndpointAddress(Struct, frozen=True):
    """The URL of a provider, and the environment variable of its key; None if it needs no key."""

    base_url: str
    key_variable: str | None = None


KNOWN = {
    "anthropic": EndpointAddress("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "deepseek": EndpointAddress("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": EndpointAddress("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "gemini": EndpointAddress("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": EndpointAddress("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llamacpp": EndpointAddress("http://127.0.0.1:8080/v1"),
    "lmstudio": EndpointAddress("http://127.0.0.1:1234/v1"),
    "mistral": EndpointAddress("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": EndpointAddress("http://127.0.0.1:11434/v1"),
    "openai": EndpointAddress("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": EndpointAddress("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": EndpointAddress("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": EndpointAddress("http://127.0.0.1:8000/v1"),
    "xai": EndpointAddress("https://api.x.ai/v1", "XAI_API_KEY"),
}
NAMES = tuple(sorted((*KNOWN, NAME, "scripted")))
FORMATS: tuple[Format, ...] = (OpenAIFormat(), AnthropicFormat())
PROVIDER_PARTS = ("name", "format", "model", "counter", "stream", "close")
EXAMPLE = "openai:gpt-4o-mini"
CHAT_ONLY = (NAME, "scripted")
FORMAT_NAMES = tuple(format.name for format in FORMATS)


def split_name(name: str) -> tuple[str, str]:
    """Provider and id of `provider:model`; a bare model name gets its known provider."""
    provider, colon, id = name.strip().partition(":")
    if not colon:
        return _guess(provider), provider
    if not provider or not id:
        raise Invalid(f"{name!r} is not a model; write provider:model, for example {EXAMPLE}.", model=name)
    return provider.lower(), id


def open_provider(
    name: str,
    *,
    home: Path,
    project: Path | None,
    environment: Mapping[str, str],
    window: int | None = None,
    retry_policy: RetryPolicy = RETRY_POLICY,
) -> Provider:
    """`window` applies to embedded models only, which have their own retry policy."""
    _check_name(name)
    environment = KeyedEnvironment(home, environment)
    if name == "scripted":
        return ScriptedProvider()
    catalog = ModelCatalog(home, project)
    if name == NAME:
        return EmbeddedProvider(catalog, window)
    if name not in KNOWN and not environment.get(_variable(name, "BASE_URL")) and is_plugin("provider", name):
        return _open_plugin(name, home, environment)
    return _open_remote(name, catalog, environment, Transport(retry_policy))


def _open_plugin(name: str, home: Path, environment: Mapping[str, str]) -> Provider:
    """A provider of another package: calls its entry point with the home and the environment."""
    plugin = find_plugin("provider", name)
    opened = plugin.use(lambda maker: maker(home, environment))
    if missing := [each for each in PROVIDER_PARTS if not hasattr(opened, each)]:
        raise plugin.broken(f"is not a provider: it lacks {', '.join(missing)}")
    found: Provider = opened
    return found


def _open_remote(
    name: str, catalog: ModelCatalog, environment: Mapping[str, str], transport: Transport
) -> RemoteProvider:
    address = _address(name, environment)
    variable = _key_variable(name, address, environment)
    kind = _kind(name, address, catalog, environment)
    return kind(
        name,
        address.base_url,
        _key(name, address, environment),
        catalog,
        key_variable=variable,
        is_key_stored=isinstance(environment, KeyedEnvironment) and environment.is_stored(variable or ""),
        transport=transport,
        is_custom=address.key_variable is None,
    )


def _kind(
    name: str, address: EndpointAddress, catalog: ModelCatalog, environment: Mapping[str, str]
) -> type[RemoteProvider]:
    """A server in our network knows more about its model than any table; it is asked when the model is first used. So
    is any server that should count for itself."""
    if _format(name, environment) == "anthropic":
        return AnthropicProvider
    if name == "ollama":
        return OllamaProvider
    with suppress(ValueError):  # an invalid address is rejected later
        if name == "llamacpp" or is_near(urlsplit(address.base_url).hostname or "") or catalog.counts_at_server(name):
            return LlamaProvider
    return OpenAIProvider


class ModelOverview(Struct, frozen=True):
    """The models available now, and other known ones. The user's own names are `aliases`."""

    usable: list[Model]
    others: list[Model]
    aliases: Mapping[str, str]
    problems: tuple[str, ...] = ()
    """Why entries of models.toml are ignored."""


async def model_overview(home: Path, project: Path | None, environment: Mapping[str, str]) -> ModelOverview:
    """Available are the embedded model, those of providers with a key, and those listed by a configured server."""
    catalog, environment = ModelCatalog(home, project), KeyedEnvironment(home, environment)
    servers = await offered_models(home, project, environment)
    usable = {model.name: model for models in servers.values() for model in models}
    others = []
    for model in catalog.all():
        if model.provider == NAME or has_key(model.provider, environment):
            usable.setdefault(model.name, model)
        elif model.name not in usable:
            others.append(model)
    first = sorted(usable.values(), key=lambda model: (model.provider != NAME, model.name))
    return ModelOverview(first, others, catalog.aliases, catalog.problems)


async def offered_models(home: Path, project: Path | None, environment: Mapping[str, str]) -> dict[str, list[Model]]:
    """The models that each configured server lists now: those at the user's addresses, and those on this machine."""
    names = sorted({*_configured(environment), *(name for name, known in KNOWN.items() if not known.key_variable)})
    catalog = ModelCatalog(home, project)
    found = await asyncio.gather(*(_offered_by(name, catalog, environment) for name in names))
    return {name: models for name, models in zip(names, found, strict=True) if models}


async def _offered_by(name: str, catalog: ModelCatalog, environment: Mapping[str, str]) -> list[Model]:
    """None if the server does not run, or its address is invalid: asking it would report that."""
    try:
        provider = _open_remote(name, catalog, environment, Transport())
        try:
            return await provider.offered()
        finally:
            await provider.close()
    except (ProviderError, Invalid):
        return []


def is_served(name: str, environment: Mapping[str, str]) -> bool:
    """True if clients of a server may name this provider: one at a known or set address, the embedded one, or that of
    another package. Other models, such as scripts, are files of this machine."""
    return name == NAME or name in KNOWN or name in _configured(environment) or is_plugin("provider", name)


def has_key(name: str, environment: Mapping[str, str]) -> bool:
    return name in KNOWN and bool(_key(name, KNOWN[name], environment))


def key_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The providers that can have a key, with the variable of each: known ones, and those at the user's addresses."""
    known = {name: address.key_variable for name, address in KNOWN.items() if address.key_variable}
    own = {name: _variable(name, "API_KEY").removeprefix("RECTO_") for name in _configured(environment)}
    return own | known


def _configured(environment: Mapping[str, str]) -> list[str]:
    """The providers whose address is set. A variable cannot contain dashes; underscores are read as dashes."""
    found = [re.fullmatch(r"RECTO_([A-Z0-9][A-Z0-9_]*)_BASE_URL", variable) for variable in environment]
    names = [match[1].lower() for match in found if match and environment[match[0]].strip()]
    return [name if name in KNOWN else name.replace("_", "-") for name in names]


def embedding_address(name: str, environment: Mapping[str, str], home: Path) -> EmbeddingAddress:
    """The address and key for embeddings of `provider:model`: the same as for replies."""
    environment = KeyedEnvironment(home, environment)
    if ":" not in name:
        known = "local, multilingual, minilm, none, or provider:model"
        raise Invalid(f"{name!r} is not an embedder; use {known}.", name=name)
    provider, _ = split_name(name)
    _check_name(provider)
    if provider in CHAT_ONLY or _format(provider, environment) == "anthropic":
        raise NotFound(f"{provider} has no embeddings; use local, or a provider that has them.", provider=provider)
    address = _address(provider, environment)
    key = (_key(provider, address, environment) or "").strip() or None
    variable = _key_variable(provider, address, environment)
    return EmbeddingAddress(address.base_url, checked_key(provider, key, variable), variable)


def _check_name(provider: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", provider):
        allowed = "lower-case letters, digits, dots and dashes"
        raise Invalid(f"{provider!r} is not a provider name; use {allowed}.", model=provider)


def _guess(id: str) -> str:
    if any(id == each.name for each in chat_models()):
        return NAME
    from genai_prices import data_snapshot  # a third of a second

    try:
        found = OURS.get(data_snapshot.get_snapshot().find_provider(id.lower() or None, None, None).id)
    except LookupError:
        found = None
    if found is None or found not in KNOWN:
        bare = [each.name.partition(":")[2] for each in ModelCatalog().all() if each.provider in KNOWN]
        near = "".join(get_close_matches(id.lower(), bare, 1))
        told = f"write provider:model, for example {EXAMPLE}, or give it this name in {FILE} in RECTO_HOME"
        raise Invalid(
            f"{id!r} names no provider; {f'did you mean {near}? Otherwise ' if near else ''}{told}.", model=id
        )
    return found


def _address(name: str, environment: Mapping[str, str]) -> EndpointAddress:
    """A URL that the user sets needs no key, even under a known name."""
    variable = _variable(name, "BASE_URL")
    base_url = environment.get(variable, "").strip().rstrip("/")
    known = KNOWN.get(name)
    if known and base_url in ("", known.base_url):
        return known
    if not base_url:
        names = sorted({*NAMES, *_configured(environment)})
        near = "".join(get_close_matches(name, names, 1))
        instead = f"Did you mean {near}?" if near else f"Known are {', '.join(names)}."
        raise NotFound(
            f"There is no provider {name}. {instead} For another one, set {variable} to its address, and "
            f"{_variable(name, 'FORMAT')}=anthropic if it is not OpenAI-compatible",
            provider=name,
        )
    return EndpointAddress(base_url)


def _format(name: str, environment: Mapping[str, str]) -> str:
    variable = _variable(name, "FORMAT")
    default = "anthropic" if name == "anthropic" else "openai"
    found = environment.get(variable, "").strip().lower() or default
    if found not in FORMAT_NAMES:
        raise Invalid(f"{variable} must be one of {', '.join(FORMAT_NAMES)}, not {found!r}.", variable=variable)
    return found


def _key(name: str, address: EndpointAddress, environment: Mapping[str, str]) -> str | None:
    return environment.get(_key_variable(name, address, environment) or "") or None


def _key_variable(name: str, address: EndpointAddress, environment: Mapping[str, str]) -> str | None:
    """The variable that has the key, or else should have it; None for a provider that needs no key."""
    own = _variable(name, "API_KEY")
    usual = address.key_variable or own.removeprefix("RECTO_")
    return next((each for each in (own, usual) if environment.get(each, "").strip()), address.key_variable)


def _variable(name: str, what: str) -> str:
    return f"RECTO_{name.replace('.', '_').replace('-', '_').upper()}_{what}"


def is_near(host: str) -> bool:
    """True for a host on this machine or in its network: a loopback or private address, or a name without domain."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost"))
