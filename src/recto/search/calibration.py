"""Calibration: puts the cosines of every embedder on one scale.

Each embedder has its own range of cosines. A few questions and their answers show where that range begins and ends.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recto.search.vector_table import Row

# Each question is answered by the text at the same position, and by no other.
SAMPLE_QUESTIONS = (
    "How do I cancel my train ticket?",
    "What is the temperature in the cellar?",
    "Send the report to my boss.",
    "Who painted the picture in the hall?",
    "Delete the photos from last summer.",
    "Which bus goes to the harbour?",
    "Translate the letter into Italian.",
    "How much sugar is in the jam?",
)
SAMPLE_TEXTS = (
    "Tickets for the railway can be returned up to a day before departure.",
    "Reads the thermometer of a room.",
    "Sends a file by mail to a person.",
    "Paintings of the collection, with the artist of each.",
    "Removes images from the album for good.",
    "Timetable of the buses with all stops at the port.",
    "Renders a text in another language.",
    "Recipes for preserves with the weight of each ingredient.",
)
# Embedders that hardly separate the samples are not rescaled.
_MIN_SPAN = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    unrelated: float
    """The mean cosine of texts that have nothing in common."""
    related: float
    """The mean cosine of a question and its answer."""

    def rescale(self, cosines: "Row") -> "Row":
        """Maps cosines to the scale of MiniLM."""
        span = self.related - self.unrelated
        if span < _MIN_SPAN:
            return cosines
        stretch = (MINILM_CALIBRATION.related - MINILM_CALIBRATION.unrelated) / span
        return (cosines - self.unrelated) * stretch + MINILM_CALIBRATION.unrelated


def calibrate(cosines: "Row") -> Calibration:
    """Measures an embedder from its sample cosines: one row per text, one column per question."""
    import numpy as np  # takes a tenth of a second

    size = len(SAMPLE_TEXTS)
    grid = cosines[:size, :size]
    same = np.eye(size, dtype=bool)
    return Calibration(float(grid[~same].mean()), float(grid[same].mean()))


MINILM_CALIBRATION = Calibration(unrelated=0.0428, related=0.4336)
