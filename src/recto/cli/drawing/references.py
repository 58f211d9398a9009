"""References after a reply, in lines: which documents a message named, and which a tool read or found.

Search hits: messages and passages that were found, with the searched words in bold.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.chat.blocks import DocumentReference, References, unique_references
from recto.chat.message import Message
from recto.cli import show
from recto.cli.drawing.quotes import quotes_shown
from recto.cli.terminal import in_one_line, to_file
from recto.events import Event, NotesQuoted, Referenced, Replied
from recto.search.terms import normalize_text, query_terms

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage


HEADING = "📚 Referenced documents"
FOLD = 10
NOWHERE: Mapping[str, Path] = {}
SUMMARY_WIDTH = 100


def references_shown(
    references: Sequence[DocumentReference],
    places: Mapping[str, Path] = NOWHERE,
    *,
    fold: int | None = FOLD,
    is_terminal: bool,
    hint: str = "",
) -> list[str]:
    """Lines: documents that were named, then read, then found; on a terminal with colours and links to the files in
    their `places`.

    Of more than `fold` only the number is told, with a `hint` where to see them; None shows all. Broken and refused
    ones are always shown.
    """
    if not references:
        return []
    ordered = sorted(references, key=lambda each: (each.reference_type != "direct", each.context_snippet is not None))
    shown = ordered if fold is None else _folded(ordered, fold)
    pen = _Pen(places, is_terminal)
    lines = [pen.styled(HEADING, bold=True), *(line for each in shown for line in pen.lines(each))]
    if rest := len(ordered) - len(shown):
        lines.append(pen.styled(f"… and {rest} more{hint}", dim=True))
    return lines


def _folded(references: Sequence[DocumentReference], fold: int) -> list[DocumentReference]:
    room = max(0, fold - sum(bool(each.problem) for each in references))
    kept = {id(each) for each in [each for each in references if not each.problem][:room]}
    return [each for each in references if each.problem or id(each) in kept]


class _Pen:
    def __init__(self, places: Mapping[str, Path], is_terminal: bool) -> None:
        self._places, self._is_terminal = places, is_terminal

    def styled(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._is_terminal else text

    def lines(self, each: DocumentReference) -> Iterator[str]:
        wikilink = show.shortened(each.wikilink, SUMMARY_WIDTH)
        if each.problem:
            where = f"  {in_one_line(each.relative_path)}" if each.relative_path else ""
            yield self.styled(f"⚠ {wikilink}{where}  {show.shortened(each.problem, SUMMARY_WIDTH)}", fg="yellow")
            return
        assert each.relative_path is not None
        how = self.styled(f"  ({_how(each)})", dim=True) if each.reference_type == "search" else ""
        yield f"• {self.styled(wikilink, bold=True)}  {self._path(each.relative_path)}{how}"
        if said := each.summary or each.context_snippet:
            yield self.styled(f"  {show.shortened(said, SUMMARY_WIDTH)}", dim=True)

    def _path(self, path: str) -> str:
        place = self._places.get(path)
        if place is None or not place.is_absolute():
            return in_one_line(path)
        return to_file(path, place, is_terminal=self._is_terminal)


def _how(each: DocumentReference) -> str:
    """A search gives a snippet, reading gives all."""
    return "found" if each.context_snippet else "read"


class ReferenceListener:
    """Collects the documents of question and reply, and gives lines to show once the reply is whole."""

    def __init__(self, *, is_terminal: bool, hint: str = "", width: int = 80) -> None:
        self._asked: Message | None = None
        self._quoted = frozenset[str]()
        self._is_terminal, self._hint, self._width = is_terminal, hint, width

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, NotesQuoted):
            self._quoted = frozenset(each.relative_path for each in event.quotes)
            return quotes_shown(event, width=self._width, is_terminal=self._is_terminal)
        if isinstance(event, Replied) and not event.message.calls:
            messages = [*([self._asked] if self._asked else ()), event.message]
            return message_references(messages, self._quoted, is_terminal=self._is_terminal, hint=self._hint)
        return []


def message_references(
    messages: list[Message],
    quoted: Set[str] = frozenset(),
    *,
    is_terminal: bool,
    fold: int | None = FOLD,
    hint: str = "",
) -> list[str]:
    """The documents of several messages, each once, in lines; without those that were found and `quoted`."""
    known = unique_references(each for message in messages for each in message.references)
    found = [each for each in known if each.reference_type == "direct" or each.relative_path not in quoted]
    blocks = [block for message in messages for block in message.blocks if isinstance(block, References)]
    places = {
        each.relative_path: Path(block.vault) / each.relative_path
        for block in blocks
        for each in block.references
        if block.vault and each.relative_path
    }
    return references_shown(found, places, fold=fold, is_terminal=is_terminal, hint=hint)


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
    when = show.when(message.time) if message.time else ""
    facts = [which, when, message.role, PLACES[found.place].format(id=message.id)]
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
