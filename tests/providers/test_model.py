"""Which parameters a model accepts, what a usage costs, and how much of a reply is read."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from itertools import repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import examples

from recto.chat.message import Usage
from recto.providers.catalog import ModelCatalog
from recto.providers.model import (
    CHARACTERS_PER_TOKEN,
    CallPart,
    Done,
    Model,
    Prices,
    ReplyLimit,
    ReplyPart,
    TextPart,
    ThinkingPart,
    accepted,
    limited,
)
from recto.providers.openai import OpenAIReader
from recto.window.request import NamedTool, Parameters, ResponseFormat

EASY = Model("acme:m", "acme", "m", None, "unknown", effort=True, adaptive_thinking=False)
ASKED = Parameters(
    max_tokens=9,
    temperature=0.5,
    tool_choice=NamedTool("look"),
    top_p=0.9,
    stop=("END",),
    response_format=ResponseFormat("json_schema", {}),
    reasoning_effort="low",
    parallel_tool_calls=False,
)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (replace(EASY, fixed_temperature=True), ("temperature", "top_p")),
        (replace(EASY, stop=False), ("stop",)),
        (replace(EASY, effort=False), ("reasoning_effort",)),
        (replace(EASY, json_schema=False), ("response_format",)),
        (replace(EASY, forced_tools=False), ("tool_choice",)),
    ],
)
def test_what_a_model_refuses_is_left_out_and_named(model: Model, names: tuple[str, ...]) -> None:
    taken, left_out = accepted(ASKED, model)
    assert left_out == names
    given = ASKED.given()
    assert taken.given() == {name: value for name, value in given.items() if name not in names}


def test_a_model_that_decides_itself_how_much_it_thinks_gets_no_budget() -> None:
    adaptive = replace(EASY, adaptive_thinking=True)
    assert accepted(Parameters(thinking_budget=2000), adaptive) == (Parameters(thinking="adaptive"), ())
    assert accepted(Parameters(thinking="adaptive"), EASY) == (Parameters(), ("thinking",))


MILLION = 1_000_000


def test_cached_input_has_a_price_of_its_own() -> None:
    usage = Usage(input=MILLION, output=100_000, cache_read=400_000, cache_write=200_000)
    assert Prices(2, 10, 0.5, 2.5).cost(usage) == pytest.approx(0.8 + 0.2 + 0.5 + 1.0)
    assert Prices(2, 10).cost(usage) == pytest.approx(3.0), "without one it is input"


def test_beyond_a_tier_all_tokens_cost_more() -> None:
    prices = Prices(1, 2, above=((100, Prices(10, 20)), (1000, Prices(100, 200))))
    assert prices.cost(Usage(100, 1)) == pytest.approx((100 + 2) / MILLION)
    assert prices.cost(Usage(101, 1)) == pytest.approx((1010 + 20) / MILLION)
    assert prices.at_most(2000, 1) == pytest.approx((200_000 + 200) / MILLION)


def test_at_most_means_all_written_to_the_cache_and_all_reasoning() -> None:
    assert Prices(2, 10, 0.5, 2.5, 20).at_most(MILLION, MILLION) == pytest.approx(22.5)
    assert Prices(2, 10, 0.5).at_most(MILLION, MILLION) == pytest.approx(12)


def test_a_project_changes_no_price_that_is_known(tmp_path: Path) -> None:
    free = "prices = { input = 0, output = 0 }\n"
    (tmp_path / ".recto").mkdir()
    (tmp_path / ".recto" / "models.toml").write_text(f'["openai:gpt-4o"]\nwindow = 999\n{free}["work:new"]\n{free}')
    found = ModelCatalog(tmp_path / "home", tmp_path).find("openai", "gpt-4o")
    assert (found.window, found.prices_from) == (999, "genai-prices")
    assert found.prices is not None
    assert found.prices.input
    assert ModelCatalog(tmp_path / "home", tmp_path).find("work", "new").prices == Prices(0.0, 0.0)


@pytest.mark.parametrize(
    ("usage", "output", "reasoning"),
    [
        ({"total_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 8}}, 20, 8),
        ({"total_tokens": 38, "completion_tokens_details": {"reasoning_tokens": 8}}, 28, 8),
        ({"total_tokens": 38}, 28, 8),
        ({"total_tokens": 5}, 20, 0),
        ({}, 20, 0),
    ],
)
def test_reasoning_that_only_the_total_tells_is_output(usage: dict[str, object], output: int, reasoning: int) -> None:
    told = {"prompt_tokens": 10, "completion_tokens": 20, **usage}
    reply = {"choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}], "usage": told}
    found = OpenAIReader().whole(reply)[-1].usage  # type: ignore[union-attr]  # the last part is Done
    assert found == Usage(10, output, reasoning=reasoning)


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


honest = st.lists(st.text(max_size=CHARACTERS_PER_TOKEN), max_size=100)


@settings(max_examples=examples(30))
@given(texts=honest, thoughts=honest, cuts=st.integers(1, 3))
def test_a_reply_of_the_tokens_that_were_asked_for_is_never_cut(
    texts: list[str], thoughts: list[str], cuts: int
) -> None:
    said = [TextPart(text[at::cuts]) for text in texts for at in range(cuts)]
    parts: list[ReplyPart] = [*map(ThinkingPart, thoughts), *said, Done("stop")]
    assert read(Endless(parts), max_tokens=len(texts)) == (parts[:-1], parts[-1])
