"""Which words of a question the chunks of candidates contain, and their weight."""

from hypothesis import given
from hypothesis import strategies as st

from recto.sources.candidates import CandidateCache, Candidates, name_weight
from recto.sources.source import Rule


def chunks(*texts: str) -> Candidates:
    return CandidateCache().get([Rule(f"{place:02}", text) for place, text in enumerate(texts)])


def test_words_match_in_any_form() -> None:
    found = chunks("Deletes files for good.", "Sent an email.")
    matches, total = found.match("delete the file")
    assert set(matches) == {0}
    assert set(matches[0].words) == {"delete", "file"}
    assert matches[0].weight == total
    assert set(found.match("send emails")[0]) == {1}


def test_a_rare_word_weighs_more() -> None:
    found = chunks(*["open the page"] * 20, "open the invoice")
    matches, _ = found.match("page invoice")
    assert matches[20].weight > matches[0].weight


def test_common_words_weigh_little() -> None:
    found = chunks("get weather", "get going")
    matches, _ = found.match("get the weather")
    assert matches[0].weight > 3 * matches[1].weight


def test_stop_words_do_not_match() -> None:
    found = chunks("of the and to it is", "what is the weather")
    matches, _ = found.match("the of and to it is sunny")
    assert matches == {}


def test_abbreviations_match_the_full_word() -> None:
    found = chunks("Opens a pull request.", "Lists the rows of a database.")
    assert set(found.match("merge my pr")[0]) == {0}
    assert set(found.match("look into the db")[0]) == {1}


def test_rare_words_of_a_name_weigh_more() -> None:
    assert name_weight(frozenset({"get", "weather"})) < name_weight(frozenset({"sunny", "weather"}))


@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60))
def test_no_match_weighs_more_than_the_question(texts: list[str], question: str) -> None:
    found = chunks(*texts)
    matches, total = found.match(question)
    assert all(0 <= each.weight <= total + 1e-9 for each in matches.values())
