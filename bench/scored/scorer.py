"""Scorer: how likely a sentence is needed by whoever goes on with a conversation, from its features.

The weights are data (`scorer.json`), fitted by `make fit` on conversations that others wrote and labelled: small
regression trees whose leaves add up. The file says on which features and data, and how it did on authors held out.
"""

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.scored.features import FEATURES

_MACHINE_MADE = tuple(FEATURES.index(kind) for kind in ("row", "code", "output"))
ALIKE = FEATURES.index("same_shape")
"""Among how many of the same shape a sentence stands."""
Tree = Any
"""A leaf is a number; a branch is `[feature, threshold, tree if at most, tree if more]`."""


class FittedWeights(Struct):
    features: list[str]
    data: str
    """The hash of what they were fitted on."""
    held_out: dict[str, float]
    """How they did on authors that they were not fitted on."""
    base: float
    trees: list[Tree]


@cache
def weights() -> FittedWeights:
    found = msgspec.json.decode(Path(__file__).with_name("scorer.json").read_bytes(), type=FittedWeights)
    if tuple(found.features) != FEATURES:
        raise RuntimeError("scorer.json was fitted on other features: run make fit")
    return found


def scores(rows: Sequence[Sequence[float]]) -> list[float]:
    """A probability for each row of features. Of the lines of a log or a table that look alike, each tells
    little."""
    fitted = weights()
    return [_probability(fitted.base, fitted.trees, row) / series_length(row) for row in rows]


def series_length(row: Sequence[float]) -> float:
    """Among how many machine-made lines of the same shape a sentence stands."""
    return 1 + row[ALIKE] if any(row[kind] for kind in _MACHINE_MADE) else 1.0


def _probability(total: float, trees: Sequence[Tree], row: Sequence[float]) -> float:
    for tree in trees:
        node = tree
        while node.__class__ is list:
            node = node[2] if row[node[0]] <= node[1] else node[3]
        total += node
    return 1 / (1 + math.exp(-total))
