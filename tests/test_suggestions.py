"""Which names fit what was typed."""

from hypothesis import given
from hypothesis import strategies as st

from recto.api.suggestions import CachedSuggestions, Fuzzy, Suggestion


def best(typed: str, *keys: str, most: int = 50) -> list[str]:
    return [keys[number] for number in Fuzzy(keys).best(typed, most)]


def test_what_begins_with_it_comes_before_what_holds_it_and_letters_come_last() -> None:
    keys = ("my embargo", "a barge", "rebar", "bar", "barge", "b a r", "nothing")
    assert best("bar", *keys) == ["bar", "barge", "a barge", "rebar", "my embargo", "b a r"]


def test_words_may_come_in_any_order() -> None:
    assert best("meeting spring", "spring meeting", "spring", "meeting") == ["spring meeting"]


def test_what_is_looked_up_before_it_is_asked_for_is_there_at_once() -> None:
    asked: list[int] = []

    def look_up() -> list[Suggestion]:
        asked.append(1)
        return [Suggestion("boat.md", "boat.md", "boat.md")]

    cached = CachedSuggestions(look_up)
    cached.start()
    cached.start()
    assert [each.insert for each in cached.best("")] == ["boat.md"]
    assert asked == [1]


@given(st.text(max_size=8), st.lists(st.text(max_size=12), max_size=20), st.integers(1, 30))
def test_no_more_are_found_than_asked_for_none_twice_and_all_that_hold_it(
    typed: str, keys: list[str], most: int
) -> None:
    found = Fuzzy(keys).best(typed, most)
    assert len(found) == len(set(found)) <= most
    assert all(0 <= number < len(keys) for number in found)
    holding = {number for number, key in enumerate(keys) if typed[:60] in key}
    assert len(found) == most or holding <= set(found)
