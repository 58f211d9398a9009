"""Counts of wire pieces: exact where OpenAI's rule is known, an estimate everywhere else, and never a crash."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recto.chat.blocks import Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.providers.anthropic import AnthropicFormat
from recto.providers.attachments import ANTHROPIC_SINCE_4_7, OPENAI_IMAGE
from recto.providers.model import Model, VocabularyCounter, vocabulary
from recto.providers.openai import OpenAIFormat
from recto.sources.source import Tool
from recto.window.count import Count, estimate_message, estimate_text
from recto.window.request import Entry, Format, Parameters, Piece
from recto.wire import dumpb

GPT = Model("openai:gpt-4o", "openai", "gpt-4o", 128_000, "built in", exact=True)
CLAUDE = Model("anthropic:claude", "anthropic", "claude", 200_000, "built in", factor=1.3)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module", autouse=True)
def let_go() -> Iterator[None]:
    """A process keeps the vocabularies it has counted with: 200 MB of them, not while others are tested."""
    yield
    vocabulary.cache_clear()


def counter_of(model: Model) -> VocabularyCounter:
    return VocabularyCounter(model, AnthropicFormat() if model.provider == "anthropic" else OpenAIFormat())


def counted(model: Model, *pieces: Piece) -> list[Count]:
    return asyncio.run(counter_of(model).count(pieces))


def message(role: str, content: object, **more: object) -> Piece:
    return Piece("message", dumpb({"role": role, "content": content, **more}))


def sent(format: Format, entry: Entry) -> list[Piece]:
    return [Piece("message", data) for data in format.entry(entry, "acme")]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_plain_text_is_exact(role: str) -> None:
    assert counted(GPT, message(role, "tiktoken is great!")) == [Count(3 + 1 + 6)]


@given(TEXT)
def test_text_that_looks_like_a_control_token_is_text(text: str) -> None:
    [plain], [marked] = counted(GPT, message("user", text)), counted(GPT, message("user", f"{text}\n<|im_start|>"))
    assert marked.exact
    assert marked.tokens > plain.tokens


def test_calls_results_images_and_tools_are_estimates() -> None:
    format = OpenAIFormat()
    entries = [
        Entry("assistant", (Text("Hi"), ToolCall("c", "look", '{"at":"hill"}'))),
        Entry("tool", (ToolResult("c", "look", "a hill"),)),
        Entry("user", (Text("Hi"), Image("image/png", "A" * 100_000))),
    ]
    counts = counted(GPT, *(piece for entry in entries for piece in sent(format, entry)))
    assert not any(count.exact for count in counts)
    assert counts[2].tokens == 3 + 1 + 1 + OPENAI_IMAGE
    tools = format.preamble("m", Parameters(), "", [Tool("look", "Looks.", {}), Tool("look", "Looks.", {})])[1:3]
    first, second = counted(GPT, *tools)
    assert first == second == Count(vocabulary("o200k_base")(tools[0].data.decode()), exact=False)


def test_every_block_of_anthropics_is_counted() -> None:
    made = Made("acme", "m")
    format = AnthropicFormat()
    [base] = counted(CLAUDE, *sent(format, Entry("assistant", (Text("Hi"),))))
    for block in (Thinking("I wonder.", signature="s" * 1000, made=made), ToolCall("c", "look", '{"at":"hill"}')):
        [count] = counted(CLAUDE, *sent(format, Entry("assistant", (Text("Hi"), block))))
        assert base.tokens < count.tokens < base.tokens + 60
    [hidden] = counted(CLAUDE, *sent(format, Entry("assistant", (Thinking("", redacted="A" * 400, made=made),))))
    assert hidden.tokens >= estimate_text("A" * 400)
    [result] = counted(CLAUDE, *sent(format, Entry("tool", (ToolResult("c", "look", "word " * 100),))))
    assert result.tokens > 100
    [image] = counted(CLAUDE, *sent(format, Entry("user", (Image("image/png", "A" * 100_000),))))
    assert ANTHROPIC_SINCE_4_7[1] < image.tokens < ANTHROPIC_SINCE_4_7[1] + 20


def test_an_unknown_vocabulary_is_estimated_and_said() -> None:
    counter = counter_of(replace(GPT, tokenizer="martian"))
    before = counter.key
    text = "x" * 400
    counts = asyncio.run(counter.count([message("user", text), Piece("tool", text.encode())]))
    assert counts == [Count(estimate_message(text), exact=False), Count(estimate_text(text), exact=False)]
    assert [count.tokens for count in counts] == [107, 105]
    assert counter.note is not None
    assert "martian" in counter.note
    assert counter.key != before


def test_half_a_character_does_not_crash() -> None:
    counter = counter_of(GPT)
    broken, whole = asyncio.run(
        counter.count([Piece("message", b'{"role":"user","content":"a\\ud800b"}'), message("user", "a")])
    )
    assert broken == Count(estimate_message("a?b"), exact=False)
    assert whole.exact
    assert counter.note is not None
