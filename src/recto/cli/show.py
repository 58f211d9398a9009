"""How things are put on the screen: JSON lines, notes on stderr, times, shortened texts. Knows no command."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

# Everything a terminal would obey instead of show, and what turns a line around; tabs and line ends are all that a text
# needs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def emit(value: Any) -> None:
    """One JSON object on one line."""
    from recto import wire  # the message types: `recto --help` needs none of them

    click.echo(wire.dumps(value))


def say(text: str, **style: Any) -> None:
    click.echo(click.style(visible(text), **style) if style else visible(text))


def note(text: str) -> None:
    """Something to know beside the answer; the answer alone goes to stdout."""
    click.echo(click.style(f"note: {visible(text)}", dim=True), err=True)


def console(*, err: bool = False) -> "Console":
    from rich.console import Console  # a tenth of a second

    return Console(stderr=err, highlight=False, markup=False, emoji=False)


def visible(text: str) -> str:
    """Without control characters: a document or a model must not be able to steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r", ""))


def shortened(text: str, width: int) -> str:
    """The text on one line, cut where it is too long."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: width - 1].rstrip() + "…"


def when(created: str) -> str:
    """A stored time as the user's clock shows it."""
    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def literal(value: Any) -> str:
    """As TOML writes it."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
