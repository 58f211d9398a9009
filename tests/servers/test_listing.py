"""Listing: what can be offered is, and what cannot is told."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recto.servers.listing import LONGEST_DESCRIPTION, MOST_TOOLS, check

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
)
TOOL = st.fixed_dictionaries({"name": JSON | st.just("a")}, optional={"inputSchema": JSON, "description": JSON})


@given(st.lists(JSON | TOOL, max_size=6))
def test_whatever_a_server_lists_only_tools_come_out(raw: list[Any]) -> None:
    listing = check("x", raw)
    names = [tool.name for tool in listing.tools]
    assert len(set(names)) == len(names)
    assert all(name and isinstance(tool.schema, dict) for name, tool in zip(names, listing.tools, strict=True))
    assert len(listing.tools) + len(listing.notes) >= min(len(raw), 6)
    json.dumps([tool.to_json() for tool in listing.tools]).encode()


def test_a_schema_that_refers_to_itself_passes_untouched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "$ref": "#"}
    assert check("x", [{"name": "a", "inputSchema": schema}]).tools[0].schema is schema


def test_a_schema_nested_without_end_is_left_out() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"a": schema}
    listing = check("x", [{"name": "deep", "inputSchema": schema}])
    assert not listing.tools
    assert "nested too deeply" in listing.notes[0]


def test_a_long_description_is_cut_and_one_at_the_limit_is_whole() -> None:
    raw = [{"name": str(size), "inputSchema": {}, "description": "d" * size} for size in (8_000, 8_001)]
    whole, cut = check("x", raw).tools
    assert len(whole.description) == len(cut.description) == LONGEST_DESCRIPTION
    assert (whole.description[-1], cut.description[-1]) == ("d", "…")


def test_a_tool_without_a_description_is_described_by_its_title() -> None:
    assert check("x", [{"name": "a", "inputSchema": {}, "title": "Adds"}]).tools[0].description == "Adds"


def test_a_list_without_an_end_has_one() -> None:
    listing = check("x", [{"name": str(number), "inputSchema": {}} for number in range(MOST_TOOLS + 1)])
    assert len(listing.tools) == MOST_TOOLS
    assert listing.notes == ("the MCP server x has 2,001 tools: the first 2,000 are offered",)


def test_many_faults_are_told_in_few_sentences() -> None:
    notes = check("x", ["not a tool"] * 50).notes
    assert len(notes) == 6
    assert notes[-1] == "of more tools of the MCP server x there is as much to say: 45"
