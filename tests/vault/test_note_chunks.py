"""Chunks: they contain the whole text of a note, and know their place in it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.dates import Day
from recto.search.passages import split_passages
from recto.vault.document import Document
from recto.vault.note_chunks import (
    line_number,
    note_chunks,
    note_date,
    note_day,
    parts_text,
    relevant_parts,
)

NOTE = """---
aliases: [The big one]
tags: [boat]
status: draft
---
# Plan

What we want.

## Money

### This year

A lot.

## Empty

## Time

None.
"""
lines = st.sampled_from(["# A", "## B", "### C", "text", "- item [[x]]", "", "```", "---", "x: y", "wort " * 60, "😀é"])
notes = st.lists(lines, max_size=40).map("\n".join) | st.text(max_size=300)


def test_a_chunk_is_the_text_of_a_section() -> None:
    found = note_chunks(Document("boat/plan.md", NOTE))
    assert [piece.text for piece in found] == [
        "# Plan\n\nWhat we want.",
        "### This year\n\nA lot.",
        "## Empty",
        "## Time\n\nNone.",
    ]
    assert found[1].headings == ("Plan", "Money", "This year")
    assert found[1].header == "Plan › Money"


def test_the_first_chunk_has_names_tags_and_properties() -> None:
    first = note_chunks(Document("boat/file name.md", NOTE))[0]
    for said in ("Plan", "file name", "The big one", "#boat", "status draft"):
        assert said in first.header


def test_a_date_comes_from_the_properties_or_from_the_name() -> None:
    assert note_date(Document("daily/2026-06-13.md", "")) == "2026-06-13"
    assert note_date(Document("x.md", "---\ndate: 2026-01-02\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: '2026-01-02 10:00'\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: 2026-1-2T10:00:00Z\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: [soon]\n---\n")) == ""


@given(notes)
def test_chunks_are_verbatim_in_order_disjoint_and_leave_out_only_headings(text: str) -> None:
    document = Document("n.md", text)
    found = note_chunks(document)
    assert [piece for piece in found if document.text[piece.start : piece.end] != piece.text] == []
    assert all(before.end <= after.start for before, after in pairwise(found))
    kept = set[int]().union(*(range(piece.start, piece.end) for piece in found))
    rest = "".join(sign for at, sign in enumerate(text) if at >= document.parsed.body_start and at not in kept)
    headings = {sign for heading in document.parsed.headings for sign in f"#=-{heading.text}"}
    assert {sign for sign in rest if not sign.isspace()} <= headings


@given(notes, st.text(max_size=400))
def test_each_chunk_is_one_passage_of_the_index_and_knows_its_line(text: str, title: str) -> None:
    document = Document(f"{title or 'x'}.md".replace("/", "-"), text)
    for piece in note_chunks(document):
        assert len(split_passages(piece.indexed_text)) <= 1
        assert 1 <= line_number(document, piece.start) <= text.count("\n") + 1


SECTIONS = [f"## Topic {n}\n\n" + f"Something else is told here, number {n}. " * 8 for n in range(12)]
SECTIONS[7] = "## Rigging\n\n### Blocks\n\nThere are 24 blocks of ash. Number 17 squeaks.\n\n### Ropes\n\nBuff rope.\n"
BOAT = Document("boat.md", "# The boat\n\nShe is old.\n\n" + "\n".join(SECTIONS))


def count(text: str) -> int:
    return (len(text) + 3) // 4


def test_matching_parts_come_with_the_headings_above_them() -> None:
    text = parts_text(BOAT, relevant_parts(BOAT, "which block squeaks?", room=60, count=count))
    assert "Number 17 squeaks." in text
    for heading in ("# The boat", "## Rigging", "### Blocks"):
        assert heading in text
    assert "Topic 3" not in text


def test_an_empty_note_or_no_room_gives_nothing() -> None:
    assert relevant_parts(Document("a.md", ""), "x", room=100, count=count) == []
    assert relevant_parts(Document("a.md", "---\na: b\n---\n"), "x", room=100, count=count) == []
    assert relevant_parts(BOAT, "block", room=0, count=count) == []
    assert relevant_parts(BOAT, "block", room=-5, count=count) == []


some_lines = st.sampled_from(
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
    st.lists(some_lines, max_size=40).map("\n".join),
    st.sampled_from(["block squeaks", "word", "", "zzz"]),
    st.integers(0, 400),
)
def test_parts_fit_and_are_in_order_disjoint_and_verbatim(text: str, question: str, room: int) -> None:  # fmt: skip
    document = Document("n.md", text)
    parts = relevant_parts(document, question, room=room, count=count)
    assert count(parts_text(document, parts)) <= room
    assert all(0 <= part.start < part.end <= len(text) for part in parts)
    assert all(before.end < after.start for before, after in pairwise(parts))


def test_a_section_that_does_not_fit_is_shortened_around_the_match() -> None:
    long = Document(
        "a.md", "# A\n\n" + "Nothing is said here. " * 20 + "The key is under the stone. " + "No more. " * 20
    )
    text = parts_text(long, relevant_parts(long, "where is the key", room=50, count=count))
    assert text.startswith("# A")
    assert "under the stone" in text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("daily/2026-06-14.md", "Rain."),
        ("14.06.2026 Sitzung.md", "Rain."),
        ("Board.md", "---\ndate: 2026-06-14\n---\nRain."),
        ("Vorstand.md", "---\ndatum: 14.6.2026\n---\nRegen."),
    ],
)
def test_a_note_has_the_day_of_its_name_or_its_properties(path: str, text: str) -> None:
    assert note_day(Document(path, text)) == Day(2026, 6, 14)


def test_a_note_without_a_day_has_none() -> None:
    assert note_day(Document("Version 3.md", "14 June 2026")) is None
