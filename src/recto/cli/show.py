"""The one place that writes to stdout and stderr, so that no foreign text can steer the terminal. JSON lines, notes on
stderr, times, shortened and folded texts. Knows no command.

Long lines fold between words, and names longer than a line after a punctuation sign: a terminal would cut them
anywhere.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.base.text import counted as counted
from recto.errors import Invalid, RectoError

if TYPE_CHECKING:
    from rich.console import Console

# Control characters and those that change the direction of text, except tabs and line ends.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# Our own colours and file links.
_OURS = re.compile(r"(\x1b\[[0-9;]*m|\x1b\]8;;(?:file://[!-~]*)?\x1b\\)")


# Drawing characters, which a screen reader would spell out.
_DRAWN = re.compile("[\u2500-\u259f\u25b0\u25b1]")
_MARKS = str.maketrans({"●": "*", "○": "-"})
_FENCES = ("```", "~~~")
_OFF = ("", "0", "false", "no", "off")
_forced: list[bool] = []
# The mode of files that we write.
_PRIVATE = 0o600


def force_plain() -> None:
    """Print plain lines from now on (--plain)."""
    _forced.append(True)
    is_plain.cache_clear()


@cache
def is_plain() -> bool:
    """True for plain output: no colours, boxes or bars, and no cursor movement."""
    if _forced or os.environ.get("RECTO_PLAIN", "").lower() not in _OFF:
        return True
    if not any(stream is not None and stream.isatty() for stream in (sys.stdout, sys.stderr)):
        return False
    return os.environ.get("TERM") == "dumb" or _is_set()


def _is_set() -> bool:
    from recto.base import locations
    from recto.settings import settings  # only where a user reads: a twentieth of a second

    try:
        return settings.load(locations.find_home(), locations.find_project(Path.cwd())).plain
    except (RectoError, OSError):  # the command itself reports it
        return False


def _drawn(text: str) -> str:
    """Our own text, without drawings in plain mode."""
    return _DRAWN.sub(" ", text).translate(_MARKS) if is_plain() else text


def emit(value: Any, *, err: bool = False) -> None:
    """Print one JSON object on one line. Control characters that JSON allows are escaped."""
    from recto import wire  # the message types: `recto --help` needs none of them

    click.echo(_CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", wire.dumps(value)), err=err)


def answer(value: Any) -> None:
    """Print the answer of a command: words, or a value as JSON."""
    say(value) if isinstance(value, str) else emit(value)


def say(text: str, *, err: bool = False, nl: bool = True, **style: Any) -> None:
    shown = "\n".join(_folded([line], err=err) for line in _drawn(visible(text)).split("\n"))
    click.echo(click.style(shown, **style) if style and not is_plain() else shown, err=err, nl=nl)


def say_words(text: str, **style: Any) -> None:
    """Print a message's text: lines of code are not folded, so that they are copied as written."""
    is_code, shown = False, []
    for line in _drawn(visible(text)).split("\n"):
        is_fence = line.lstrip().startswith(_FENCES)
        shown.append(line if is_code or is_fence else _folded([line], err=False))
        is_code = is_code != is_fence
    told = "\n".join(shown)
    click.echo(click.style(told, **style) if style and not is_plain() else told)


def say_styled(line: str = "", *, err: bool = False) -> None:
    """Print a line with our own colours and file links."""
    parts = _OURS.split(line)
    if is_plain():
        say("".join(parts[::2]), err=err)
        return
    shown = [part if place % 2 else visible(part) for place, part in enumerate(parts)]
    click.echo(_folded(shown, err=err), err=err)


def _folded(parts: list[str], *, err: bool) -> str:
    """Fold a line to the terminal's width; every other part is one of our codes. Screen readers and programs get the
    line unfolded."""
    stream = sys.stderr if err else sys.stdout
    if is_plain() or stream is None or not stream.isatty() or any("\t" in part for part in parts):
        return "".join(parts)
    return fold(parts, shutil.get_terminal_size().columns)


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
    import rich.text  # a tenth of a second
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    # rich would cut a long name anywhere, and has no setting for it
    cropped = vars(rich.text)["divide_line"]
    vars(rich.text)["divide_line"] = lambda text, width, fold=True: (
        fold_offsets(text, width) if fold else cropped(text, width, fold)
    )

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
    return datetime.fromisoformat(created).astimezone().strftime("%Y-%m-%d %H:%M")


def literal(value: Any) -> str:
    """The value in TOML."""
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else f"{value}"


# -- folding

# A number stays with its %.
_WORD = re.compile(r"(?:(?<!\s)\s++)?(?>(?:(?<=\d) (?=%)|\S)+)\s*+")
# A path or a model's name may break after these; a part that is still too long, after the others.
_PART = re.compile(r"[^/\\:=]*[/\\:=]+|[^/\\:=]+")
_SMALLER_PART = re.compile(r"[^_\-]*[_\-]+|[^_\-]+")
# "name   value": continuation lines align with the value. Prose may have two spaces after a sentence.
_LABEL = re.compile(r"\s*\S+(?: \S+)*(?<![.!?,;]) {2,}(?=\S)")
# The prefix of a tree row.
_BRANCH = re.compile(r"[│ ]*[├└]─ (?:[^\w\s] )?")
_PADDING = re.compile(r"(?<=\S) {3,}(?=\S)")
# Largest share of the width for a label: values need room.
LABEL_SHARE = 0.4
# A long name starts on the current line only if this share of it is free.
ROOM_SHARE = 0.5


def fold(parts: Sequence[str], width: int) -> str:
    """Fold a line given in parts; every second part is a code without width."""
    texts = list(parts)
    if width_of("".join(texts[::2])) <= width:
        return "".join(texts)
    label = _label(texts[0], width)
    texts[0] = texts[0][:label] + _PADDING.sub("  ", texts[0][label:])
    texts[2::2] = [_PADDING.sub("  ", text) for text in texts[2::2]]
    line = "".join(texts[::2])
    hang = _hang(line, label, width)
    return "".join(_broken(texts, line, fold_offsets(line, width, hang), hang))


def fold_offsets(text: str, width: int, hang: int = 0) -> list[int]:
    """The places to break a line; every line but the first has `hang` less room."""
    offsets: list[int] = []
    room, whole = width, width - hang
    for word in _WORD.finditer(text):
        size = width_of(word[0].rstrip())
        is_long = size > whole
        if word.start() and size > room and (not is_long or room < ROOM_SHARE * whole):
            offsets.append(word.start())
            room = whole
        for at, piece in _pieces(word, whole) if is_long and size > room else ((word.start(), word[0]),):
            if at and width_of(piece.rstrip()) > room and [at] != offsets[-1:]:
                offsets.append(at)
                room = whole
            room -= width_of(piece)
    return offsets


def _pieces(word: re.Match[str], width: int) -> Iterator[tuple[int, str]]:
    """The pieces of a long word with their places: up to a punctuation sign, or as much as fits on a line."""
    for part in _PART.finditer(word[0]):
        is_long = width_of(part[0].rstrip()) > width
        for smaller in _SMALLER_PART.finditer(part[0]) if is_long else ():
            yield from _chopped(word.start() + part.start() + smaller.start(), smaller[0], width)
        if not is_long:
            yield word.start() + part.start(), part[0]


def _chopped(at: int, text: str, width: int) -> Iterator[tuple[int, str]]:
    left, start, taken = sum(map(width_of, text.rstrip())), 0, 0
    for end, sign in enumerate(text):
        size = width_of(sign)
        if start < end and taken + size > width and left > width:
            yield at + start, text[start:end]
            left, start, taken = left - taken, end, 0
        taken += size
    yield at + start, text[start:]


def _label(text: str, width: int) -> int:
    """The length of the label at the beginning of a line; 0 without one, or if it is too long."""
    found = _LABEL.match(text)
    return found.end() if found and width_of(found[0]) <= LABEL_SHARE * width else 0


def _hang(line: str, label: int, width: int) -> int:
    if branch := _BRANCH.match(line):
        return branch.end()
    indent = len(line) - len(line.lstrip())
    hang = label or indent + (2 if _LABEL.match(line) else 0)
    return hang if hang < width / 2 else 0


def _broken(parts: Sequence[str], line: str, offsets: Sequence[int], hang: int) -> Iterator[str]:
    """The parts with line ends at these places, counted in text parts only. Blanks before a line end are dropped."""
    begins = set(offsets)
    blanks = {at for offset in offsets for at in _blanks_before(line, offset)}
    at = 0
    for number, part in enumerate(parts):
        if number % 2:
            yield part
            continue
        for sign in part:
            if at in begins:
                yield "\n" + " " * hang
            if at not in blanks:
                yield sign
            at += 1


def _blanks_before(line: str, offset: int) -> Iterator[int]:
    while offset and line[offset - 1].isspace():
        offset -= 1
        yield offset


def width_of(text: str) -> int:
    """The width in terminal cells."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # only for non-ASCII text

    return cell_len(text)
