"""What a sentence is worth by itself: more when it binds or has facts, less when it cannot stand alone."""

import pytest

from recto.summary.lines import ASSISTANT, TOOL, USER, Line, Part, Reader
from recto.summary.worth import LEAST, NOISE, Weights, is_heading, is_question, leans, numbers, often_said, worth


def value(text: str, label: str = USER, *, place: int = 1, is_wanted: bool = False, often: str = "") -> float:
    found = Reader([Line(label, text, 1.0)]).parts(0)
    assert len(found) == 1, "one sentence"
    part = Part(place, *found[0][1:])
    return worth(part, Line(label, text, 1.0, is_wanted), Weights(), frozenset({often}))


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("From now on please answer in French.", "It was a long day at the office."),
        ("We moved the office to Lübeck.", "We moved the office somewhere else."),
        ("The budget is 12,400 euros.", "We talked about the budget again."),
        ("项目必须在星期五之前完成。", "我们今天讨论了这个项目。"),
        ("二十三名ではなく二十五名です。", "今日はとても楽しかったです。"),
        ("The disk is full since Friday.", "It is full since some time ago."),
        ("We have chosen the red one for the door.", "Have we chosen the red one for the door?"),
        ("I bought the ticket to Graz.", "Here is the ticket to Graz:"),
    ],
)
def test_this_is_worth_more_than_that(more: str, less: str) -> None:
    assert value(more) > value(less)


@pytest.mark.parametrize("text", ["Thanks!", "ok", "谢谢！", "ありがとうございます！", "}", "```"])
def test_chatter_and_noise_are_worth_nothing(text: str) -> None:
    assert NOISE <= value(text) < LEAST


def test_plans_of_the_assistant_are_worth_less_than_what_came_of_them() -> None:
    assert value("Let's use the `grep` command to look for it.", ASSISTANT) < value("It is in src/app.py.", ASSISTANT)


def test_what_a_machine_wrote_is_no_better_because_a_user_has_pasted_it() -> None:
    log = "2024-05-01 10:00:01 INFO [worker-1] GET /api/items/244 must never be 200"
    assert value(log) < value("It must never be 200.") / 2


def test_of_a_machine_what_happened_comes_first() -> None:
    assert value("3 tests failed", TOOL) > value("collecting 3 files", TOOL)
    assert value("Please check it", TOOL, often="Please check it") < value("Please check it", TOOL)


def test_rows_of_figures_tell_little() -> None:
    assert value("100 672 0 652 100 20 7728 237 0 0 8296", TOOL) < value("672 files were copied", TOOL)


def test_listings_are_worth_less_than_commands() -> None:
    lines = "\n".join(f"    table.append(rows[{at}].name)" for at in range(4))
    listing = Reader([Line(USER, f"```python\n{lines}\n```", 1.0)]).parts(0)
    command = Reader([Line(USER, "```\nmake deploy\n```", 1.0)]).parts(0)
    assert [part.is_code for part in listing[1:-1]] == [True] * 4
    assert not any(part.is_code for part in command)


def test_a_task_is_told_by_its_beginning() -> None:
    assert value("Find the leak.", place=0, is_wanted=True) > value("Find the leak.", place=9, is_wanted=True)


def test_only_what_comes_again_and_again_is_said_often() -> None:
    assert often_said(["ready", "ready", "done", "ready", "done"]) == {"ready"}


@pytest.mark.parametrize(
    "text", ["It is red.", "Das ist rot.", "这是红色的。", "それは赤いです。", "Yeah, that was it."]
)
def test_words_that_point_back_are_known(text: str) -> None:
    assert leans(text)


@pytest.mark.parametrize("text", ["This week we paint.", "Das Budget ist klein.", "Items are red.", "Heredity"])
def test_other_words_do_not_point_back(text: str) -> None:
    assert not leans(text)


def test_questions_and_headings_are_known_by_their_end() -> None:
    assert is_question('Is it "red"?')
    assert is_question("散歩しますか。")
    assert not is_question("The file is at /search?q=red")
    assert is_heading("Found 3 matches:")
    assert not is_heading("At 10:30")


def test_numbers_are_figures_signs_and_dates() -> None:
    assert numbers({"12", "v1.2", "april", "五月", "budget", "may"}) == {"12", "v1.2", "april", "五月"}
