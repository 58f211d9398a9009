"""What a message wants of the archive: what it asks for, or speaks of and the window does not hold."""

import pytest

from recto.chat.blocks import Text, ToolResult
from recto.chat.message import Message
from recto.recall.message_search import SELF_CONTAINED, recall_query, written_by_people

HISTORY = (
    Message("a", "user", (Text("The parser reads the tokens of the grammar."),)),
    Message("b", "assistant", (Text("I changed the parser, and its tests pass."),)),
)


def said(text: str) -> Message:
    return Message("c", "user", (Text(text),))


LONG = "The keel of the ketch was laid in spring and nobody thought about ballast. " * 20
GOES_ON = "Now change the tests of the parser, the grammar too."


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("What did the sailmaker want for the mainsail?", True),
        ("Wie hieß der Segelmacher noch", True),
        ("帆の値段はいくらでしたか？", True),
        ("Add Maria's allergy to the list of the crew.", False),  # the window does not hold it
        (f"Why? {'so be it. ' * 5}{LONG}", True),
        (f"{LONG}Who laid it?", True),
    ],
)
def test_what_a_message_asks_or_the_window_does_not_hold_is_looked_up(text: str, asks: bool) -> None:
    want = recall_query(said(text), HISTORY)
    assert want is not None
    assert (want.text.split(), want.asks) == (text.split(), asks)


@pytest.mark.parametrize("text", [GOES_ON, LONG, "Thanks!", "ok", ""])
def test_what_goes_on_brings_its_own_context_or_is_chatter_wants_nothing(text: str) -> None:
    assert len(LONG) > SELF_CONTAINED
    assert recall_query(said(text), HISTORY) is None


def test_words_that_a_tool_gave_out_are_there_too() -> None:
    tool = Message("d", "tool", (ToolResult("1", "read", "the allergy list of the crew: Maria"),))
    assert recall_query(said("Add Maria's allergy to the crew list."), (*HISTORY, tool)) is None


def test_where_whatever_bears_on_it_is_wanted_nothing_is_spared() -> None:
    assert recall_query(said(GOES_ON), HISTORY, always=True) is not None


def test_a_few_words_are_looked_up_with_what_was_said_before_them() -> None:
    want = recall_query(said("And then?"), HISTORY)
    assert want is not None
    assert want.text == "And then?\nThe parser reads the tokens of the grammar."


def test_what_a_machine_printed_wants_nothing_be_it_short() -> None:
    printed = (
        "Wrong flag!\n(Open file: /home/ada/projects/solve/recover.py)\n(Current directory: /home/ada/projects)\nbash-$"
    )
    assert written_by_people(printed) == ""
    assert recall_query(said(printed), HISTORY) is None
    assert written_by_people("- buy milk\n- call the harbour master\n- pay the sailmaker") != ""
