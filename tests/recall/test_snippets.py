"""Recalled messages as the model reads them."""

from hypothesis import given
from hypothesis import strategies as st

from recto.recall.snippets import (
    BEGINS,
    ENDS,
    Snippet,
    estimate_tokens,
    pack_snippets,
    snippets_text,
)
from recto.window.count import proportional_shares


def snippet(number: int, text: str, at: str = "2023-05-08 10:00", *, is_recent: bool = False) -> Snippet:
    size = len(text)
    return Snippet(f"m{number}", number, "user", at, text, 0, size, size, estimate_tokens(text), is_recent=is_recent)


def test_a_day_is_told_once_and_its_year_when_it_is_another() -> None:
    days = ["2023-05-08 10:00", "2023-05-08 11:00", "2023-06-01 10:00", "2024-06-01 10:00", "2024-06-02 10:00"]
    lines = snippets_text([snippet(number, "Well.", at) for number, at in enumerate(days, 1)]).split("\n")
    assert [line for line in lines[1:-1] if line.startswith("[")] == [
        "[2023-05-08]",
        "[06-01]",
        "[2024-06-01]",
        "[06-02]",
    ]


def test_of_what_is_recent_the_hour_is_told() -> None:
    old, new = snippet(1, "Well.", "2026-11-01 10:00"), snippet(2, "So.", "2026-11-15 09:54", is_recent=True)
    assert "[2026-11-01]\n#1 user: Well.\n[2026-11-15 09:54]\n#2 user: So." in snippets_text([old, new])


def test_a_message_without_a_time_is_under_no_day() -> None:
    undated = [snippet(1, "Well.", ""), snippet(2, "So.", "2026-11-01 10:00"), snippet(3, "Then.", "")]
    told = snippets_text(undated)
    assert told.split("\n")[1:-1] == [
        "#1 user: Well.",
        "[2026-11-01]",
        "#2 user: So.",
        "[day not known]",
        "#3 user: Then.",
    ]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_whole_messages_stand_there_to_the_last_sign(texts: list[str]) -> None:
    sent = snippets_text([snippet(number, text) for number, text in enumerate(texts)])
    assert sent.startswith(BEGINS)
    assert sent.endswith(ENDS)
    assert all(f"#{number} user: {text}\n" in sent for number, text in enumerate(texts))


def test_parts_of_one_message_are_one_with_a_sign_for_what_is_left_out() -> None:
    first = Snippet("m1", 1, "user", "2023-05-08 10:00", "One. ", 0, 5, 20)
    last = Snippet("m1", 1, "user", "2023-05-08 10:00", "Three.", 10, 16, 20)
    assert "#1 user: One.  … Three. …\n" in snippets_text([first, last])


@given(st.lists(st.integers(0, 400), max_size=30), st.integers(0, 500))
def test_what_is_packed_and_what_is_passed_over_is_all_there_was(sizes: list[int], room: int) -> None:
    ranked = [snippet(number, "x" * size) for number, size in enumerate(sizes)]
    chosen, passed = pack_snippets(ranked, room)
    assert sorted([*chosen, *passed], key=lambda each: each.number) == ranked
    assert sum(each.tokens for each in chosen) <= room
    assert [each.number for each in chosen] == sorted(each.number for each in chosen)


@given(st.integers(0, 1000), st.lists(st.integers(0, 50), min_size=1))
def test_shared_out_is_all_there_was(tokens: int, weights: list[int]) -> None:
    assert sum(proportional_shares(tokens, weights)) == tokens
