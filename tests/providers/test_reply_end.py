"""The reply of a tiny model ends when it repeats itself or writes our fences; no other does."""

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


def played(text: str, *, step: int = 3) -> tuple[str, bool]:
    """What is shown of a reply that comes in pieces, and whether it was ended."""
    end, shown = ReplyEnd(), ""
    for at in range(0, len(text), step):
        shown += end.take(text[at : at + step])
    return shown + end.rest(), end.is_over


@pytest.mark.parametrize("length", range(1, len(SENTENCES) + 1))
def test_a_cycle_of_any_length_ends_where_it_begins_again(length: int) -> None:
    cycle = "\n".join(SENTENCES[:length]) + "\n"
    assert played(cycle * 4) == (cycle.rstrip("\n"), True)


@pytest.mark.parametrize("fence", FENCES)
def test_our_own_fences_end_it(fence: str) -> None:
    assert played(f"She was built in 1934.\n{fence} Welcome.md\nMore.") == ("She was built in 1934.", True)


@given(st.permutations(SENTENCES), st.integers(1, 9))
def test_a_reply_that_says_each_thing_once_passes_unchanged(sentences: list[str], step: int) -> None:
    text = "\n".join(sentences)
    assert played(text, step=step) == (text, False)


@given(st.text(alphabet="abBEG IND.,!\n[#*:-", max_size=120), st.integers(1, 7))
def test_what_is_shown_is_the_beginning_of_what_came(text: str, step: int) -> None:
    shown, _ = played(f"Yes. {text}", step=step)
    assert f"Yes. {text}".startswith(shown)
