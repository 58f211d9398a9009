"""WordWrap: what is typed continues on the next row between words. The prompt itself would cut words anywhere."""

import re
from bisect import bisect_right
from typing import NamedTuple

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments

from recto.cli.folding import width_of

_PART = re.compile(r"\S+|\s")


class RowBreaks(NamedTuple):
    padding: dict[int, int]
    """By the place of each word that begins a row, the blanks that fill the row before it."""
    unseen: set[int]
    """Blanks that would begin a row."""


def row_breaks(text: str, width: int) -> RowBreaks:
    """A word that is too long for any row is cut."""
    breaks = RowBreaks({}, set())
    column = 0
    for part in _PART.finditer(text):
        size, is_blank = width_of(part[0]), part[0].isspace()
        if column >= width and is_blank:
            breaks.unseen.add(part.start())
            continue
        column = 0 if column >= width else column
        if is_blank or size > width:
            column = (column + size - 1) % width + 1 if size else column
        elif column + size > width:
            breaks.padding[part.start()] = width - column
            column = size
        else:
            column += size
    return breaks


class WordWrap(Processor):
    def __init__(self, prefix: int) -> None:
        """`prefix`: cells that stand before each row."""
        self._prefix = prefix

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        given = transformation_input
        width = given.width - self._prefix
        breaks = row_breaks(fragment_list_to_text(given.fragments), width) if width > 1 else None
        return _broken(given.fragments, breaks) if breaks and any(breaks) else Transformation(given.fragments)


def _broken(fragments: StyleAndTextTuples, breaks: RowBreaks) -> Transformation:
    shown: StyleAndTextTuples = []
    places: list[int] = []
    added = 0
    for at, fragment in enumerate(explode_text_fragments(fragments)):
        if at in breaks.padding:
            shown.append(("", " " * breaks.padding[at]))
            added += breaks.padding[at]
        places.append(at + added)
        if at in breaks.unseen:
            added -= 1
        else:
            shown.append(fragment)

    def to_display(place: int) -> int:
        return places[place] if place < len(places) else place + added

    def to_source(place: int) -> int:
        return max(0, bisect_right(places, place) - 1) if place <= places[-1] else place - added

    return Transformation(shown, to_display, to_source)
