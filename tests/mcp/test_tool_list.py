"""ToolList: valid tools are offered and invalid ones reported; names for models are plain where possible, never shared
and always valid; the same tools are read again from the cache, for a day."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import to_builtins

from recto.mcp.tool_list import (
    MAX_DESCRIPTION_CHARS,
    MAX_LISTED_TOOLS,
    ListedTool,
    ToolList,
    ToolListCache,
    check_tools,
    tool_call_name,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=5), each, max_size=3),
)
TOOL = st.tuples(st.text(max_size=5) | st.just("a"), st.text(max_size=5), st.dictionaries(st.text(max_size=5), JSON))


@given(st.lists(TOOL, max_size=6))
def test_any_list_yields_only_valid_tools(raw: list[tuple[str, str, dict[str, Any]]]) -> None:
    listing = check_tools("x", raw)
    names = [tool.name for tool in listing.tools]
    assert len(set(names)) == len(names)
    assert all(name and isinstance(tool.schema, dict) for name, tool in zip(names, listing.tools, strict=True))
    assert len(listing.tools) + len(listing.notes) >= min(len(raw), 6)
    json.dumps(to_builtins(listing)).encode()


def test_a_recursive_schema_is_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "$ref": "#"}
    assert check_tools("x", [("a", "", schema)]).tools[0].schema is schema


def test_a_schema_that_is_nested_too_deeply_is_ignored() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        schema = {"a": schema}
    listing = check_tools("x", [("deep", "", schema)])
    assert not listing.tools
    assert "nested too deeply" in listing.notes[0]


def test_a_long_description_is_cut_and_one_at_the_limit_is_whole() -> None:
    raw = [(str(size), "d" * size, dict[str, Any]()) for size in (8_000, 8_001)]
    whole, cut = check_tools("x", raw).tools
    assert len(whole.description) == len(cut.description) == MAX_DESCRIPTION_CHARS
    assert (whole.description[-1], cut.description[-1]) == ("d", "…")


def test_the_numbers_of_tools_and_notes_are_limited() -> None:
    listing = check_tools("x", [(str(number), "", {}) for number in range(MAX_LISTED_TOOLS + 1)])
    assert len(listing.tools) == MAX_LISTED_TOOLS
    assert listing.notes == ("the MCP server x has 2,001 tools: the first 2,000 are offered",)
    notes = check_tools("x", [("", "", {})] * 50).notes
    assert len(notes) == 6
    assert notes[-1] == "MCP server x: 45 more problems with its tools"


# -- names

NAME = st.one_of(st.text(alphabet="ab_-.", max_size=6), st.text(max_size=8), st.text(alphabet="a_", max_size=80))
PAIR = st.tuples(NAME, NAME)


@given(PAIR, PAIR)
@example(("a", "b__c"), ("a__b", "c"))
@example(("a_", "b"), ("a", "_b"))
@example(("a.b", "c"), ("a_b", "c"))
@example(("a", ""), ("", "a"))
def test_two_tools_never_share_a_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (tool_call_name(*one) == tool_call_name(*other)) == (one == other)


@given(PAIR)
def test_every_name_is_valid_for_models(pair: tuple[str, str]) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool_call_name(*pair))


@given(PAIR)
def test_a_name_with_a_hash_is_never_the_plain_name_of_another(pair: tuple[str, str]) -> None:
    name = tool_call_name(*pair)
    server, _, tool = name.partition("__")
    assert not tool or (server, tool) == pair


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [("github", "create_issue", "github__create_issue"), ("my-notes", "read-file", "my-notes__read-file")],
)
def test_plain_names_are_joined_as_they_are(server: str, tool: str, name: str) -> None:
    assert tool_call_name(server, tool) == name


@pytest.mark.parametrize("tool", ["read.file", "_hidden", "two__parts", "mit Ümlaut", "x" * 70])
def test_other_names_stay_readable_and_end_with_a_hash(tool: str) -> None:
    assert re.fullmatch(r"files_[A-Za-z0-9_-]*_?[0-9a-f]{8}", tool_call_name("files", tool))


# -- the cache

LISTING = ToolList((ListedTool("add", "Adds – really.", {"type": "object"}),), ("a note",))


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    assert ToolListCache(tmp_path).read("key") == LISTING
    assert ToolListCache(tmp_path).read("other") is None


@pytest.mark.parametrize("age_s", [24 * 3600 + 1, -3600])
def test_a_list_older_than_a_day_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age_s)
    assert ToolListCache(tmp_path).read("key") is None


@pytest.mark.parametrize(
    "change",
    [{"format": 0}, {"tools": None}, {"tools": [{}]}, {"tools": [{"name": 1, "description": "", "schema": {}}]}],
)
def test_an_invalid_file_is_not_read(tmp_path: Path, change: dict[str, object]) -> None:
    ToolListCache(tmp_path).write("key", LISTING)
    file = tmp_path / "servers" / "key.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert ToolListCache(tmp_path).read("key") is None


def test_a_list_can_be_forgotten_and_a_failed_write_is_no_error(tmp_path: Path) -> None:
    kept = ToolListCache(tmp_path)
    kept.write("key", LISTING)
    kept.forget("key")
    assert kept.read("key") is None
    (tmp_path / "file").write_text("")
    ToolListCache(tmp_path / "file").write("key", LISTING)
    ToolListCache(tmp_path / "file").forget("key")
