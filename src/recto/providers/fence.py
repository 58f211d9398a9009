"""A file inside a message, as both wire formats show it to the model."""

import re

from recto.chat.blocks import File


def fenced(file: File) -> str:
    """The file's name and its text between backticks, one more than the text itself has in a row."""
    longest = max((len(run) for run in re.findall("`+", file.text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if file.text.endswith("\n") else "\n"
    return f"File {' '.join(file.name.split())}:\n{fence}\n{file.text}{end}{fence}"
