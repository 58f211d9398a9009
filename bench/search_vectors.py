"""Comparing a question with the vectors of very many passages, and what they take in memory. Random vectors: what is
measured is the work, not what is found. Beside us the same vectors in single precision, multiplied by numpy."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.table import Times, ms, show
from bench.turn import apart
from recto.search.vector_table import VectorMatrix

LENGTH, AT_ONCE, QUESTIONS = 384, 20_000, 21
# How far a question is from the passage that it is made from.
NOISE = 0.05


def show_vectors(counts: tuple[int, ...]) -> None:
    rows = []
    for count in counts:
        ours, theirs = apart(_ours, count), apart(_plain, count)
        rows += [[f"{count:,}", "VectorMatrix.nearest", *ours], ["", "numpy, float32, the 1,500 largest", *theirs]]
    show("The nearest of many vectors", ("passages", "", "p50 ms", "p95", "memory MB"), rows)


def _ours(count: int) -> tuple[str, str, str]:
    before, matrix = _resident(), VectorMatrix(LENGTH)
    for start in range(0, count, AT_ONCE):
        rows = _rows(start, count)
        matrix.put(range(start, start + len(rows)), [row.tobytes() for row in rows.astype(np.float16)])
    times = [_timed(matrix.nearest, question) for question in _questions(count)]
    return _row(times, _resident() - before)


def _plain(count: int) -> tuple[str, str, str]:
    before, matrix = _resident(), np.empty((count, LENGTH), np.float32)
    for start in range(0, count, AT_ONCE):
        rows = _rows(start, count)
        matrix[start : start + len(rows)] = rows
    find: Callable[[NDArray[np.float32]], object] = lambda question: np.argpartition(matrix @ question, -1_500)  # noqa: E731
    times = [_timed(find, question) for question in _questions(count)]
    return _row(times, _resident() - before)


def _row(times: list[float], memory: int) -> tuple[str, str, str]:
    spent = Times(tuple(times))
    return ms(spent.p50), ms(spent.p95), f"{memory / 1e6:.0f}"


def _rows(start: int, count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(start).standard_normal((min(AT_ONCE, count - start), LENGTH), dtype=np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _questions(count: int) -> list[NDArray[np.float32]]:
    random, rows = np.random.default_rng(7), _rows(0, count)
    return [row + NOISE * random.standard_normal(LENGTH, dtype=np.float32) for row in rows[:QUESTIONS]]


def _timed(find: Callable[[NDArray[np.float32]], object], question: NDArray[np.float32]) -> float:
    begun = time.perf_counter()
    find(question)
    return time.perf_counter() - begun


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
