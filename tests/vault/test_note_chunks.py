"""Chunks: they contain the whole text of a note, and know their place in it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.passages import split_passages
from recto.vault.document import Document
from recto.vault.note_chunks import line_number, note_chunks, note_date

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


def test_an_empty_note_has_a_chunk_with_its_name() -> None:
    (only,) = note_chunks(Document("a/Empty one.md", ""))
    assert (only.text, only.indexed_text) == ("", "Empty one")


def test_hostile_properties_do_no_harm() -> None:
    deep = f"---\nn: {'9' * 400}\nf: .nan\nd: {{a: [[[[[[1]]]]]]}}\nlong: {'x ' * 900}\n---\ntext"
    assert len(note_chunks(Document("a.md", deep))[0].indexed_text) < 1000


@pytest.mark.untraced
def test_a_note_of_very_many_headings_is_split_by_length() -> None:
    assert len(note_chunks(Document("a.md", "# a\n" * 25_000))) < 250


def test_a_date_comes_from_the_properties_or_from_the_name() -> None:
    assert note_date(Document("daily/2026-06-13.md", "")) == "2026-06-13"
    assert note_date(Document("x.md", "---\ndate: 2026-01-02\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: '2026-01-02 10:00'\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: 2026-1-2T10:00:00Z\n---\n")) == "2026-01-02"
    assert note_date(Document("x.md", "---\ndate: [soon]\n---\n")) == ""


def test_an_impossible_date_is_ignored() -> None:
    assert note_date(Document("x.md", "---\ndate: 2024-13-45\n---\n")) == ""
    assert note_date(Document("2024-05-01.md", "---\ndate: 2024-13-45\n---\n")) == "2024-05-01"
    assert note_date(Document("2024-02-30.md", "")) == ""
    assert note_date(Document("2024-02-011.md", "")) == ""


def test_a_date_is_indexed_as_written() -> None:
    (only,) = note_chunks(Document("x.md", "---\ndue: 2026-01-02\n---\ntext"))
    assert "2026-01-02" in only.header


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
