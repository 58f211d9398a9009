"""Requests of clients in OpenAI's format: what our writer sends comes back the same, and what is wrong is named."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.providers import wire_values as wv

from recto.chat.blocks import File, Image, Text, Thinking, ToolCall, ToolResult
from recto.errors import Invalid
from recto.providers.client import CLIENT, ClientRequest
from recto.providers.openai import Dialect, OpenAIFormat
from recto.providers.openai_client import EFFORTS, read_openai_request
from recto.sources.source import Tool
from recto.window.request import Entry, NamedTool, Parameters, ResponseFormat

FORMAT = OpenAIFormat()
HI = {"role": "user", "content": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
LOOK = {"type": "function", "function": {"name": "look"}}
CAN = wv.Expressible(
    user=st.builds(Text, wv.TEXTS) | wv.IMAGES | wv.PDFS,
    thinks=False,
    results=st.tuples(wv.TEXTS | st.just(""), st.just(False), st.just(())),
)
FORMATS = st.sampled_from(["text", "json_object"]).map(lambda kind: ResponseFormat(kind)) | st.builds(  # type: ignore[arg-type]
    lambda name, told, schema, strict: ResponseFormat("json_schema", schema, name, told, strict),
    wv.IDS,
    wv.TEXTS | st.just(""),
    st.none() | wv.SCHEMAS,
    st.none() | st.booleans(),
)


@st.composite
def requests(draw: st.DrawFn) -> ClientRequest:
    tools = draw(wv.TOOLS)
    parameters = Parameters(
        max_tokens=draw(st.none() | st.integers(1, 10_000)),
        temperature=draw(st.none() | st.floats(0, 2)),
        tool_choice=draw(wv.tool_choices(tools)),  # type: ignore[arg-type]
        top_p=draw(st.none() | st.floats(0, 1)),
        stop=tuple(draw(st.lists(wv.TEXTS, max_size=4))),
        response_format=draw(st.none() | FORMATS),
        reasoning_effort=draw(st.none() | st.sampled_from(EFFORTS)),
        parallel_tool_calls=draw(st.none() | st.booleans()) if tools else None,
    )
    entries = draw(wv.conversations(CAN))
    if draw(st.booleans()):  # instructions between messages
        entries = (*entries, Entry("system", (Text(draw(wv.TEXTS)),)))
    return ClientRequest(draw(wv.IDS), entries, draw(wv.TEXTS | st.just("")), tools, parameters, stream=True)


@given(requests(), st.sampled_from([Dialect(), Dialect(max_tokens_field="max_completion_tokens")]))
def test_what_we_send_comes_back_the_same(request: ClientRequest, dialect: Dialect) -> None:
    assert read_openai_request(wv.sent(request, OpenAIFormat(dialect))) == request


LOST = {
    "whether a result is an error": (
        [Entry("assistant", (ToolCall("c", "look", "{}"),)), Entry("tool", (ToolResult("c", "look", "no", True),))],
        [Entry("assistant", (ToolCall("c", "look", "{}"),)), Entry("tool", (ToolResult("c", "look", "no"),))],
    ),
    "thinking": (
        [Entry("assistant", (Thinking("hm", "sign", made=wv.MADE), Text("Yes")))],
        [Entry("assistant", (Text("Yes"),))],
    ),
    "where one text ends and the next begins": (
        [Entry("user", (Text("one"), Text("two")))],
        [Entry("user", (Text("onetwo"),))],
    ),
    "that a text was a file": (
        [Entry("user", (File("a.md", "text"),))],
        [Entry("user", (Text("File a.md:\n```\ntext\n```"),))],
    ),
    "that an address was a file": (
        [Entry("user", (File("a.pdf", "", "application/pdf", url="https://x.org/a.pdf"),))],
        [Entry("user", (Text("File a.pdf: https://x.org/a.pdf"),))],
    ),
    "that an image came with a result": (
        [
            Entry("assistant", (ToolCall("c", "look", "{}"),)),
            Entry("tool", (ToolResult("c", "look", "see", attachments=(Image("image/png", "AAAA"),)),)),
        ],
        [
            Entry("assistant", (ToolCall("c", "look", "{}"),)),
            Entry("tool", (ToolResult("c", "look", "see"),)),
            Entry("user", (Text("From look (c):"), Image("image/png", "AAAA"))),
        ],
    ),
}


@pytest.mark.parametrize("what", LOST)
def test_what_the_format_has_no_place_for_is_lost(what: str) -> None:
    before, after = LOST[what]
    assert read_openai_request(wv.sent(wv.ask(*before), FORMAT)) == wv.ask(*after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Parameters(thinking_budget=2000), Parameters()),
        (Parameters(thinking="adaptive"), Parameters()),
        (
            Parameters(response_format=ResponseFormat("json_schema", {})),
            Parameters(response_format=ResponseFormat("json_schema", {}, "reply")),
        ),
    ],
)
def test_parameters_that_the_format_does_not_have_are_lost(before: Parameters, after: Parameters) -> None:
    asked = wv.ask(Entry("user", (Text("Hi"),)), parameters=before)
    assert read_openai_request(wv.sent(asked, FORMAT)) == replace(asked, parameters=after)


def read(*messages: Any, **more: Any) -> ClientRequest:
    return read_openai_request(json.dumps({"model": "m", "messages": messages, **more}).encode())


def test_instructions_that_come_first_are_the_system_prompt() -> None:
    parts = [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}]
    told = read({"role": "system", "content": "Be kind."}, {"role": "developer", "content": parts}, HI)
    assert told.system == "Be kind.\n\nBe\nbrief."
    assert told.entries == (Entry("user", (Text("Hi"),)),)


def test_results_that_come_together_are_one_entry_and_know_their_tool() -> None:
    calls = [{**CALL, "id": id} for id in ("a", "b")]
    results = [
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}],
        },
        {"role": "tool", "tool_call_id": "b", "content": "3", "name": "look"},
    ]
    _, _, together = read(HI, {"role": "assistant", "tool_calls": calls}, *results).entries
    assert together == Entry("tool", (ToolResult("a", "look", "1\n2"), ToolResult("b", "look", "3")))


def test_files_come_as_text_or_as_they_are() -> None:
    text = {"filename": "a.md", "file_data": "data:text/markdown;base64,w6k="}
    pdf = {"filename": "a.pdf", "file_data": "JVBERg=="}
    content = [{"type": "file", "file": text}, {"type": "file", "file": pdf}]
    assert read({"role": "user", "content": content}).entries[0].blocks == (
        File("a.md", "é", "text/markdown"),
        File("a.pdf", "", "application/pdf", base64="JVBERg=="),
    )


def test_tools_are_the_clients_own_and_may_be_told_apart() -> None:
    other = {
        "type": "function",
        "function": {"name": "wait", "description": "Waits.", "parameters": {}, "strict": True},
    }
    told = read(HI, tools=[LOOK, other])
    assert told.tools[0] == Tool("look", "", {"type": "object", "properties": {}}, server=CLIENT)
    named = read(HI, tools=[LOOK, other], tool_choice={"type": "function", "function": {"name": "wait"}})
    assert named.parameters.tool_choice == NamedTool("wait")


def test_what_asks_for_nothing_is_dropped_and_unknown_fields_are_passed_on() -> None:
    told = read(HI, n=1, logprobs=False, presence_penalty=0, user="me", stop=None)
    extra = {"presence_penalty": 0, "user": "me"}
    parameters = Parameters(extra=extra)
    assert told == ClientRequest("m", (Entry("user", (Text("Hi"),)),), parameters=parameters, include_usage=False)


def sends(kind: str, **told: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": kind, kind: told}]}


ZIP = "data:application/zip;base64,AAAA"
# What is wrong in a message, and where.
MESSAGES: list[tuple[Any, str]] = [
    (3, ""),
    ({"role": "owl", "content": ""}, ".role"),
    ({"content": ""}, ".role"),
    ({**HI, "content": 3}, ".content"),
    ({**HI, "content": [{"type": "input_audio"}]}, ".content[0].type"),
    ({"role": "tool", "tool_call_id": "c1", "content": ""}, ".tool_call_id"),
    ({**CALLED, "tool_calls": [{"id": "c"}]}, ".tool_calls[0].function"),
    ({**CALLED, "function_call": {}}, ".function_call"),
    (sends("image_url", url="data:image/tiff;base64,AAAA"), ".content[0].image_url.url"),
    (sends("image_url", url="data:image/png;base64,AAA"), ".content[0].image_url.url"),
    (sends("image_url", url="file:///etc/passwd"), ".content[0].image_url.url"),
    (sends("file", file_id="file-1"), ".content[0].file.file_id"),
    (sends("file", filename="a.zip", file_data=ZIP), ".content[0].file.file_data"),
]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        *(({"messages": [message]}, f"messages[0]{place}") for message, place in MESSAGES),
        ({"model": None}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": {}}, "messages"),
        ({"n": 2}, "n"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": True}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": [1]}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.name"),
        ({"tools": [{"type": "custom"}]}, "tools[0].type"),
        ({"tools": [LOOK, LOOK]}, "tools"),
        ({"tools": [LOOK], "tool_choice": "any"}, "tool_choice"),
        (
            {"tools": [LOOK], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice.function.name",
        ),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"parallel_tool_calls": True}, "parallel_tool_calls"),
        ({"logprobs": True}, "logprobs"),
        ({"functions": [{"name": "f"}]}, "functions"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as why:
        read(HI, **more)
    assert why.value.data["field"] == field
    assert why.value.message.startswith(field)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'{"a":"\\ud800"}', b'{"a":NaN}', b"[" * 100_000])
def test_what_is_no_request_at_all_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid, match="The request"):
        read_openai_request(body)


JSON = st.recursive(wv.VALUES, lambda each: st.lists(each, max_size=3) | st.dictionaries(wv.TEXTS, each, max_size=3))


@given(st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "name"]), JSON), JSON)
def test_nothing_but_invalid_is_raised(message: dict[str, Any], other: Any) -> None:
    for body in ({"model": "m", "messages": [message], "tools": other}, {"model": "m", "messages": other}):
        with suppress(Invalid):
            read_openai_request(json.dumps(body).encode())
