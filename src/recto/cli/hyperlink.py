"""Hyperlink: a path that a terminal opens as a file when it is clicked. Others see the path alone."""

import os
import sys
from pathlib import Path

from recto.cli.show import visible


def in_one_line(path: str) -> str:
    """A path as it can be shown; a name may hold whatever the disk takes."""
    return visible(path).replace("\n", "\N{REPLACEMENT CHARACTER}")


def to_file(shown: str, place: Path, *, is_terminal: bool | None = None) -> str:
    """`is_terminal` is asked of stdout unless it is told."""
    if is_terminal is None:
        is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    text = in_one_line(shown)
    return f"\x1b]8;;{place.as_uri()}\x1b\\{text}\x1b]8;;\x1b\\" if is_terminal else text
