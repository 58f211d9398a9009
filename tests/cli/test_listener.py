"""What an event says in words: tools by server and name, and how each call ended."""

import pytest

from recto.chat.blocks import ToolCall, ToolResult
from recto.cli.listener import in_words, tool_named
from recto.events import Branched, ToolFinished


@pytest.mark.parametrize(
    ("called", "shown"),
    [
        ("github__create_issue", "github:create_issue"),
        ("read_document", "read_document"),
        ("__init__", "__init__"),
        ("github__", "github__"),
        ("a\x1b__b", "a\N{REPLACEMENT CHARACTER}:b"),
    ],
)
def test_a_tool_is_named_with_its_server(called: str, shown: str) -> None:
    assert tool_named(called) == shown


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (ToolResult("1", "x", "four"), "4 characters"),
        (ToolResult("1", "x", "four", whole="ab12"), "4 characters (cut; the whole is kept)"),
        (ToolResult("1", "x", "four", media=("image/png ab", "audio/wav cd")), "4 characters, 2 files kept"),
        (ToolResult("1", "x", "no such\nboat", is_error=True), "failed: no such boat"),
        (ToolResult("1", "x", "denied: …", is_error=True, approval="denied"), "not run: you said no"),
        (ToolResult("1", "x", "denied: …", is_error=True, approval="forbidden"), "not run: its settings deny it"),
        (ToolResult("1", "x", "no boat", is_error=True, approval="allowed"), "failed: no boat"),
    ],
)
def test_a_call_is_told_with_how_it_ended(result: ToolResult, told: str) -> None:
    call = ToolCall("1", "github__create_issue", '{"title": "Leak"}')
    assert in_words(ToolFinished(call, result)) == f'github:create_issue {{"title": "Leak"}} → {told}'


def test_a_branch_is_told_in_one_line_with_where_it_begins() -> None:
    told = "this conversation was continued elsewhere in the meantime; a new branch starts"
    assert in_words(Branched("01", 4)) == f"{told} after #4"
    assert in_words(Branched(None, 0)) == f"{told} at the beginning"
