"""`python -m bench.pick_fit`: fits the numbers of `sources/candidates.py` on the half of the messages that is not held
out, and prints them.

First the weights, by how well the right source is told from all others of its message (a conditional logit over 500
sources); then the scale, by how often a source with such evidence is right. For words and meaning together, for words
alone, and for meaning alone.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.pick_data import Message, filled, messages
from recto.search.embedder import open_embedder
from recto.search.passages import key_sentences
from recto.search.text_vectors import TextVectors
from recto.sources.candidates import CandidateCache, Candidates, RelevanceWeights, word_overlap

Rows = NDArray[np.float64]

SIZE = 500
# What a score of 0.7 stands for, and one of 0.4: how often a source with that score is right. More is asked of words or
# meaning alone: either is less of a sign than both together.
OFTEN, SELDOM = 0.5, {"COMBINED_WEIGHTS": 0.018, "KEYWORD_WEIGHTS": 0.03, "SIMILARITY_WEIGHTS": 0.032}
NAMES = list(RelevanceWeights.__struct_fields__)[:-2]
WORDS_ONLY = ("share", "name", "density")
# Holds back weights that few messages speak for.
RIDGE = 0.3


@dataclass(frozen=True, slots=True)
class Case:
    """A message, and what speaks for each chunk by each saying."""

    message: Message
    evidence: Rows
    """Chunk, saying, the sort of evidence."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        candidates, cases = _cases(Path(folder))
    trained = [case for case in cases if not case.message.is_held_out]
    for name, columns in (
        ("COMBINED_WEIGHTS", NAMES),
        ("KEYWORD_WEIGHTS", WORDS_ONLY),
        ("SIMILARITY_WEIGHTS", ("similarity",)),
    ):
        kept = [NAMES.index(column) for column in columns]
        weights = _fit(candidates, trained, kept)
        scale, shape = _scale(candidates, trained, kept, weights, SELDOM[name])
        told = [f"{column}={value:.2f}" for column, value in zip(columns, weights, strict=True)]
        print(f"{name} = RelevanceWeights({', '.join(told)}, scale={scale:.2f}, shape={shape:.2f})")


def _cases(folder: Path) -> tuple[Candidates, list[Case]]:
    vectors = TextVectors(folder / "vectors.db", lambda: open_embedder("minilm", home=folder), timeout_s=600.0)
    candidates = CandidateCache().get(filled(SIZE))
    try:
        return candidates, [
            _case(candidates, vectors, message) for message in messages() if key_sentences(message.text)
        ]
    finally:
        vectors.close()


def _case(candidates: Candidates, vectors: TextVectors, message: Message) -> Case:
    said = key_sentences(message.text, candidates.best_weight)
    near = vectors.compare(said, candidates.texts)
    if near.cosines is None:
        raise SystemExit(near.warning)
    cosines = np.add.reduceat(near.cosines, candidates.starts, axis=0) / np.asarray(candidates.sizes)[:, None]
    evidence = np.zeros((*cosines.shape, len(NAMES)))
    evidence[..., 0] = np.maximum(cosines, 0.0)
    for saying, (matches, total) in enumerate(map(candidates.match, [*said, message.text] if len(said) > 1 else said)):
        for at, match in matches.items():
            words = word_overlap(match, total, candidates.chunks[at][1])
            evidence[at, saying, 1:] = words.share, words.name, words.density
    return Case(message, evidence)


def _best(candidates: Candidates, case: Case, kept: Sequence[int], weights: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """The best evidence for each source, and whether it is right; without those that are harmless."""
    found: dict[object, tuple[float, Rows]] = {}
    summed = case.evidence[..., kept] @ weights
    by = summed.argmax(1)
    for at, (source, _) in enumerate(candidates.chunks):
        value = float(summed[at, by[at]])
        if source.id not in case.message.harmless and (source.id not in found or value > found[source.id][0]):
            found[source.id] = value, case.evidence[at, by[at]][list(kept)]
    return np.array([row for _, row in found.values()]), np.array([id in case.message.right for id in found])


def _fit(candidates: Candidates, cases: Sequence[Case], kept: Sequence[int]) -> Rows:
    """The best chunk of a source depends on the weights, and they on it: a few rounds of both."""
    weights = np.ones(len(kept))
    for _ in range(6):
        groups = [_best(candidates, case, kept, weights) for case in cases if case.message.right]
        weights = _newton(len(kept), partial(_pull, groups))
    return weights


def _pull(groups: Sequence[tuple[Rows, NDArray[np.bool_]]], weights: Rows) -> tuple[Rows, Rows]:
    pull, bend = -RIDGE * weights, RIDGE * np.eye(len(weights))
    for rows, right in groups:
        told = rows @ weights
        share = np.exp(told - told.max())
        share /= share.sum()
        mean = share @ rows
        pull += right @ rows / right.sum() - mean
        bend += (rows * share[:, None]).T @ rows - np.outer(mean, mean)
    return pull, bend


def _scale(
    candidates: Candidates, cases: Sequence[Case], kept: Sequence[int], weights: Rows, seldom: float
) -> tuple[float, float]:
    """Scale and shape that make a score of the evidence."""
    told, right = list[Rows](), list[NDArray[np.bool_]]()
    for case in cases:
        rows, is_right = _best(candidates, case, kept, weights)
        told.append(rows @ weights)
        right.append(is_right)
    given = np.stack([np.ones(sum(map(len, told))), np.concatenate(told)], axis=1)
    target = np.concatenate(right).astype(float)
    start, rise = _newton(2, lambda now: _logistic(now, given, target))
    high, low = ((_logit(share) - start) / rise for share in (OFTEN, seldom))
    shape = np.log(np.log(1 - 0.7) / np.log(1 - 0.4)) / np.log(high / low)
    return float(high / (-np.log(1 - 0.7)) ** (1 / shape)), float(shape)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _logistic(now: Rows, given: Rows, target: Rows) -> tuple[Rows, Rows]:
    share = 1 / (1 + np.exp(-given @ now))
    bend = (given * (share * (1 - share))[:, None]).T @ given
    return given.T @ (target - share), bend + 1e-6 * np.eye(len(now))


def _newton(size: int, step: Callable[[Rows], tuple[Rows, Rows]]) -> Rows:
    now = np.zeros(size)
    for _ in range(60):
        pull, bend = step(now)
        moved = np.clip(np.linalg.solve(bend, pull), -2, 2)
        now = now + moved
        if np.abs(moved).max() < 1e-7:
            break
    return now


if __name__ == "__main__":
    main()
