"""ToolList: valid tools are offered, invalid ones reported."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recto.mcp.server_files import MAX_DESCRIPTION_CHARS, MAX_LISTED_TOOLS, check_tools

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
)
TOOL = st.fixed_dictionaries({"name": JSON | st.just("a")}, optional={"inputSchema": JSON, "description": JSON})


@given(st.lists(JSON | TOOL, max_size=6))
def test_any_list_yields_only_valid_tools(raw: list[Any]) -> None:
    listing = check_tools("x", raw)
    names = [tool.name for tool in listing.tools]
    assert len(set(names)) == len(names)
    assert all(name and isinstance(tool.schema, dict) for name, tool in zip(names, listing.tools, strict=True))
    assert len(listing.tools) + len(listing.notes) >= min(len(raw), 6)
    json.dumps([tool.to_json() for tool in listing.tools]).encode()


def test_a_recursive_schema_is_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "$ref": "#"}
    assert check_tools("x", [{"name": "a", "inputSchema": schema}]).tools[0].schema is schema


def test_a_schema_that_is_nested_too_deeply_is_ignored() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"a": schema}
    listing = check_tools("x", [{"name": "deep", "inputSchema": schema}])
    assert not listing.tools
    assert "nested too deeply" in listing.notes[0]


def test_a_long_description_is_cut_and_one_at_the_limit_is_whole() -> None:
    raw = [{"name": str(size), "inputSchema": {}, "description": "d" * size} for size in (8_000, 8_001)]
    whole, cut = check_tools("x", raw).tools
    assert len(whole.description) == len(cut.description) == MAX_DESCRIPTION_CHARS
    assert (whole.description[-1], cut.description[-1]) == ("d", "…")


def test_a_tool_without_a_description_is_described_by_its_title() -> None:
    assert check_tools("x", [{"name": "a", "inputSchema": {}, "title": "Adds"}]).tools[0].description == "Adds"


def test_the_number_of_tools_is_limited() -> None:
    listing = check_tools("x", [{"name": str(number), "inputSchema": {}} for number in range(MAX_LISTED_TOOLS + 1)])
    assert len(listing.tools) == MAX_LISTED_TOOLS
    assert listing.notes == ("the MCP server x has 2,001 tools: the first 2,000 are offered",)


def test_the_number_of_notes_is_limited() -> None:
    notes = check_tools("x", ["not a tool"] * 50).notes
    assert len(notes) == 6
    assert notes[-1] == "MCP server x: 45 more problems with its tools"
