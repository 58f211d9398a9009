"""Anthropic's format: golden bytes, laws of the body, and its events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.conftest import OneModel

from recto.chat.blocks import Block, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.providers.anthropic import AnthropicFormat, AnthropicProvider, AnthropicReader
from recto.providers.http import ServerEvent
from recto.providers.model import CallPart, Done, ReplyPart, TextPart
from recto.sources.source import Tool
from recto.window.request import (
    MAX_MARKS,
    Entry,
    Format,
    NamedTool,
    Parameters,
    Piece,
    Request,
    ResponseFormat,
    with_marks,
)
from recto.wire import Json, dumps

FORMAT: Format = AnthropicFormat()
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
WAIT = Tool("wait", "Waits.", {})
WAITS = b'{"name":"wait","description":"Waits.","input_schema":{"type":"object","properties":{}}}'
MINE = Made("anthropic", "claude")


def entry(role: str, *blocks: Block) -> list[bytes]:
    return FORMAT.entry(Entry(role, blocks), "anthropic")  # type: ignore[arg-type]


def test_the_opening_with_tools_and_system_is_these_bytes() -> None:
    assert FORMAT.preamble("claude", Parameters(), "Be kind.", [LOOK, WAIT]) == [
        Piece("head", b'{"model":"claude","stream":true,"tools":['),
        Piece("tool", b'{"name":"look","description":"Looks.","input_schema":'
                      b'{"type":"object","properties":{"at":{"type":"string"}}}}'),
        Piece("tool", b"," + WAITS),
        Piece("join", b'],"system":['),
        Piece("system", b'{"type":"text","text":"Be kind."}'),
        Piece("join", b'],"messages":['),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "tail"),
    [
        (Parameters(), b'],"max_tokens":4096}'),
        (Parameters(512, 0.3), b'],"max_tokens":512,"temperature":0.3}'),
        (Parameters(thinking_budget=2000), b'],"max_tokens":6096,"thinking":{"type":"enabled","budget_tokens":2000}}'),
        (Parameters(9000, 0.3, 2000), b'],"max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000}}'),
        (Parameters(2000, None, 9000), b'],"max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1999}}'),
        (Parameters(512, 0.3, 9000), b'],"max_tokens":512,"temperature":0.3}'),
        (Parameters(512, tool_choice="none"), b'],"max_tokens":512,"tool_choice":{"type":"none"}}'),
        (Parameters(9, tool_choice="required"), b'],"max_tokens":9,"tool_choice":{"type":"any"}}'),
        (Parameters(9, tool_choice=NamedTool("a")), b'],"max_tokens":9,"tool_choice":{"type":"tool","name":"a"}}'),
        (
            Parameters(9, parallel_tool_calls=False),
            b'],"max_tokens":9,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}',
        ),
        (Parameters(9, top_p=0.5, stop=("END",)), b'],"max_tokens":9,"top_p":0.5,"stop_sequences":["END"]}'),
        (
            Parameters(9, 0.3, thinking="adaptive"),
            b'],"max_tokens":9,"thinking":{"type":"adaptive","display":"summarized"}}',
        ),
        (
            Parameters(9, 0.3, thinking="disabled"),
            b'],"max_tokens":9,"thinking":{"type":"disabled"},"temperature":0.3}',
        ),
        (
            Parameters(9, reasoning_effort="high", response_format=ResponseFormat("json_schema", {"type": "object"})),
            b'],"max_tokens":9,"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}}}',
        ),
    ],
)
def test_the_closing_always_has_max_tokens_and_a_budget_below_it(parameters: Parameters, tail: bytes) -> None:
    assert FORMAT.closing(parameters) == Piece("tail", tail)


def test_an_assistants_own_thinking_goes_back_with_its_signature() -> None:
    blocks = (
        Thinking("Hm.", signature="sig", made=MINE),
        Thinking("", redacted="secret", made=MINE),
        Text("Let me see."),
        ToolCall("c1", "look", '{"at": "hill"}'),
    )
    [data] = entry("assistant", *blocks)
    assert data == (
        b'{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},'
        b'{"type":"redacted_thinking","data":"secret"},{"type":"text","text":"Let me see."},'
        b'{"type":"tool_use","id":"c1","name":"look","input":{"at":"hill"}}]}'
    )


@pytest.mark.parametrize(
    "foreign",
    [
        Thinking("Hm.", signature="sig"),
        Thinking("Hm.", signature="sig", made=Made("other", "m")),
        Thinking("", redacted="secret", made=Made("other", "m")),
        Thinking("Hm.", made=MINE),
    ],
)
def test_thinking_that_is_not_proven_its_own_stays_out(foreign: Thinking) -> None:
    assert entry("assistant", foreign) == []
    assert entry("assistant", foreign, Text("Yes.")) == [
        b'{"role":"assistant","content":[{"type":"text","text":"Yes."}]}'
    ]


def test_the_results_of_a_round_are_one_user_message() -> None:
    results = (
        ToolResult("c1", "look", "a hill"),
        ToolResult("c2", "wait", "too long", is_error=True),
        ToolResult("c3", "x", ""),
    )
    [data] = entry("tool", *results)
    assert data == (
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a hill"},'
        b'{"type":"tool_result","tool_use_id":"c2","content":"too long","is_error":true},'
        b'{"type":"tool_result","tool_use_id":"c3"}]}'
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
ARGUMENTS = VALUES.map(json.dumps) | TEXT
BLOCKS = st.lists(
    st.builds(Text, TEXT)
    | st.builds(ToolCall, TEXT, TEXT, ARGUMENTS)
    | st.builds(ToolResult, TEXT, TEXT, TEXT, st.booleans())
    | st.builds(Thinking, TEXT, st.none() | TEXT, st.none() | TEXT, st.sampled_from([None, MINE])),
    max_size=4,
).map(tuple)
ENTRIES = st.lists(st.builds(Entry, st.sampled_from(["user", "assistant", "tool"]), BLOCKS), max_size=5)
TOOLS = st.lists(st.builds(Tool, TEXT, TEXT, st.dictionaries(TEXT, TEXT, max_size=2)), max_size=3)
PARAMETERS = st.builds(
    Parameters, st.none() | st.integers(1, 10**5), st.none() | st.floats(0, 1), st.none() | st.integers(0, 10**5)
)


@given(TEXT, TOOLS, ENTRIES, PARAMETERS)
def test_every_body_is_json_that_the_api_takes(
    system: str, tools: list[Tool], entries: list[Entry], parameters: Parameters
) -> None:
    preamble = FORMAT.preamble("m", parameters, system, tools)
    messages = [data for entry in entries for data in FORMAT.entry(entry, "anthropic")]
    data = b"".join(piece.data for piece in preamble) + b",".join(messages) + FORMAT.closing(parameters).data
    parsed = json.loads(data)
    assert len(parsed["messages"]) == len(messages)
    assert len(parsed.get("tools", [])) == len(tools)
    assert [item["text"] for item in parsed.get("system", [])] == [system] * bool(system)
    assert parsed["max_tokens"] > parsed.get("thinking", {"budget_tokens": 0})["budget_tokens"]
    for message in parsed["messages"]:
        for item in message["content"]:
            assert item["type"] != "text" or item["text"].strip()
            assert item["type"] != "tool_use" or isinstance(item["input"], dict)
    assert b"\n" not in data


MARK = {"cache_control": {"type": "ephemeral"}}


def request(pieces: tuple[Piece, ...]) -> Request:
    return Request("r", "c", "reply", "anthropic:m", "anthropic", {}, pieces, mark_bytes=FORMAT.mark_bytes)


def sent(*pieces: Piece) -> Json:
    """What the API reads when all of these pieces are with_marks."""
    return json.loads(
        b"".join(piece.sent(FORMAT.mark_bytes) for piece in with_marks(pieces, range(len(pieces)), FORMAT))
    )


def test_thinking_is_never_marked() -> None:
    thought, secret = Thinking('H"m\n\0ä😀', signature="sig", made=MINE), Thinking("", redacted="secret", made=MINE)
    [data] = entry("assistant", thought, Text("Yes."), secret, thought)
    before, text, *after = sent(Piece("message", data))["content"]
    assert text == {"type": "text", "text": "Yes.", **MARK}
    assert [before, *after] == [item for item in json.loads(data)["content"] if item["type"] != "text"]
    [data] = entry("assistant", thought, secret)
    assert FORMAT.mark_place(Piece("message", data)) is None


@given(TEXT, TOOLS, ENTRIES, PARAMETERS, st.data())
def test_marks_change_nothing_but_where_they_stand(
    system: str, tools: list[Tool], entries: list[Entry], parameters: Parameters, data: st.DataObject
) -> None:
    wires = [wire for entry in entries for wire in FORMAT.entry(entry, "anthropic")]
    said = [Piece("message", b"," * (number > 0) + wire) for number, wire in enumerate(wires)]
    plain = (*FORMAT.preamble("m", parameters, system, tools), *said, FORMAT.closing(parameters))
    places = data.draw(st.lists(st.integers(0, len(plain) - 1)))
    pieces = with_marks(plain, places, FORMAT)
    body = request(pieces).body
    allowed = [place for place in set(places) if FORMAT.mark_place(plain[place]) is not None]
    assert body.count(FORMAT.mark_bytes) == min(len(allowed), MAX_MARKS)
    assert body.replace(FORMAT.mark_bytes, b"") == request(plain).body
    assert [piece.sha256 for piece in pieces] == [piece.sha256 for piece in plain]
    assert request(pieces).beginning(len(plain)) == request(plain).beginning(len(plain))
    assert with_marks(pieces, [], FORMAT) == plain
    blocks = [item for message in json.loads(body)["messages"] for item in message["content"]]
    assert not any("cache_control" in item for item in blocks if item["type"] in ("thinking", "redacted_thinking"))


def read(*payloads: Json) -> list[ReplyPart]:
    reader = AnthropicReader()
    return [part for payload in payloads for part in reader.read(ServerEvent(dumps(payload), payload["type"]))]


def start(index: int, kind: str, **fields: Json) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def ends(reason: str, **usage: int) -> tuple[Json, Json]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}


def begins(**usage: int) -> Json:
    return {"type": "message_start", "message": {"id": "x", "content": [], "usage": usage}}


def test_usage_counts_all_input_cached_or_not() -> None:
    first = begins(input_tokens=10, cache_read_input_tokens=100, cache_creation_input_tokens=20, output_tokens=1)
    assert read(first, {"type": "ping"}, *ends("end_turn", output_tokens=7)) == [
        Done("stop", Usage(input=130, output=7, cache_read=100, cache_write=20))
    ]


def test_parallel_calls_are_numbered_among_calls_only() -> None:
    parts = read(
        start(0, "text", text="Both."),
        stop(0),
        start(1, "tool_use", id="a", name="look", input={}),
        delta(1, "input_json_delta", partial_json=""),
        delta(1, "input_json_delta", partial_json='{"at":'),
        delta(1, "input_json_delta", partial_json='"hill"}'),
        stop(1),
        start(2, "tool_use", id="b", name="wait", input={}),
        stop(2),
        *ends("tool_use"),
    )
    assert parts == [
        TextPart("Both."),
        CallPart(0, "a", "look"),
        CallPart(0, arguments='{"at":'),
        CallPart(0, arguments='"hill"}'),
        CallPart(1, "b", "wait"),
        CallPart(1, arguments="{}"),
        Done("tool_calls"),
    ]


@pytest.mark.parametrize("base_url", ["https://host", "https://host/", "https://host/v1", "https://host/v1/"])
def test_the_version_in_the_address_is_optional(base_url: str) -> None:
    assert AnthropicProvider("anthropic", base_url, "k", OneModel()).url == "https://host/v1/messages"
