from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.providers.anthropic import AnthropicFormat
from recto.providers.openai import OpenAIFormat
from recto.providers.request_fields import object_schema
from recto.sources.source import Tool
from recto.window.request import Parameters

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


def test_a_schema_that_refers_to_itself_goes_out_as_it_came() -> None:
    loop = {"type": "object", "properties": {"next": {"$ref": "#"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert object_schema(loop) == loop
