"""OpenAI's format: golden bytes, laws of the body, and the streams of servers that each do it their own way."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.conftest import Loopback, OneModel

from recto.chat.blocks import Block, Compaction, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.errors import Invalid, Unreachable
from recto.providers.http import ServerEvent
from recto.providers.model import CallPart, Done, ReplyPart, TextPart, ThinkingPart
from recto.providers.openai import Dialect, OpenAIFormat, OpenAIProvider, OpenAIReader
from recto.sources.source import Tool
from recto.window.calibration import is_believable
from recto.window.request import Entry, Format, NamedTool, Parameters, Piece, ResponseFormat
from recto.wire import Json, dumps, loads

FORMAT: Format = OpenAIFormat()
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
WAIT = Tool("wait", "Waits.", {})


def body(
    system: str,
    tools: list[Tool],
    entries: list[Entry],
    parameters: Parameters,
    model: str = "m",
    format: Format = FORMAT,
) -> bytes:
    """As the window joins it: a comma before each message but the first of the list."""
    preamble = format.preamble(model, parameters, system, tools)
    messages = [data for entry in entries for data in format.entry(entry, "acme")]
    first = b"," if format.opened(system) and messages else b""
    joined = b"".join(piece.data for piece in preamble) + first + b",".join(messages)
    return joined + format.closing(parameters).data


def entry(role: str, *blocks: Block) -> list[bytes]:
    return FORMAT.entry(Entry(role, blocks), "acme")  # type: ignore[arg-type]


def test_the_opening_with_tools_and_system_is_these_bytes() -> None:
    assert FORMAT.preamble("gpt-x", Parameters(), "Be kind.", [LOOK, WAIT]) == [
        Piece("head", b'{"model":"gpt-x","stream":true,"stream_options":{"include_usage":true},"tools":['),
        Piece("tool", b'{"type":"function","function":{"name":"look","description":"Looks.","parameters":'
                      b'{"type":"object","properties":{"at":{"type":"string"}}}}}'),
        Piece("tool", b',{"type":"function","function":{"name":"wait","description":"Waits.","parameters":'
                      b'{"type":"object","properties":{}}}}'),
        Piece("join", b'],"messages":['),
        Piece("system", b'{"role":"system","content":"Be kind."}'),
    ]  # fmt: skip


def test_the_closing_holds_what_was_given_and_nothing_else() -> None:
    assert FORMAT.closing(Parameters()) == Piece("tail", b"]}")
    assert FORMAT.closing(Parameters(512, 0.3, 1024)).data == b'],"max_tokens":512,"temperature":0.3}'
    assert FORMAT.closing(Parameters(temperature=0)).data == b'],"temperature":0}'
    assert FORMAT.closing(Parameters(9, tool_choice="none")).data == b'],"max_tokens":9,"tool_choice":"none"}'
    shaped = ResponseFormat("json_schema", {"type": "object"}, strict=True)
    asked = Parameters(tool_choice=NamedTool("look"), top_p=0.5, stop=("END",), response_format=shaped)
    assert loads(b"{" + FORMAT.closing(asked).data.removeprefix(b"],")) == {
        "tool_choice": {"type": "function", "function": {"name": "look"}},
        "top_p": 0.5,
        "stop": ["END"],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object"}, "strict": True},
        },
    }
    asked = Parameters(response_format=ResponseFormat("json_object"), reasoning_effort="low", parallel_tool_calls=False)
    assert FORMAT.closing(asked).data == (
        b'],"response_format":{"type":"json_object"},"reasoning_effort":"low","parallel_tool_calls":false}'
    )


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.openai.com/v1", Dialect("max_completion_tokens")),
        ("https://api.mistral.ai/v1/", Dialect(asks_usage=False)),
        ("http://localhost:11434/v1", Dialect()),
    ],
)
def test_a_provider_knows_its_dialect_by_its_address(url: str, dialect: Dialect) -> None:
    def sent(format: Format) -> bytes:
        return body("", [], [], Parameters(9), format=format)

    assert sent(OpenAIProvider("acme", url, None, OneModel()).format) == sent(OpenAIFormat(dialect))
    told = Dialect("other")
    assert sent(OpenAIProvider("acme", url, None, OneModel(), dialect=told).format) == sent(OpenAIFormat(told))


def test_a_file_is_fenced_under_its_name() -> None:
    [data] = entry("user", Text("See:"), File("a\nb.md", "one\n```\ntwo"), Text("Well?"))
    assert json.loads(data)["content"] == "See:\n\nFile a b.md:\n````\none\n```\ntwo\n````\n\nWell?"


def test_an_assistants_calls_keep_their_raw_arguments_and_its_thinking_stays_out() -> None:
    blocks = (
        Thinking("hm", signature="s"),
        Text("Let me see."),
        ToolCall("c1", "look", '{"at": 1}'),
        ToolCall("c2", "wait", ""),
    )
    [data] = entry("assistant", *blocks)
    assert data == (
        b'{"role":"assistant","content":"Let me see.","tool_calls":['
        b'{"id":"c1","type":"function","function":{"name":"look","arguments":"{\\"at\\": 1}"}},'
        b'{"id":"c2","type":"function","function":{"name":"wait","arguments":"{}"}}]}'
    )


COMPACTION = Compaction(1, "now", None, "sum", 0, 0, 0, "model", "full")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
SCHEMAS = st.dictionaries(TEXT, VALUES, max_size=3)
TOOLS = st.lists(st.builds(Tool, TEXT, TEXT, SCHEMAS), max_size=4)
CALLS = st.builds(ToolCall, TEXT, TEXT, VALUES.map(dumps) | TEXT)
RESULTS = st.builds(ToolResult, TEXT, TEXT, TEXT, st.booleans())
THOUGHTS = st.builds(Thinking, TEXT, st.none() | TEXT, st.none() | TEXT, st.none() | st.just(Made("acme", "m")))
IMAGES = st.builds(Image, st.just("image/png"), st.just("AAAA"))
BLOCKS = st.lists(
    st.builds(Text, TEXT) | CALLS | RESULTS | st.builds(File, TEXT, TEXT) | IMAGES | THOUGHTS, max_size=4
).map(tuple)
ENTRIES = st.lists(st.builds(Entry, st.sampled_from(["user", "assistant", "tool"]), BLOCKS), max_size=5)
PARAMETERS = st.builds(
    Parameters, st.none() | st.integers(1, 10**6), st.none() | st.floats(0, 2), st.none() | st.integers(0, 10**5)
)


@given(TEXT, TOOLS, ENTRIES, PARAMETERS, TEXT)
def test_every_body_is_json_and_has_no_newline(
    system: str, tools: list[Tool], entries: list[Entry], parameters: Parameters, model: str
) -> None:
    data = body(system, tools, entries, parameters, model)
    parsed = json.loads(data)
    assert parsed["model"] == model
    assert [tool["function"]["name"] for tool in parsed.get("tools", [])] == [tool.name for tool in tools]
    sent = [data for entry in entries for data in FORMAT.entry(entry, "acme")]
    assert parsed["messages"][bool(system) :] == [json.loads(data) for data in sent]
    assert b"\n" not in data
    assert b"\r" not in data


@given(TEXT, TOOLS, ENTRIES, PARAMETERS, PARAMETERS)
def test_a_body_without_its_closing_is_a_prefix_of_the_next(
    system: str, tools: list[Tool], entries: list[Entry], before: Parameters, after: Parameters
) -> None:
    bodies = [body(system, tools, entries[:number], after) for number in range(len(entries) + 1)]
    tail = FORMAT.closing(after).data
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(tail))
    assert body(system, tools, entries, before).startswith(bodies[-1].removesuffix(tail))


def read(*payloads: Json) -> list[ReplyPart]:
    reader = OpenAIReader()
    datas = [payload if isinstance(payload, str) else dumps(payload) for payload in payloads]
    return [part for data in datas for part in reader.read(ServerEvent(data))]


def delta(finish: str | None = None, **fields: Json) -> Json:
    return {"id": "x", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}], "usage": None}


def call(index: int | None = None, id: str | None = None, name: str | None = None, arguments: Json = None) -> Json:
    given = {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}
    return {name: value for name, value in given.items() if value is not None}


def test_usage_comes_with_what_was_cached() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}}
    parts = read(delta(content="Hi"), delta("stop"), {"choices": [], "usage": usage}, "[DONE]")
    assert parts == [TextPart("Hi"), Done("stop", Usage(input=100, output=7, cache_read=64))]


@pytest.mark.parametrize("usage", ["many", [1], {"prompt_tokens": -5}, {"prompt_tokens": "12"}, {"prompt_tokens": 1.5}])
def test_a_usage_that_cannot_be_read_is_one_that_nobody_believes(usage: Json) -> None:
    [done] = read(delta("stop"), {"choices": [], "usage": usage}, "[DONE]")
    assert isinstance(done, Done)
    assert done.usage is not None
    assert not is_believable(done.usage)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_is_read_under_both_of_its_names(field: str) -> None:
    assert read(delta(**{field: "Hm."}), delta(content="Yes.")) == [ThinkingPart("Hm."), TextPart("Yes.")]


def test_parallel_calls_are_told_apart_by_their_index() -> None:
    parts = read(
        delta(tool_calls=[call(0, "a", "look", "")]),
        delta(tool_calls=[call(0, arguments='{"at":')]),
        delta(tool_calls=[call(1, "b", "wait", "")]),
        delta(tool_calls=[call(0, arguments="1}"), call(1, arguments="{}")]),
        delta("tool_calls"),
        "[DONE]",
    )
    assert parts == [
        CallPart(0, "a", "look"),
        CallPart(0, arguments='{"at":'),
        CallPart(1, "b", "wait"),
        CallPart(0, arguments="1}"),
        CallPart(1, arguments="{}"),
        Done("tool_calls"),
    ]


def test_whole_calls_without_an_index_are_calls_of_their_own() -> None:
    calls = [call(None, "a", "look", "{}"), call(None, "b", "look", "{}")]
    parts = read(delta(tool_calls=calls), delta(tool_calls=[call(None, "c", "look", "{}")]), delta("stop"), "[DONE]")
    assert [part for part in parts if isinstance(part, CallPart)] == [
        CallPart(0, "a", "look", "{}"),
        CallPart(1, "b", "look", "{}"),
        CallPart(2, "c", "look", "{}"),
    ]
    assert parts[-1] == Done("tool_calls")


def test_calls_that_all_claim_index_0_are_told_apart_by_their_ids() -> None:
    parts = read(delta(tool_calls=[call(0, "a", "look", '{"at":1}')]), delta(tool_calls=[call(0, "b", "look", "{")]),
                 delta(tool_calls=[call(0, arguments="}")]))  # fmt: skip
    assert parts == [CallPart(0, "a", "look", '{"at":1}'), CallPart(1, "b", "look", "{"), CallPart(1, arguments="}")]


def test_ids_and_names_that_are_no_text_become_text() -> None:
    calls = [{"index": 0, "id": 0, "function": {"name": 5, "arguments": "{}"}}, {"index": 1, "id": "a\ud800"}]
    first, second = read(delta(tool_calls=calls))
    assert first == CallPart(0, "0", "5", "{}")
    assert second == CallPart(1, "a\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("url", ["", "localhost:8080/v1", "ftp://host/v1", "http://", "http://[::1"])
def test_an_address_that_is_none_is_invalid(url: str) -> None:
    with pytest.raises(Invalid, match="base_url of acme"):
        OpenAIProvider("acme", url, None, OneModel())


async def test_an_error_that_llama_cpp_reports_in_its_own_field_is_raised() -> None:
    chunks = f"data: {dumps(delta(content='Hi'))}\n\n".encode(), b'error: {"code":500,"message":"gone"}\n\n'
    async with Loopback(Loopback.stream(*chunks)) as server:
        provider = OpenAIProvider("acme", server.url, None, OneModel())
        with pytest.raises(Unreachable, match="gone") as caught:
            [part async for part in provider.stream(b'{"model":"m"}', "reply")]
        assert caught.value.partial
        await provider.close()


def test_thinking_inside_a_list_of_parts_is_read() -> None:
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    assert read(delta(content=content)) == [ThinkingPart("Hm."), TextPart("Yes.")]
