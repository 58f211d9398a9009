"""Extractive summaries: within the limit, only from the originals, in order, and the right sentences first."""

import re
from collections.abc import Callable
from datetime import date
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples
from tests.summary.samples import counters, fragments, quarter

from recto.summary.extractive_summary import PlainMessage, extract, truncate
from recto.summary.truncation import cut_to_fit

ROLES = ("user", "assistant", "tool")
messages = st.builds(PlainMessage, st.sampled_from(ROLES), fragments | st.text(max_size=80), st.integers(1, 10))
conversations = st.lists(messages, max_size=14)
formers = (
    st.just("") | fragments | st.lists(st.sampled_from(["User: Build a boat.", "## Plan", "- red"])).map("\n".join)
)


def without_whitespace(text: str) -> str:
    """Nor the signs of quoted mails, the strokes between lines, and who speaks in a pasted dialogue."""
    return re.sub(r"(?:User|Assistant|Tool):|[\s/>]+", "", text)


def find_source(line: str, texts: list[str], start: int) -> int | None:
    """The first text from `start` on that the line is a cut of, whitespace aside."""
    bare = without_whitespace(re.sub(r"^(User|Assistant|Tool)(, quoting[^:]*)?: ?", "", line))
    for at in range(start, len(texts)):
        if bare in texts[at] or (bare.endswith("…") and bare[:-1] in texts[at]):
            return at
    return None


@given(conversations, st.integers(-1, 300), counters, formers)
def test_every_summary_stays_within_the_limit(
    conversation: list[PlainMessage], limit: int, count: Callable[[str], int], former: str
) -> None:
    for summarize in (extract, truncate):
        summary = summarize(conversation, limit, count, former)
        assert not summary or count(summary) <= limit
        assert summary == summarize(conversation, limit, count, former), "the same input gives the same summary"


@given(conversations, st.integers(0, 300), counters)
def test_every_line_is_a_cut_of_an_original_in_order_of_time(
    conversation: list[PlainMessage], limit: int, count: Callable[[str], int]
) -> None:
    texts = [without_whitespace(message.text) for message in conversation]
    at = 0
    for line in extract(conversation, limit, count).split("\n"):
        found = find_source(line, texts, at) if line else at
        assert found is not None, line
        at = found


@given(conversations, st.integers(0, 200), counters, fragments)
def test_lines_of_a_former_summary_keep_their_order(
    conversation: list[PlainMessage], limit: int, count: Callable[[str], int], former: str
) -> None:
    texts = [without_whitespace(line) for line in former.splitlines() if line.strip()] + [
        without_whitespace(message.text) for message in conversation
    ]
    at = 0
    for line in extract(conversation, limit, count, former).splitlines():
        if line.strip():
            found = find_source(line, texts, at)
            assert found is not None, line
            at = found


def messages_of(*pairs: tuple[str, str]) -> list[PlainMessage]:
    return [PlainMessage(role, text) for role, text in pairs]


CHATTER = ["Thanks!", "ok", "Great, go on.", "lol", "Sounds good!", "Nice one.", "Haha, yes.", "Wow, cool."]


def chat(number: int, seed: int = 1) -> list[PlainMessage]:
    """A conversation of no importance."""
    random = Random(seed)
    things = ["the garden", "a film", "some soup", "our dog", "that song", "the bus", "an old book", "the weather"]
    verbs = ["talked about", "looked at", "thought of", "heard about", "laughed at", "waited for"]
    return [
        PlainMessage(
            ("user", "assistant")[at % 2], f"We {random.choice(verbs)} {random.choice(things)} and it was nice {at}."
        )
        if at % 3
        else PlainMessage(("user", "assistant")[at % 2], random.choice(CHATTER), 2)
        for at in range(number)
    ]


def test_binding_sentences_are_kept_among_chatter() -> None:
    conversation = chat(120)
    conversation[40] = PlainMessage("user", "Thanks! From now on please answer in French. That was fun.")
    conversation[70] = PlainMessage("user", "No, use PostgreSQL 16 instead of SQLite.")
    conversation[95] = PlainMessage("assistant", "We decided to drop the legacy parser in src/old_parser.py.")
    summary = extract(conversation, 150, quarter)
    assert "From now on please answer in French." in summary
    assert "No, use PostgreSQL 16 instead of SQLite." in summary
    assert "src/old_parser.py" in summary
    assert "Thanks!" not in summary


def test_the_task_is_always_in_the_summary() -> None:
    conversation = [
        PlainMessage("user", "Hello there! Could you help me to write a novel about lighthouses?"),
        *chat(200),
    ]
    assert extract(conversation, 30, quarter).startswith("User: Could you help me to write…")
    for limit in (80, 120, 500):
        assert extract(conversation, limit, quarter).startswith("User: Could you help me to write a novel about light")


@pytest.mark.parametrize("limit", [40, 80, 200, 800])
def test_no_third_of_the_time_is_left_out(limit: int) -> None:
    conversation = [
        PlainMessage(ROLES[at % 3], f"Item {at} was moved from shelf {at} to box {at + 7}.") for at in range(90)
    ]
    found = [int(number) for number in re.findall(r"Item (\d+)", extract(conversation, limit, quarter))]
    assert {number * 3 // 90 for number in found} == {0, 1, 2}
    assert found == sorted(found)


def test_the_same_sentence_is_told_once() -> None:
    assert extract([PlainMessage("user", "The answer is 42.")] * 9, 60, quarter) == "User: The answer is 42."
    assert extract([PlainMessage("user", "The answer is 42.")] * 9, 60, quarter, "User: The answer is 42.") == (
        "User: The answer is 42."
    )


def test_a_long_sentence_does_not_take_all_the_room() -> None:
    endless = "We decided to rent boats, " + "and then " * 400
    summary = extract(
        messages_of(("user", "Plan the trip."), ("assistant", endless), ("user", "We leave on 3 May.")), 90, quarter
    )
    assert "User: Plan the trip." in summary
    assert "User: We leave on 3 May." in summary
    told = next(line for line in summary.split("\n") if line.startswith("Assistant: "))
    assert told.endswith("…")
    assert quarter(told) <= 30


def test_a_repeated_sentence_appears_once() -> None:
    conversation = [
        *chat(30),
        *[PlainMessage("user", "The meeting room is on the second floor.")] * 20,
        *chat(30, seed=2),
    ]
    assert extract(conversation, 300, quarter).count("second floor") == 1


def test_noise_comes_last() -> None:
    blob = "\n".join("iVBORw0KGgoAAAANSUhEUgAAAAUA1b2c3d4e5f6g7h8i9j0k" + str(at) * 8 for at in range(40))
    lines = ["{", "}", "});", blob, "Error: disk /dev/sda1 is full", "[", "]"]
    conversation = messages_of(("user", "Why does the upload fail?"), ("tool", "\n".join(lines)), ("user", "And now?"))
    summary = extract(conversation, 60, quarter)
    assert "Tool: Error: disk /dev/sda1 is full" in summary
    assert "iVBOR" not in summary
    assert "}" not in summary


def test_sentences_of_one_message_share_a_line_when_they_follow_each_other() -> None:
    text = "The budget is 400 €. The trip starts in Oslo on 3 May. We are two people."
    assert extract(messages_of(("user", text)), 100, quarter) == f"User: {text}"


def test_chinese_is_split_ranked_and_joined() -> None:
    conversation = [
        PlainMessage("user", f"我们讨论了第{at}个问题。项目必须在星期{at % 7}之前完成！") for at in range(60)
    ]
    summary = extract(conversation, 120, quarter)
    assert quarter(summary) > 80
    assert re.search(r"User: 我们讨论了第\d+个问题。", summary) or re.search(
        r"User: 项目必须在星期\d之前完成！", summary
    )


def test_a_former_summary_comes_first_and_whole_when_it_is_short() -> None:
    former = "User: Build a boat of oak.\nAssistant: The keel is 4 m long."
    summary = extract(chat(50), 200, quarter, former)
    assert summary.startswith(former + "\n")
    assert quarter(summary) > 150


def test_a_long_former_summary_leaves_a_third_of_the_room() -> None:
    former = "\n".join(f"User: Fact {at} about harbour {at} is that it is {at} m deep." for at in range(60))
    summary = extract(chat(60), 200, quarter, former)
    kept = [line for line in summary.split("\n") if line in former]
    assert kept[0] == former.split("\n")[0]
    assert quarter("\n".join(kept)) <= 134
    assert len(summary.split("\n")) > len(kept)
    assert kept == sorted(kept, key=former.index)


def test_a_former_summary_gets_the_room_that_nothing_else_needs() -> None:
    former = "\n".join(f"User: Fact {at} about harbour {at} is that it is {at} m deep." for at in range(60))
    summary = extract(messages_of(("user", "Go on with harbour 61.")), 400, quarter, former)
    assert quarter(summary) > 350


def test_the_task_outlives_many_generations() -> None:
    task = "Write a guide to the harbours of Norway, at most 40 pages, for sailors without an engine."
    summary = extract([PlainMessage("user", task), *chat(40)], 200, quarter)
    for generation in range(15):
        summary = extract(chat(40, seed=generation), 200, quarter, summary)
    assert summary.startswith(f"User: {task}")


def test_decisions_outlive_chatter() -> None:
    conversation = [PlainMessage("user", "Plan my garden."), *chat(30)]
    conversation[10] = PlainMessage("user", "I'm allergic to birch, so never plant any birch trees.")
    summary = extract(conversation, 200, quarter)
    for generation in range(4):
        summary = extract(chat(40, seed=generation), 200, quarter, summary)
    assert "allergic to birch" in summary


def test_few_counts_are_needed() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text) // 4 + 1

    extract(chat(1000), 500, count, "\n".join(f"User: Fact {at} is {at}." for at in range(200)))
    assert calls < 40


def test_truncate_shows_the_newest_messages_and_the_start_of_the_former_summary() -> None:
    summary = truncate(chat(100), 100, quarter, "User: Build a boat. " + "It is red. " * 80)
    assert summary.startswith("User: Build a boat. It is red.")
    assert summary.endswith(f": {chat(100)[-1].text}")


def test_empty_input_gives_an_empty_summary() -> None:
    assert extract([], 100, quarter) == ""
    assert extract([PlainMessage("user", " \n")], 100, quarter) == ""
    assert extract(chat(5), 0, quarter) == ""
    assert truncate([], 100, quarter) == ""
    assert cut_to_fit("", 10, quarter) == ""
    assert extract([], 100, quarter, "User: Build a boat.") == "User: Build a boat."


@settings(max_examples=examples(20))
@given(st.text(min_size=1, max_size=5), st.integers(1, 3000), st.integers(1, 60))
def test_monotonous_texts_stay_within_the_limit(unit: str, times: int, limit: int) -> None:
    summary = extract([PlainMessage("user", unit * times), PlainMessage("tool", unit * times)], limit, quarter)
    assert not summary or quarter(summary) <= limit


def test_a_greeting_is_not_the_task() -> None:
    conversation = messages_of(("user", "Hey Mel!"), ("assistant", "Hello!"), ("user", "Plan a garden with me."))
    assert extract([*conversation, *chat(60)], 60, quarter).startswith("User: Plan a garden with me.")


def test_a_long_task_is_represented_by_its_beginning() -> None:
    rules = "\n".join(f"{at}. You must never touch the file config_{at}.py in any way." for at in range(40))
    task = f"We are solving an issue in our repository. Here is its title:\nRounding of durations\n\n{rules}"
    summary = extract([PlainMessage("user", task), *chat(60)], 300, quarter)
    assert summary.startswith(
        "User: We are solving an issue in our repository. Here is its title: Rounding of durations"
    )


def test_a_pasted_log_does_not_hide_the_question_about_it() -> None:
    log = "\n".join(f"2024-05-01 10:{at:02}:00 ERROR [worker-{at}] request {at} failed" for at in range(60))
    conversation = [PlainMessage("user", f"Our shop lost an order. Please find out why:\n\n{log}"), *chat(20)]
    summary = extract(conversation, 150, quarter)
    assert summary.startswith("User: Our shop lost an order. Please find out why:")


def test_a_question_appears_with_its_answer_or_not_at_all() -> None:
    conversation = chat(60)
    for at in range(4, 56, 8):
        conversation[at] = PlainMessage("user", f"How large is shelf {at} of the archive in Lund?")
        conversation[at + 1] = PlainMessage("assistant", f"It has room for {at * 11} boxes of paper.")
    for limit in (120, 200, 300):
        lines = extract(conversation, limit, quarter).split("\n")
        questions = [at for at, line in enumerate(lines) if line.endswith("Lund?")]
        assert all(lines[at + 1].endswith("boxes of paper.") for at in questions)


def test_a_short_answer_appears_with_its_question() -> None:
    conversation = chat(40)
    conversation[20:22] = [PlainMessage("assistant", "Which version do you run?"), PlainMessage("user", "3.11.9", 9)]
    for limit in (200, 300, 600):
        assert "Assistant: Which version do you run?\nUser: 3.11.9" in extract(conversation, limit, quarter)


def test_a_corrected_sentence_never_appears_without_its_correction() -> None:
    conversation = chat(60)
    conversation[8] = PlainMessage("user", "The deadline for the guide to the harbours is 3 May.")
    conversation[44] = PlainMessage("user", "Our lawyer says the deadline for the guide is 10 June.")
    for limit in range(60, 300, 20):
        summary = extract(conversation, limit, quarter)
        assert "3 May" not in summary or "10 June" in summary
        assert limit < 100 or "10 June" in summary


def test_a_correction_of_the_former_summary_is_included() -> None:
    former = "User: Build a boat.\nUser: The launch is planned for 3 May."
    conversation = chat(80)
    conversation[50] = PlainMessage("assistant", "The launch is planned for 19 June now.", 3)
    for at in range(5, 75, 6):
        conversation[at] = PlainMessage("user", f"We decided to paint plank {at} in the colour {at * 7}.", 8)
    assert "19 June" in extract(conversation, 200, quarter, former)


def test_a_confirmation_adds_nothing() -> None:
    conversation = chat(30)
    conversation[10:12] = messages_of(
        ("user", "The opening of the hall has moved to 10 February."),
        ("assistant", "Noted, the opening of the hall is on 10 February."),
    )
    assert extract(conversation, 120, quarter).count("10 February") == 1


def test_chatter_alone_stays_short() -> None:
    conversation = [PlainMessage(("user", "assistant")[at % 2], CHATTER[at % len(CHATTER)]) for at in range(40)]
    assert len(extract(conversation, 300, quarter).split("\n")) <= 4


def test_code_is_left_to_the_archive() -> None:
    code = "\n".join(f"    rows_{at} = sorted(table_{at}.rows, key=lambda row: row.name_{at})" for at in range(12))
    conversation = [
        *chat(20),
        PlainMessage("assistant", f"I have rewritten it:\n```python\n{code}\n```\nIt is in src/rows.py."),
    ]
    summary = extract(conversation, 150, quarter)
    assert "It is in src/rows.py." in summary
    assert "sorted(" not in summary


def test_important_facts_survive_ten_rounds() -> None:
    facts = [
        "From now on please give all amounts in Swiss francs.",
        "I'm allergic to celery, so nothing with that on the menu.",
        "We decided to hold it in Coimbra rather than in the capital.",
        "The board has approved 12,400 euros, and it must not be more.",
        "No, use PostgreSQL 16 instead of SQLite.",
    ]
    summary = ""
    for generation in range(10):
        conversation = chat(40, seed=generation)
        if generation < len(facts):
            conversation[17] = PlainMessage("user", facts[generation])
        summary = extract(conversation, 300, quarter, summary)
    assert [fact for fact in facts if fact not in summary] == []


THINGS = (
    "keel",
    "mast",
    "rudder",
    "anchor",
    "galley",
    "compass",
    "lantern",
    "winch",
    "hatch",
    "tiller",
    "bilge",
    "deck",
)
facts = st.lists(st.sampled_from(THINGS), min_size=1, max_size=60).map(
    lambda things: [f"The {thing} of boat {at} costs {at * 37 + 11} euros." for at, thing in enumerate(things, 1)]
)


@given(facts, facts, st.integers(1, 3), st.integers(120, 700), counters)
def test_a_compaction_that_covers_little_loses_nothing_of_the_former_summary_that_fits(
    before: list[str], after: list[str], number: int, limit: int, count: Callable[[str], int]
) -> None:
    former = "\n".join(f"User: {fact}" for fact in before)
    new = [PlainMessage("user", fact.replace("boat", "hull")) for fact in after[:number]]
    needed = sum(count(f"User: {message.text}") + 1 for message in new)
    summary = extract(new, limit, count, former)
    if count(former) + needed <= limit:
        assert summary.startswith(former)
        return
    lost = [line for line in former.split("\n") if line not in summary]
    longest = max(count(line) + 2 for line in former.split("\n"))
    assert sum(count(line) + 1 for line in lost) <= count(former) - limit + needed + 2 * longest


@given(st.lists(st.sampled_from(THINGS), min_size=60, max_size=80), st.integers(0, 60), st.integers(150, 500))
def test_the_room_is_used_while_there_is_something_to_tell(things: list[str], place: int, limit: int) -> None:
    told = [f"The {thing} of boat {at} costs {at * 37 + 11} euros." for at, thing in enumerate(things)]
    former = "\n".join(f"User: {fact}" for fact in told[:place])
    summary = extract([PlainMessage("user", fact) for fact in told[place:]], limit, quarter, former)
    assert quarter(summary) >= 0.9 * limit


def test_a_pronoun_brings_what_it_stands_for() -> None:
    conversation = chat(40)
    conversation[20:22] = messages_of(
        ("assistant", 'Have you seen "Eternal Sunshine" with Kate Winslet?'),
        ("user", "I first watched it around 3 years ago with 14 friends."),
    )
    for limit in (150, 300, 600):
        summary = extract(conversation, limit, quarter)
        assert "Eternal Sunshine" in summary or "watched it" not in summary
    assert "watched it" in summary


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("Wir haben den Kran von Liebherr gesehen.", "Ich habe ihn für 4.200 € bestellt."),
        ("Vimos la grúa de Liebherr en Gijón.", "Ya lo compramos por 4.200 €."),
        ("On a vu la grue de Liebherr à Lyon.", "Je l'ai commandée pour 4 200 €."),
    ],
)
def test_a_pronoun_brings_what_it_stands_for_in_other_languages(asked: str, told: str) -> None:
    conversation = chat(40)
    conversation[21:23] = messages_of(("assistant", asked), ("user", told))
    summary = extract(conversation, 300, quarter)
    assert f"Assistant: {asked}\nUser: {told}" in summary


def test_a_relative_date_is_told_with_its_day() -> None:
    said = [PlainMessage("user", "The crane comes tomorrow at 9:30.", day=date(2024, 2, 28))]
    summary = extract(said, 100, quarter)
    assert summary == "User: The crane comes tomorrow [2024-02-29] at 9:30."
    assert extract(chat(20), 100, quarter, summary).startswith(summary)


def test_what_recurs_in_message_after_message_and_orders_to_a_model_yield() -> None:
    frame = "Please think carefully about the whole of the repository before you begin with it."
    order = "YOU SHOULD ALWAYS INCLUDE EXACTLY ONE TOOL CALL."
    conversation = [
        PlainMessage("user", f"{frame} {order} Item {at} was moved from shelf {at} to box {at + 7}.")
        for at in range(12)
    ]
    summary = extract([*chat(4), *conversation], 150, quarter)
    assert summary.count("was moved") > 6
    assert order not in summary
    assert frame not in summary


def test_a_line_has_one_speaker() -> None:
    conversation = [*chat(10), PlainMessage("tool", "User: The pump failed at 9:30.\nAssistant: The fan failed too.")]
    summary = extract(conversation, 200, quarter)
    assert "Tool, quoting User: The pump failed at 9:30.\nTool, quoting Assistant: The fan failed too." in summary
    assert not re.search(r"^\w+: (User|Assistant|Tool): ", summary, re.MULTILINE)
