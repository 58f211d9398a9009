"""Likelihood: one score from 0 to 1 for how well a chunk serves a question, from what both share in words and meaning.

The numbers are fitted by `python -m bench.pick_fit` on half of the messages of `bench/pick`; the other half is what the
bench reports. From 0.8 on a source is right nine times in ten, at 0.7 as often as not, at 0.4 once in thirty times: a
source that is missed costs a reply, one too many a hundred tokens.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recto.choice.chunks import Chunk
from recto.choice.deck import Held, name_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float64]


# So many words a chunk has, as a rule.
USUAL = 30
# What one word weighs that tells something: a message that says less has no topic that a source could share.
TELLING = 0.8


@dataclass(frozen=True, slots=True)
class Words:
    """What a chunk and a question share in words."""

    share: float
    """How much of the question the chunk holds."""
    name: float
    """How much of its source's name is said."""
    brief: float
    """How much the shared words weigh, the more so the shorter the chunk."""


@dataclass(frozen=True, slots=True)
class Weights:
    near: float = 0.0
    share: float = 0.0
    name: float = 0.0
    brief: float = 0.0
    scale: float = 1.0
    shape: float = 1.0

    def of_words(self, words: Words) -> float:
        return self.share * words.share + self.name * words.name + self.brief * words.brief

    def score(self, evidence: float) -> float:
        """0 for none, never more than 1."""
        return round(1 - math.exp(-((evidence / self.scale) ** self.shape)), 4)

    def scores(self, evidence: "Rows") -> "Rows":
        import numpy as np  # a tenth of a second

        made: Rows = np.round(1 - np.exp(-((evidence / self.scale) ** self.shape)), 4)
        return made


def words_of(held: Held, total: float, chunk: Chunk) -> Words:
    return Words(
        held.mass / max(total, TELLING),
        held.name / max(1.0, name_size(chunk.name)),
        held.mass / (1 + len(chunk.stems) / USUAL),
    )


BOTH = Weights(near=11.86, share=1.04, name=1.50, brief=4.03, scale=9.93, shape=1.36)
WORDS = Weights(share=3.02, name=2.70, brief=5.52, scale=8.27, shape=1.42)
NEAR = Weights(near=18.29, scale=9.15, shape=1.93)
