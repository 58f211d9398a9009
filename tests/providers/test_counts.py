"""A provider's own count of a request."""

import asyncio

import pytest
from tests.providers.conftest import Loopback, OneModel

from recto.errors import Unreachable
from recto.providers.anthropic import AnthropicProvider
from recto.providers.openai import OpenAIProvider
from recto.wire import Json

BODY = b'{"model":"claude","messages":[]}'


def counted(answer: Json, status: int = 200) -> int | None:
    async def run() -> int | None:
        async with Loopback(Loopback.error(status, answer)) as server:
            provider = AnthropicProvider("anthropic", server.url, "key", OneModel())
            try:
                return await provider.count_tokens(BODY, 5.0)
            finally:
                await provider.close()

    return asyncio.run(run())


def test_anthropic_counts_a_request() -> None:
    assert counted({"input_tokens": 123}) == 123


@pytest.mark.parametrize(
    ("answer", "status"), [({}, 200), ({"input_tokens": -3}, 200), ([], 200), ({"input_tokens": 5}, 404)]
)
def test_an_answer_without_a_count_is_no_count(answer: Json, status: int) -> None:
    with pytest.raises(Unreachable):
        counted(answer, status)


def test_openai_has_no_endpoint_for_counts() -> None:
    provider = OpenAIProvider("openai", "http://127.0.0.1:9/v1", "key", OneModel())
    assert asyncio.run(provider.count_tokens(BODY, 5.0)) is None
