"""Tools and calls that others wrote, in a form that every provider accepts."""

import re
from json import loads
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.chat.blocks import ToolCall, ToolResult
from recto.providers.anthropic import AnthropicFormat
from recto.providers.client import object_schema
from recto.providers.openai import DIALECTS, OpenAIFormat
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters

X = {"type": "string"}
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["type", "properties", "required", "oneOf", "anyOf", "allOf", "$defs", "title"])


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"type": "array", "items": X}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": [], "required": "x"}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "properties": {"x": X}, "required": [1, "x"]},
            {"type": "object", "properties": {"x": X}, "required": ["x"]},
        ),
        (
            {"oneOf": [{"properties": {"a": X}, "required": ["a"]}, {"properties": {"b": X}}]},
            {"type": "object", "properties": {"a": X, "b": X}},
        ),
        (
            {"type": "object", "allOf": [{"properties": {"a": X}, "required": ["a"]}], "properties": {"b": X}},
            {"type": "object", "properties": {"a": X, "b": X}, "required": ["a"]},
        ),
    ],
)
def test_the_root_of_a_schema_is_an_object_with_properties(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    assert object_schema(schema) == sent


@given(st.dictionaries(names, json, max_size=6))
def test_whatever_a_server_says_every_format_sends_an_object_and_a_sound_one_stays_as_it_is(
    schema: dict[str, Any],
) -> None:
    made = object_schema(schema)
    assert made["type"] == "object"
    assert isinstance(made["properties"], dict)
    assert not {"oneOf", "anyOf", "allOf"} & made.keys()
    assert object_schema(made) == made
    tool = Tool("t", "", schema)
    for format in (OpenAIFormat(), AnthropicFormat()):
        assert format.preamble("m", Parameters(), "", [tool])


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
texts = st.text(max_size=80) | st.sampled_from(["", "look", "call_0", "a.b", "a_b", "7", "\ud800", "é", "x" * 65])
raw = json.map(str) | st.sampled_from(["", "{", "{}", '{"a": 1}', '{"a": NaN}', '{"a": "\\ud800"}', "[1]", "null"])


def sent_pair(format: OpenAIFormat | AnthropicFormat, call: ToolCall) -> tuple[Any, Any, Any, Any]:
    """The id, name and arguments that are sent for a call, and the id of its result."""
    [asked] = format.entry(Entry("assistant", (call,)), "acme")
    [told] = format.entry(Entry("tool", (ToolResult(call.id, call.name, "x"),)), "acme")
    message, result = loads(asked), loads(told)
    if isinstance(format, AnthropicFormat):
        [item] = message["content"]
        return item["id"], item["name"], item["input"], result["content"][0]["tool_use_id"]
    [item] = message["tool_calls"]
    arguments = loads(item["function"]["arguments"], parse_constant=lambda name: pytest.fail(name))
    return item["id"], item["function"]["name"], arguments, result["tool_call_id"]


@given(texts, texts, raw)
@example("", "", "")
@example("7", "", "{")
def test_whatever_a_model_calls_every_provider_gets_a_name_an_object_and_ids_that_pair(
    id: str, name: str, arguments: str
) -> None:
    formats: dict[OpenAIFormat | AnthropicFormat, str] = {
        OpenAIFormat(): r"[!-~]+",
        OpenAIFormat(DIALECTS["api.openai.com"]): r"[!-~]{1,40}",
        OpenAIFormat(DIALECTS["api.mistral.ai"]): r"[a-zA-Z0-9]{9}",
        AnthropicFormat(): r"[a-zA-Z0-9_-]+",
    }
    for format, allowed in formats.items():
        sent_id, sent_name, given, result_id = sent_pair(format, ToolCall(id, name, arguments))
        assert re.fullmatch(allowed, sent_id)
        assert sent_id == result_id
        assert NAME.fullmatch(sent_name)
        assert isinstance(given, dict)


@given(st.from_regex(r"[a-zA-Z0-9]{9}", fullmatch=True), st.from_regex(NAME, fullmatch=True))
def test_a_call_that_is_sound_goes_out_as_it_came(id: str, name: str) -> None:
    call = ToolCall(id, name, '{ "at":  "hill" }')
    for format in (OpenAIFormat(), OpenAIFormat(DIALECTS["api.mistral.ai"]), AnthropicFormat()):
        assert sent_pair(format, call) == (id, name, {"at": "hill"}, id)
    assert b'"{ \\"at\\":  \\"hill\\" }"' in OpenAIFormat().entry(Entry("assistant", (call,)), "acme")[0]
