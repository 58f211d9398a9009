"""Gemini's own form of a request, in which its tokens are counted."""

import asyncio
import json

import pytest
from tests.providers.conftest import Loopback, OneModel

from recto.chat.blocks import File, Image, Text, ToolCall, ToolResult
from recto.errors import Unreachable
from recto.providers.anthropic import AnthropicProvider
from recto.providers.openai import GeminiProvider, OpenAIFormat, OpenAIProvider
from recto.providers.remote import RemoteProvider
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters
from recto.wire import Json

LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
ENTRIES = [
    Entry(
        "user", (Text("What is this?"), Image("image/png", "aGk="), File("a.pdf", "", "application/pdf", base64="aGk="))
    ),
    Entry("assistant", (Text("I look."), ToolCall("c1", "look", '{"at":"sea"}'))),
    Entry("tool", (ToolResult("c1", "look", "waves"),)),
]


def body() -> bytes:
    pieces = [piece.data for piece in OpenAIFormat().preamble("gemini-x", Parameters(), "Be kind.", [LOOK])]
    messages = [data for entry in ENTRIES for data in OpenAIFormat().entry(entry, "gemini")]
    opened = b"," if OpenAIFormat().opened("Be kind.") else b""
    return b"".join(pieces) + opened + b",".join(messages) + OpenAIFormat().closing(Parameters(max_tokens=9)).data


def counted(provider: RemoteProvider) -> int | None:
    async def run() -> int | None:
        try:
            return await provider.count_tokens(body(), 5.0)
        finally:
            await provider.close()

    return asyncio.run(run())


def asked(
    answer: Json, status: int = 200, key: str | None = "key", path: str = "/openai"
) -> tuple[int | None, Loopback]:
    async def run() -> tuple[int | None, Loopback]:
        async with Loopback(Loopback.error(status, answer)) as server:
            provider = GeminiProvider("gemini", server.url + path, key, OneModel())
            try:
                return await provider.count_tokens(body(), 5.0), server
            finally:
                await provider.close()

    return asyncio.run(run())


def test_a_request_is_counted_in_geminis_own_form() -> None:
    count, server = asked({"totalTokens": 123})
    (received,) = server.received
    assert (count, received.target) == (123, "/v1/models/gemini-x:countTokens")
    assert received.headers["x-goog-api-key"] == "key"
    assert "authorization" not in received.headers
    told = json.loads(received.body)["generateContentRequest"]
    assert told["model"] == "models/gemini-x"
    assert told["systemInstruction"] == {"parts": [{"text": "Be kind."}]}
    assert told["contents"] == [
        {"role": "user", "parts": [
            {"text": "What is this?"},
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
        ]},
        {"role": "model", "parts": [{"text": "I look."}, {"functionCall": {"name": "look", "args": {"at": "sea"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "waves"}}}]},
    ]  # fmt: skip
    (declared,) = told["tools"][0]["functionDeclarations"]
    assert declared["name"] == "look"
    assert declared["parametersJsonSchema"]["properties"] == {"at": {"type": "string"}}


def test_without_a_key_or_at_another_address_nobody_is_asked() -> None:
    for key, path in ((None, "/openai"), ("", "/openai"), ("key", "")):
        count, server = asked({"totalTokens": 123}, key=key, path=path)
        assert (count, server.received) == (None, [])


@pytest.mark.parametrize(
    ("answer", "status"),
    [({}, 200), ({"totalTokens": -3}, 200), ({"totalTokens": "many"}, 200), ([], 200), ({"totalTokens": 5}, 404)],
)
def test_an_answer_without_a_count_is_no_count(answer: Json, status: int) -> None:
    with pytest.raises(Unreachable):
        asked(answer, status)


def test_a_server_that_is_silent_is_not_waited_for() -> None:
    async def run() -> None:
        async with Loopback(Loopback.nothing("hanging")) as server:
            provider = AnthropicProvider("anthropic", server.url, "key", OneModel())
            try:
                await provider.count_tokens(b'{"model":"claude","messages":[]}', 0.05)
            finally:
                await provider.close()

    with pytest.raises(Unreachable):
        asyncio.run(run())


def test_openai_has_no_endpoint_for_counts() -> None:
    assert counted(OpenAIProvider("openai", "http://127.0.0.1:9/v1", "key", OneModel())) is None
