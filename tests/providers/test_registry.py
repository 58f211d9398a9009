"""Providers are opened by name; what a name needs is said when it is missing."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import Loopback

from recto.errors import Invalid, NoKey, NotFound, Refused
from recto.providers.anthropic import AnthropicProvider
from recto.providers.embedded import EmbeddedProvider
from recto.providers.llama import LlamaProvider
from recto.providers.model import Done, Provider, TextPart
from recto.providers.ollama import OllamaProvider
from recto.providers.openai import OpenAIProvider
from recto.providers.registry import KNOWN, NAMES, embedding_address, open_provider, split_name
from recto.providers.scripted import ScriptedProvider
from recto.search.embedding_endpoint import EmbeddingAddress
from recto.settings.keys import KeyStore

NOWHERE = Path("/nonexistent")
BODY = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"max_tokens":2}'


def opened(name: str, **environment: str) -> Provider:
    return open_provider(name, home=NOWHERE, project=None, environment=environment)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("openai:gpt-4o", ("openai", "gpt-4o")),
        ("ollama:llama3.2:3b", ("ollama", "llama3.2:3b")),
        ("openrouter:anthropic/claude-sonnet-4.5", ("openrouter", "anthropic/claude-sonnet-4.5")),
        ("scripted:/a/b c.json", ("scripted", "/a/b c.json")),
        ("OpenAI:gpt-4o", ("openai", "gpt-4o")),
        (" embedded:smollm2 ", ("embedded", "smollm2")),
        ("smollm2", ("embedded", "smollm2")),
        ("gpt-4o", ("openai", "gpt-4o")),
        ("o3", ("openai", "o3")),
        ("claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),
        ("gemini-2.5-pro", ("gemini", "gemini-2.5-pro")),
        ("grok-4", ("xai", "grok-4")),
    ],
)
def test_a_name_is_split_into_provider_and_model(name: str, parts: tuple[str, str]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize("name", ["", ":", "openai:", ":gpt-4o", "   ", "nonsense"])
def test_a_name_that_is_none_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(Invalid, match="openai:gpt-4o-mini"):
        split_name(name)


def test_known_names_open_the_right_kind() -> None:
    assert isinstance(opened("scripted"), ScriptedProvider)
    assert isinstance(opened("embedded"), EmbeddedProvider)
    assert isinstance(opened("anthropic"), AnthropicProvider)
    assert isinstance(opened("ollama"), OllamaProvider)
    for name in ("openai", "openrouter", "groq", "mistral", "gemini", "deepseek", "together", "xai", "fireworks"):
        assert isinstance(opened(name), OpenAIProvider)
    for name in ("llamacpp", "lmstudio", "vllm"):
        assert isinstance(opened(name), LlamaProvider)
    assert all(opened(name).name == name for name in NAMES)


def test_a_server_that_should_count_is_asked_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "models.toml").write_text('["farm:*"]\ntokenizer = "server"\n["barn:x"]\nwindow = 4096\n')
    farm, barn = (
        open_provider(
            name, home=tmp_path, project=None, environment={f"RECTO_{name.upper()}_BASE_URL": "https://a.example/v1"}
        )
        for name in ("farm", "barn")
    )
    assert isinstance(farm, LlamaProvider)
    assert not isinstance(barn, LlamaProvider)


async def test_a_refused_key_is_named_by_where_it_comes_from(tmp_path: Path) -> None:
    KeyStore(tmp_path).put("WORK_API_KEY", "sk-stored-12345")
    async with Loopback(*[Loopback.error(401, {"error": "no"})] * 2) as server:
        address = {"RECTO_WORK_BASE_URL": server.url}
        for more, place in (
            ({}, "recto keys set work"),
            ({"WORK_API_KEY": "sk-other-12345"}, "the key in WORK_API_KEY"),
        ):
            provider = open_provider("work", home=tmp_path, project=None, environment=address | more)
            with pytest.raises(Refused, match=place):
                [part async for part in provider.stream(BODY, "reply")]
            await provider.close()


def test_an_unknown_name_says_which_there_are_and_what_to_set() -> None:
    with pytest.raises(NotFound) as caught:
        opened("my-box")
    assert "RECTO_MY_BOX_BASE_URL" in caught.value.message
    assert all(name in caught.value.message for name in NAMES)


@pytest.mark.parametrize("name", ["", "Open AI", "a:b", "../x", "-x", "ÖL"])
def test_a_name_that_cannot_be_a_provider_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="is not a provider name"):
        opened(name)


def test_a_known_provider_without_its_key_names_the_variable() -> None:
    async def act(name: str) -> None:
        async for _ in opened(name).stream(BODY, "reply"):
            raise AssertionError

    for name, place in KNOWN.items():
        if place.key_variable:
            with pytest.raises(NoKey, match=place.key_variable):
                asyncio.run(act(name))


def reply() -> Any:
    return Loopback.events({"choices": [{"delta": {"content": "ho"}, "finish_reason": "stop"}]}, "[DONE]")


@pytest.mark.parametrize(
    ("name", "environment", "sent"),
    [
        ("openai", {}, None),
        ("openai", {"OPENAI_API_KEY": "one"}, "Bearer one"),
        ("openai", {"OPENAI_API_KEY": "one", "RECTO_OPENAI_API_KEY": "two"}, "Bearer two"),
        ("my-box.2", {"MY_BOX_2_API_KEY": "three"}, "Bearer three"),
        ("my-box.2", {"RECTO_MY_BOX_2_API_KEY": "four"}, "Bearer four"),
        ("my-box.2", {"OPENAI_API_KEY": "one"}, None),
    ],
)
async def test_any_name_goes_to_the_address_given_with_its_own_key_or_none(
    name: str, environment: dict[str, str], sent: str | None
) -> None:
    async with Loopback(reply()) as server:
        variable = f"RECTO_{name.upper().replace('-', '_').replace('.', '_')}_BASE_URL"
        provider = opened(name, **{variable: server.url + "/"}, **environment)
        parts = [part async for part in provider.stream(BODY, "reply")]
        await provider.close()
        assert parts == [TextPart("ho"), Done("stop", None)]
        (received,) = server.received
        assert received.target == "/v1/chat/completions"
        assert received.headers.get("authorization") == sent
        assert received.body == BODY


def test_several_providers_speak_anthropics_format_each_with_its_own_key() -> None:
    names = {"RECTO_WORK_BASE_URL": "http://work/v1", "RECTO_WORK_FORMAT": "Anthropic", "WORK_API_KEY": "k"}
    names |= {"RECTO_HOME_BOX_BASE_URL": "http://box", "RECTO_HOME_BOX_FORMAT": "anthropic"}
    for name, url in (("work", "http://work/v1/messages"), ("home-box", "http://box/v1/messages")):
        provider = opened(name, **names)
        assert isinstance(provider, AnthropicProvider)
        assert (provider.name, provider.url, provider.format.name) == (name, url, "anthropic")
    assert isinstance(opened("openai", RECTO_OPENAI_FORMAT="openai"), OpenAIProvider)
    assert isinstance(opened("anthropic", RECTO_ANTHROPIC_FORMAT="openai"), OpenAIProvider)


SHOWN = {
    "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
    "capabilities": ["completion"],
}


@pytest.mark.parametrize(
    ("shown", "running", "window", "origin"),
    [
        (SHOWN, {"models": []}, 4096, "built in"),
        (SHOWN, {"models": [{"name": "m:latest", "context_length": 16384}]}, 16384, "the server"),
        (SHOWN, {"models": [{"name": "other", "context_length": 16384}]}, 4096, "built in"),
        (SHOWN | {"parameters": "stop  x\nnum_ctx    9000\n"}, {}, 9000, "the server"),
        ({"model_info": {"bert.context_length": 512}}, [], 512, "built in"),
        ({"model_info": 7, "parameters": 7, "capabilities": 7}, {"models": 7}, 4096, "built in"),
        ({}, {"models": [7, {"name": "m", "context_length": "x"}]}, 4096, "built in"),
    ],
)
async def test_ollama_is_believed_no_more_than_it_will_really_read(
    shown: object, running: object, window: int, origin: str
) -> None:
    async with Loopback(Loopback.error(200, shown), Loopback.error(200, running)) as server:
        provider = opened("ollama", RECTO_OLLAMA_BASE_URL=server.url)
        model = await provider.model("ollama:m")
        assert (model.window, model.window_from) == (window, origin)
        assert [each.target for each in server.received] == ["/api/show", "/api/ps"]
        await provider.close()


async def test_a_model_that_ollama_lacks_is_not_found() -> None:
    async with Loopback(Loopback.error(404, {"error": "model 'm' not found"})) as server:
        provider = opened("ollama", RECTO_OLLAMA_BASE_URL=server.url)
        try:
            with pytest.raises(NotFound, match="ollama pull m"):
                await provider.model("m")
        finally:
            await provider.close()


def test_opening_a_provider_loads_nothing_heavy() -> None:
    code = (
        "import sys, pathlib; from recto.providers.registry import open_provider, split_name;"
        "from recto.providers.catalog import ModelCatalog;"
        "[ModelCatalog(pathlib.Path('/x'), None).find(*name) for name in (('embedded', 'smollm2'), ('ollama', 'x'))];"
        "split_name('scripted:x'); split_name('smollm2');"
        "[open_provider(name, home=pathlib.Path('/x'), project=None, environment={}) for name in"
        " ('scripted', 'embedded', 'openai', 'ollama')];"
        "heavy = {'httpx2', 'genai_prices', 'splintr', 'xllamacpp', 'pydantic', 'numpy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        ("ollama:nomic-embed-text:v1.5", {}, EmbeddingAddress("http://127.0.0.1:11434/v1")),
        ("openai:e", {"OPENAI_API_KEY": "one"}, EmbeddingAddress("https://api.openai.com/v1", "one", "OPENAI_API_KEY")),
        (
            "OpenAI:e",
            {"RECTO_OPENAI_API_KEY": " two "},
            EmbeddingAddress("https://api.openai.com/v1", "two", "RECTO_OPENAI_API_KEY"),
        ),
        ("my-box:e", {"RECTO_MY_BOX_BASE_URL": "http://box:8080/v1/"}, EmbeddingAddress("http://box:8080/v1")),
        ("openai:e", {"RECTO_OPENAI_BASE_URL": "http://box/v1"}, EmbeddingAddress("http://box/v1")),
    ],
)
def test_vectors_are_made_where_answers_are(name: str, environment: dict[str, str], address: EmbeddingAddress) -> None:
    assert embedding_address(name, environment, Path("nowhere")) == address


@pytest.mark.parametrize(
    ("name", "environment", "kind", "because"),
    [
        ("openai:e", {}, NoKey, "OPENAI_API_KEY"),
        ("openai:e", {"OPENAI_API_KEY": "kéy"}, Refused, "copy it again"),
        ("my-box:e", {}, NotFound, "RECTO_MY_BOX_BASE_URL"),
        ("anthropic:e", {}, NotFound, "has no embeddings"),
        ("my-box:e", {"RECTO_MY_BOX_FORMAT": "anthropic"}, NotFound, "has no embeddings"),
        ("embedded:smollm2", {}, NotFound, "has no embeddings"),
        ("nonsense", {}, Invalid, "local, multilingual, minilm, none, or provider:model"),
        ("openai:", {}, Invalid, "provider:model"),
        ("a b:e", {}, Invalid, "is not a provider name"),
    ],
)
def test_who_cannot_make_vectors_is_told_why(
    name: str, environment: dict[str, str], kind: type[Exception], because: str
) -> None:
    with pytest.raises(kind, match=because):
        embedding_address(name, environment, Path("nowhere"))
