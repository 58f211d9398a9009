"""Summaries without a model: within the cap, only from the originals, in order, and the right sentences first."""

import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recto.summary.extract import Said, extract, truncate
from recto.summary.shorten import cut_to, excerpt

ROLES = ("user", "assistant", "tool")


def quarter(text: str) -> int:
    return len(text) // 4 + 1


def words(text: str) -> int:
    return len(text.split())


def halves(text: str) -> int:
    """As a tokenizer that takes more for what is not ASCII."""
    return (len(text.encode("utf-8", "replace")) + 1) // 2


measures = st.sampled_from([len, quarter, words, halves])
LONGER = "A sentence that is a little longer than all of the others here. "
fragments = st.lists(
    st.sampled_from(["We must ship on Friday. ", "The port is 8080. ", LONGER, "thanks! ", "ok ", "e.g. ", "User: hi "])
    | st.sampled_from(
        ["src/app.py ", "```\n", "}\n", "x" * 90, "aGVsbG8gd29ybGQ1" * 6, "2024-05-01 10:00:01 INFO up\n"]
    )
    | st.sampled_from(["你好，世界。", "。", "😀", "…", "\n", "\u2028", "\x1c"]),
    max_size=12,
).map("".join)
said = st.builds(Said, st.sampled_from(ROLES), fragments | st.text(max_size=80), st.integers(1, 10))
conversations = st.lists(said, max_size=14)
formers = (
    st.just("") | fragments | st.lists(st.sampled_from(["User: Build a boat.", "## Plan", "- red"])).map("\n".join)
)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def source_of(line: str, texts: list[str], start: int) -> int | None:
    """The first text from `start` on that the line is a cut of, whitespace aside."""
    bare = squeezed(re.sub(r"^(User|Assistant|Tool): ?", "", line))
    for at in range(start, len(texts)):
        if bare in texts[at] or (bare.endswith("…") and bare[:-1] in texts[at]):
            return at
    return None


@given(conversations, st.integers(-1, 300), measures, formers)
def test_every_rung_stays_within_the_cap(
    conversation: list[Said], cap: int, count: Callable[[str], int], former: str
) -> None:
    for rung in (extract, truncate):
        made = rung(conversation, cap, count, former)
        assert not made or count(made) <= cap
        assert made == rung(conversation, cap, count, former), "the same input gives the same summary"


@given(conversations, st.integers(0, 300), measures)
def test_every_line_is_a_cut_of_an_original_in_order_of_time(
    conversation: list[Said], cap: int, count: Callable[[str], int]
) -> None:
    texts = [squeezed(each.text) for each in conversation]
    at = 0
    for line in extract(conversation, cap, count).split("\n"):
        found = source_of(line, texts, at) if line else at
        assert found is not None, line
        at = found


@given(conversations, st.integers(0, 200), measures, fragments)
def test_lines_of_a_former_summary_keep_their_order(
    conversation: list[Said], cap: int, count: Callable[[str], int], former: str
) -> None:
    texts = [squeezed(line) for line in former.splitlines() if line.strip()] + [squeezed(s.text) for s in conversation]
    at = 0
    for line in extract(conversation, cap, count, former).splitlines():
        if line.strip():
            found = source_of(line, texts, at)
            assert found is not None, line
            at = found


@given(st.text() | fragments, st.integers(-1, 120), measures)
def test_a_cut_is_a_beginning_within_the_cap(text: str, cap: int, count: Callable[[str], int]) -> None:
    made = cut_to(text, cap, count)
    assert not made or count(made) <= cap
    assert made == text or made == "" or (made.endswith("…") and text.startswith(made[:-1]))
    if cap > 0 and count(text) <= cap:
        assert made == text


@given(st.integers(1, 400))
def test_a_cut_is_as_long_as_it_can_be(cap: int) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    made = cut_to(text, cap, len)
    assert made == text or len(made) > cap - 9 or cap < 9


@given(fragments.map(lambda text: text * 8), st.integers(-1, 150), measures)
def test_an_excerpt_is_within_the_cap_and_adds_up(text: str, cap: int, count: Callable[[str], int]) -> None:
    made = excerpt(text, cap, count, "01ABC")
    assert not made or count(made) <= cap
    notice = re.search(r"(?:^|\n)\[… (\d+) of (\d+) characters are left out here; .* 01ABC …\](?:\n|$)", made)
    if notice:
        first, last = made[: notice.start()], made[notice.end() :]
        assert text.startswith(first)
        assert text.rstrip().endswith(last)
        assert int(notice[1]) == len(text) - len(first) - len(last)
        assert int(notice[2]) == len(text)


def test_an_excerpt_shows_whole_lines_of_both_ends() -> None:
    text = "\n".join(f"{number}: step {number} of the build went well" for number in range(1000))
    made = excerpt(text, 120, quarter, "01ABC").split("\n")
    assert made[0] == "0: step 0 of the build went well"
    assert made[-1] == "999: step 999 of the build went well"
    assert set(made) - set(text.split("\n")) == {next(line for line in made if line.startswith("[…"))}


def test_what_fits_is_its_own_excerpt() -> None:
    assert excerpt("short enough", 50, quarter, "01ABC") == "short enough"


def talk(*pairs: tuple[str, str]) -> list[Said]:
    return [Said(role, text) for role, text in pairs]


CHATTER = ["Thanks!", "ok", "Great, go on.", "lol", "Sounds good!", "Nice one.", "Haha, yes.", "Wow, cool."]


def chat(number: int, seed: int = 1) -> list[Said]:
    """A conversation of no importance."""
    random = Random(seed)
    things = ["the garden", "a film", "some soup", "our dog", "that song", "the bus", "an old book", "the weather"]
    verbs = ["talked about", "looked at", "thought of", "heard about", "laughed at", "waited for"]
    return [
        Said(("user", "assistant")[at % 2], f"We {random.choice(verbs)} {random.choice(things)} and it was nice {at}.")
        if at % 3
        else Said(("user", "assistant")[at % 2], random.choice(CHATTER), 2)
        for at in range(number)
    ]


def test_what_binds_is_kept_among_chatter() -> None:
    conversation = chat(120)
    conversation[40] = Said("user", "Thanks! From now on please answer in French. That was fun.")
    conversation[70] = Said("user", "No, use PostgreSQL 16 instead of SQLite.")
    conversation[95] = Said("assistant", "We decided to drop the legacy parser in src/old_parser.py.")
    made = extract(conversation, 150, quarter)
    assert "From now on please answer in French." in made
    assert "No, use PostgreSQL 16 instead of SQLite." in made
    assert "src/old_parser.py" in made
    assert "Thanks!" not in made


def test_the_task_is_always_there() -> None:
    conversation = [Said("user", "Hello there! Could you help me to write a novel about lighthouses?"), *chat(200)]
    assert extract(conversation, 30, quarter).startswith("User: Could you help me to write…")
    for cap in (80, 120, 500):
        assert extract(conversation, cap, quarter).startswith("User: Could you help me to write a novel about light")


@pytest.mark.parametrize("cap", [40, 80, 200, 800])
def test_no_third_of_the_time_is_left_out(cap: int) -> None:
    conversation = [Said(ROLES[at % 3], f"Item {at} was moved from shelf {at} to box {at + 7}.") for at in range(90)]
    found = [int(number) for number in re.findall(r"Item (\d+)", extract(conversation, cap, quarter))]
    assert {number * 3 // 90 for number in found} == {0, 1, 2}
    assert found == sorted(found)


def test_a_third_that_only_repeats_others_is_there_too() -> None:
    made = extract([Said("user", "The answer is 42.")] * 9, 60, quarter)
    assert made.split("\n") == ["User: The answer is 42."] * 3


def test_a_long_sentence_does_not_take_all_the_room() -> None:
    endless = "and then " * 400
    made = extract(talk(("user", "Plan the trip."), ("tool", endless), ("user", "We leave on 3 May.")), 90, quarter)
    assert "User: Plan the trip." in made
    assert "User: We leave on 3 May." in made
    tool = next(line for line in made.split("\n") if line.startswith("Tool: "))
    assert tool.endswith("…")
    assert quarter(tool) <= 30


def test_what_was_said_before_is_not_said_again() -> None:
    conversation = [*chat(30), *[Said("user", "The meeting room is on the second floor.")] * 20, *chat(30, seed=2)]
    assert extract(conversation, 300, quarter).count("second floor") == 1


def test_noise_comes_last() -> None:
    blob = "\n".join("iVBORw0KGgoAAAANSUhEUgAAAAUA1b2c3d4e5f6g7h8i9j0k" + str(at) * 8 for at in range(40))
    lines = ["{", "}", "});", blob, "Error: disk /dev/sda1 is full", "[", "]"]
    conversation = talk(("user", "Why does the upload fail?"), ("tool", "\n".join(lines)), ("user", "And now?"))
    made = extract(conversation, 60, quarter)
    assert "Tool: Error: disk /dev/sda1 is full" in made
    assert "iVBOR" not in made
    assert "}" not in made


def test_sentences_of_one_message_share_a_line_when_they_follow_each_other() -> None:
    text = "The budget is 400 €. The trip starts in Oslo on 3 May. We are two people."
    assert extract(talk(("user", text)), 100, quarter) == f"User: {text}"


def test_chinese_is_split_ranked_and_joined() -> None:
    conversation = [Said("user", f"我们讨论了第{at}个问题。项目必须在星期{at % 7}之前完成！") for at in range(60)]
    made = extract(conversation, 120, quarter)
    assert quarter(made) > 80
    assert re.search(r"User: 我们讨论了第\d+个问题。", made) or re.search(r"User: 项目必须在星期\d之前完成！", made)


def test_a_former_summary_comes_first_and_whole_when_it_is_short() -> None:
    former = "User: Build a boat of oak.\nAssistant: The keel is 4 m long."
    made = extract(chat(50), 200, quarter, former)
    assert made.startswith(former + "\n")
    assert quarter(made) > 150


def test_a_long_former_summary_leaves_a_third_of_the_room() -> None:
    former = "\n".join(f"User: Fact {at} about harbour {at} is that it is {at} m deep." for at in range(60))
    made = extract(chat(60), 200, quarter, former)
    kept = [line for line in made.split("\n") if line in former]
    assert kept[0] == former.split("\n")[0]
    assert quarter("\n".join(kept)) <= 134
    assert len(made.split("\n")) > len(kept)
    assert kept == sorted(kept, key=former.index)


def test_a_former_summary_gets_the_room_that_nothing_else_needs() -> None:
    former = "\n".join(f"User: Fact {at} about harbour {at} is that it is {at} m deep." for at in range(60))
    made = extract(talk(("user", "Go on with harbour 61.")), 400, quarter, former)
    assert quarter(made) > 350


def test_the_task_outlives_many_generations() -> None:
    task = "Write a guide to the harbours of Norway, at most 40 pages, for sailors without an engine."
    made = extract([Said("user", task), *chat(40)], 200, quarter)
    for generation in range(15):
        made = extract(chat(40, seed=generation), 200, quarter, made)
    assert made.startswith(f"User: {task}")


def test_decisions_outlive_chatter() -> None:
    conversation = [Said("user", "Plan my garden."), *chat(30)]
    conversation[10] = Said("user", "I'm allergic to birch, so never plant any birch trees.")
    made = extract(conversation, 200, quarter)
    for generation in range(4):
        made = extract(chat(40, seed=generation), 200, quarter, made)
    assert "allergic to birch" in made


def test_few_counts_are_needed() -> None:
    calls = 0

    def count(text: str) -> int:
        nonlocal calls
        calls += 1
        return len(text) // 4 + 1

    extract(chat(1000), 500, count, "\n".join(f"User: Fact {at} is {at}." for at in range(200)))
    assert calls < 40


def test_truncate_shows_the_newest_and_how_the_former_began() -> None:
    made = truncate(chat(100), 100, quarter, "User: Build a boat. " + "It is red. " * 80)
    assert made.startswith("User: Build a boat. It is red.")
    assert made.endswith(f": {chat(100)[-1].text}")


def test_nothing_comes_of_nothing() -> None:
    assert extract([], 100, quarter) == ""
    assert extract([Said("user", " \n")], 100, quarter) == ""
    assert extract(chat(5), 0, quarter) == ""
    assert truncate([], 100, quarter) == ""
    assert cut_to("", 10, quarter) == ""
    assert extract([], 100, quarter, "User: Build a boat.") == "User: Build a boat."


@settings(max_examples=20)
@given(st.text(min_size=1, max_size=5), st.integers(1, 3000), st.integers(1, 60))
def test_monotonous_texts_do_no_harm(unit: str, times: int, cap: int) -> None:
    made = extract([Said("user", unit * times), Said("tool", unit * times)], cap, quarter)
    assert not made or quarter(made) <= cap


def test_a_greeting_is_not_the_task() -> None:
    conversation = talk(("user", "Hey Mel!"), ("assistant", "Hello!"), ("user", "Plan a garden with me."))
    assert extract([*conversation, *chat(60)], 60, quarter).startswith("User: Plan a garden with me.")


def test_a_long_task_is_told_by_how_it_begins() -> None:
    rules = "\n".join(f"{at}. You must never touch the file config_{at}.py in any way." for at in range(40))
    task = f"We are solving an issue in our repository. Here is its title:\nRounding of durations\n\n{rules}"
    made = extract([Said("user", task), *chat(60)], 300, quarter)
    assert made.startswith("User: We are solving an issue in our repository. Here is its title: Rounding of durations")


def test_a_pasted_log_does_not_hide_the_question_about_it() -> None:
    log = "\n".join(f"2024-05-01 10:{at:02}:00 ERROR [worker-{at}] request {at} failed" for at in range(60))
    conversation = [Said("user", f"Our shop lost an order. Please find out why:\n\n{log}"), *chat(20)]
    made = extract(conversation, 150, quarter)
    assert made.startswith("User: Our shop lost an order. Please find out why:")


def test_a_question_stands_with_its_answer_or_not_at_all() -> None:
    conversation = chat(60)
    for at in range(4, 56, 8):
        conversation[at] = Said("user", f"How large is shelf {at} of the archive in Lund?")
        conversation[at + 1] = Said("assistant", f"It has room for {at * 11} boxes of paper.")
    for cap in (120, 200, 300):
        lines = extract(conversation, cap, quarter).split("\n")
        asked = [at for at, line in enumerate(lines) if line.endswith("Lund?")]
        assert all(lines[at + 1].endswith("boxes of paper.") for at in asked)


def test_a_short_answer_stands_with_its_question() -> None:
    conversation = chat(40)
    conversation[20:22] = [Said("assistant", "Which version do you run?"), Said("user", "3.11.9", 9)]
    for cap in (200, 300, 600):
        assert "Assistant: Which version do you run?\nUser: 3.11.9" in extract(conversation, cap, quarter)


def test_what_was_corrected_never_stands_there_without_its_correction() -> None:
    conversation = chat(60)
    conversation[8] = Said("user", "The deadline for the guide to the harbours is 3 May.")
    conversation[44] = Said("user", "Our lawyer says the deadline for the guide is 10 June.")
    for cap in range(60, 300, 20):
        made = extract(conversation, cap, quarter)
        assert "3 May" not in made or "10 June" in made
        assert cap < 100 or "10 June" in made


def test_a_correction_of_what_the_former_summary_says_is_there() -> None:
    former = "User: Build a boat.\nUser: The launch is planned for 3 May."
    conversation = chat(80)
    conversation[50] = Said("assistant", "The launch is planned for 19 June now.", 3)
    for at in range(5, 75, 6):
        conversation[at] = Said("user", f"We decided to paint plank {at} in the colour {at * 7}.", 8)
    assert "19 June" in extract(conversation, 200, quarter, former)


def test_a_confirmation_adds_nothing() -> None:
    conversation = chat(30)
    conversation[10:12] = talk(
        ("user", "The opening of the hall has moved to 10 February."),
        ("assistant", "Noted, the opening of the hall is on 10 February."),
    )
    assert extract(conversation, 120, quarter).count("10 February") == 1


def test_chatter_alone_stays_short() -> None:
    conversation = [Said(("user", "assistant")[at % 2], CHATTER[at % len(CHATTER)]) for at in range(40)]
    assert len(extract(conversation, 300, quarter).split("\n")) <= 4


def test_code_is_left_to_the_archive() -> None:
    code = "\n".join(f"    rows_{at} = sorted(table_{at}.rows, key=lambda row: row.name_{at})" for at in range(12))
    conversation = [
        *chat(20),
        Said("assistant", f"I have rewritten it:\n```python\n{code}\n```\nIt is in src/rows.py."),
    ]
    made = extract(conversation, 150, quarter)
    assert "It is in src/rows.py." in made
    assert "sorted(" not in made


def test_what_matters_does_not_wear_away_in_ten_rounds() -> None:
    facts = [
        "From now on please give all amounts in Swiss francs.",
        "I'm allergic to celery, so nothing with that on the menu.",
        "We decided to hold it in Coimbra rather than in the capital.",
        "The board has approved 12,400 euros, and it must not be more.",
        "No, use PostgreSQL 16 instead of SQLite.",
    ]
    made = ""
    for generation in range(10):
        conversation = chat(40, seed=generation)
        if generation < len(facts):
            conversation[17] = Said("user", facts[generation])
        made = extract(conversation, 300, quarter, made)
    assert [fact for fact in facts if fact not in made] == []
