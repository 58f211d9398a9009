"""Vectors in memory: ordered by number, and the nearest of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recto.search.vector_table import VectorMatrix

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


def test_the_nearest_come_first_and_among_equals_the_newest() -> None:
    matrix = VectorMatrix(LENGTH)
    rows = np.eye(LENGTH, dtype=np.float16)[[0, 1, 0, 2]]
    matrix.put([10, 30, 50, 70], [row.tobytes() for row in rows])
    asked = np.array([0.8, 0.6, 0, 0], np.float32)
    assert list(matrix.nearest(asked)) == [50, 10, 30, 70]
