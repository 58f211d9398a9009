"""Vectors are checked before they are compared."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from recto.errors import Invalid, NoVectors
from recto.search.embedder import normalize_vectors, open_embedder
from recto.search.embedding_endpoint import EmbeddingAddress, EmbeddingEndpoint
from recto.search.onnx_embedder import MiniLM

HOME = Path("/nonexistent")


@given(arrays(np.float64, (3, 4), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_rows_have_length_one_or_are_zeros(rows: NDArray[np.float64]) -> None:
    vectors = normalize_vectors(rows, ["a", "b", "c"])
    assert vectors.dtype == np.float32
    for row, vector in zip(rows, vectors, strict=True):
        assert np.linalg.norm(vector) == pytest.approx(1 if row.any() else 0, abs=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_vector_that_is_not_finite_is_refused_and_its_text_is_named(bad: float) -> None:
    with pytest.raises(NoVectors, match=r"NaN or infinity for text 2"):
        normalize_vectors([[1.0, 0.0], [bad, 0.0]], ["a", "b"])


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ([[1.0]], "returned 1 vectors for 2 texts"),
        ([[1.0], [1.0], [1.0]], "returned 3 vectors for 2 texts"),
        ([1.0, 2.0], "something else for 2 texts"),
        ([[1.0, 2.0], [1.0]], "different lengths"),
        ([["a"], ["b"]], "not a vector of numbers"),
        ([None, [1.0]], "not a vector of numbers"),
        (None, "something else"),
    ],
)
def test_anything_but_one_row_per_text_is_refused(given: object, because: str) -> None:
    with pytest.raises(NoVectors, match=because):
        normalize_vectors(given, ["a", "b"])


def test_embedders_are_opened_by_name() -> None:
    assert open_embedder("none", home=HOME) is None
    assert isinstance(open_embedder("minilm", home=HOME), MiniLM)
    served = open_embedder("box:nomic:v1.5", home=HOME, address=EmbeddingAddress("http://127.0.0.1:1/v1"))
    assert isinstance(served, EmbeddingEndpoint)
    assert (served.name, served.key) == ("box:nomic:v1.5", "box:nomic:v1.5")


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(Invalid, match="local, multilingual, minilm, none or provider:model"):
        open_embedder("nonsense", home=HOME)


def test_an_address_does_not_show_its_key() -> None:
    assert "secret" not in repr(EmbeddingAddress("http://127.0.0.1/v1", "secret"))


def test_opening_an_embedder_imports_nothing_heavy() -> None:
    code = (
        "import sys; from pathlib import Path; from recto.search.embedding_endpoint import EmbeddingAddress\n"
        "from recto.search.embedder import open_embedder\n"
        "open_embedder('minilm', home=Path('/x')); open_embedder('a:b', home=Path('/x'), address=EmbeddingAddress('http://a'))\n"
        "print([name for name in ('numpy', 'onnxruntime', 'httpx2') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
