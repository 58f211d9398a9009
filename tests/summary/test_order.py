"""What a summariser is asked, how messages are told to it, and which of its answers are kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.summary.order import Source, Wanted, fault, halves, merge_order, order, slices, told

WANTED = Wanted(500)
ORDER = order(WANTED, above=True, has_former=True)
SOURCE = Source(1000, ORDER, "User: hello there\nAssistant: hello, what can I do for you today?\n" * 20)


def judge(answer: str, **changes: object) -> str | None:
    known = {"finish": "stop", "called": False, "tokens": 50, "most": 500} | changes
    return fault(answer, SOURCE, **known)  # type: ignore[arg-type]


def test_the_order_names_everything_that_must_be_in_a_summary() -> None:
    for word in ("Task", "Progress", "Facts", "Decisions", "Open", "Next", "invent nothing", "no tools", "300 words"):
        assert word in ORDER
    assert "earlier summary" in ORDER
    assert "earlier summary" not in order(WANTED, above=True, has_former=False)


def test_what_the_user_wants_and_the_style_are_in_both_orders() -> None:
    wanted = Wanted(500, keep="the names", style="as haiku")
    for text in (order(wanted, above=False, has_former=False), merge_order(wanted)):
        assert "the names" in text
        assert "as haiku" in text


def test_a_second_try_is_asked_for_less() -> None:
    assert "180 words" in order(WANTED, above=False, has_former=False, shorter=True)


def test_a_message_is_told_with_all_that_can_be_said_in_words() -> None:
    message = Message(
        "m",
        "assistant",
        (Thinking("hm"), Text("Let me look."), ToolCall("1", "read", '{"path":"a"}'), File("a.txt", "inside")),
    )
    assert told(message) == (
        'Assistant: Let me look.\nAssistant calls read {"path":"a"}\nAssistant gives the file a.txt:\ninside'
    )
    results = (ToolResult("1", "read", "nine"), ToolResult("2", "read", "gone", is_error=True))
    assert told(Message("r", "tool", results)) == "Result of read: nine\nError of read: gone"
    assert "image/png" in told(Message("i", "user", (Image("image/png", "AAAA"),)))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("Error: 500", "error text"),
        ("<html><body>Bad gateway</body></html>", "error text"),
        ('{"error": {"message": "overloaded"}}', "error text"),
        ("I'm sorry, but I can't help with that.", "error text"),
        ("Traceback (most recent call last): …", "error text"),
        (ORDER, "repeats"),
        ("Sure! " + ORDER.splitlines()[0], "repeats"),
        (SOURCE.transcript, "repeats"),
    ],
)
def test_an_answer_that_is_no_summary_is_refused(answer: str, why: str) -> None:
    assert why in (judge(answer) or "")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"finish": "length"}, "did not finish (length)"),
        ({"finish": "refusal"}, "did not finish (refusal)"),
        ({"called": True}, "called a tool"),
        ({"tokens": 501}, "too long (501 tokens, at most 500)"),
        ({"tokens": 1000, "most": 2000}, "not shorter than its source"),
    ],
)
def test_an_answer_with_a_bad_end_or_size_is_refused(changes: dict[str, object], why: str) -> None:
    assert why in (judge("Task: count the boats.", **changes) or "")


@pytest.mark.parametrize(
    "answer",
    [
        "Task: count the boats. Facts: 14 boats.",
        "Errors were found in the log: the parser fails on line 9.",
        "The user says sorry to the captain. Next: repair the mast.",
        "Error handling was the task: " + "the user wants retries with backoff, at most four. " * 10,
        "任务：数船。事实：十四艘船。",
    ],
)
def test_a_summary_is_kept(answer: str) -> None:
    assert judge(answer) is None


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 50))), st.integers(1, 60))
def test_slices_hold_everything_in_order_and_keep_to_their_size(texts: list[tuple[str, int]], room: int) -> None:
    said, sizes = [text for text, _ in texts], [size for _, size in texts]
    runs = slices(said, sizes, room)
    assert [text for run in runs for text in run] == said
    left = iter(sizes)
    for run in runs:
        taken = [next(left) for _ in run]
        assert sum(taken) <= room or len(taken) == 1 or sum(taken[1:]) <= room


@given(st.text(min_size=2))
def test_halves_are_the_whole(text: str) -> None:
    first, second = halves(text)
    assert first + second == text
    assert first
    assert second
