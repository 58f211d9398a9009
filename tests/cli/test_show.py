"""How things are put on the screen: what a terminal would obey, or what turns a line around, is not passed on."""

import pytest

from recto.chat.blocks import ToolCall, ToolResult
from recto.cli.listener import in_words
from recto.cli.show import shortened, visible
from recto.events import ToolFinished


@pytest.mark.parametrize("sign", ["\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\u2069"])
def test_what_steers_a_terminal_or_turns_a_line_around_is_replaced(sign: str) -> None:
    assert visible(f"a{sign}b\tc\nd") == "a\N{REPLACEMENT CHARACTER}b\tc\nd"


def test_arguments_of_a_call_hide_nothing() -> None:
    call = ToolCall("1", "harbour__berth", '{"boat": "So\u200brr\u202eel"}')
    told = in_words(ToolFinished(call, ToolResult("1", "harbour__berth", "done")))
    assert told is not None
    assert told.startswith('harbour:berth {"boat": "So\\u200brr\\u202eel"} → ')


def test_a_text_is_shortened_to_the_cells_of_a_terminal() -> None:
    assert shortened("東京の天気", 10) == "東京の天気"
    assert shortened("東京の天気", 9) == "東京の天…"
    assert shortened("東京の天気", 8) == "東京の…"
    assert shortened("a mast and a sail", 8) == "a mast…"
    assert shortened("é" * 9, 8) == "é" * 7 + "…"
