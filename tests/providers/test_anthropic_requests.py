"""Requests of clients in Anthropic's format: what our writer sends comes back the same, and what is wrong is named."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.providers import wire_values as wv

from recto.chat.blocks import Block, File, Text, Thinking, ToolCall, ToolResult
from recto.errors import Invalid
from recto.providers.anthropic import AnthropicFormat
from recto.providers.anthropic_client import EFFORTS, read_anthropic_request
from recto.providers.client import ClientRequest
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters, ResponseFormat

FORMAT = AnthropicFormat()
HI = {"role": "user", "content": "Hi"}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
CALLED = {"role": "assistant", "content": [CALL]}
LOOK = {"name": "look", "input_schema": {"type": "object"}}
ATTACHED = st.lists(wv.IMAGES | wv.PDFS | wv.LINKED_PDFS, max_size=2).map(tuple)
CAN = wv.Expressible(
    user=st.builds(Text, wv.TEXTS) | wv.IMAGES | wv.PDFS | wv.LINKED_PDFS,
    thinks=True,
    results=st.tuples(wv.TEXTS | st.just(""), st.booleans(), ATTACHED),
)


@st.composite
def parameters(draw: st.DrawFn, tools: tuple[Tool, ...]) -> Parameters:
    most = draw(st.integers(1100, 10_000))
    asked = Parameters(
        max_tokens=most,
        stop=tuple(draw(st.lists(wv.TEXTS, max_size=5))),
        response_format=draw(st.none() | wv.SCHEMAS.map(lambda schema: ResponseFormat("json_schema", schema))),
        reasoning_effort=draw(st.none() | st.sampled_from(EFFORTS)),
        tool_choice=draw(wv.tool_choices(tools)),  # type: ignore[arg-type]
    )
    if asked.tool_choice not in (None, "none"):
        asked = replace(asked, parallel_tool_calls=draw(st.none() | st.booleans()))
    if draw(st.booleans()):
        return replace(asked, thinking_budget=draw(st.integers(1024, most - 1)))
    asked = replace(asked, thinking=draw(st.sampled_from([None, "disabled", "adaptive", "between_tools"])))
    if asked.thinking in (None, "disabled"):
        numbers = st.none() | st.floats(0, 1)
        asked = replace(asked, temperature=draw(numbers), top_p=draw(numbers))
    return asked


@st.composite
def requests(draw: st.DrawFn) -> ClientRequest:
    tools = draw(wv.TOOLS)
    system, entries = draw(wv.TEXTS | st.just("")), draw(wv.conversations(CAN))
    return ClientRequest(draw(wv.IDS), entries, system, tools, draw(parameters(tools)), stream=True)


@given(requests())
def test_what_we_send_comes_back_the_same(request: ClientRequest) -> None:
    assert read_anthropic_request(wv.sent(request, FORMAT), wv.MADE) == request


LOST: dict[str, tuple[Entry, Entry]] = {
    "that a text was a file": (
        Entry("user", (File("a.md", "text"),)),
        Entry("user", (Text("File a.md:\n```\ntext\n```"),)),
    ),
    "that the system said it between messages": (Entry("system", (Text("Now"),)), Entry("user", (Text("Now"),))),
    "thinking that nobody signed": (
        Entry("assistant", (Thinking("hm", made=wv.MADE), Text("Yes"))),
        Entry("assistant", (Text("Yes"),)),
    ),
    "arguments that are no object": (
        Entry("assistant", (ToolCall("c", "look", "[1"),)),
        Entry("assistant", (ToolCall("c", "look", "{}"),)),
    ),
    "signs in ids": (
        Entry("assistant", (ToolCall("c:1", "look", "{}"),)),
        Entry("assistant", (ToolCall("7c9d30055", "look", "{}"),)),
    ),
    "blank texts": (Entry("user", (Text(" "), Text("Hi"))), Entry("user", (Text("Hi"),))),
}


@pytest.mark.parametrize("what", LOST)
def test_what_the_format_has_no_place_for_is_lost(what: str) -> None:
    before, after = (wv.ask(entry, parameters=Parameters(9)) for entry in LOST[what])
    assert read_anthropic_request(wv.sent(before, FORMAT), wv.MADE) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Parameters(), Parameters(4096)),
        (Parameters(2000, 0.5, 1024, top_p=0.5), Parameters(2000, None, 1024)),
        (Parameters(9, reasoning_effort="minimal"), Parameters(9, reasoning_effort="low")),
        (Parameters(9, response_format=ResponseFormat("json_object")), Parameters(9)),
        (
            Parameters(9, response_format=ResponseFormat("json_schema", {}, "name", "told", True)),
            Parameters(9, response_format=ResponseFormat("json_schema", {})),
        ),
    ],
)
def test_parameters_that_the_format_does_not_have_are_lost(before: Parameters, after: Parameters) -> None:
    asked = wv.ask(Entry("user", (Text("Hi"),)), parameters=before)
    assert read_anthropic_request(wv.sent(asked, FORMAT)) == replace(asked, parameters=after)


def read(*messages: Any, **more: Any) -> ClientRequest:
    return read_anthropic_request(json.dumps({"model": "m", "max_tokens": 9, "messages": messages, **more}).encode())


def shown(*content: Any) -> tuple[Block, ...]:
    return read({"role": "user", "content": content}).entries[0].blocks


def test_instructions_are_one_text() -> None:
    parts = [
        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "!"},
    ]
    assert read(HI, system="Be kind.").system == "Be kind."
    assert read(HI, system=parts).system == "Be kind.\n\n!"
    assert read(HI, {"role": "system", "content": "Now"}).entries[1] == Entry("system", (Text("Now"),))


def test_results_are_not_said_by_a_user() -> None:
    content = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": content, "is_error": True}
    answer = {"role": "user", "content": [result, {"type": "text", "text": "Go on"}]}
    _, _, tool, user = read(HI, CALLED, answer).entries
    assert tool == Entry("tool", (ToolResult("c1", "look", "one\ntwo", True),))
    assert user == Entry("user", (Text("Go on"),))


def test_documents_come_as_text_or_as_they_are() -> None:
    text = {"type": "text", "media_type": "text/plain", "data": "inside"}
    assert shown(
        {"type": "document", "source": text, "title": "a.txt", "context": "About"},
        {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}},
        {"type": "search_result", "title": "T", "source": "s", "content": [{"type": "text", "text": "found"}]},
    ) == (
        Text("About"),
        File("a.txt", "inside"),
        File("document", "", "application/pdf", url="https://x.org/a.pdf"),
        File("T (s)", "found"),
    )


def sends(kind: str, **source: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": kind, "source": source}]}


# What is wrong in a message, and where.
MESSAGES: list[tuple[Any, str]] = [
    (3, ""),
    ({"role": "tool", "content": "x"}, ".role"),
    ({"role": "user", "content": 3}, ".content"),
    ({"role": "user", "content": [{"type": "text", "text": ""}]}, ".content.0.text"),
    ({"role": "user", "content": [{"text": "a"}]}, ".content.0.type"),
    ({"role": "user", "content": [CALL]}, ".content.0.type"),
    ({"role": "assistant", "content": [{"type": "server_tool_use"}]}, ".content.0.type"),
    ({"role": "assistant", "content": [{**CALL, "id": None}]}, ".content.0.id"),
    ({"role": "user", "content": [{"type": "tool_result"}]}, ".content.0.tool_use_id"),
    ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}, ".content.0.tool_use_id"),
    (sends("image", type="base64", media_type="image/tiff", data="AAAA"), ".content.0.source.media_type"),
    (sends("image", type="base64", media_type="image/png", data="!"), ".content.0.source.data"),
    (sends("image", type="file", file_id="f"), ".content.0.source.type"),
    (sends("document", type="base64", media_type="text/html", data="AAAA"), ".content.0.source.media_type"),
    (sends("document", type="url"), ".content.0.source.url"),
]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        *(({"messages": [message]}, f"messages.0{place}") for message, place in MESSAGES),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"temperature": 1.5}, "temperature"),
        ({"stop_sequences": [1]}, "stop_sequences"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "often"}}, "thinking.type"),
        ({"output_config": {"effort": "none"}}, "output_config.effort"),
        ({"output_config": {"format": {"type": "json_object"}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools.0.type"),
        ({"tools": [{"name": "look"}]}, "tools.0.input_schema"),
        ({"tools": [LOOK, LOOK]}, "tools"),
        ({"tool_choice": {"type": "auto"}}, "tool_choice"),
        ({"tools": [LOOK], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
        ({"tools": [LOOK], "tool_choice": {"type": "required"}}, "tool_choice.type"),
        ({"container": "c"}, "container"),
    ],
)
def test_what_is_wrong_is_named(more: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as why:
        read(HI, **more)
    assert why.value.data["field"] == field
    assert why.value.message.startswith(field)


JSON = st.recursive(wv.VALUES, lambda each: st.lists(each, max_size=3) | st.dictionaries(wv.TEXTS, each, max_size=3))


@given(st.sampled_from(["user", "assistant", "system"]), JSON, JSON)
def test_nothing_but_invalid_is_raised(role: str, content: Any, other: Any) -> None:
    for more in ({}, {"tools": other}, {"system": other}, {"thinking": other}, {"output_config": other}):
        with suppress(Invalid):
            read({"role": role, "content": content}, **more)
