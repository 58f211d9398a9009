"""The parts of a note that match a question, as far as they fit."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recto.vault.document import Document
from recto.vault.note_chunks import NotePart, parts_text, relevant_parts

SECTIONS = [f"## Topic {n}\n\n" + f"Something else is told here, number {n}. " * 8 for n in range(12)]
SECTIONS[7] = "## Rigging\n\n### Blocks\n\nThere are 24 blocks of ash. Number 17 squeaks.\n\n### Ropes\n\nBuff rope.\n"
NOTE = Document("boat.md", "# The boat\n\nShe is old.\n\n" + "\n".join(SECTIONS))


def count(text: str) -> int:
    return (len(text) + 3) // 4


def test_matching_parts_come_with_the_headings_above_them() -> None:
    text = parts_text(NOTE, relevant_parts(NOTE, "which block squeaks?", room=60, count=count))
    assert "Number 17 squeaks." in text
    for heading in ("# The boat", "## Rigging", "### Blocks"):
        assert heading in text
    assert "Topic 3" not in text


def test_the_beginning_is_added_if_there_is_room() -> None:
    text = parts_text(NOTE, relevant_parts(NOTE, "which block squeaks?", room=200, count=count))
    assert text.startswith("# The boat\n\nShe is old.")


def test_without_a_match_the_beginning_is_used() -> None:
    parts = relevant_parts(NOTE, "quantum chromodynamics", room=120, count=count)
    assert parts_text(NOTE, parts).startswith("# The boat\n\nShe is old.\n\n## Topic 0")
    assert len(parts) == 1


def test_a_section_that_does_not_fit_is_shortened_around_the_match() -> None:
    long = Document(
        "a.md", "# A\n\n" + "Nothing is said here. " * 20 + "The key is under the stone. " + "No more. " * 20
    )
    text = parts_text(long, relevant_parts(long, "where is the key", room=50, count=count))
    assert text.startswith("# A")
    assert "under the stone" in text


def test_an_empty_note_or_no_room_gives_nothing() -> None:
    assert relevant_parts(Document("a.md", ""), "x", room=100, count=count) == []
    assert relevant_parts(Document("a.md", "---\na: b\n---\n"), "x", room=100, count=count) == []
    assert relevant_parts(NOTE, "block", room=0, count=count) == []
    assert relevant_parts(NOTE, "block", room=-5, count=count) == []


def test_a_note_that_fits_is_used_whole() -> None:
    note = Document("a.md", "# A\n\none\n\n## B\n\ntwo\n")
    assert relevant_parts(note, "zebra", room=100, count=count) == [NotePart(0, len(note.text) - 1, "A")]


lines = st.sampled_from(
    [
        "# A",
        "## B squeaks",
        "### C",
        "block here",
        "## ",
        "B\n---",
        "",
        "```",
        "word " * 90,
        "Block squeaks. " * 20,
        "x😀",
    ]
)


@given(
    st.lists(lines, max_size=40).map("\n".join),
    st.sampled_from(["block squeaks", "word", "", "zzz"]),
    st.integers(0, 400),
)
def test_parts_fit_and_are_in_order_disjoint_and_verbatim(text: str, question: str, room: int) -> None:  # fmt: skip
    document = Document("n.md", text)
    parts = relevant_parts(document, question, room=room, count=count)
    assert count(parts_text(document, parts)) <= room
    assert all(0 <= part.start < part.end <= len(text) for part in parts)
    assert all(before.end < after.start for before, after in pairwise(parts))


@given(st.integers(1, 300))
def test_the_room_holds_even_if_token_counts_do_not_add_up(room: int) -> None:
    def dear(text: str) -> int:
        return len(text) // 4 + text.count("…") * 40

    parts = relevant_parts(NOTE, "block squeaks something topic 3 number 9", room=room, count=dear)
    assert dear(parts_text(NOTE, parts)) <= room
