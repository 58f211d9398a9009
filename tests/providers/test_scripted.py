"""A script is played as it is written, and one that cannot be played says why."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recto.chat.blocks import Text
from recto.chat.message import Usage
from recto.errors import Invalid, Overflow, Unreachable
from recto.providers.model import CallPart, Done, Provider, ReplyPart, TextPart
from recto.providers.openai import OpenAIFormat
from recto.providers.scripted import ScriptedProvider
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters, Piece, Purpose

Write = Callable[[Any], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: Any) -> str:
        path = tmp_path / "script.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def pieces(path: str, *texts: str, tools: int = 0) -> list[Piece]:
    format = OpenAIFormat()
    preamble = format.preamble(path, Parameters(), "Be kind.", [Tool(f"t{n}", "Does.", {}) for n in range(tools)])
    said = [data for text in texts for data in format.entry(Entry("user", (Text(text),)), "scripted")]
    return [*preamble, *(part for data in said for part in (Piece("join", b","), Piece("message", data))),
            format.closing(Parameters())]  # fmt: skip


def body(path: str, *texts: str, tools: int = 0) -> bytes:
    return b"".join(piece.data for piece in pieces(path, *texts, tools=tools))


def play(path: str, *purposes: Purpose) -> list[list[ReplyPart]]:
    async def go() -> list[list[ReplyPart]]:
        provider: Provider = ScriptedProvider()
        return [[part async for part in provider.stream(body(path, "Hi"), purpose)] for purpose in purposes]

    return asyncio.run(go())


def said(path: str, *purposes: Purpose) -> list[str]:
    return ["".join(part.text for part in parts if isinstance(part, TextPart)) for parts in play(path, *purposes)]


def test_steps_come_in_order_and_the_last_one_repeats(write: Write) -> None:
    path = write([{"text": "one"}, {"text": "two"}])
    assert said(path, "reply", "reply", "reply", "reply") == ["one", "two", "two", "two"]


def test_a_step_for_summaries_answers_nothing_else(write: Write) -> None:
    path = write(
        [{"text": "one"}, {"text": "S1", "when": "summary"}, {"text": "two"}, {"text": "S2", "when": "summary"}]
    )
    asked: list[Purpose] = ["summary", "reply", "summary", "summary", "reply", "reply"]
    assert said(path, *asked) == ["S1", "one", "S2", "S2", "two", "two"]


def test_tool_calls_get_ids_and_keep_raw_arguments(write: Write) -> None:
    calls = [
        {"name": "look", "arguments": {"at": "Hügel"}},
        {"name": "wait", "arguments": '{"s": '},
        {"name": "go", "id": "x"},
    ]
    [parts] = play(write([{"text": "So:", "tool_calls": calls, "usage": None}]), "reply")
    assert parts[0] == TextPart("So:")
    assert parts[-1] == Done("tool_calls", None)
    found = [part for part in parts if isinstance(part, CallPart)]
    assert [(part.index, part.name) for part in found if part.name] == [(0, "look"), (1, "wait"), (2, "go")]
    assert [part.arguments for part in found if not part.name] == ['{"at":"Hügel"}', '{"s": ', "{}"]
    ids = [part.id for part in found if part.name]
    assert ids[2] == "x"
    assert all(ids)
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("step", "words"),
    [({"text": "one two three", "after": 2}, "one two"), ({"text": "one two"}, "one two"), ({"after": 2}, "word word")],
)
def test_a_stream_can_break_after_some_words(write: Write, step: dict[str, Any], words: str) -> None:
    heard: list[ReplyPart] = []

    async def go(path: str) -> None:
        async for part in ScriptedProvider().stream(body(path, "Hi"), "reply"):
            heard.append(part)

    with pytest.raises(Unreachable) as caught:
        asyncio.run(go(write([{"error": "unreachable", **step}])))
    assert caught.value.partial
    assert "".join(part.text for part in heard if isinstance(part, TextPart)) == words


def test_usage_is_what_the_meter_counts(write: Write) -> None:
    async def go(path: str) -> None:
        provider = ScriptedProvider()
        counter = await provider.counter(await provider.model(path))
        asked = pieces(path, "How are you?", "Grüße 😀", tools=2)
        counted = sum(count.tokens for count in await counter.count(asked)) + counter.priming.tokens
        parts = [part async for part in provider.stream(b"".join(piece.data for piece in asked), "reply")]
        assert parts[-1] == Done("stop", Usage(input=counted, output=6))

    asyncio.run(go(write([{"text": "tiktoken is great!"}])))


def test_every_body_is_logged_as_it_came(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    path = write([{"text": "x"}, {"error": "overflow"}])
    play(path, "reply")
    with pytest.raises(Overflow):
        play(path, "reply", "summary")
    assert log.read_bytes() == (body(path, "Hi") + b"\n") * 3


@pytest.mark.parametrize(
    ("content", "window"),
    [([{"text": "x"}], 8192), ({"limit": 600, "steps": [{"text": "x"}]}, 600), ({"steps": [{"text": "x"}]}, 8192),
     ({"limit": 0, "steps": [{"text": "x"}]}, None), ({"limit": None, "steps": [{"text": "x"}]}, None)],
)  # fmt: skip
def test_the_file_says_how_large_the_window_is(write: Write, content: Any, window: int | None) -> None:
    path = write(content)
    model = asyncio.run(ScriptedProvider().model(f"scripted:{path}"))
    assert (model.name, model.id, model.provider) == (f"scripted:{path}", path, "scripted")
    assert (model.window, model.window_from) == (window, "scripted file")
    assert (model.exact, model.tools, model.tokenizer) == (True, True, "o200k_base")


STEP = {"text": "x"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "$.steps"),
        ({"steps": []}, "$.steps"),
        ('"x"', "is not a script"),
        ({"limit": -1, "steps": [STEP]}, "$.limit"),
        ({"limits": 1, "steps": [STEP]}, "`limits`"),
        ([STEP, {"txet": "x"}], "`txet` - at `$.steps[1]`"),
        ([{}], "A step has text, tool_calls or both, or an error"),
        ([{"error": "boom"}], "$.steps[0].error"),
        ([{"text": "x", "when": "never"}], "$.steps[0].when"),
        ([{"text": "x", "delay_s": -1}], "$.steps[0].delay_s"),
        ([{"finish": "length"}], "A step has text"),
        ([{"text": "x", "usage": {"inputs": 1}}], "$.steps[0].usage"),
        ([{"tool_calls": [{"arguments": {}}]}], "$.steps[0].tool_calls[0]"),
        ({"prices": {"in": 1}, "steps": [STEP]}, "$.prices"),
    ],
)
def test_a_broken_script_says_where_it_is_wrong(write: Write, content: Any, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        asyncio.run(ScriptedProvider().model(f"scripted:{write(content)}"))
    assert says in caught.value.message
