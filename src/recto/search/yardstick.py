"""Yardstick: what a cosine is worth. Each embedder has a range of its own; a few questions and the texts that answer
them tell where it begins and ends, so that one calibration serves them all."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.search.rows import Row

# Each question is answered by the text in the same place, and by none of the others.
QUESTIONS = (
    "How do I cancel my train ticket?",
    "What is the temperature in the cellar?",
    "Send the report to my boss.",
    "Who painted the picture in the hall?",
    "Delete the photos from last summer.",
    "Which bus goes to the harbour?",
    "Translate the letter into Italian.",
    "How much sugar is in the jam?",
)
TEXTS = (
    "Tickets for the railway can be returned up to a day before departure.",
    "Reads the thermometer of a room.",
    "Sends a file by mail to a person.",
    "Paintings of the collection, with the artist of each.",
    "Removes images from the album for good.",
    "Timetable of the buses with all stops at the port.",
    "Renders a text in another language.",
    "Recipes for preserves with the weight of each ingredient.",
)
# Embedders that hardly tell the texts apart are taken as they are.
_LEAST = 0.05


@dataclass(frozen=True, slots=True)
class Yardstick:
    apart: float
    """The mean cosine of what has nothing to do with each other."""
    together: float
    """And of what has."""

    def read(self, cosines: "Row") -> "Row":
        """As MiniLM would have put it."""
        span = self.together - self.apart
        if span < _LEAST:
            return cosines
        stretch = (MINILM.together - MINILM.apart) / span
        return (cosines - self.apart) * stretch + MINILM.apart


def measured(cosines: "Row") -> Yardstick:
    """From a row for each text and a column for each question."""
    import numpy as np  # a tenth of a second

    size = len(TEXTS)
    grid = cosines[:size, :size]
    same = np.eye(size, dtype=bool)
    return Yardstick(float(grid[~same].mean()), float(grid[same].mean()))


MINILM = Yardstick(apart=0.0428, together=0.4336)
