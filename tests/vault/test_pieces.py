"""Pieces: everything a note says is in one of them, and each can be found by where it stands."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from recto.search.passages import spans
from recto.vault.document import Document
from recto.vault.pieces import day_of, line_of, pieces

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


def test_a_piece_is_the_own_text_of_a_section() -> None:
    found = pieces(Document("boat/plan.md", NOTE))
    assert [piece.text for piece in found] == [
        "# Plan\n\nWhat we want.",
        "### This year\n\nA lot.",
        "## Empty",
        "## Time\n\nNone.",
    ]
    assert found[1].headings == ("Plan", "Money", "This year")
    assert found[1].above == "Plan › Money"


def test_the_first_piece_tells_names_tags_and_properties() -> None:
    first = pieces(Document("boat/file name.md", NOTE))[0]
    for said in ("Plan", "file name", "The big one", "#boat", "status draft"):
        assert said in first.above


def test_a_note_that_says_nothing_is_still_there_by_its_name() -> None:
    (only,) = pieces(Document("a/Empty one.md", ""))
    assert (only.text, only.said) == ("", "Empty one")


def test_hostile_properties_are_no_trouble() -> None:
    deep = f"---\nn: {'9' * 400}\nf: .nan\nd: {{a: [[[[[[1]]]]]]}}\nlong: {'x ' * 900}\n---\ntext"
    assert len(pieces(Document("a.md", deep))[0].said) < 1000


def test_a_note_of_nothing_but_headings_is_not_taken_apart() -> None:
    assert len(pieces(Document("a.md", "# a\n" * 100_000))) < 1000


def test_a_day_comes_from_the_properties_or_from_the_name() -> None:
    assert day_of(Document("daily/2026-06-13.md", "")) == "2026-06-13"
    assert day_of(Document("x.md", "---\ndate: 2026-01-02\n---\n")) == "2026-01-02"
    assert day_of(Document("x.md", "---\ndate: '2026-01-02 10:00'\n---\n")) == "2026-01-02"
    assert day_of(Document("x.md", "---\ndate: 2026-1-2T10:00:00Z\n---\n")) == "2026-01-02"
    assert day_of(Document("x.md", "---\ndate: [soon]\n---\n")) == ""


def test_a_day_that_is_in_no_calendar_does_not_count() -> None:
    assert day_of(Document("x.md", "---\ndate: 2024-13-45\n---\n")) == ""
    assert day_of(Document("2024-05-01.md", "---\ndate: 2024-13-45\n---\n")) == "2024-05-01"
    assert day_of(Document("2024-02-30.md", "")) == ""
    assert day_of(Document("2024-02-011.md", "")) == ""


def test_a_date_is_found_by_what_it_says() -> None:
    (only,) = pieces(Document("x.md", "---\ndue: 2026-01-02\n---\ntext"))
    assert "2026-01-02" in only.above


@given(notes)
def test_pieces_are_verbatim_in_order_disjoint_and_leave_out_only_headings(text: str) -> None:
    document = Document("n.md", text)
    found = pieces(document)
    assert [piece for piece in found if document.text[piece.start : piece.end] != piece.text] == []
    assert all(before.end <= after.start for before, after in pairwise(found))
    kept = set[int]().union(*(range(piece.start, piece.end) for piece in found))
    rest = "".join(sign for at, sign in enumerate(text) if at >= document.parsed.body_start and at not in kept)
    headings = {sign for heading in document.parsed.headings for sign in f"#=-{heading.text}"}
    assert {sign for sign in rest if not sign.isspace()} <= headings


@given(notes, st.text(max_size=400))
def test_each_is_one_passage_of_the_index_and_keeps_its_line(text: str, title: str) -> None:
    document = Document(f"{title or 'x'}.md".replace("/", "-"), text)
    for piece in pieces(document):
        assert len(spans(piece.said)) <= 1
        assert 1 <= line_of(document, piece.start) <= text.count("\n") + 1
