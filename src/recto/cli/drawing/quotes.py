"""Quotes of notes, in lines: the sentence that answers in bold, with its note and heading; two lines at most each."""

from pathlib import Path
from unicodedata import east_asian_width

import click

from recto.chat.blocks import Quote
from recto.cli import show
from recto.cli.terminal import to_file
from recto.events import NotesQuoted

HEADING = "From your notes"
TINY = "In the words of {model}, a small model that may be wrong:"
# What a long word may leave empty at the end of the first line.
SLACK = 12
LONGEST_HEADING = 40


def quotes_shown(event: NotesQuoted, *, width: int, is_terminal: bool) -> list[str]:
    """Lines: a heading, the quotes, and a word about what follows them; on a terminal with links to the files."""
    lines = [_styled(HEADING, is_terminal, bold=True)] if event.quotes else []
    lines += [_quote_line(each, Path(event.vault), 2 * width - SLACK, is_terminal) for each in event.quotes]
    if event.tiny_model:
        lines.append(_styled(TINY.format(model=show.visible(event.tiny_model)), is_terminal, dim=True))
    return lines


def _quote_line(quote: Quote, root: Path, room: int, is_terminal: bool) -> str:
    link = show.shortened(quote.wikilink, LONGEST_HEADING)
    is_told = quote.heading.casefold() in quote.wikilink.casefold()
    heading = "" if is_told else f" › {show.shortened(quote.heading, LONGEST_HEADING)}"
    left = room - _cells(f"• {link}{heading}: ")
    sentence = _cut(quote.sentence, left)
    more = _cut(quote.more, left - _cells(sentence) - 1) if sentence == show.shortened(quote.sentence, 10**6) else ""
    shown = to_file(link, root / quote.relative_path, is_terminal=is_terminal) if root.is_absolute() else link
    return f"• {shown}{heading}: {_styled(sentence, is_terminal, bold=True)}{f' {more}' if more else ''}"


def _styled(text: str, is_terminal: bool, *, bold: bool = False, dim: bool = False) -> str:
    return click.style(text, bold=bold or None, dim=dim or None) if is_terminal else text


def _cut(text: str, cells: int) -> str:
    """As much as fits, cut at a word; nothing where only a few letters would fit."""
    line, size = show.shortened(text, 10**6), 0
    for at, letter in enumerate(line):
        size += _cells(letter)
        if size > cells:
            head = line[: max(0, at - 1)]
            return f"{head.rpartition(' ')[0] or head}…" if cells >= SLACK else ""
    return line


def _cells(text: str) -> int:
    """The width of a text on a terminal: letters of some scripts take two places."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
