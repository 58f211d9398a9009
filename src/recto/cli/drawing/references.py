"""References after a reply: documents that a message named and that a tool read or found; quotes of notes;
search hits, with the searched words in bold."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.chat.blocks import DocumentReference, Quote, References, unique_references
from recto.chat.message import Message
from recto.cli import show
from recto.cli.terminal import in_one_line, to_file
from recto.events import Event, NotesQuoted, Referenced, Replied
from recto.search.terms import normalize_text, query_terms

if TYPE_CHECKING:
    from recto.recall.message_search import FoundMessage

HEADING = "📚 Referenced documents"
FOLD = 10
NOWHERE: Mapping[str, Path] = {}
SUMMARY_WIDTH = 100
QUOTES = "From your notes"
TINY = "In the words of {model}, a small model that may be wrong:"
LONGEST_HEADING = 40
SNIPPET_WIDTH, AHEAD = 200, 40
PLACES = {"active": "", "archived": "archived", "branch": "on another branch ({id})"}
# Words may differ in their endings: a stemmer finds `masts` with `mast`.
ENDING, LEAST = 3, 3

Span = tuple[int, int]


class ReferenceListener:
    """Collects the documents of question and reply for lines to show after the reply."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._asked: Message | None = None
        self._quoted = frozenset[str]()
        self._is_terminal = is_terminal

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, NotesQuoted):
            self._quoted = frozenset(each.relative_path for each in event.quotes)
            return quotes_shown(event, is_terminal=self._is_terminal)
        if isinstance(event, Replied) and not event.message.calls:
            messages = [*([self._asked] if self._asked else ()), event.message]
            return message_references(messages, self._quoted, is_terminal=self._is_terminal)
        return []


def message_references(
    messages: list[Message],
    quoted: Set[str] = frozenset(),
    *,
    is_terminal: bool,
    fold: int | None = FOLD,
) -> list[str]:
    """Lines for the documents of several messages, each once; without those that were found and `quoted`."""
    known = unique_references(each for message in messages for each in message.references)
    found = [each for each in known if each.reference_type == "direct" or each.relative_path not in quoted]
    places = {
        each.relative_path: Path(block.vault) / each.relative_path
        for message in messages
        for block in message.blocks
        if isinstance(block, References) and block.vault
        for each in block.references
        if each.relative_path
    }
    return references_shown(found, places, fold=fold, is_terminal=is_terminal)


def references_shown(
    references: Sequence[DocumentReference],
    places: Mapping[str, Path] = NOWHERE,
    *,
    fold: int | None = FOLD,
    is_terminal: bool,
) -> list[str]:
    """Lines for documents named, then read, then found; on a terminal with colours and links to the files in
    their `places`.

    More than `fold` are only counted; None shows all. Broken and refused ones are always shown.
    """
    if not references:
        return []
    ordered = sorted(references, key=lambda each: (each.reference_type != "direct", each.context_snippet is not None))
    room = len(ordered) if fold is None else max(0, fold - sum(bool(each.problem) for each in ordered))
    kept = {id(each) for each in [each for each in ordered if not each.problem][:room]}
    shown = [each for each in ordered if each.problem or id(each) in kept]
    lines = [_styled(HEADING, is_terminal, bold=True)]
    lines += [line for each in shown for line in _reference_lines(each, places, is_terminal)]
    if rest := len(ordered) - len(shown):
        lines.append(
            _styled(f"… and {rest} more (`recto conversations show` or /references all)", is_terminal, dim=True)
        )
    return lines


def _reference_lines(each: DocumentReference, places: Mapping[str, Path], is_terminal: bool) -> Iterator[str]:
    wikilink = show.shortened(each.wikilink, SUMMARY_WIDTH)
    if each.problem:
        where = f"  {in_one_line(each.relative_path)}" if each.relative_path else ""
        told = f"⚠ {wikilink}{where}  {show.shortened(each.problem, SUMMARY_WIDTH)}"
        yield _styled(told, is_terminal, fg="yellow")
        return
    assert each.relative_path is not None
    # a search gives a snippet, reading gives all
    how = f"  ({'found' if each.context_snippet else 'read'})" if each.reference_type == "search" else ""
    place = places.get(each.relative_path)
    is_linked = is_terminal and place is not None and place.is_absolute()
    path = to_file(each.relative_path, place or Path(), is_terminal=is_linked)
    yield f"• {_styled(wikilink, is_terminal, bold=True)}  {path}{_styled(how, is_terminal, dim=True) if how else ''}"
    if said := each.summary or each.context_snippet:
        yield _styled(f"  {show.shortened(said, SUMMARY_WIDTH)}", is_terminal, dim=True)


def _styled(text: str, is_terminal: bool, **style: Any) -> str:
    return click.style(text, **style) if is_terminal else text


# -- quotes


def quotes_shown(event: NotesQuoted, *, is_terminal: bool) -> list[str]:
    """A heading, the quotes with the answering sentence in bold, and a word about what follows; on a terminal with
    links to the files."""
    lines = [_styled(QUOTES, is_terminal, bold=True)] if event.quotes else []
    lines += [_quote_line(each, Path(event.vault), is_terminal) for each in event.quotes]
    if event.tiny_model:
        lines.append(_styled(TINY.format(model=show.visible(event.tiny_model)), is_terminal, dim=True))
    return lines


def _quote_line(quote: Quote, root: Path, is_terminal: bool) -> str:
    link = show.shortened(quote.wikilink, LONGEST_HEADING)
    is_told = quote.heading.casefold() in quote.wikilink.casefold()
    heading = "" if is_told else f" › {show.shortened(quote.heading, LONGEST_HEADING)}"
    sentence, more = show.shortened(quote.sentence, SNIPPET_WIDTH), show.shortened(quote.more, SUMMARY_WIDTH)
    shown = to_file(link, root / quote.relative_path, is_terminal=is_terminal) if root.is_absolute() else link
    return f"• {shown}{heading}: {_styled(sentence, is_terminal, bold=True)}{f' {more}' if more else ''}"


# -- search hits


def found_to_json(found: "FoundMessage") -> dict[str, Any]:
    told = wire.fields_to_json(found, "conversation", "title", "place", "score", "because")
    told |= wire.fields_to_json(found.message, "id", "role", "text", "created", "status") | {
        "number": found.message.said
    }
    return told | {"passage": wire.fields_to_json(found, "text", "start", "end")}


def hit_lines(found: "FoundMessage", wanted: str) -> tuple[str, str]:
    """The message, and the passage with the searched words in bold. A message on another branch also gets its id, since
    numbers name messages of the current path."""
    message = found.message
    title = f" ({show.shortened(found.title, 40)})" if found.title else ""
    which = f"#{message.said} in conversation #{found.conversation_number}{title}"
    when = show.when(message.time) if message.time else ""
    facts = [which, when, message.role, PLACES[found.place].format(id=message.id)]
    head = click.style("  ".join(filter(None, facts)), dim=True)
    return head, f"  {bold(*snippet_around(found.text, wanted))}"


def snippet_around(text: str, wanted: str) -> tuple[str, list[Span]]:
    """The part of a passage with most of the words, on one line, and their places in it."""
    line = " ".join(show.visible(text).split())
    places = sorted(_places(line, wanted))
    start = _start(line, places)
    part = line[start : start + SNIPPET_WIDTH]
    before, after = "…" if start else "", "…" if start + SNIPPET_WIDTH < len(line) else ""
    moved = [(first - start + len(before), last - start + len(before)) for first, last in places]
    return before + part + after, [span for span in moved if span[0] >= 0 and span[1] <= len(before + part)]


def _places(line: str, wanted: str) -> Iterator[Span]:
    """The places of the words, with any ending of up to three letters."""
    # folded like the index, but character by character, to keep places
    plain = "".join(unicodedata.normalize("NFC", normalize_text(sign).strip())[:1] or " " for sign in line)
    for term in query_terms(wanted):
        word = term.removesuffix("*")
        stem = re.escape(word[: max(LEAST, len(word) - ENDING)])
        ending = rf"\b{stem}\w{{0,{2 * ENDING}}}\b" if word.isascii() else re.escape(word)
        yield from (found.span() for found in re.finditer(ending, plain))


def _start(line: str, places: list[Span]) -> int:
    """A little before the place that most others follow closely."""
    if len(line) <= SNIPPET_WIDTH or not places:
        return 0
    room = SNIPPET_WIDTH - AHEAD
    best = max(places, key=lambda span: sum(span[0] <= first < span[0] + room for first, _ in places))
    start = max(0, min(best[0] - AHEAD, len(line) - SNIPPET_WIDTH))
    return line.find(" ", start, best[0]) + 1 or start if start else 0


def bold(line: str, spans: list[Span]) -> str:
    out, at = "", 0
    for first, last in spans:
        if first >= at:
            out += line[at:first] + click.style(line[first:last], bold=True)
            at = last
    return out + line[at:]
