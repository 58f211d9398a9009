import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from recto.chat.blocks import ToolCall, ToolResult
from recto.sources.source import Tool
from recto.sources.tools import PAGE_CHARACTERS, Runnable, Toolbox, read_document
from recto.vault.vault import Vault


def run(toolbox: Toolbox, name: str, arguments: str) -> ToolResult:
    return asyncio.run(toolbox.run(ToolCall("1", name, arguments)))


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    (tmp_path / "Plan.md").write_text("the plan")
    (tmp_path / "Long.md").write_text("x" * (PAGE_CHARACTERS + 5))
    return Toolbox([read_document(Vault(tmp_path))])


def test_a_document_is_read_with_its_path(toolbox: Toolbox) -> None:
    assert run(toolbox, "read_document", '{"path": "plan"}') == ToolResult("1", "read_document", "Plan.md\n\nthe plan")


def test_a_long_document_comes_in_pages(toolbox: Toolbox) -> None:
    first = run(toolbox, "read_document", '{"path": "Long.md"}').text
    assert first.endswith(f"[5 more characters; go on with offset {PAGE_CHARACTERS}]")
    rest = run(toolbox, "read_document", json.dumps({"path": "Long.md", "offset": PAGE_CHARACTERS})).text
    assert rest == "Long.md\n\nxxxxx"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read_document", "{", "not JSON"),
        ("read_document", "[]", "must be a JSON object"),
        ("read_document", "{}", "missing argument: path"),
        ("read_document", '{"path": "../x"}', "outside the vault"),
        ("read_document", '{"path": "none"}', "no document none"),
        ("read_document", '{"path": "plan", "offset": "far"}', "offset must be a whole number"),
        ("launch", "{}", "there is no tool launch; there are: read_document"),
    ],
)
def test_what_goes_wrong_is_a_result_the_model_can_read(toolbox: Toolbox, name: str, arguments: str, says: str) -> None:
    result = run(toolbox, name, arguments)
    assert result.is_error
    assert says in result.text


def test_a_tool_that_breaks_or_hangs_is_a_result_too() -> None:
    def breaks(_: Mapping[str, Any]) -> str:
        raise ZeroDivisionError("oh")

    def hangs(_: Mapping[str, Any]) -> str:
        time.sleep(0.3)
        return "late"

    box = Toolbox([Runnable(Tool("breaks", "", {}), breaks), Runnable(Tool("hangs", "", {}), hangs)], timeout_s=0.05)
    assert run(box, "breaks", "{}").text == "the tool failed: ZeroDivisionError: oh"
    assert run(box, "hangs", "{}").text == "no result within 0.05 s"
