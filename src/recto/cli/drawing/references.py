"""References after a reply, in lines: which documents a message named, and which a tool read or found."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from recto.chat.blocks import References
from recto.chat.document_reference import UNREADABLE, DocumentReference, unique_references
from recto.chat.message import Message
from recto.cli import show
from recto.cli.terminal import in_one_line, to_file
from recto.events import Event, Referenced, Replied

HEADING = "📚 Documents"
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

    Of more than `fold` only the number is told, with a `hint` where to see them; None shows all.
    """
    if not references:
        return []
    ordered = sorted(references, key=lambda each: (each.reference_type != "direct", each.context_snippet is not None))
    shown = ordered if fold is None else ordered[:fold]
    pen = _Pen(places, is_terminal)
    lines = [pen.styled(HEADING, bold=True), *(line for each in shown for line in pen.lines(each))]
    if rest := len(ordered) - len(shown):
        lines.append(pen.styled(f"… and {rest} more{hint}", dim=True))
    return lines


class _Pen:
    def __init__(self, places: Mapping[str, Path], is_terminal: bool) -> None:
        self._places, self._is_terminal = places, is_terminal

    def styled(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._is_terminal else text

    def lines(self, each: DocumentReference) -> Iterator[str]:
        wikilink = show.shortened(each.wikilink, SUMMARY_WIDTH)
        if each.relative_path is None:
            yield self.styled(f"⚠ {wikilink}  not found", fg="yellow")
            return
        if each.summary == UNREADABLE:
            yield self.styled(f"⚠ {wikilink}  {in_one_line(each.relative_path)}  could not be read", fg="yellow")
            return
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

    def __init__(self, *, is_terminal: bool, hint: str = "") -> None:
        self._asked: Message | None = None
        self._is_terminal, self._hint = is_terminal, hint

    def hear(self, event: Event) -> list[str]:
        if isinstance(event, Referenced):
            self._asked = event.message
        if isinstance(event, Replied) and not event.message.calls:
            messages = [*([self._asked] if self._asked else ()), event.message]
            return message_references(messages, is_terminal=self._is_terminal, hint=self._hint)
        return []


def message_references(
    messages: list[Message], *, is_terminal: bool, fold: int | None = FOLD, hint: str = ""
) -> list[str]:
    """The documents of several messages, each once, in lines."""
    found = unique_references(each for message in messages for each in message.references)
    blocks = [block for message in messages for block in message.blocks if isinstance(block, References)]
    places = {
        each.relative_path: Path(block.vault) / each.relative_path
        for block in blocks
        for each in block.references
        if block.vault and each.relative_path
    }
    return references_shown(found, places, fold=fold, is_terminal=is_terminal, hint=hint)
