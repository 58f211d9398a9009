"""Vectors in memory: ordered by number, and the nearest of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.search.vector_table import MAX_PRECISE, MIN_CANDIDATES, VectorMatrix

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


@pytest.mark.parametrize("expected", [0, MAX_PRECISE + 1000, MAX_PRECISE + 2000])
def test_very_many_are_compared_almost_as_exactly_however_many_were_expected(expected: int) -> None:
    random, many, width = np.random.default_rng(9), MAX_PRECISE + 2000, 64
    rows = random.standard_normal((many, width))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)
    matrix, order = VectorMatrix(width, expected), random.permutation(many)
    for part in np.array_split(order, 5):
        matrix.put((part * 10).tolist(), [row.tobytes() for row in rows[part]])
    asked = rows[7].astype(np.float32)
    exact = rows.astype(np.float32) @ asked
    found = matrix.nearest(asked)
    assert {number * 10 for number in np.argsort(exact)[-1000:].tolist()} <= found.keys()
    assert all(abs(value - exact[number // 10]) < 0.005 for number, value in found.items())


def test_a_vector_of_zeros_among_very_many_is_near_to_nothing() -> None:
    matrix = VectorMatrix(LENGTH)
    matrix.put([10 * number for number in range(MAX_PRECISE + 1)], [bytes(2 * LENGTH)] * (MAX_PRECISE + 1))
    assert set(matrix.nearest(np.ones(LENGTH, np.float32)).values()) == {0.0}


def test_the_nearest_of_very_many_are_found_by_their_signs_and_compared_exactly() -> None:
    random, many, width = np.random.default_rng(3), 20 * MIN_CANDIDATES, 70
    rows = random.standard_normal((many, width)).astype(np.float32)
    asked = random.standard_normal(width).astype(np.float32)
    near = random.choice(many, 300, replace=False)
    rows[near] += 1.5 * asked
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    matrix = VectorMatrix(width)
    for part in np.array_split(random.permutation(many), 3):
        matrix.put((part * 10).tolist(), [row.tobytes() for row in rows[part].astype(np.float16)])
    found = matrix.nearest(asked)
    exact = rows @ asked
    assert set(list(found)[: len(near)]) == {number * 10 for number in near.tolist()}
    assert all(abs(value - exact[number // 10]) < 0.05 for number, value in found.items())


def test_neighbours_of_the_nearest_of_very_many_count() -> None:
    random, many = np.random.default_rng(3), 2 * MAX_PRECISE
    matrix = VectorMatrix(64)
    matrix.put(range(many), [row.tobytes() for row in random.standard_normal((many, 64)).astype(np.float16)])
    asked = random.standard_normal(64).astype(np.float32)
    for number, value in list(matrix.nearest(asked).items())[:50]:
        assert abs(value - exact(matrix, asked, number)) < 1e-3
