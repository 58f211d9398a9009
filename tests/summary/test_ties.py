"""What cannot be read alone brings what it needs: answers and questions, what points back, corrections."""

import pytest

from recto.summary.lines import ASSISTANT, BEFORE, TOOL, USER, Line, Reader, Sentence
from recto.summary.sentences import terms
from recto.summary.ties import Ties, corrections
from recto.summary.worth import Weights


def needs(sentence: str, *lines: tuple[str, str]) -> list[str]:
    """What the sentence brings along from these lines."""
    reader = Reader([Line(label, text, 1.0) for label, text in lines])
    for at in range(len(lines)):
        for part in reader.parts(at):
            if part.text == sentence:
                return [one.text for one in Ties(reader).of(Sentence(at, part.place, part.text, part.terms, 1.0))]
    raise AssertionError(f"{sentence} is not among the lines")


def test_a_question_brings_its_answer() -> None:
    assert needs(
        "How large may a file be?",
        (USER, "How large may a file be?"),
        (ASSISTANT, "Sure! At most 20 MB, on this server."),
    ) == ["At most 20 MB, on this server."]


def test_an_answer_behind_tools_is_an_answer() -> None:
    asked = "Which port does it use?"
    lines = ((USER, asked), (ASSISTANT, "listing…"), (TOOL, "listen 8080"))
    assert needs(asked, lines[0], lines[2], (ASSISTANT, "It listens on port 8080.")) == ["It listens on port 8080."]


@pytest.mark.parametrize("reply", ["Thanks!", "And which one would you like?"])
def test_chatter_and_a_question_back_are_no_answers(reply: str) -> None:
    assert needs("Which one is it?", (USER, "Which one is it?"), (ASSISTANT, reply)) == []


def test_a_question_that_its_own_message_goes_on_after_brings_nothing() -> None:
    text = "Why does it fail? I have looked at the log."
    assert needs("Why does it fail?", (USER, text), (ASSISTANT, "The disk is full, says the log.")) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When do you want to switch?", "Next Tuesday."),
        ("Do you have records of that?", "Yes, since the autumn of the year before we moved here."),
        ("装修公司是哪一家？", "是绿源装饰，负责人叫陈静。"),
        ("Wie groß ist die Küche?", "14 Quadratmeter."),
    ],
)
def test_an_answer_that_says_little_alone_brings_its_question(question: str, answer: str) -> None:
    assert needs(answer, (ASSISTANT, f"All right. {question}"), (USER, answer)) == [question]


def test_a_full_sentence_needs_no_question() -> None:
    answer = "The kitchen has fourteen square metres and two windows to the south."
    assert needs(answer, (ASSISTANT, "How large is it?"), (USER, answer)) == []


@pytest.mark.parametrize(
    "text",
    [
        "The sluice is closed in June. It will cost 84,000 pounds.",
        "Wir nehmen die Halbinsel. Das kostet 400 Euro mehr.",
        "我们选了绿源装饰。他们下周开始。",
    ],
)
def test_what_points_back_brings_what_it_points_to(text: str) -> None:
    reader = Reader([Line(USER, text, 1.0)])
    first, second = reader.parts(0)
    assert needs(second.text, (USER, text)) == [first.text]


def test_what_points_back_to_chatter_brings_nothing() -> None:
    assert needs("But it must never be older.", (USER, "Nice. But it must never be older.")) == []


def test_a_promise_brings_what_was_promised() -> None:
    text = "Here is the title:\nRounding of durations"
    assert needs("Here is the title:", (USER, text)) == ["Rounding of durations"]


def test_a_refusal_brings_what_is_wanted_instead() -> None:
    assert needs("No, not Ghent.", (USER, "No, not Ghent. I meant Graz.")) == ["I meant Graz."]


def test_lines_of_a_machine_bring_nothing() -> None:
    text = "Found 3 matches:\nIt is here\nIt is there"
    assert needs("Found 3 matches:", (TOOL, text)) == []
    assert needs("It is there", (TOOL, text)) == []


def corrected(*texts: str, before: int = 0) -> dict[str, str]:
    """Which of the sentences each of them is taken back by; the first of them may stand in the summary already."""
    pool = [Sentence(at if at >= before else BEFORE, at, text, terms(text), 1.0) for at, text in enumerate(texts)]
    by_key = {each.key: each.text for each in pool}
    return {by_key[key]: each.text for key, each in corrections(pool, Weights()).items()}


@pytest.mark.parametrize(
    ("former", "later"),
    [
        ("The deadline is 3 May.", "Our lawyer says the deadline is 10 May."),
        ("The opening is on 28 April.", "Actually the opening has moved to 16 June."),
        ("Let's use SQLite.", "No, use PostgreSQL 16 instead of SQLite."),
        ("Er kommt am 3. Februar.", "Der Termin hat sich verschoben, er kommt am 10. März."),
        ("Die Arbeitsplatte soll aus Eiche sein.", "Nein, nimm doch lieber eine Arbeitsplatte aus Granit."),
        ("希望五月一日开业。", "开业改成五月十日。"),
        ("二十三名です。", "二十三名ではなく二十五名です。"),
    ],
)
def test_what_was_taken_back_is_known_by_its_correction(former: str, later: str) -> None:
    assert corrected(former, "The weather was fine all week.", later) == {former: later}
    assert corrected(former, later, before=1) == {former: later}


def test_a_series_is_no_chain_of_corrections() -> None:
    assert corrected(*[f"Room {at} has {at + 3} chairs." for at in range(9)]) == {}


def test_what_has_nothing_in_common_corrects_nothing() -> None:
    assert corrected("The keel is 4 m long.", "Actually I would like some tea.") == {}
