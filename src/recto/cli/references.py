"""References after a reply, in lines: which documents were named and which a tool read or found. Knows no listener."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from recto.chat.references import DocumentReference
from recto.cli import show
from recto.cli.hyperlink import in_one_line, to_file

HEADING = "📚 Documents"
FOLD = 10
SUMMARY_WIDTH = 100


def references_shown(
    references: Sequence[DocumentReference],
    root: Path | None,
    *,
    fold: int | None = FOLD,
    is_terminal: bool,
) -> list[str]:
    """Lines, those that were named first; on a terminal with colours and with links to the files below `root`.

    Of more than `fold` the rest is counted; None shows all.
    """
    if not references:
        return []
    ordered = sorted(references, key=lambda each: each.reference_type != "direct")
    shown = ordered if fold is None else ordered[:fold]
    pen = _Pen(root, is_terminal)
    lines = [pen.styled(HEADING, bold=True), *(line for each in shown for line in pen.lines(each))]
    if rest := len(ordered) - len(shown):
        lines.append(pen.styled(f"… and {rest} more (/references shows all)", dim=True))
    return lines


class _Pen:
    def __init__(self, root: Path | None, is_terminal: bool) -> None:
        self._root, self._is_terminal = root, is_terminal

    def styled(self, text: str, **style: Any) -> str:
        return click.style(text, **style) if self._is_terminal else text

    def lines(self, each: DocumentReference) -> Iterator[str]:
        wikilink = show.shortened(each.wikilink, SUMMARY_WIDTH)
        if each.relative_path is None:
            yield self.styled(f"⚠ {wikilink}  not found", fg="yellow")
            return
        how = self.styled(f"  ({_how(each)})", dim=True) if each.reference_type == "search" else ""
        yield f"• {self.styled(wikilink, bold=True)}  {self._path(each.relative_path)}{how}"
        if said := each.summary or each.context_snippet:
            yield self.styled(f"  {show.shortened(said, SUMMARY_WIDTH)}", dim=True)

    def _path(self, path: str) -> str:
        if self._root is None or not self._root.is_absolute():
            return in_one_line(path)
        return to_file(path, self._root / path, is_terminal=self._is_terminal)


def _how(each: DocumentReference) -> str:
    """Whoever searches gets a snippet, whoever reads gets all."""
    return "found" if each.context_snippet else "read"
