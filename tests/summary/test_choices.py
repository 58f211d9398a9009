"""Choices: which options of a list the user takes, by their places or by their names."""

import pytest
from tests.summary.samples import quarter
from tests.summary.test_prohibitions import FILLING, chat, ledger

from recto.chat.message import Role
from recto.summary.choices import asked_alternatives, chosen_options, listed_options, takes_alternative
from recto.summary.extractive_summary import PlainMessage, extract

ROUTES = (
    "Three routes:\n1. Over Basel, 6 hours\n2. Over Lyon, 7 hours\n3. Over Turin, 9 hours\n"
    "Another option would be the night train from Milan to Naples."
)


def taken(reply: str, listed: str) -> list[str]:
    options = listed_options(listed)
    return [options[at] for at in chosen_options(reply, options)]


def test_an_option_that_the_user_names_is_taken_whatever_place_he_says() -> None:
    assert taken("oh the second one, the night train to Naples", ROUTES) == [
        "Another option would be the night train from Milan to Naples."
    ]
    assert taken("the second one, Turin has the best coffee", ROUTES) == ["Over Turin, 9 hours"]
    assert taken("the second one, it sounds relaxed", ROUTES) == ["Over Lyon, 7 hours"]
    assert taken("the second is quick but no.", ROUTES) == []
    assert taken("first one", ROUTES) == ["Over Basel, 6 hours"]
    assert taken("the last one", ROUTES) == ["Over Turin, 9 hours"]


@pytest.mark.parametrize(
    "reply",
    ["la 2", "de tweede", "ta druga", "doe maar de tweede", "2番でお願いします", "nr 2", "the 2nd", "die 2 bitte"],
)
def test_a_place_is_told_in_many_languages(reply: str) -> None:
    assert taken(reply, ROUTES) == ["Over Lyon, 7 hours"]


def test_a_list_may_stand_in_one_line() -> None:
    listed = "Two singers: 1. Mira Holm, jazz 2. Duo Kante, folk. Both are free in May."
    assert taken("2 please", listed) == ["Duo Kante, folk"]
    assert listed_options("It took 2. Then we left.") == ()


def test_all_options_that_are_taken_are_told() -> None:
    hooks = (
        "Some hooks:\n1. **The mill.** It grinds at night although nobody works there.\n"
        "2. **The ferry.** It never lands.\n3. **The twins.** Both claim the same grave."
    )
    told = extract(chat(*FILLING, "hooks?", hooks, "1 and 3", "Good."), 120, quarter)
    assert "The mill" in told
    assert "The twins" in told
    assert "The ferry" not in told
    lines = "\n".join(ledger(("user", "hooks?"), ("assistant", hooks), ("user", "1 and 3")))
    assert "The mill" in lines
    assert "The twins" in lines
    assert "The ferry" not in lines


@pytest.mark.parametrize("reply", ["love it, I'll use that", "sounds good, take that", "perfekt, das nehmen wir"])
def test_what_the_user_takes_is_told_with_it(reply: str) -> None:
    offer = "You could open with the sentence: The lighthouse had been dark since Tuesday."
    told = extract(chat(*FILLING, "an opening line?", offer, reply, "Good."), 120, quarter)
    assert "The lighthouse had been dark" in told
    assert reply[:8] in told


FLOORS = "Three floors would do:\n1. cork, 34 per m², warm\n2. larch boards, 52 per m²\n3. terrazzo, 61 per m², cold"


@pytest.mark.parametrize(
    "reply",
    [
        "The middle one.",
        "Druga opcja.",
        "La seconda!",
        "Segunda opção, por favor",
        "a segunda",
        "Zweite Option bitte",
        "la de en medio",
        "die mittlere",
        "quella di mezzo",
        "de middelste",
        "celle du milieu",
        "真ん中でお願いします",
        "二つ目がいいです",
        "b please",
        "Larch boards then.",
        "we take the larch",
        "prendo larch boards",
    ],
)
def test_a_place_or_a_name_tells_which_option_is_taken(reply: str) -> None:
    assert taken(reply, FLOORS) == ["larch boards, 52 per m²"]


@pytest.mark.parametrize(
    "reply",
    [
        "The larch is too expensive",
        "My uncle had terrazzo once",
        "First, I have to measure the room",
        "what about the cork?",
        "no larch",
        "cork or terrazzo",
        "rather not larch",
        "cork cannot get wet",
    ],
)
def test_nothing_is_taken_where_that_is_not_certain(reply: str) -> None:
    assert taken(reply, FLOORS) == []


def test_with_an_even_number_of_options_none_is_in_the_middle() -> None:
    assert taken("the middle one", "Two ways:\n1. by boat\n2. by train") == []


def test_options_in_one_line_may_have_letters() -> None:
    listed = "You can a) keep the old door, b) get a new handle or c) send it back."
    assert taken("C please", listed) == ["send it back."]
    assert taken("b", listed) == ["get a new handle"]


@pytest.mark.parametrize(
    ("asked", "reply", "taken"),
    [
        ("Paella o caldereta para la fiesta?", "La paella es más barata.", "caldereta."),
        ("keystones T568A or B?", "Both work, B is more common.", "B everywhere."),
        ("Bahn oder Auto nach Basel?", "Die Bahn dauert 3 Stunden.", "dann die Bahn"),
        ("do we paint the hall grey, white or sand?", "White is bright.", "sand"),
        ("czy bierzemy tort czekoladowy czy cytrynowy?", "Cytrynowy jest lżejszy.", "cytrynowy"),
    ],
)
def test_what_the_user_asks_about_and_then_takes_is_told_with_his_question(asked: str, reply: str, taken: str) -> None:
    before: list[tuple[Role, str]] = [("user", "We plan the family trip."), ("assistant", "Sure.")]
    said: list[tuple[Role, str]] = [("user", asked), ("assistant", reply), ("user", taken), ("assistant", "Good.")]
    told = extract([PlainMessage(role, text) for role, text in (*before, *said)], 300, quarter)
    assert f"User: {asked}\n" in told
    assert told.endswith(f"User: {taken}")
    assert any(line.endswith(f"{asked} → #5: {taken.rstrip('.')}") for line in ledger(*before, *said))


@pytest.mark.parametrize(
    "reply", ["no car please", "I'll think about it", "train or car, who knows?", "both cost a lot"]
)
def test_who_takes_neither_has_not_chosen(reply: str) -> None:
    assert not takes_alternative(reply, asked_alternatives("Train or car to Basel?")[1])


def test_what_the_user_lists_and_then_takes_by_its_letter_is_told() -> None:
    listed = "three candidates: a) Tile & Crumb b) The Oven c) Salt Lane. what do you think"
    said = (("user", "I open a café."), ("assistant", "Nice."), ("user", listed), ("assistant", "The first is short."))
    told = extract([PlainMessage(role, text) for role, text in (*said, ("user", "a it is"))], 300, quarter)
    assert "Tile & Crumb" in told
    assert told.endswith("User: a it is")
