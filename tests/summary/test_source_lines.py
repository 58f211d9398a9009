"""A sentence that cannot be understood alone brings its context: answers, questions, the sentence before or after."""

import pytest

from recto.summary.source_lines import ASSISTANT, TOOL, USER, LineReader, ScoredSentence, SentenceContext, SourceLine


def needs(sentence: str, *lines: tuple[str, str]) -> list[str]:
    """The sentences of these lines that the sentence brings along."""
    reader = LineReader([SourceLine(label, text, 1.0) for label, text in lines])
    for at in range(len(lines)):
        for found in reader.sentences(at):
            if found.text == sentence:
                return [
                    needed.text
                    for needed in SentenceContext(reader).of(
                        ScoredSentence(at, found.position, found.text, found.terms, 1.0)
                    )
                ]
    raise AssertionError(f"{sentence} is not among the lines")


def test_a_question_brings_its_answer() -> None:
    assert needs(
        "How large may a file be?",
        (USER, "How large may a file be?"),
        (ASSISTANT, "Sure! At most 20 MB, on this server."),
    ) == ["At most 20 MB, on this server."]


def test_an_answer_behind_tools_is_an_answer() -> None:
    question = "Which port does it use?"
    lines = ((USER, question), (ASSISTANT, "listing…"), (TOOL, "listen 8080"))
    assert needs(question, lines[0], lines[2], (ASSISTANT, "It listens on port 8080.")) == ["It listens on port 8080."]


@pytest.mark.parametrize("reply", ["Thanks!", "And which one would you like?"])
def test_chatter_and_a_question_back_are_no_answers(reply: str) -> None:
    assert needs("Which one is it?", (USER, "Which one is it?"), (ASSISTANT, reply)) == []


def test_a_question_in_the_middle_of_a_message_brings_nothing() -> None:
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
def test_an_elliptic_answer_brings_its_question(question: str, answer: str) -> None:
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
def test_a_back_reference_brings_the_sentence_before(text: str) -> None:
    reader = LineReader([SourceLine(USER, text, 1.0)])
    first, second = reader.sentences(0)
    assert needs(second.text, (USER, text)) == [first.text]


def test_a_back_reference_to_chatter_brings_nothing() -> None:
    assert needs("But it must never be older.", (USER, "Nice. But it must never be older.")) == []


def test_a_heading_brings_the_sentence_after() -> None:
    text = "Here is the title:\nRounding of durations"
    assert needs("Here is the title:", (USER, text)) == ["Rounding of durations"]


def test_a_refusal_brings_the_alternative() -> None:
    assert needs("No, not Ghent.", (USER, "No, not Ghent. I meant Graz.")) == ["I meant Graz."]


def test_machine_output_brings_nothing() -> None:
    text = "Found 3 matches:\nIt is here\nIt is there"
    assert needs("Found 3 matches:", (TOOL, text)) == []
    assert needs("It is there", (TOOL, text)) == []


def test_a_listing_is_code_and_a_command_is_not() -> None:
    lines = "\n".join(f"    table.append(rows[{at}].name)" for at in range(4))
    listing = LineReader([SourceLine(USER, f"```python\n{lines}\n```", 1.0)]).sentences(0)
    command = LineReader([SourceLine(USER, "```\nmake deploy\n```", 1.0)]).sentences(0)
    assert [sentence.is_code for sentence in listing[1:-1]] == [True] * 4
    assert not any(sentence.is_code for sentence in command)
