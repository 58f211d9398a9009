"""The one place that writes to stdout and stderr, so that no foreign text can steer the terminal. JSON lines, notes on
stderr, times, shortened texts, lines folded between words. Knows no command.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from recto.base.text import counted as counted
from recto.errors import Invalid

if TYPE_CHECKING:
    from rich.console import Console

# Control characters and those that change the direction of text, except tabs and line ends.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Our own colours and file links.
_OURS = re.compile(r"(\x1b\[[0-9;]*m|\x1b\]8;;(?:file://[!-~]*)?\x1b\\)")


# Drawing characters, which a screen reader would spell out.
_DRAWN = re.compile("[\u2500-\u259f\u25b0\u25b1]")
_MARKS = str.maketrans({"●": "*", "○": "-"})
# The mode of files that we write.
_PRIVATE = 0o600


def force_plain() -> None:
    """Print plain lines from now on (--plain), also in processes that this one starts."""
    os.environ["RECTO_PLAIN"] = "1"


def is_plain() -> bool:
    """True for plain output: no colours, boxes or bars, and no cursor movement."""
    if os.environ.get("RECTO_PLAIN", "0") not in ("", "0"):
        return True
    is_terminal = any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr))
    return is_terminal and os.environ.get("TERM") == "dumb"


def _drawn(text: str) -> str:
    """Our own text, without drawings in plain mode."""
    return _DRAWN.sub(" ", text).translate(_MARKS) if is_plain() else text


def emit(value: Any, *, err: bool = False) -> None:
    """Print a value as JSON on one line. Control characters that JSON allows are escaped."""
    from recto import wire  # the message types: `recto --help` needs none of them

    told = wire.dumps(value if isinstance(value, dict) else wire.value_to_json(value))
    click.echo(_CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", told), err=err)


def answer(value: Any) -> None:
    """Print the answer of a command: words, or a value as JSON."""
    say(value) if isinstance(value, str) else emit(value)


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    shown = "\n".join(_folded(line, err=err) for line in _drawn(visible(text)).split("\n"))
    click.echo(click.style(shown, **style) if style and not is_plain() else shown, err=err, nl=nl)


def say_words(text: str, **style: Any) -> None:
    """Print a message's text as it was written: the terminal wraps its lines."""
    told = _drawn(visible(text))
    click.echo(click.style(told, **style) if style and not is_plain() else told)


def say_styled(line: str = "", *, err: bool = False) -> None:
    """Print a line with our own colours and file links."""
    parts = _OURS.split(line)
    if is_plain():
        say("".join(parts[::2]), err=err)
        return
    shown = "".join(part if place % 2 else visible(part) for place, part in enumerate(parts))
    click.echo(_folded(shown, err=err), err=err)


def _folded(line: str, *, err: bool) -> str:
    """Fold a line to the terminal's width. Screen readers and programs get it unfolded."""
    stream = sys.stderr if err else sys.stdout
    if is_plain() or stream is None or not stream.isatty() or "\t" in line:
        return line
    return fold(line, shutil.get_terminal_size().columns)


def note(text: str) -> None:
    """Print a note to stderr: stdout has only the answer."""
    say(f"note: {text}", err=True, dim=True)


def hand_over(content: str | bytes) -> None:
    """Print requested content, a piece of text or whole bytes: exact for a program, without control characters on a
    terminal."""
    if sys.stdout.isatty():
        is_whole = isinstance(content, bytes)
        text = content.decode(errors="replace") if isinstance(content, bytes) else content
        click.echo(_drawn(visible(text)), nl=is_whole)
    elif isinstance(content, str):
        click.echo(content, nl=False, color=True)  # else click would strip colours
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def write(output: str | None, content: str | bytes, *, is_private: bool = False) -> None:
    """Write the content to a file, or print it if none is named."""
    if output is None:
        hand_over(content)
        return
    data = content.encode() if isinstance(content, str) else content
    try:
        mode = _PRIVATE if is_private else 0o666
        with open(output, "wb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            file.write(data)
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why


def facts(rows: Iterable[tuple[str, str]], width: int = 12) -> None:
    """Print names at the left, values at the right."""
    for name, value in rows:
        say(f"{name:<{width}}{value}")


def console(*, err: bool = False) -> "Console":
    plain: dict[str, Any] = {"force_terminal": False, "color_system": None} if is_plain() else {}
    return _console_class()(stderr=err, highlight=False, markup=False, emoji=False, **plain)


@cache
def _console_class() -> type["Console"]:
    from rich.console import Console, ConsoleOptions, RenderableType  # a tenth of a second
    from rich.segment import Segment

    class VisibleConsole(Console):
        """Removes control characters from texts when drawing; styles and cursor moves stay."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                elif _CONTROL.search(segment.text) or is_plain():
                    yield Segment(_drawn(visible(segment.text)), segment.style)
                else:
                    yield segment

    return VisibleConsole


def visible(text: str) -> str:
    """The text without control characters: a document or a model must not steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r", ""))


def shortened(text: str, width: int) -> str:
    """The text on one line, cut to `width` terminal cells."""
    line = " ".join(visible(text).split())
    if 2 * len(line) <= width or width_of(line) <= width:
        return line
    if line.isascii():
        return line[: width - 1].rstrip() + "…"
    from rich.cells import set_cell_size  # only for non-ASCII text

    return set_cell_size(line, width - 1).rstrip() + "…"


def when(created: str) -> str:
    """A stored time in local time."""
    try:
        return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:  # an import may hold anything
        return shortened(created, 20)


def literal(value: Any) -> str:
    """The value in TOML."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value}"


_FOLDED = re.compile(r"(\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\)|( +)|((?:(?<=\d) (?=%)|[^ \x1b])+)")


def fold(line: str, width: int) -> str:
    """Break a line between words. Further lines have its indentation; our codes take no room."""
    hang = " " * min(len(line) - len(line.lstrip()), width // 2)
    out, column, blank = "", 0, ""
    for code, space, word in _FOLDED.findall(line):
        if word:
            size = width_of(word)
            if column > len(hang) and column + len(blank) + size > width:
                out, column, blank = f"{out}\n{hang}", len(hang), ""
            out, column, blank = out + blank + word, column + len(blank) + size, ""
        out, blank = out + code, blank + space
    return out + blank


def width_of(text: str) -> int:
    """The width in terminal cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only for non-ASCII text

    return cell_len(text)
