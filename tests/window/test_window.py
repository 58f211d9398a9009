from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.sources.source import Pick
from recto.sources.tools import CANCELLED
from recto.window.count import Count, estimate_message, estimate_text
from recto.window.plan import Budget, Shares, limit_of, reserve_of
from recto.window.window import SectionTally, current_entry, entries_of


def test_every_call_gets_one_result_in_the_order_of_the_calls() -> None:
    asked = Message("a", "assistant", (Text("wait"), ToolCall("1", "t", "{}"), ToolCall("2", "t", "{}")))
    late = Message("b", "tool", (ToolResult("2", "t", "two"), ToolResult("9", "t", "nobody asked")))
    calls, results = entries_of((asked, late))
    assert (calls.role, calls.blocks, calls.message) == ("assistant", asked.blocks, "a")
    assert results.blocks == (ToolResult("1", "t", CANCELLED, is_error=True), ToolResult("2", "t", "two"))
    assert (results.role, results.message) == ("tool", "b")


def test_a_call_without_any_result_is_closed_as_cancelled() -> None:
    entries = entries_of((Message("a", "assistant", (ToolCall("1", "t", "{}"),)),))
    assert entries[1].blocks == (ToolResult("1", "t", CANCELLED, is_error=True),)


def test_results_alone_are_not_sent() -> None:
    assert entries_of((Message("b", "tool", (ToolResult("1", "t", "x"),)),)) == []


def test_half_written_calls_of_a_broken_reply_are_not_sent() -> None:
    broken = Message("a", "assistant", (Thinking("so"), Text("I will"), ToolCall("1", "t", '{"pa')), status="error")
    assert [entry.blocks for entry in entries_of((broken,))] == [(Text("I will"),)]


def test_what_is_picked_comes_before_the_message_in_one_entry() -> None:
    entry = current_entry(Message("m", "user", (Text("question"),)), ["document"])
    assert "".join(block.text for block in entry.blocks if isinstance(block, Text)) == "document\n\nquestion"


def test_the_reserve_is_at_least_512_or_a_twentieth_or_what_is_asked_for() -> None:
    assert reserve_of(8192, 0, None) == 512
    assert reserve_of(200_000, 0, None) == 10_000
    assert reserve_of(8192, 0, 2000) == 2000
    assert reserve_of(8192, 300, None) == 300


def test_the_limit_is_the_smaller_of_window_and_cap() -> None:
    assert limit_of(128_000, 0, 8192) == 128_000
    assert limit_of(128_000, 9000, 8192) == 9000
    assert limit_of(None, 0, 8192) == 8192


def test_an_unused_share_flows_to_the_messages() -> None:
    budget = Budget(1100, 100, 500, instructions=50, tools=20)
    assert budget.of("system") == 100
    assert budget.of("tools") == 300
    assert budget.of("history") == 930


def test_an_overdrawn_share_takes_from_the_messages_and_a_smaller_sum_leaves_some_unused() -> None:
    assert Budget(1100, 100, 500, instructions=400).of("history") == 600
    assert Budget(1100, 100, 500, shares=Shares(0.1, 0.2, 0.3), instructions=100, tools=200).of("history") == 300


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(600, 9000))
def test_with_shares_that_make_up_the_whole_messages_get_all_that_is_left(system: int, tools: int, limit: int) -> None:
    budget = Budget(limit, 100, 0, instructions=system, tools=tools)
    left = max(0, budget.room - system - tools)
    assert budget.messages <= left
    if system <= budget.room * 0.1 and tools <= budget.room * 0.3:
        assert budget.messages == left


@given(st.lists(st.tuples(st.sampled_from(["system", "history", "message", "tools"]), st.integers(0, 99)), max_size=9))
def test_sections_come_in_order_and_add_up(picks: list[tuple[str, int]]) -> None:
    tally = SectionTally()
    for section, tokens in picks:
        tally.add(section, Pick("kind", "name", "because"), tokens)
    sections = tally.sections(Budget(1000, 100, 500))
    assert sum(section.tokens for section in sections) == sum(tokens for _, tokens in picks)
    names = [section.name for section in sections]
    assert names == [name for name in ("system", "tools", "history", "message") if name in names]


def test_the_fallback_estimate_is_a_quarter_and_a_twentieth() -> None:
    assert estimate_text("x" * 400) == 105
    assert estimate_message("x" * 400) == 107
    assert estimate_text("") == 0


def test_counts_add_up_and_one_estimate_makes_the_sum_an_estimate() -> None:
    assert Count(2) + Count(3) == Count(5)
    assert Count(2) + Count(3, exact=False) == Count(5, exact=False)
