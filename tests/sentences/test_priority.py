"""The priority of a message: fixed for summaries, instructions and results, rated for what people and models say."""

from statistics import correlation

import pytest
from bench.summary_data import conversations, readings
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recto.chat.blocks import Block, Compaction, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message, Role
from recto.sentences.priority import awaits_task, is_small_talk, priority_of

pytestmark = pytest.mark.untraced


def said(text: str, role: Role = "user") -> Message:
    return Message("m", role, (Text(text),))


def result(text: str, is_error: bool = False) -> Message:
    return Message("m", "tool", (ToolResult("c", "run", text, is_error),))


@pytest.mark.parametrize(
    ("matters", "chatter"),
    [
        ("Don't ring my mum before 9:30, and never mention the 4,000 to Derek.", "Haha, that was fun!"),
        ("Wir zahlen Herrn Wüthrich höchstens 12.000 € bis zum 3. Mai.", "Super, danke dir!"),
        ("Il ne faut jamais appeler M. Duval avant 9 h, même pour la facture de 300 €.", "Ah d'accord, merci !"),
        ("Regina no puede comer nada de trigo, es celíaca, y somos 14 a la mesa.", "¡Qué bien, gracias!"),
        ("Никогда не звони Петрову раньше 9:30, у него смена до 4 утра.", "Ага, спасибо!"),
        ("预算不能超过12000元，5月3日之前要完成，别告诉老板。", "哈哈，好的！"),
    ],
)
def test_what_is_bad_to_lose_ranks_above_chatter(matters: str, chatter: str) -> None:
    assert priority_of(said(matters)) > 5 > priority_of(said(chatter))


def test_priorities_go_with_what_readers_gave_in_most_conversations() -> None:
    agreeing = []
    for conversation in conversations()[::4]:
        given = [sum(pair) for pair in zip(*(each.priorities for each in readings(conversation)), strict=True)]
        found = [
            (priority_of(said(message.text, message.role)), readers)
            for message, readers in zip(conversation.messages, given, strict=True)
            if message.role != "tool" and not message.is_call
        ]
        agreeing.append(correlation(*zip(*found, strict=True)) > 0.3)
    assert sum(agreeing) > 0.8 * len(agreeing)


@pytest.mark.parametrize("text", ["👍", "😂😂", "...", "?!", ""])
def test_what_has_no_word_is_lowest(text: str) -> None:
    assert priority_of(Message("m", "user", (Text(text),) if text else ())) == 1


def test_the_first_message_of_the_user_is_the_task() -> None:
    for task in ("Write a poem about the sea", "Fix the bug", "What is the budget?", "帮我写一封信给房东"):
        assert priority_of(said(task), is_first=True) == 8
        assert priority_of(said(task)) < 8
    assert priority_of(said("How can I help?", "assistant"), is_first=True) < 8


@pytest.mark.parametrize("greeting", ["hi", "Hello there!", "bonjour", "谢谢", "…"])
def test_a_greeting_is_not_the_task(greeting: str) -> None:
    assert priority_of(said(greeting), is_first=True) < 5
    assert priority_of(said(f"{greeting}. Please plan our trip to Oslo."), is_first=True) == 8


def test_the_task_may_come_after_greetings() -> None:
    hello = replace(said("hi"), priority=priority_of(said("hi"), is_first=True))
    reply = replace(said("Hello! How can I help?", "assistant"), priority=5)
    task = replace(said("Plan our trip to Oslo."), priority=8)
    assert awaits_task([])
    assert awaits_task([said("You are helpful.", "system"), hello, reply])
    assert not awaits_task([hello, reply, task])
    assert not awaits_task([hello, reply] * 4)


def test_a_greeting_that_brings_a_picture_is_the_task() -> None:
    picture = Image("image/png", "", sha256="0" * 64)
    assert priority_of(Message("1", "user", (picture, Text("hi"))), is_first=True) == 8


def test_a_summary_outranks_everything_said() -> None:
    block = Compaction(1, "", "m", "All that was said.", 3, 100, 50, "summarize", "")
    assert priority_of(Message("m", "system", (block,))) == 9


def test_instructions_rank_with_the_task() -> None:
    assert priority_of(said("You are a careful editor.", "system")) == 8


def test_results_of_tools_rank_below_what_was_said() -> None:
    assert priority_of(result("3 files found")) == 4
    assert priority_of(result("no such file", is_error=True)) == 3
    assert priority_of(result("you must never stop\n" * 1000)) == 3
    assert priority_of(said("imported without a block", "tool")) == 4


def test_a_reply_that_only_calls_a_tool_ranks_with_its_result() -> None:
    blocks: tuple[Block, ...] = (Thinking("I must look."), ToolCall("c", "find", "{}"))
    assert priority_of(Message("m", "assistant", blocks)) == 4


def test_a_message_of_files_only_is_normal() -> None:
    assert priority_of(Message("m", "user", (File("a.txt", "x"), Image("image/png", "aaaa")))) == 5


def test_only_the_ends_of_a_long_message_are_looked_at() -> None:
    prose = "This went on and on for a while and nobody minded it. " * 400
    assert priority_of(said(prose + "Pay Ada 400 €." + prose)) == priority_of(said(prose + prose))


@pytest.mark.parametrize("text", ["ok", "thanks!", "Danke, das hilft sehr!", "спасибо!", "谢谢", "…", ""])
def test_thanks_and_the_like_are_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "And when?",
        "How can I reach Priya?",
        "预算是多少？",
        "It is about harbour-7",
        "Tell me about the garden and the boat",
        "Fix the bug",
        "Cancela la reserva",
        "Czytaj dalej plan",
    ],
)
def test_what_asks_or_names_something_is_not(text: str) -> None:
    assert not is_small_talk(text)


@given(st.text(), st.sampled_from(["system", "user", "assistant", "tool"]), st.booleans())
def test_any_text_has_a_priority_and_always_the_same(text: str, role: Role, is_first: bool) -> None:
    found = priority_of(said(text, role), is_first=is_first)
    assert 1 <= found <= 10
    assert found == priority_of(said(text, role), is_first=is_first)
