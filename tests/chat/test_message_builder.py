from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Delta, MessageBuilder, blocks_from

steps = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text()).map(list),
        st.tuples(st.just("thinking"), st.text(), st.none() | st.text(), st.none()).map(list),
        st.tuples(st.just("call"), st.integers(0, 2), st.just("id"), st.just("name"), st.text()).map(list),
        st.tuples(st.just("result"), st.text(), st.text(), st.text(), st.booleans()).map(list),
    )
)


def test_texts_run_together_and_calls_gather_their_arguments() -> None:
    blocks = blocks_from(
        [
            ["thinking", "hm", None, None],
            ["thinking", "m", "signed", None],
            ["text", "Let me "],
            ["text", "look."],
            ["call", 0, "a", "read", '{"pa'],
            ["call", 1, "b", "read", "{}"],
            ["call", 0, "", "", 'th":1}'],
        ],
        Made("openai", "m"),
    )
    who = Made("openai", "m")
    assert blocks == (
        Thinking("hmm", "signed", None, who),
        Text("Let me look.", who),
        ToolCall("a", "read", '{"path":1}', who),
        ToolCall("b", "read", "{}", who),
    )


def test_results_are_blocks_of_their_own() -> None:
    assert blocks_from([["result", "a", "read", "text", True]]) == (ToolResult("a", "read", "text", True),)


@given(steps, st.integers(1, 5))
def test_what_was_stored_in_batches_gives_the_same_blocks(sequence: list[Delta], every: int) -> None:
    growth = MessageBuilder()
    stored: list[Delta] = []
    for number, step in enumerate(sequence):
        growth.add(step)
        if number % every == 0:
            stored += growth.take()
    stored += growth.take()
    assert growth.take() == []
    assert blocks_from(stored) == growth.blocks == blocks_from(sequence)


def test_two_calls_of_one_id_are_told_apart() -> None:
    steps = [
        ["call", 0, "same", "a", "{}"],
        ["call", 1, "same", "b", "{"],
        ["call", 1, "same", "", "}"],
        ["call", 2, "same", "c", ""],
    ]
    calls = [block for block in blocks_from(steps) if isinstance(block, ToolCall)]
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("same", "a", "{}"),
        ("same_2", "b", "{}"),
        ("same_3", "c", ""),
    ]


def test_an_id_that_comes_after_its_call_began_is_told_apart_too() -> None:
    steps = [
        ["call", 0, "same", "a", "{}"],
        ["call", 1, "", "b", "{"],
        ["call", 1, "same", "", "}"],
        ["call", 1, "same", "", ""],
    ]
    calls = [block for block in blocks_from(steps) if isinstance(block, ToolCall)]
    assert [(call.id, call.arguments) for call in calls] == [("same", "{}"), ("same_2", "{}")]
