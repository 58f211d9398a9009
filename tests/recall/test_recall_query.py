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


@pytest.mark.parametrize(
    "text",
    [
        "What did the sailmaker want for the mainsail?",
        "Wie hieß der Segelmacher noch",
        "帆の値段はいくらでしたか？",
    ],
)
def test_a_message_that_asks_is_looked_up(text: str) -> None:
    want = recall_query(said(text), HISTORY)
    assert want is not None
    assert want.asks
    assert want.text == text


def test_a_message_that_speaks_of_what_the_window_does_not_hold_is_looked_up() -> None:
    want = recall_query(said("Add Maria's allergy to the list of the crew."), HISTORY)
    assert want is not None
    assert not want.asks


def test_a_message_that_goes_on_with_what_is_there_wants_nothing() -> None:
    assert recall_query(said("Now change the tests of the parser, the grammar too."), HISTORY) is None


def test_words_that_a_tool_gave_out_are_there_too() -> None:
    tool = Message("d", "tool", (ToolResult("1", "read", "the allergy list of the crew: Maria"),))
    assert recall_query(said("Add Maria's allergy to the crew list."), (*HISTORY, tool)) is None


def test_where_whatever_bears_on_it_is_wanted_nothing_is_spared() -> None:
    assert recall_query(said("Now change the tests of the parser, the grammar too."), HISTORY, always=True) is not None


def test_a_long_message_brings_its_own_context_unless_it_asks_at_an_end() -> None:
    long = "The keel of the ketch was laid in spring and nobody thought about ballast. " * 20
    assert len(long) > SELF_CONTAINED
    assert recall_query(said(long), HISTORY) is None
    assert recall_query(said("Why? " + "so be it. " * 5 + long), HISTORY) is not None
    assert recall_query(said(long + "Who laid it?"), HISTORY) is not None


def test_a_few_words_are_looked_up_with_what_was_said_before_them() -> None:
    want = recall_query(said("And then?"), HISTORY)
    assert want is not None
    assert want.text == "And then?\nThe parser reads the tokens of the grammar."


@pytest.mark.parametrize("text", ["Thanks!", "ok", ""])
def test_chatter_wants_nothing(text: str) -> None:
    assert recall_query(said(text), HISTORY) is None


def test_what_a_machine_printed_wants_nothing_be_it_short() -> None:
    printed = (
        "Wrong flag!\n(Open file: /home/ada/projects/solve/recover.py)\n(Current directory: /home/ada/projects)\nbash-$"
    )
    assert written_by_people(printed) == ""
    assert recall_query(said(printed), HISTORY) is None
    assert written_by_people("- buy milk\n- call the harbour master\n- pay the sailmaker") != ""
