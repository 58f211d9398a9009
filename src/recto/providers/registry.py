"""Opens a provider by its name: the known ones, and any other for which the environment gives an address."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from recto.errors import Invalid, NoKey, NotFound, Refused
from recto.providers.anthropic import AnthropicProvider
from recto.providers.catalog import PRICED, Catalog
from recto.providers.embedded import ID, NAME, EmbeddedProvider
from recto.providers.http import PATIENCE, Patience, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.llama_server import LlamaServer
from recto.providers.near import NearServer
from recto.providers.ollama import OllamaProvider
from recto.providers.openai import OpenAIProvider
from recto.providers.provider import Provider
from recto.providers.scripted import ScriptedProvider
from recto.search.embedder import Address


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider is, and in which variable its key is looked for; None where it needs none."""

    base_url: str
    key_variable: str | None = None


KNOWN = {
    "anthropic": Place("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "deepseek": Place("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": Place("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "gemini": Place("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": Place("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "llamacpp": Place("http://127.0.0.1:8080/v1"),
    "lmstudio": Place("http://127.0.0.1:1234/v1"),
    "mistral": Place("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": Place("http://127.0.0.1:11434/v1"),
    "openai": Place("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "openrouter": Place("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Place("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "vllm": Place("http://127.0.0.1:8000/v1"),
    "xai": Place("https://api.x.ai/v1", "XAI_API_KEY"),
}
NAMES = tuple(sorted((*KNOWN, NAME, "scripted")))
SPEAKERS_ONLY = ("anthropic", NAME, "scripted")
"""They answer, and make no vectors."""


def split_name(name: str) -> tuple[str, str]:
    """Provider and id of `provider:model`; a bare model name gets the provider that is known to have it."""
    provider, colon, id = name.strip().partition(":")
    if not colon:
        return _guess(provider), provider
    if not provider or not id:
        raise Invalid(f"{name!r} is not a model; write provider:model, for example {NAME}:{ID}.", model=name)
    return provider.lower(), id


def open_provider(
    name: str,
    *,
    home: Path,
    project: Path | None,
    environment: Mapping[str, str],
    window: int | None = None,
    patience: Patience = PATIENCE,
) -> Provider:
    """`window` is for the embedded model, whose server starts with it and knows no other patience than its own."""
    _check_name(name)
    if name == "scripted":
        return ScriptedProvider()
    catalog = Catalog(home, project)
    if name == NAME:
        return EmbeddedProvider(home, catalog, window)
    place = _place(name, environment)
    key = _key(name, place, environment)
    if name == "anthropic":
        return AnthropicProvider(
            name, place.base_url, key, catalog, key_variable=place.key_variable, transport=Transport(patience)
        )
    talk = OpenAIProvider(
        name, place.base_url, key, catalog, key_variable=place.key_variable, transport=Transport(patience)
    )
    return _told_by_server(talk, key)


def embedding_address(name: str, environment: Mapping[str, str]) -> Address:
    """Where the vectors of `provider:model` are made, and with which key: the same places as for answers."""
    if ":" not in name:
        raise Invalid(f"{name!r} is no embedder; use minilm, none, or provider:model.", name=name)
    provider, _ = split_name(name)
    _check_name(provider)
    if provider in SPEAKERS_ONLY:
        raise NotFound(
            f"{provider} makes no vectors; use minilm, or a provider that has embeddings.", provider=provider
        )
    place = _place(provider, environment)
    key = (_key(provider, place, environment) or "").strip() or None
    if key is None and place.key_variable:
        raise NoKey(
            f"{provider} needs a key; set {place.key_variable} in the environment.", variable=place.key_variable
        )
    if key and not (key.isascii() and key.isprintable()):
        raise Refused(f"The key of {provider} holds characters that no key has; copy it again.")
    return Address(place.base_url, key, place.key_variable)


def _check_name(provider: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", provider):
        raise Invalid(
            f"{provider!r} is not a provider's name; use lower-case letters, digits, dots and dashes.", name=provider
        )


def _guess(id: str) -> str:
    if id == ID:
        return NAME
    from genai_prices import data_snapshot  # a third of a second

    ours = {theirs: name for name, theirs in PRICED.items() if name in KNOWN}
    try:
        found = ours.get(data_snapshot.get_snapshot().find_provider(id.lower() or None, None, None).id)
    except LookupError:
        found = None
    if found is None:
        raise Invalid(f"{id!r} does not say whose model it is; write provider:model, for example {NAME}:{ID}.")
    return found


def _place(name: str, environment: Mapping[str, str]) -> Place:
    """An address of the user's own needs no key, even under a known name."""
    variable = _variable(name, "BASE_URL")
    given = environment.get(variable, "").strip().rstrip("/")
    known = KNOWN.get(name)
    if known and given in ("", known.base_url):
        return known
    if not given:
        raise NotFound(
            f"There is no provider {name}; known are {', '.join(NAMES)}; for another one, set {variable} to "
            "the address of its OpenAI-compatible endpoint",
            provider=name,
        )
    return Place(given)


def _key(name: str, place: Place, environment: Mapping[str, str]) -> str | None:
    own = _variable(name, "API_KEY")
    return environment.get(own) or environment.get(place.key_variable or own.removeprefix("RECTO_")) or None


def _variable(name: str, what: str) -> str:
    return f"RECTO_{re.sub('[.-]', '_', name).upper()}_{what}"


def _told_by_server(talk: OpenAIProvider, key: str | None) -> Provider:
    """A server near us may know more about its model than any table: it is asked when the model is first needed."""
    root = talk.base_url.removesuffix("/v1")
    if talk.name == "ollama":
        return OllamaProvider(talk, NearServer(root, key))
    if talk.name == "llamacpp" or is_near(urlsplit(root).hostname or ""):
        return LlamaProvider(talk, LlamaServer(root, key))
    return talk


def is_near(host: str) -> bool:
    """On this machine or in its network: a loopback or private address, or a name without a domain."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost"))
