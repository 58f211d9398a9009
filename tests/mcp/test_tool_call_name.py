"""Names of tools for models: plain where possible, never shared, always valid."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.mcp.server_files import tool_call_name

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
