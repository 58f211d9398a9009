"""Scorer: how likely a sentence is needed by whoever goes on with a conversation, from its features; how likely it
binds them; how likely it is a lasting fact about the user; and how much a message matters among others.

The weights are data (`scorer.json`), fitted by `make fit` on conversations that others wrote and labelled: small
regression trees whose leaves add up. The file says on which features and data, and how it did on authors held out.
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
# So much of what a sentence is about must be in the one that supersedes it.
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
    """The hash of what they were fitted on."""
    held_out: dict[str, float]
    """How they did on authors that they were not fitted on."""
    heads: dict[str, Head]


@cache
def weights() -> FittedWeights:
    found = msgspec.json.decode(Path(__file__).with_name("scorer.json").read_bytes(), type=FittedWeights)
    if tuple(found.features) != FEATURES:
        raise RuntimeError("scorer.json was fitted on other features: run make fit")
    return found


def scores(rows: Sequence[Sequence[float]], head: str = NEEDED) -> list[float]:
    """A probability for each row of features. Of lines that look alike, as in a log or a list, each tells
    less."""
    add_up = _compiled(head)
    return [1 / (1 + math.exp(-add_up(*row))) / series_length(row) for row in rows]


@cache
def _compiled(head: str) -> Callable[..., float]:
    """The trees as one expression of the features: it takes a quarter of the time of a walk through each tree."""
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
    """How likely each sentence is needed. Readers need little of what tools return, but that is what the reply repeats;
    where it does not, the answer is in the result alone."""
    found = scores(rows)
    return [max(score, _ANSWERS) if each.is_asked_for else score for each, score in zip(said, found, strict=True)]


def is_superseded(sentence: Sentence, said: Sequence[Sentence], likely: Sequence[float], least: float) -> bool:
    """Whether a later sentence that is at least so likely needed gives another figure for the same, and leaves out
    little else of it."""
    later = sentence.superseded_by
    if later < 0 or likely[later] < least:
        return False
    return len(sentence.terms & said[later].terms) >= _COVERS * len(sentence.terms)


def series_length(row: Sequence[float]) -> float:
    """Among how many lines of the same shape a sentence stands; those that people write count less."""
    row_, code, output = _MACHINE_MADE
    return 1 + row[_ALIKE] * (1.0 if row[row_] or row[code] or row[output] else _BY_PEOPLE)


def rating(rows: Sequence[Sequence[float]]) -> float:
    """How much a message of these sentences matters, read alone: 0 is usual, 1 a standard deviation above. Of each
    feature, what is highest among the sentences counts."""
    return _compiled(PRIORITY)(*[max(column) for column in zip(*rows, strict=True)])
