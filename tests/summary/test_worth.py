"""What a summary tells at all: what binds, what holds a fact, what is about the speaker. Room is no reason for more."""

import pytest
from tests.summary.samples import covered, quarter

from recto.chat.message import Role
from recto.summary.extractive_summary import PlainMessage, extract
from recto.summary.ledger import ledger_lines
from recto.summary.sentence_score import without_passing_series
from recto.summary.worth import is_worth_telling, needs_context, stands_alone


@pytest.mark.parametrize(
    "text",
    [
        "The ferry leaves on 3 May at 8:15.",
        "Lea hates buffets.",
        "It's 202 chairs.",
        "It turns out the library has a bug.",
        "My mother can't stand buckwheat, so the menu should go without it if possible.",
        "We will never take the bus.",
        "Die Heizung wurde am 7.12.2029 geprüft.",
        "Mi pasaporte caduca el 10/1/2027.",
        "Who pays for the insurance of the boat?",
        "我们最多花三千元。",
    ],
)
def test_what_a_user_states_is_told(text: str) -> None:
    assert is_worth_telling(text, is_assistant=False)


@pytest.mark.parametrize(
    "text",
    [
        "Thanks!",
        "Yes please.",
        "Hmm, let me think about it.",
        "haha, that is how it always goes",
        "Where were we?",
        "Could you explain how that works again?",
        "Kannst du das noch einmal erklären?",
        "Here is the next list:",
    ],
)
def test_small_talk_and_what_is_not_understood_is_not(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=False)


def test_a_question_is_told_as_long_as_it_is_open() -> None:
    asked = "What would you cook for 12 people on a Friday?"
    assert is_worth_telling(asked, is_assistant=False)
    assert not is_worth_telling(asked, is_assistant=False, is_settled=True)
    assert is_worth_telling("I am allergic to nuts, is that known?", is_assistant=False, is_settled=True)
    assert is_worth_telling("When you write amounts, please use zloty.", is_assistant=False, is_settled=True)
    assert is_worth_telling("Open question: should the minutes be public?", is_assistant=False, is_settled=True)


@pytest.mark.parametrize(
    "text",
    [
        "I ran a charity race last Saturday.",
        "The slow query comes from src/orders/list.py.",
        "The p95 was 3.47 ms with 400 clients.",
        "Ada Lovelace lives in London near Hyde Park.",
        "You must not restart the pump before Monday.",
    ],
)
def test_an_assistant_is_told_with_facts_and_what_it_says_of_itself(text: str) -> None:
    assert is_worth_telling(text, is_assistant=True)


@pytest.mark.parametrize(
    "text",
    [
        "A careful reader likes a bit of order, whatever the plan says.",
        "Elena once needed 18 attempts for that.",
        "In Turku they have done it that way for 20 years.",
        "It took Mei 4 days and about 38 sheets of paper.",
        "In Thun macht man das seit 32 Jahren so, egal was im Plan steht.",
        "En Zamora lo hacen así desde hace 17 años.",
        "Wer die Arbeit macht, erzählt ein wenig Ordnung, solange es Kaffee gibt.",
        "Ein guter Anfang für einen Montag.",
        "That is a nice start for Sunday.",
        "I'll keep that on the list of open points.",
        "I would measure it from outside before changing anything.",
        "Should I go on with the next part?",
        "Noted, thanks.",
        "Then we no longer need the large printer.",
    ],
)
def test_advice_in_general_terms_is_not(text: str) -> None:
    assert not is_worth_telling(text, is_assistant=True)


@pytest.mark.parametrize(
    "text", ["It leaves at 8:15.", "Somebody told me it takes 12 weeks.", "this is from last night"]
)
def test_what_leans_on_another_sentence_needs_it(text: str) -> None:
    assert needs_context(text)
    assert not stands_alone(text)


def test_padding_does_not_fill_the_room() -> None:
    padding = [
        PlainMessage("assistant", f"A careful reader likes order {word}, whatever the plan says. It took them days.")
        for word in ("here", "there", "now", "then", "often", "always", "again", "early", "late", "twice")
    ]
    said = [PlainMessage("user", f"The {noun} costs {cost} euros.") for noun, cost in (("boat", 900), ("tent", 120))]
    told = extract(
        [PlainMessage("user", "Help me plan a week on the lake."), *padding[:5], *said, *padding[5:]], 400, quarter
    )
    assert told.splitlines() == [
        "User: Help me plan a week on the lake.",
        "User: The boat costs 900 euros.",
        "User: The tent costs 120 euros.",
    ]


def test_where_there_is_hardly_anything_else_the_best_of_the_rest_is_told() -> None:
    told = extract(
        [
            PlainMessage("user", "Why is the sky blue?"),
            PlainMessage("assistant", "Short waves scatter more than long ones."),
        ],
        200,
        quarter,
    )
    assert "Short waves scatter" in told


def test_of_what_an_assistant_says_again_and_again_only_the_latest_is_told() -> None:
    said = [PlainMessage("assistant", f"A tent for {people} people is enough for a start.") for people in (12, 24, 31)]
    told = extract([PlainMessage("user", "We hired Aisha Brandt as stage manager."), *said], 60, quarter)
    assert "31 people" in told
    assert "12 people" not in told
    assert "24 people" not in told


def test_of_passing_remarks_of_one_kind_only_the_latest_is_told() -> None:
    people = ("Ada", "Mei", "Ben")
    remarks = [f"I saw that {who} got {count} replies already." for who, count in zip(people, (7, 9, 12), strict=True)]
    lockers = [f"{who} has locker {key} in the hall." for who, key in zip(people, ("A17", "B20", "C31"), strict=True)]
    moved = [f"Item {number} was moved to box {number + 7}." for number in (3, 4, 5)]
    said = [PlainMessage("user", text) for text in ("We plan a fair.", *remarks, *lockers, *moved)]
    told = extract(said, 200, quarter)
    assert "Ben got 12" in told
    assert "Ada got 7" not in told
    assert all(text in told for text in (*lockers, *moved))


def test_a_later_remark_of_the_same_kind_takes_the_place_of_those_in_the_former_summary() -> None:
    said = [f"I saw that {who} got {count} replies already." for who, count in (("Ada", 7), ("Mei", 9), ("Ben", 12))]
    told = ""
    for text in ("The boat Marlin costs 900 euros.", *said):
        told = extract([PlainMessage("user", text)], 200, quarter, told)
    assert told.splitlines() == ["User: The boat Marlin costs 900 euros.", f"User: {said[-1]}"]


def test_what_stands_between_quotation_marks_is_material() -> None:
    text = 'Make this less stiff: "The boat costs much. It has 14 seats. Nobody knows why." The harbour opens at 7:30.'
    told = extract([PlainMessage("user", "Help me write."), PlainMessage("user", text)], 200, quarter)
    assert "The harbour opens at 7:30." in told
    assert "Nobody knows why" not in told


def test_the_ledger_leaves_out_what_is_not_worth_its_line() -> None:
    messages: tuple[tuple[Role, str], ...] = (
        ("user", "The ferry to Elba costs 84 euros."),
        ("assistant", "Elena once needed 18 attempts for that. It took Mei 39 days and about 28 sheets of paper."),
        ("assistant", "Should I go on with the next part?"),
        ("user", "Yes please"),
    )
    lines = ledger_lines(list(covered(messages).entries.values()), 400, quarter)
    assert list(lines) == ["#1: The ferry to Elba costs 84 euros"]


def test_what_the_user_took_is_told_with_the_words_that_proposed_it() -> None:
    said = "Of the three, **Casa do Conto** is the quietest. It has a garden. Torel is on a busy street with bars."
    told = extract(
        [
            PlainMessage("user", "Which hotel in Porto would you take?"),
            PlainMessage("assistant", said),
            PlainMessage("user", "ok take that then"),
            PlainMessage("assistant", "Everyone involved forgets what can be undone, which is seldom a problem."),
            PlainMessage("user", "My sister Anjali lived near the funicular of Viana."),
        ],
        200,
        quarter,
    )
    assert "Casa do Conto" in told
    assert "Everyone involved" not in told


def test_an_assistant_that_speaks_of_what_the_user_asked_is_told() -> None:
    told = extract(
        [
            PlainMessage("user", "Help me with biology, I have a test."),
            PlainMessage("assistant", "Gladly."),
            PlainMessage("user", "Do plants respire only at night?"),
            PlainMessage("assistant", "Plants respire all the time. An outsider likes what nobody owns."),
            PlainMessage("user", "My brother Ben has the same teacher."),
        ],
        70,
        quarter,
    )
    assert "Plants respire all the time." in told
    assert "An outsider" not in told


@pytest.mark.parametrize("text", ["No hace falta llamar al doctor Ibarra.", "No seafood for Priya Nair on 3 May."])
def test_a_no_is_never_cut_off(text: str) -> None:
    lines = ledger_lines(list(covered((("user", text),)).entries.values()), 200, quarter)
    assert lines
    assert all(line.startswith("#1: No ") for line in lines)


def test_a_remark_that_is_said_again_word_for_word_stays_with_what_stands_beside_it() -> None:
    remark = "User: I saw that Ada got 7 replies already."
    assert without_passing_series([remark, "User: The tent costs 120 euros.", remark, remark])[-1] == remark
    beside = [f"{remark} Lea hates buffets.", f"{remark} Ben sings.", f"{remark} Mei left."]
    assert without_passing_series(beside) == beside
