"""The user's own editor, for a text that is to be changed. Knows no conversation."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click

from recto.errors import Invalid
from recto.text import clean


def edited(text: str) -> str | None:
    """What the user made of the text; None when it was left as it is."""
    with _interrupts_left_to_it():
        try:
            changed = click.edit(f"{text.rstrip()}\n".encode(), extension=".md")
        except (click.ClickException, OSError, ValueError) as why:
            said = why.format_message() if isinstance(why, click.ClickException) else str(why)
            raise Invalid(f"the text could not be edited ({said}): set EDITOR to an editor that works") from why
    new = clean(changed)[0].strip() if changed is not None else text.strip()
    return None if new == text.strip() else new


@contextmanager
def _interrupts_left_to_it() -> Iterator[None]:
    # a function and not SIG_IGN, which the editor would inherit
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
