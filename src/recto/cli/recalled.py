"""What was recalled for a message, in one line."""

from typing import TYPE_CHECKING

from recto.cli.show import counted

if TYPE_CHECKING:
    from recto.window.window import Window

MOST_NUMBERS = 12


def in_words(window: "Window") -> str | None:
    """By the numbers that the model reads too; None where nothing was recalled."""
    picks = [pick for section in window.sections if section.name == "recalled" for pick in section.picks]
    # several passages of one message are one message
    numbers = list(dict.fromkeys(pick.because.partition(",")[0] for pick in picks))
    if not numbers:
        return None
    more = " …" if len(numbers) > MOST_NUMBERS else ""
    return f"recalled {counted(len(numbers), 'earlier message')} ({' '.join(numbers[:MOST_NUMBERS])}{more})"
