"""References after a reply: named before found, broken ones marked, many folded."""

from pathlib import Path

from rich.text import Text

from recto.chat.blocks import UNREADABLE, DocumentReference
from recto.cli.drawing.transcripts import references_shown

BUDGET = DocumentReference("[[Budget]]", "Budget.md", summary="The money for 2026.")
NOPE = DocumentReference("[[Nope]]", None)
ENGINE = DocumentReference("[[Engine]]", "boat/My engine.md", "search", summary="A diesel.")
MAST = DocumentReference("[[Mast]]", "Mast.md", "search", context_snippet="the mast is\ntall")


def shown(*references: DocumentReference, fold: int | None = 10, is_terminal: bool = False) -> list[str]:
    places = {each.relative_path: Path("/notes") / each.relative_path for each in references if each.relative_path}
    return references_shown(references, places, fold=fold, is_terminal=is_terminal)


def test_documents_are_listed_with_their_summaries_named_before_found() -> None:
    assert shown(ENGINE, MAST, BUDGET, NOPE) == [
        "📚 Referenced documents",
        "• [[Budget]]  Budget.md",
        "  The money for 2026.",
        "⚠ [[Nope]]  not found",
        "• [[Engine]]  boat/My engine.md  (read)",
        "  A diesel.",
        "• [[Mast]]  Mast.md  (found)",
        "  the mast is tall",
    ]


def test_more_than_ten_are_folded_and_can_be_shown_all() -> None:
    many = [DocumentReference(f"[[{number}]]", f"{number}.md") for number in range(17)]
    folded = shown(*many)
    assert len(folded) == 12
    assert folded[-1].startswith("… and 7 more (")
    assert len(shown(*many, fold=None)) == 18
    assert len(shown(*many[:10])) == 11


def test_a_shortened_list_never_folds_a_broken_or_refused_one_away() -> None:
    many = [DocumentReference(f"[[{number}]]", f"{number}.md") for number in range(17)]
    refused = DocumentReference("@.env", None, summary="refused: it is outside the project and the vault")
    unreadable = DocumentReference("[[Lost]]", "Lost.md", summary=UNREADABLE)
    lines = shown(*many, NOPE, refused, unreadable)
    assert lines[-4:-1] == [
        "⚠ [[Nope]]  not found",
        "⚠ @.env  refused: it is outside the project and the vault",
        "⚠ [[Lost]]  Lost.md  could not be read",
    ]
    broken = [DocumentReference(f"[[{number}]]", None) for number in range(17)]
    assert len(shown(*broken, BUDGET)) == 19
    assert shown(*broken, BUDGET)[-1].startswith("… and 1 more")


def test_on_a_terminal_paths_are_links_and_what_is_broken_is_yellow() -> None:
    lines = shown(NOPE, ENGINE, is_terminal=True)
    assert lines[1] == "\x1b[33m⚠ [[Nope]]  not found\x1b[0m"
    assert "\x1b]8;;file:///notes/boat/My%20engine.md\x1b\\boat/My engine.md\x1b]8;;\x1b\\" in lines[2]
    text = Text.from_ansi(lines[2])
    assert text.plain == "• [[Engine]]  boat/My engine.md  (read)"
    links = [span.style for span in text.spans if not isinstance(span.style, str)]
    assert "file:///notes/boat/My%20engine.md" in {style.link for style in links}
