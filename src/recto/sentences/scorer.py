"""Scorer: estimates from a sentence's features how likely it is needed to continue a conversation, is binding, or is a
lasting fact about the user; and how much a message matters.

The weights are data (`scorer.json`), fitted by `make fit` on conversations written and labelled by others: small
regression trees whose leaves are summed. The file names the features and data, and the results on held-out authors.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from recto.sentences.features import FEATURES, Sentence

NEEDED, BINDS, LASTING, PRIORITY = "needed", "binds", "lasting", "priority"
_MACHINE_MADE = tuple(FEATURES.index(kind) for kind in ("row", "code", "output"))
_BY_PEOPLE = 0.12
_ANSWERS = 0.5
# The share of a sentence's topic that one superseding it must cover.
_COVERS = 0.5
_ALIKE = FEATURES.index("same_shape")
Tree = Any
"""A leaf is a number; a branch is `[feature, threshold, tree if at most, tree if more]`."""


class Head(Struct):
    base: float
    trees: list[Tree]


class FittedWeights(Struct):
    features: list[str]
    data: str
    held_out: dict[str, float]
    heads: dict[str, Head]


@cache
def weights() -> FittedWeights:
    found = msgspec.json.decode(Path(__file__).with_name("scorer.json").read_bytes(), type=FittedWeights)
    if tuple(found.features) != FEATURES:
        raise RuntimeError("scorer.json was fitted on other features: run make fit")
    return found


def scores(rows: Sequence[Sequence[float]], head: str = NEEDED) -> list[float]:
    """A probability for each row of features, lowered for lines that look alike, as in a log or a list."""
    add_up = _compiled(head)
    return [1 / (1 + math.exp(-add_up(*row))) / series_length(row) for row in rows]


@cache
def _compiled(head: str) -> Callable[..., float]:
    """The trees as one expression of the features, which takes a quarter of the time of walking them."""
    fitted = weights().heads[head]
    names = ", ".join(f"f{place}" for place in range(len(FEATURES)))
    found: Callable[..., float] = eval(f"lambda {names}: " + " + ".join(map(_expression, (fitted.base, *fitted.trees))))
    return found


def _expression(tree: Tree) -> str:
    if not isinstance(tree, list):
        return repr(float(tree))
    feature, threshold, below, above = tree
    return f"({_expression(below)} if f{feature:d} <= {float(threshold)!r} else {_expression(above)})"


def needed(said: Sequence[Sentence], rows: Sequence[Sequence[float]]) -> list[float]:
    """How likely each sentence is needed. Of tool results readers mostly need what the reply repeats; if it repeats
    nothing, the answer is in the result alone."""
    found = scores(rows)
    return [max(score, _ANSWERS) if each.is_asked_for else score for each, score in zip(said, found, strict=True)]


def is_superseded(sentence: Sentence, said: Sequence[Sentence], likely: Sequence[float], least: float) -> bool:
    """True if a later sentence, at least as likely needed as `least`, has another figure for the same thing and covers
    most of the rest."""
    later = sentence.superseded_by
    if later < 0 or likely[later] < least:
        return False
    return len(sentence.terms & said[later].terms) >= _COVERS * len(sentence.terms)


def series_length(row: Sequence[float]) -> float:
    """The number of lines of the same shape around a sentence; lines that people write count less."""
    row_, code, output = _MACHINE_MADE
    return 1 + row[_ALIKE] * (1.0 if row[row_] or row[code] or row[output] else _BY_PEOPLE)


def rating(rows: Sequence[Sequence[float]]) -> float:
    """How much a message of these sentences matters, read alone: 0 is average, 1 a standard deviation above. Each
    feature counts with its maximum over the sentences."""
    return _compiled(PRIORITY)(*[max(column) for column in zip(*rows, strict=True)])
