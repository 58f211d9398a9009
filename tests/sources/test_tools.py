import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from recto.chat.blocks import ToolCall, ToolResult
from recto.sources.source import Tool
from recto.sources.tools import LocalTool, Toolbox


def run(toolbox: Toolbox, name: str, arguments: str) -> ToolResult:
    return asyncio.run(toolbox.run(ToolCall("1", name, arguments))).result


def echo() -> LocalTool:
    tool = Tool("echo", "", {"type": "object", "properties": {"text": {}}, "required": ["text"]})
    return LocalTool(tool, lambda given: str(given["text"]))


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("echo", "{", "not JSON"),
        ("echo", "[]", "must be a JSON object"),
        ("echo", "{}", "missing argument: text"),
        ("launch", "{}", "there is no tool launch; there are: echo"),
    ],
)
def test_what_goes_wrong_is_a_result_the_model_can_read(name: str, arguments: str, says: str) -> None:
    result = run(Toolbox([echo()]), name, arguments)
    assert result.is_error
    assert says in result.text


def test_a_tool_that_breaks_or_hangs_is_a_result_too() -> None:
    is_over = threading.Event()

    def breaks(_: Mapping[str, Any]) -> str:
        raise ZeroDivisionError("oh")

    def hangs(_: Mapping[str, Any]) -> str:
        is_over.wait()
        return "late"

    box = Toolbox([LocalTool(Tool("breaks", "", {}), breaks), LocalTool(Tool("hangs", "", {}), hangs)], timeout_s=0.05)
    assert run(box, "breaks", "{}").text == "the tool failed: ZeroDivisionError: oh"

    async def outwaited() -> ToolResult:
        try:
            return (await box.run(ToolCall("1", "hangs", "{}"))).result
        finally:
            is_over.set()  # a loop ends with its threads

    assert asyncio.run(outwaited()).text == "no result within 0.05 s"


@pytest.mark.parametrize("required", [[1], [{}], "text", {"text": 1}, None, [None, "text"]])
def test_a_schema_that_requires_odd_things_is_no_end_of_the_chat(required: object) -> None:
    tool = Tool("echo", "", {"type": "object", "required": required})
    result = run(Toolbox([LocalTool(tool, lambda given: str(given["text"]))]), "echo", '{"text": "hi"}')
    assert (result.text, result.is_error) == ("hi", False)


def test_half_a_character_in_the_arguments_is_replaced() -> None:
    assert run(Toolbox([echo()]), "echo", '{"text": "\\ud800!"}').text == "\N{REPLACEMENT CHARACTER}!"


def test_arguments_nested_beyond_measure_are_an_error_that_the_model_can_read() -> None:
    result = run(Toolbox([echo()]), "echo", '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert result.is_error
    assert "object" in result.text
