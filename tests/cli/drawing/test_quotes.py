"""Quotes of notes: the sentence that answers in bold, its note as a link."""

from pathlib import Path

from click import unstyle
from rich.text import Text

from recto.chat.blocks import DocumentReference, Quote, References
from recto.chat.message import Message
from recto.cli.drawing.transcripts import message_references, quotes_shown
from recto.events import NotesQuoted

MAST = Quote("[[Mast]]", "boat/The mast.md", "Height", 7, "The mast is 12 m tall.", "It is of spruce.")


def shown(*quotes: Quote, tiny_model: str = "", is_terminal: bool = False) -> list[str]:
    return quotes_shown(NotesQuoted(quotes, "/notes", tiny_model), is_terminal=is_terminal)


def test_the_heading_is_left_out_where_it_only_repeats_the_note() -> None:
    assert shown(Quote("[[Mast]]", "Mast.md", "Mast", 1, "Tall."))[1] == "• [[Mast]]: Tall."


def test_the_words_of_a_tiny_model_are_announced() -> None:
    assert shown(MAST, tiny_model="embedded:smollm2")[-1] == (
        "In the words of embedded:smollm2, a small model that may be wrong:"
    )


def test_on_a_terminal_the_sentence_is_bold_and_the_note_a_link() -> None:
    text = Text.from_ansi(shown(MAST, is_terminal=True)[1])
    assert text.plain == "• [[Mast]] › Height: The mast is 12 m tall. It is of spruce."
    bold = [text.plain[span.start : span.end] for span in text.spans if "bold" in str(span.style)]
    assert bold == ["The mast is 12 m tall."]
    links = {span.style.link for span in text.spans if not isinstance(span.style, str)}
    assert "file:///notes/boat/The%20mast.md" in links


def test_texts_cannot_steer_the_terminal() -> None:
    evil = Quote("[[a\x1b[31m]]", "a\x07.md", "h\x1b]0;x\x07", 1, "one\ntwo \x1b[2J", "\x9bmore")
    for is_terminal in (True, False):
        for line in shown(evil, tiny_model="m\x1b[31m", is_terminal=is_terminal):
            assert "\x1b[2J" not in line
            assert "\x9b" not in line
            assert "\n" not in unstyle(line)


def test_a_document_that_is_quoted_is_not_listed_again_unless_the_user_named_it() -> None:
    references = (DocumentReference("[[Mast]]", "Mast.md", "search"), DocumentReference("[[Keel]]", "Keel.md"))
    reply = Message("1", "assistant", (References(references, vault=str(Path("/notes"))),))
    lines = message_references([reply], {"Mast.md", "Keel.md"}, is_terminal=False)
    assert lines == ["📚 Referenced documents", "• [[Keel]]  Keel.md"]
