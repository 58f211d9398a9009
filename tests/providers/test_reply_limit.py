"""ReplyLimit: an honest reply is never cut, and one without end always is."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.providers.model import (
    CHARACTERS_PER_TOKEN,
    CallPart,
    Done,
    ReplyLimit,
    ReplyPart,
    TextPart,
    ThinkingPart,
    limited,
)

LIMIT = ReplyLimit(characters=20_000, calls=5)


class Endless:
    """A provider that goes on; `is_closed` once nobody reads it any more."""

    def __init__(self, parts: Iterable[ReplyPart]) -> None:
        self._parts, self.is_closed = parts, False

    async def stream(self) -> AsyncGenerator[ReplyPart]:
        try:
            for part in self._parts:
                yield part
        finally:
            self.is_closed = True


def read(provider: Endless, max_tokens: int | None = None, limit: ReplyLimit = LIMIT) -> tuple[list[ReplyPart], Done]:
    async def gather() -> list[ReplyPart]:
        return [part async for part in limited(provider.stream(), limit, max_tokens)]

    *parts, done = asyncio.run(gather())
    assert isinstance(done, Done)
    return parts, done


@pytest.mark.parametrize(
    ("part", "tokens", "most"),
    [
        (TextPart("word "), 100, 100 * CHARACTERS_PER_TOKEN),
        (TextPart("word "), None, LIMIT.characters),
        (TextPart(""), None, 0),
        (ThinkingPart("hm "), 100, LIMIT.characters),
        (ThinkingPart("", redacted="x" * 50), None, 0),
        (CallPart(0, arguments='"a": 1, '), 100, 0),
        (CallPart(0), None, 0),
    ],
)
def test_a_part_that_comes_for_ever_ends_the_reply(part: ReplyPart, tokens: int | None, most: int) -> None:
    provider = Endless(repeat(part))
    parts, done = read(provider, tokens)
    assert done.finish == "length"
    assert done.note.startswith("The reply was cut off here: ")
    assert sum(len(each.text) for each in parts if isinstance(each, TextPart | ThinkingPart)) == most
    assert provider.is_closed


def test_of_one_part_that_is_too_large_the_beginning_is_kept() -> None:
    parts, done = read(Endless([TextPart("ab" * 50_000), Done("stop")]))
    assert parts == [TextPart("ab" * 10_000)]
    assert "longer than 20,000 characters (reply.max_characters)" in done.note


def test_too_many_tool_calls_end_the_reply() -> None:
    calls = (CallPart(index, f"call_{index}", "look", "{}") for index in range(20_000))
    parts, done = read(Endless(calls))
    assert len(parts) == LIMIT.calls
    assert "more than 5 tools (tools.call_limit)" in done.note


honest = st.lists(st.text(max_size=CHARACTERS_PER_TOKEN), max_size=100)


@settings(max_examples=examples(30))
@given(texts=honest, thoughts=honest, cuts=st.integers(1, 3))
def test_a_reply_of_the_tokens_that_were_asked_for_is_never_cut(
    texts: list[str], thoughts: list[str], cuts: int
) -> None:
    said = [TextPart(text[at::cuts]) for text in texts for at in range(cuts)]
    parts: list[ReplyPart] = [*map(ThinkingPart, thoughts), *said, Done("stop")]
    assert read(Endless(parts), max_tokens=len(texts)) == (parts[:-1], parts[-1])
