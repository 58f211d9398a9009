"""The reply of a tiny model ends when it repeats itself, invents a heading or writes our fences; no other does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.providers.embedded import FENCES, ReplyEnd

SENTENCES = [
    "The boat was built in 1934.",
    "She is a gaff cutter of oak and larch.",
    "Maren owns most of her!",
    "Is the mast of spruce?",
    "Ned holds the rest, and pays for the paint.",
    "- a list item",
    "2. another item of it",
]


def played(text: str, *, step: int = 3, max_tokens: int | None = 400) -> tuple[str, bool]:
    """What is shown of a reply that comes in pieces, and whether it was ended."""
    end, shown = ReplyEnd(max_tokens), ""
    for at in range(0, len(text), step):
        shown += end.take(text[at : at + step])
    return shown + end.rest(), end.is_over


@pytest.mark.parametrize("length", range(1, len(SENTENCES) + 1))
def test_a_cycle_of_any_length_ends_where_it_begins_again(length: int) -> None:
    cycle = "\n".join(SENTENCES[:length]) + "\n"
    assert played(cycle * 4) == (cycle.rstrip("\n"), True)


def test_a_third_sentence_that_begins_like_two_before_it_ends_it() -> None:
    text = "The plan was to sail. The plan was to paint.\nThe plan was to rest. The plan was nothing."
    for step in (1, 3, 7):
        assert played(text, step=step) == ("The plan was to sail. The plan was to paint.", True)


@pytest.mark.parametrize("heading", ["# Notes", "**Question:**", "Answer:\n", "---\n", "## The plan of the boat"])
def test_a_blank_line_and_an_invented_heading_end_it(heading: str) -> None:
    assert played(f"She was built in 1934.\n\n{heading}\nMore.") == ("She was built in 1934.", True)


def test_a_heading_at_the_beginning_and_a_list_after_a_gap_are_no_end() -> None:
    text = "# Boats\n\nThere are two:\n\n- a red one\n- a green one\n\nNote that both leak."
    assert played(text) == (text, False)


@pytest.mark.parametrize("fence", FENCES)
def test_our_own_fences_end_it(fence: str) -> None:
    assert played(f"She was built in 1934.\n{fence} Welcome.md\nMore.") == ("She was built in 1934.", True)


def test_a_long_reply_ends_with_a_sentence_before_it_would_be_cut_off() -> None:
    text = " ".join(f"Sentence {number} tells of thing {number * 7}." for number in range(60))
    shown, is_over = played(text, step=5, max_tokens=100)
    assert is_over
    assert shown.endswith(".")
    assert text.startswith(shown)


@given(st.permutations(SENTENCES), st.integers(1, 9))
def test_a_reply_that_says_each_thing_once_passes_unchanged(sentences: list[str], step: int) -> None:
    text = "\n".join(sentences)
    assert played(text, step=step) == (text, False)


@given(st.text(alphabet="abBEG IND.,!\n[#*:-", max_size=120), st.integers(1, 7))
def test_what_is_shown_is_the_beginning_of_what_came(text: str, step: int) -> None:
    shown, _ = played(f"Yes. {text}", step=step)
    assert f"Yes. {text}".startswith(shown.removesuffix("…"))


def test_words_that_go_round_without_a_full_stop_end() -> None:
    shown, is_over = played("the plan of the boat and the crew and " * 40)
    assert is_over
    assert len(shown) < 600
