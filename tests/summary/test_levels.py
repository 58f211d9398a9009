"""Levels: what is dropped is set aside, what bears on the topic returns, and the contents list the rest."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.summary.samples import pieces

from recto.summary.ledger import ledger_items, parse_item
from recto.summary.levels import (
    RETURNED,
    SetAsideItem,
    add_to_contents,
    find_dropped,
    find_returning,
    find_topic,
    parse_contents,
    parse_set_aside,
    split_returned,
    with_returned,
)
from recto.summary.verification import CoveredFacts, FormerSummary, verify_summary

FORMER = FormerSummary(
    "User: The boat Meltemi is berthed at quay 7.\nUser: We decided to keep the garden.\n"
    "User: The sun shines today.\nUser: Never call before 9:30.",
    ("#9: the budget is 12,000 €",),
    {"The boat Meltemi is berthed at quay 7": 3, "Never call before 9:30": 5},
)
ASIDE = (
    "#3: The boat Meltemi is berthed at quay 7",
    "#5: Never call the harbour master before 9:30",
    "#9: the budget for the boat is 12,000 €",
    "#12 assistant: The recipe takes four eggs",
    "#15: Tomatoes need water twice a day",
    "User: My aunt likes the garden",
)


def length(text: str) -> int:
    return len(text)


def dropped(text: str, ledger: tuple[str, ...] = (), *, by_sentence: bool = True, aside: tuple[str, ...] = ()) -> str:
    found = verify_summary(text, CoveredFacts(), FORMER, mark=False)
    return "\n".join(find_dropped(FORMER, found, ledger, aside, by_sentence=by_sentence))


def returning(message: str, *latest: str, lines: tuple[str, ...] = ASIDE, limit: int = 500) -> list[SetAsideItem]:
    return find_returning(lines, find_topic(message, latest), (), limit, length)


# -- what is dropped


def test_sentences_that_are_not_chosen_again_are_set_aside_with_the_number_that_is_known() -> None:
    assert dropped("User: Never call before 9:30.").splitlines() == [
        "User: We decided to keep the garden",
        "#3: The boat Meltemi is berthed at quay 7",
        "#9: the budget is 12,000 €",
    ]


def test_what_the_new_ledger_lists_is_not_set_aside() -> None:
    assert "12,000" not in dropped("User: Never call before 9:30.", ("#9: the budget is 12,000 €",))


def test_facts_that_a_models_summary_loses_are_set_aside_as_they_were_said() -> None:
    found = dropped("They talked about a budget of 12,000 €, and nobody calls before 9:30.", by_sentence=False)
    assert "#3: The boat Meltemi is berthed at quay 7" in found
    assert "garden" not in found


def test_what_is_set_aside_already_is_not_set_aside_again() -> None:
    assert "Meltemi" not in dropped("User: Hello.", aside=("#3: The boat Meltemi is berthed at quay 7.",))


def test_a_value_that_was_corrected_is_not_set_aside() -> None:
    covered = CoveredFacts()
    correction = parse_item("Actually, correction: the budget is 14,000 €", 20, "user")
    covered.entries = {entry.key: entry for entry in correction}
    found = verify_summary("Nothing.", covered, FORMER, mark=False)
    assert "12,000" not in "\n".join(find_dropped(FORMER, found, (), by_sentence=True))


@given(st.lists(pieces, max_size=8), st.lists(pieces, max_size=4), st.booleans())
def test_what_is_set_aside_was_told_before_and_is_not_told_now(
    former: list[str], kept: list[str], by_sentence: bool
) -> None:
    summary = "\n".join(f"User: {' '.join(text.split())}" for text in former)
    covered = CoveredFacts()
    first = verify_summary(summary, covered, FormerSummary(), mark=False)
    before = FormerSummary(summary, ("#9: the budget is 12,000 €",), first.places)
    text = "\n".join(f"User: {' '.join(text.split())}" for text in kept)
    ledger = ("#9: the budget is 12,000 €",)
    new = verify_summary(text, covered, before, mark=False)
    found = find_dropped(before, new, ledger, by_sentence=by_sentence)
    was_told = "\n".join((summary, *before.places, *before.ledger))
    for item in parse_set_aside(found):
        assert item.text.removesuffix("…") in was_told
        assert item.text not in text
        assert item.text not in [listed for _, listed in ledger_items(ledger)]
    assert sum(map(len, found)) <= 2600, "a block stays small"


# -- what returns


def test_what_shares_rare_words_with_the_message_returns_in_order_of_time() -> None:
    found = returning("What was the budget for the boat, and at which quay is it?")
    assert [item.number for item in found] == [3, 9]
    assert found[1].spoken == "User (#9): the budget for the boat is 12,000 €"


def test_a_word_that_the_message_and_those_before_it_have_is_enough() -> None:
    assert [item.number for item in returning("And the tomatoes?", "The tomatoes look dry.")] == [15]
    assert returning("How are you today?", "Fine weather again.") == []


def test_what_the_message_says_itself_does_not_return() -> None:
    assert returning("Tomatoes need water twice a day", "Tomatoes need water") == []


def test_the_same_of_many_others_does_not_return() -> None:
    rows = tuple(f"#{n}: Please read the page about boat {n}" for n in range(1, 9))
    assert returning("Please read on about the boat with the page of Ada", lines=rows) == []


def test_a_corrected_value_does_not_return_without_its_correction() -> None:
    lines = (*ASIDE, "#40: Actually, the budget for the boat is 14,000 €")
    found = returning("Is the budget for the boat enough?", lines=lines)
    assert "12,000" not in "".join(item.text for item in found)
    assert "14,000" in "".join(item.text for item in found)


def test_a_value_that_the_summary_corrects_does_not_return() -> None:
    known = parse_item("Actually, the budget for the boat is 14,000 €", 40, "user")
    topic = find_topic("Is the budget for the boat enough?")
    assert all("12,000" not in item.text for item in find_returning(ASIDE, topic, known, 500, length))


def test_an_answer_returns_with_its_question() -> None:
    lines = ("#6 assistant: Which colour should the sail have?", "#7: Dark red like the sail of Ada")
    assert [item.number for item in returning("The sail of Ada", "A sail", lines=lines)] == [6, 7]


def test_other_languages_and_scripts_return_too() -> None:
    german = ("#4: Der Liegeplatz im Hafen kostet 900 € im Jahr", "#5: Die Tomaten brauchen Wasser")
    assert [item.number for item in returning("Was kostet der Liegeplatz im Hafen?", lines=german)] == [4]
    chinese = ("#4: 港口的船位费是九百元", "#5: 西红柿需要水")
    assert [item.number for item in returning("港口的船位费是多少？", lines=chinese)] == [4]


@given(st.lists(pieces, max_size=8), pieces, st.lists(pieces, max_size=3), st.integers(0, 300))
def test_what_returns_was_set_aside_and_stays_in_its_room(
    texts: list[str], message: str, latest: list[str], limit: int
) -> None:
    lines = tuple(f"#{n}: {flat}" for n, text in enumerate(texts, 1) if (flat := " ".join(text.split())))
    topic = find_topic(message, latest)
    found = find_returning(lines, topic, (), limit, length)
    assert set(found) <= set(parse_set_aside(lines))
    assert found == find_returning(lines, topic, (), limit, length)
    assert not found or length(with_returned("", found)) <= limit + 1


def test_a_summary_is_split_from_what_returned_to_it() -> None:
    item = SetAsideItem(57, "user", "The boat is red")
    whole = with_returned("User: Hello.", [item])
    assert whole == f"User: Hello.\n\n{RETURNED}\nUser (#57): The boat is red"
    assert split_returned(whole) == ("User: Hello.", ["User (#57): The boat is red"])
    assert split_returned("User: Hello.") == ("User: Hello.", [])


# -- contents


def test_contents_name_the_topics_of_a_range() -> None:
    found = add_to_contents((), ASIDE, (), lambda lines: True)
    (line,) = found
    assert line.startswith("#3–#15: ")
    assert "Meltemi" in line


def test_words_that_many_lines_have_are_no_topics() -> None:
    others = [f"#{n}: We often talk about the weather of Lisbon" for n in range(1, 40)]
    (line,) = add_to_contents((), ("#50: We talk about the weather and the sailboat of Lisbon",), others, bool)
    assert line.startswith("#50: sailboat")


def test_older_ranges_are_coarser() -> None:
    contents: tuple[str, ...] = ()
    for n in range(1, 40):
        contents = add_to_contents(contents, (f"#{10 * n}: The topic{'abcdefg'[n % 7]} of harbours",), (), bool)
    ranges = parse_contents(contents)
    assert 2 <= len(ranges) <= 8
    lengths = [each.last - each.first for each in ranges]
    assert lengths[0] > lengths[-1]


@given(st.lists(st.lists(st.tuples(st.integers(1, 999), pieces), max_size=4), max_size=12), st.integers(0, 200))
def test_contents_stay_in_their_room_and_their_ranges_are_apart(steps: list[list[tuple[int, str]]], limit: int) -> None:
    contents: tuple[str, ...] = ()
    for step in steps:
        lines = [f"#{n}: {flat}" for n, text in step if (flat := " ".join(text.split()))]
        contents = add_to_contents(contents, lines, (), lambda found: len("\n".join(found)) <= limit)
        assert len("\n".join(contents)) <= limit
        assert len(contents) <= 8
        ranges = parse_contents(contents)
        assert len(ranges) == len(contents)
        assert all(one.last < other.first for one, other in pairwise(ranges))
