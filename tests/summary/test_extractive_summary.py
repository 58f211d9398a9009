"""Extractive summaries: within the limit, only sentences of the originals, in order of time, the needed ones first."""

import re
from collections.abc import Callable, Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import conversations, counters, extract, quarter

from recto.summary.extractive_summary import LABEL, Extraction, PlainMessage, former_messages, truncate
from recto.summary.truncation import cut_to_fit
from recto.summary.work_log import WorkLog, split_work_log

pytestmark = pytest.mark.untraced

former_lines = st.lists(
    st.sampled_from(["User: Build a boat of oak.", "Assistant: The keel is 4 m.", "## Plan", "- red / blue", "Pay Ben"])
    | st.just("User (#7): Never sail after 22:00.")
)


def bare(text: str) -> str:
    """Without whitespace, labels and the strokes between segments."""
    return re.sub(r"(?:User|Assistant|Tool)(?: \(#\d+\))?(?:, quoting)?:|[\s/]+", "", text)


def is_made_of(summary: str, messages: Iterable[PlainMessage]) -> bool:
    """Whether it consists of segments of the messages in their order, or is the beginning of one."""
    text, reached = bare(summary), {0}
    said = [bare(segment.text) for message in messages for segment in message.segments]
    for segment in said:
        reached |= {at + len(segment) for at in reached if text.startswith(segment, at)}
    return len(text) in reached or any(text.endswith("…") and each.startswith(text[:-1]) for each in said)


@given(conversations, st.integers(-1, 300), counters, former_lines)
def test_a_summary_stays_within_the_limit_and_is_the_same_each_time(
    conversation: list[PlainMessage], limit: int, count: Callable[[str], int], former: list[str]
) -> None:
    for summarize in (extract, truncate):
        summary = summarize(conversation, limit, count, "\n".join(former))
        assert not summary or count(summary) <= limit
        assert summary == summarize(conversation, limit, count, "\n".join(former))


@given(conversations, st.integers(0, 300), counters, former_lines)
def test_every_sentence_is_a_cut_of_an_original_in_order_of_time(
    conversation: list[PlainMessage], limit: int, count: Callable[[str], int], former: list[str]
) -> None:
    summary = extract(conversation, limit, count, "\n".join(former))
    assert is_made_of(summary, [*former_messages("\n".join(former)), *conversation]), summary


@given(st.lists(st.integers(0, 40), unique=True, min_size=1, max_size=20), st.integers(0, 30), st.integers())
def test_a_former_summary_stays_in_its_order_while_there_is_room(numbers: list[int], size: int, seed: int) -> None:
    things = ["rudder", "mast", "keel", "anchor", "winch", "hull", "pump", "stove"]
    former = [f"User (#{at + 1}): The {things[at % 8]} of ship {at * 7 + 50} is stored in hall {at}." for at in numbers]
    summary = extract(chat(size, seed), 100_000, quarter, "\n".join(former))
    assert [line for line in summary.split("\n") if line in former] == former


@given(st.text(min_size=1, max_size=5), st.integers(1, 2000), st.integers(1, 60))
def test_monotonous_texts_stay_within_the_limit(unit: str, times: int, limit: int) -> None:
    summary = extract([PlainMessage("user", unit * times), PlainMessage("tool", unit * times)], limit, quarter)
    assert not summary or quarter(summary) <= limit


def chat(number: int, seed: int = 1) -> list[PlainMessage]:
    """A conversation of no importance."""
    random = Random(seed)
    said = re.split("; ", "Thanks!; ok; Great, go on.; Haha, yes.; Genau, super.; 好的。; Ça marche.; ¡Vale!; Спасибо!")
    return [PlainMessage(("user", "assistant")[at % 2], random.choice(said)) for at in range(number)]


@pytest.mark.parametrize(
    ("task", "rule"),
    [
        (
            "Plan a wedding for 80 guests in Lisbon on 14 June, please.",
            "Never book a hotel that costs over 120 € a night.",
        ),
        ("Plane bitte den Umbau der Küche für 12.000 €.", "Nimm auf keinen Fall Firma Behnke, nie wieder."),
        ("Il faut préparer le voyage à Rome du 3 au 9 mai.", "Ne réserve jamais de vol avant 9 h."),
        ("Hay que traducir el manual de 40 páginas al inglés.", "No traduzcas nunca los nombres de los productos."),
        ("Necesito traducir un manual de 40 páginas.", "No traduzcas nunca los nombres de los productos."),
        ("Нужно составить смету на ремонт за 300 000 рублей.", "Никогда не заказывай плитку у фирмы «Юпитер»."),
        ("Przygotuj plan ogrodu na działce 400 m².", "Nigdy nie sadź brzozy, mam alergię."),
        ("帮我计划六月十四日在里斯本的婚礼，八十位客人。", "千万不要订每晚超过120欧元的酒店。"),
        (
            "6月14日のリスボンでの結婚式を計画してください。客は80人です。",
            "1泊120ユーロを超えるホテルは予約しないでください。",
        ),
    ],
    ids=lambda text: text[:9],
)
def test_the_task_and_what_binds_are_told_before_chatter(task: str, rule: str) -> None:
    conversation = [PlainMessage("user", task), *chat(20), PlainMessage("user", rule), *chat(20, seed=2)]
    for limit in (quarter(task) + quarter(rule) + 12, 400):
        summary = extract(conversation, limit, quarter)
        assert task in summary
        assert rule in summary
        assert len(summary) < len(task) + len(rule) + 80


def test_of_two_figures_for_the_same_the_later_one_is_told() -> None:
    first, later = "The budget for the hall is 3,000 €.", "The budget for the hall is 4,500 €."
    conversation = [PlainMessage("user", first), *chat(6), PlainMessage("user", later)]
    assert extract(conversation, 400, quarter).count("budget") == 1
    assert later in extract(conversation, 400, quarter)


def test_a_new_figure_does_not_take_away_what_else_a_sentence_demands() -> None:
    rule = "The budget is 3,000 € and we must not use the kitchen after ten."
    conversation = [PlainMessage("user", rule), *chat(6), PlainMessage("user", "The budget is now 4,000 €.")]
    assert "kitchen" in extract(conversation, 400, quarter)


def test_a_repeated_sentence_is_told_once() -> None:
    said = "The meeting room is on the second floor of house 12."
    assert extract([PlainMessage("user", said)] * 9, 300, quarter, f"User: {said}") == f"User: {said}"


def test_a_log_does_not_take_the_room_of_what_was_asked() -> None:
    log = "\n".join(f"2024-05-01 10:{at:02}:00 INFO [worker-{at}] request {at} served" for at in range(60))
    conversation = [PlainMessage("user", f"Our shop lost order 7731. Find out why, please!\n\n{log}"), *chat(9)]
    summary = extract(conversation, 150, quarter)
    assert "Our shop lost order 7731." in summary
    assert summary.count("worker") <= 3


def test_a_short_answer_has_its_question_before_it() -> None:
    conversation = [
        PlainMessage("user", "Plan the dinner for 12 colleagues in Ghent.", 1),
        PlainMessage("assistant", "Which of the colleagues does not eat meat?", 2),
        PlainMessage("user", "Ruben and Ayşe, never", 3),
    ]
    for limit in (30, 45, 60, 200):
        summary = extract(conversation, limit, quarter)
        assert ("Ruben" in summary) <= ("eat meat?" in summary)
    assert "Ruben" in extract(conversation, 200, quarter)


def test_what_the_user_wants_kept_goes_first() -> None:
    said = [
        f"The {thing} of the ship is stored in hall {at}." for at, thing in enumerate(("mast", "rudder", "anchor"), 2)
    ]
    conversation = [PlainMessage("user", text) for text in said]
    assert "rudder" in Extraction(conversation, quarter, keep="where is the rudder?").within(16)


def test_a_line_says_who_spoke_and_keeps_the_number_and_a_quotation() -> None:
    conversation = [
        PlainMessage("user", "> The fee is 940 euros a year.\n\nNever pay that, the harbour told me 870 on 3 May.", 4),
        PlainMessage("assistant", "I wrote to Eva Kowal: boats of 9 m should cost 870 euros until 2027."),
    ]
    assert extract(conversation, 300, quarter).split("\n") == [
        "User (#4), quoting: The fee is 940 euros a year.",
        "User (#4): Never pay that, the harbour told me 870 on 3 May.",
        "Assistant: I wrote to Eva Kowal: boats of 9 m should cost 870 euros until 2027.",
    ]


@pytest.mark.xfail(
    strict=True, reason="the label of a tool, and that a line quotes somebody, are lost in the next summary"
)
@pytest.mark.parametrize("line", ["Tool (#4): 3 of 9 tests failed", "User (#5), quoting: The fee is 940 euros a year."])
def test_a_line_of_a_former_summary_keeps_its_label(line: str) -> None:
    former = f"User: Build a boat of oak.\n{line}"
    assert LABEL.match(line)
    assert extract([], 300, quarter, former) == former


def test_what_is_told_after_a_work_log_is_there_for_the_next_summary() -> None:
    rule = "Never book a hotel that costs over 120 € a night."
    work = WorkLog("Plan the trip to Lisbon.", read=("prices.md",))
    summary = Extraction([PlainMessage("user", rule)], quarter, work=work).within(300)
    assert split_work_log(summary) == (work, f"User: {rule}")
    assert split_work_log(Extraction([], quarter, split_work_log(summary)[1], work).within(300))[1] == f"User: {rule}"


def test_few_counts_are_needed() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text) // 4 + 1

    extract([PlainMessage("user", f"Crate {at} goes to hall {at * 7}.") for at in range(400)], 500, count)
    assert calls < 40


def test_truncate_shows_the_start_of_the_former_summary_and_the_newest_messages() -> None:
    conversation = [PlainMessage("user", f"Crate {at} goes to hall {at * 7}.") for at in range(90)]
    summary = truncate(conversation, 100, quarter, "User: Build a boat. " + "It is red. " * 80)
    assert summary.startswith("User: Build a boat. It is red.")
    assert summary.endswith(f": {conversation[-1].text}")


def test_empty_input_gives_an_empty_summary() -> None:
    assert extract([], 100, quarter) == extract([PlainMessage("user", " \n")], 100, quarter) == ""
    assert extract(chat(5), 0, quarter) == truncate([], 100, quarter) == cut_to_fit("", 10, quarter) == ""
    assert extract([], 100, quarter, "User: Build a boat.") == "User: Build a boat."
