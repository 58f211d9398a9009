"""Which names fit what was typed."""

from recto.api.suggestions import CachedSuggestions, Suggestion, Suggestions


def best(typed: str, *keys: str) -> list[str]:
    return [each.insert for each in Suggestions([Suggestion(key, key, key) for key in keys]).best(typed)]


def test_what_begins_with_it_comes_before_what_holds_it() -> None:
    keys = ("my embargo", "a barge", "rebar", "bar", "barge", "b a r", "nothing")
    assert best("bar", *keys) == ["bar", "barge", "a barge", "rebar", "my embargo"]


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
