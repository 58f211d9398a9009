"""A sentence that cannot be understood alone brings its context: answers, questions, the sentence before or after."""

import pytest
from tests.summary.samples import quarter

from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.sentence_context import SentenceContext
from recto.summary.source_lines import ASSISTANT, TOOL, USER, LineReader, ScoredSentence, SourceLine


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


def test_a_question_that_its_author_answers_brings_the_answer() -> None:
    text = "Who conducts the choir? I want it to be Marisol Quint."
    assert needs("Who conducts the choir?", (USER, text)) == ["I want it to be Marisol Quint."]


def _selected(*said: tuple[str, str]) -> str:
    """Beside enough that is worth telling: where there is hardly anything, the rest is told too."""
    facts = [
        PlainMessage("user", "The invoice for the harbour is 1,240 euros and is due on 4 March."),
        PlainMessage("user", "Henrike Maas from Emden rents the hall above the bakery for 310 euros a month."),
        PlainMessage("user", "We never meet on Sundays, because Joost sings in the church of Leer then."),
    ]
    return extract([*facts, *(PlainMessage(role, text) for role, text in said)], 400, quarter)


def test_a_question_is_left_out_where_the_answer_names_what_it_asks() -> None:
    told = _selected(
        ("user", "We plan a choir trip."),
        ("assistant", "Which harbour does the ferry leave from?"),
        ("user", "The ferry leaves from Kiel at 19:30."),
    )
    assert "Which harbour" not in told
    assert "Kiel at 19:30" in told


def test_an_answer_that_only_acknowledges_is_not_told_with_its_question() -> None:
    told = _selected(
        ("user", "We plan a choir trip."),
        ("assistant", "Nice."),
        ("user", "I still need to find out who pays the organist. Can you remind me of the organist on Monday?"),
        ("assistant", "Sure, I'll remind you about the organist."),
    )
    assert "who pays the organist" in told
    assert "I'll remind you" not in told


def test_a_list_of_proposals_is_told_only_where_one_is_taken() -> None:
    listed = "Some ideas:\n\n1. Kayaks on the Drina for 3 days\n2. The fortress of Golubac\n3. Two nights in Novi Sad"
    asked = ("user", "What could our class of 24 do in Serbia?")
    assert "Golubac" not in _selected(asked, ("assistant", listed), ("user", "We have 180 euros for each pupil."))
    assert "Golubac" in _selected(asked, ("assistant", listed), ("user", "The second one, and 180 euros for each."))


def test_the_prose_of_a_page_that_a_tool_returned_is_not_told() -> None:
    page = (
        "Beavers were found in the valley again in 1998. Many complaints result from flooded meadows near the river. "
        "The authority passed a plan for the protection of both sides. Most farmers accept the total compensation. "
        "Nobody knows whether the population has reached its limit by now."
    )
    told = _selected(
        ("user", "Find out what I need for an article on beavers, at most 3,000 characters."),
        ("tool", page),
        ("assistant", "A first source: 140 beavers were counted in the valley."),
    )
    assert "complaints" not in told
    assert "3,000 characters" in told


def test_a_confirmation_is_not_told_beside_what_it_confirms() -> None:
    told = _selected(
        ("user", "Organise the flea market with me."),
        ("assistant", "Gladly."),
        ("user", "Olga wants a loudspeaker but I said no, the neighbours complained."),
        ("assistant", "Fair enough, no loudspeaker for the neighbours' sake."),
    )
    assert "Olga wants" in told
    assert "Fair enough" not in told


def test_a_command_between_fences_is_told_with_what_it_is_for() -> None:
    told = _selected(
        ("user", "How do I print the programme again?"),
        (
            "assistant",
            "To print it from the raw list, run this:\n```\n./bin/press --copies 40\n```\nIt takes a minute.",
        ),
        ("user", "works, thanks"),
    )
    assert "run this: ./bin/press --copies 40" in told
