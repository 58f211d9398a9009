"""Vectors in memory: ordered by number, and the nearest of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recto.search.vector_table import MAX_SMOOTHED, VectorMatrix

LENGTH = 4


def packed(number: int) -> bytes:
    return np.random.default_rng(number).standard_normal(LENGTH).astype(np.float16).tobytes()


@given(st.lists(st.sets(st.integers(0, 300), max_size=30), max_size=8))
def test_rows_are_ordered_by_number_however_they_arrive(batches: list[set[int]]) -> None:
    matrix, known = VectorMatrix(LENGTH), set[int]()
    for batch in batches:
        fresh = list(batch - known)
        matrix.put(fresh, [packed(number) for number in fresh])
        known |= batch
        assert matrix.numbers.tolist() == sorted(known)
        for number, row in zip(matrix.numbers.tolist(), matrix.rows, strict=True):
            assert row.astype(np.float16).tobytes() == packed(number)


def exact(matrix: VectorMatrix, asked: "np.ndarray", number: int) -> float:
    """The mean of it and its neighbours, written out."""
    near = dict(zip(matrix.numbers.tolist(), (matrix.rows @ asked).tolist(), strict=True))
    parts = [(near.get(number + step), (1.0, 0.3, 0.09)[abs(step)]) for step in range(-2, 3)]
    known = [(float(value), part) for value, part in parts if value is not None]
    return sum(value * part for value, part in known) / sum(part for _, part in known)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_similarity_is_shared_with_neighbours(numbers: set[int]) -> None:
    matrix = VectorMatrix(LENGTH)
    matrix.put(list(numbers), [packed(number) for number in numbers])
    asked = np.random.default_rng(7).standard_normal(LENGTH).astype(np.float32)
    found = matrix.nearest(asked)
    assert found.keys() == numbers
    for number, value in found.items():
        assert abs(value - exact(matrix, asked, number)) < 1e-5


def test_the_nearest_of_very_many_are_found() -> None:
    matrix, many = VectorMatrix(LENGTH), MAX_SMOOTHED * 3
    matrix.put([number * 10 for number in range(many)], [packed(number) for number in range(many)])
    asked = np.random.default_rng(9).standard_normal(LENGTH).astype(np.float32)
    near = matrix.rows @ asked
    best = set(matrix.numbers[np.argsort(near)[-100:]].tolist())
    assert best <= matrix.nearest(asked).keys()
