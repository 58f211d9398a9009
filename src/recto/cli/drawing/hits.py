"""Search hits: messages and passages that were found, with the searched words in bold."""

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from recto.cli import show
from recto.search.terms import normalize_text, query_terms

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage

WIDTH, AHEAD = 200, 40
PLACES = {"active": "", "archived": "archived", "branch": "on another branch ({id})"}
# A stemmer finds `masts` with `mast`: words differ at their end.
ENDING, LEAST = 3, 3

Span = tuple[int, int]


def found_to_json(found: "FoundMessage") -> dict[str, Any]:
    message = found.message
    return {
        "conversation": found.conversation,
        "id": message.id,
        "role": message.role,
        "text": message.text,
        "created": message.created,
        "status": message.status,
        "score": found.score,
        "because": found.because,
        "passage": {"text": found.text, "start": found.start, "end": found.end},
        "number": message.said,
        "place": found.place,
        "title": found.title,
    }


def hit_lines(found: "FoundMessage", wanted: str) -> tuple[str, str]:
    """Which message it is, and the passage with the searched words in bold. A number names a message on the path of
    its conversation; one on another branch is named by its id too."""
    message = found.message
    title = f" ({show.shortened(found.title, 40)})" if found.title else ""
    which = f"#{message.said} in conversation #{found.conversation_number}{title}"
    facts = [which, show.when(message.created), message.role, PLACES[found.place].format(id=message.id)]
    head = click.style("  ".join(filter(None, facts)), dim=True)
    return head, f"  {bold(*snippet_around(found.text, wanted))}"


def snippet_around(text: str, wanted: str) -> tuple[str, list[Span]]:
    """The part of a passage with most of the words, on one line, and where they stand in it."""
    line = " ".join(show.visible(text).split())
    places = sorted(_places(line, wanted))
    start = _start(line, places)
    part = line[start : start + WIDTH]
    before, after = "…" if start else "", "…" if start + WIDTH < len(line) else ""
    moved = [(first - start + len(before), last - start + len(before)) for first, last in places]
    return before + part + after, [span for span in moved if span[0] >= 0 and span[1] <= len(before + part)]


def _places(line: str, wanted: str) -> Iterator[Span]:
    """Where one of the words stands, whatever its ending."""
    plain = _aligned(line)
    for term in query_terms(wanted):
        word = term.removesuffix("*")
        stem = word[: max(LEAST, len(word) - ENDING)] if word.isascii() else word
        at = plain.find(stem)
        while at >= 0:
            end = _word_end(plain, at) if word.isascii() else at + len(stem)
            if not word.isascii() or (not plain[at - 1 : at].isalnum() and end - at <= len(word) + ENDING):
                yield at, end
            at = plain.find(stem, at + 1)


def _aligned(line: str) -> str:
    """Folded as the index folds, character by character, so that places stay."""
    return "".join(unicodedata.normalize("NFC", normalize_text(sign).strip())[:1] or " " for sign in line)


def _word_end(plain: str, at: int) -> int:
    while at < len(plain) and plain[at].isalnum():
        at += 1
    return at


def _start(line: str, places: list[Span]) -> int:
    """Where a part begins that holds as many of the places as can be, at the beginning of a word."""
    if len(line) <= WIDTH or not places:
        return 0
    room = WIDTH - AHEAD
    best = max(places, key=lambda span: (sum(span[0] <= first < span[0] + room for first, _ in places), -span[0]))
    start = max(0, min(best[0] - AHEAD, len(line) - WIDTH))
    return line.find(" ", start, best[0]) + 1 or start if start else 0


def bold(line: str, spans: list[Span]) -> str:
    out, at = "", 0
    for first, last in spans:
        if first >= at:
            out += line[at:first] + click.style(line[first:last], bold=True)
            at = last
    return out + line[at:]
