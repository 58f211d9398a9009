"""References after a reply, in lines: which documents were named and which a tool read or found. Knows no listener."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from recto.chat.references import UNREADABLE, DocumentReference
from recto.cli import show
from recto.cli.hyperlink import in_one_line, to_file

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
    """Lines: what was named, then what was read, then what was found; on a terminal with colours and with links to the
    files in their `places`.

    Of more than `fold` the rest is counted, with a `hint` where to see it; None shows all.
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
    """Whoever searches gets a snippet, whoever reads gets all."""
    return "found" if each.context_snippet else "read"
