"""What becomes of the keys that a user presses while nothing asks for them. Knows the terminal only."""

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

UNUSABLE = (AttributeError, OSError, ValueError, termios.error)
"""What stdin answers with when it is no terminal, or closed."""


@contextmanager
def echo(is_on: bool) -> Iterator[None]:
    """Off, keys that are pressed do not show up in the middle of the reply; they wait for the next prompt."""
    try:
        place = sys.stdin.fileno()
        before = termios.tcgetattr(place)
    except UNUSABLE:
        yield
        return
    local = before[3] | termios.ECHO if is_on else before[3] & ~termios.ECHO
    termios.tcsetattr(place, termios.TCSADRAIN, [*before[:3], local, *before[4:]])
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(place, termios.TCSADRAIN, before)


def forget_keys() -> None:
    """What was typed before a question was shown is no answer to it."""
    with suppress(*UNUSABLE):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
