"""DocumentSummary: a note in one line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.document import Document
from recto.vault.document_summary import MAX_SUMMARY_CHARS, DocumentSummaries, DocumentSummary, document_summary

LONG = "The lining came off today and what was under it was worse than anybody had feared, which is saying something."
MARKS = ["[[", "]]", "](", "![", "`", "%%", "<!--", "|", "- ", "> ", "_", "*", "x. ", "#", "y", "\n", "\n\n"]


def of(text: str) -> DocumentSummary:
    return document_summary(Document("a note.md", text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Title\n\nShort and clear.", "Short and clear."),
        ("Title\n=====\n\nUnder a title.", "Under a title."),
        ("---\ntags: [a]\n---\n\n# T\n\nAfter the properties.", "After the properties."),
        ("---\ndescription: What it is\n---\n\nThe text.", "What it is"),
        (f"---\nsummary: {LONG}\n---\n\nThe text.", "The text."),
        ("---\nsummary: [no, text]\n---\n\nThe text.", "The text."),
        ("[[A]] · [[B]]\n\n#tag #other\n\n![[pic.png]]\n\nReal.", "Real."),
        ("Up: [[Index of everything]]\n\nReal.", "Real."),
        ("```\ncode\n```\n\n    indented\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n\nReal.", "Real."),
        ("%% hidden %%\n<!-- also -->\n\nReal.", "Real."),
        (
            "**Bold**, *leaning*, ~~gone~~, ==marked==, `code_x` and snake_case. ^id",
            "Bold, leaning, gone, marked, code_x and snake_case.",
        ),
        (
            "A [text](http://x.y) by [[people/Ned|him]], see [[Ned#Age]] and [[#Here]].",
            "A text by him, see Ned › Age and Here.",
        ),
        ("With [[a|b]], [[c|d]] it is no table.", "With b, d it is no table."),
        ("- [ ] only a **list**\n- of things", "only a list"),
        ("> [!note] Only a quote\n> of two lines", "Only a quote"),
        ("- a list first\n\nThen a paragraph.", "Then a paragraph."),
        ("", ""),
        ("# Nothing but a title", ""),
        ("https://example.org/only", ""),
        ("Two\nlines.", "Two lines."),
    ],
)
def test_the_summary_is_the_first_real_paragraph_without_markup(text: str, said: str) -> None:
    assert of(text) == DocumentSummary(said)


def test_a_long_sentence_is_cut_where_a_word_ends() -> None:
    found = of(LONG)
    assert found == DocumentSummary(
        "The lining came off today and what was under it was worse than anybody had feared, which is saying…", False
    )
    assert len(of("文" * 300).text) == MAX_SUMMARY_CHARS


@given(st.text(max_size=400) | st.lists(st.sampled_from(MARKS)).map("".join))
def test_every_summary_is_one_short_line(text: str) -> None:
    found = of(text).text
    assert len(found) <= MAX_SUMMARY_CHARS
    assert found == " ".join(found.split())


@pytest.mark.parametrize("sign", ["[", "[[", "`", "*_", "%%", "<!--", "- ", ">", "![", "[a](", "|", "<a"])
def test_hostile_notes_have_a_summary_too(sign: str) -> None:
    assert len(of(sign * 200_000).text) <= MAX_SUMMARY_CHARS


def test_a_summary_is_stored_by_the_hash_of_its_note(tmp_path: Path) -> None:
    gists = DocumentSummaries(tmp_path / "deep" / "gists.db")
    assert gists.get(b"one") is None
    gists.put(b"one", " A boat\n of wood. ")
    gists.close()
    again = DocumentSummaries(tmp_path / "deep" / "gists.db")
    assert again.get(b"one") == "A boat of wood."
    assert again.get(b"two") is None


def test_a_damaged_file_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "gists.db"
    path.write_bytes(b"no database at all" * 100)
    gists = DocumentSummaries(path)
    assert gists.get(b"one") is None
    gists.put(b"one", "kept")
    gists.close()
    assert DocumentSummaries(path).get(b"one") == "kept"


def test_summaries_are_in_memory_if_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for gists in (DocumentSummaries(tmp_path / "taken" / "gists.db"), DocumentSummaries()):
        gists.put(b"one", "kept")
        assert gists.get(b"one") == "kept"
    assert (tmp_path / "taken").read_text() == "a file"
