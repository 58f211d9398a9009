"""TextVectors: made once, stored, and made in the background when time runs out."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recto.errors import Invalid, NoVectors
from recto.search.embedder import Embedder
from recto.search.text_vectors import (
    MINILM_CALIBRATION,
    SAMPLE_QUESTIONS,
    SAMPLE_TEXTS,
    Calibration,
    HashedTexts,
    TextVectors,
    calibrate,
)

BOATS = HashedTexts.of(["The mast is tall.", "Rye bread is baked on Thursday.", "The sail is red."])


class Letters:
    """An embedder that counts letters."""

    name = key = "letters"

    def __init__(self, length: int = 26) -> None:
        self.length, self.asked = length, list[str]()
        self.error: Exception | None = None
        self.bad = ""
        self.gate = threading.Event()
        self.gate.set()

    def embed(self, texts: Sequence[str]) -> Any:
        self.gate.wait(60)
        if self.error:
            raise self.error
        if self.bad and any(self.bad in text for text in texts):
            raise NoVectors("too long")
        self.asked += texts
        rows = np.array([[text.lower().count(chr(97 + at)) for at in range(self.length)] for text in texts], float)
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def close(self) -> None:
        self.gate.set()


Open = Callable[..., TextVectors]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    every: list[TextVectors] = []

    def make(embedder: Embedder | None, timeout_s: float = 60.0) -> TextVectors:
        every.append(TextVectors(tmp_path / "sources.db", lambda: embedder, timeout_s=timeout_s))
        return every[-1]

    yield make
    for each in every:
        each.close()


def test_similar_texts_are_nearest(opened: Open) -> None:
    near = opened(Letters()).compare(["the mast is tall"], BOATS)
    assert near.cosines is not None
    assert near.cosines.shape == (3, 1)
    assert int(near.cosines[:, 0].argmax()) == 0
    assert (near.missing, near.warning) == (0, "")


def test_a_text_is_embedded_once_also_by_the_next_process(opened: Open) -> None:
    first, second = Letters(), Letters()
    before = opened(first)
    one, two = before.compare(["red"], BOATS), before.compare(["red"], BOATS)
    assert first.asked.count(BOATS.texts[0]) == 1
    assert first.asked.count("red") == 1
    before.close()
    three = opened(second).compare(["red"], BOATS)
    assert second.asked == ["red"]
    for each in (two, three):
        assert one.cosines is not None
        assert each.cosines is not None
        assert each.cosines.tolist() == one.cosines.tolist()


def test_vectors_are_made_in_the_background_when_time_runs_out(opened: Open) -> None:
    embedder = Letters()
    vectors = opened(embedder)
    assert vectors.compare(["red"], HashedTexts.of([])).missing == 0
    embedder.gate.clear()
    vectors._timeout_s = 0.1
    slow = vectors.compare(["red"], BOATS)  # the question is known, the texts hang
    assert slow.missing == 3
    embedder.gate.set()
    assert vectors.settle(60)
    near = vectors.compare(["red"], BOATS)
    assert near.missing == 0
    assert near.cosines is not None


@pytest.mark.parametrize("error", [NoVectors("it is down."), ValueError("a bug in there")])
def test_a_failure_is_reported_and_pauses_the_embedder(opened: Open, error: Exception) -> None:
    embedder = Letters()
    embedder.error = error
    vectors = opened(embedder)
    assert str(error).rstrip(".") in vectors.compare(["red"], BOATS).warning
    embedder.error = None
    again = vectors.compare(["red"], BOATS)
    assert again.cosines is None
    assert embedder.asked == []


def test_a_text_that_cannot_be_embedded_does_not_hold_up_others(opened: Open) -> None:
    embedder = Letters()
    embedder.bad = "Rye"
    near = opened(embedder).compare(["red"], BOATS)
    assert near.cosines is not None
    assert np.isnan(near.cosines[:, 0]).tolist() == [False, True, False]
    assert near.missing == 0


def test_without_an_embedder_there_are_no_similarities(opened: Open) -> None:
    vectors = opened(None)
    assert vectors.compare(["red"], BOATS).cosines is None
    assert vectors.compare(["red"], BOATS).warning == ""
    assert vectors.name == ""


def test_an_embedder_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    def refuse() -> Embedder | None:
        raise Invalid("'x' is no embedder.")

    vectors = TextVectors(tmp_path / "sources.db", refuse, timeout_s=1)
    assert vectors.compare(["red"], BOATS).warning == "'x' is no embedder"
    vectors.close()


def test_vectors_of_another_length_are_made_again(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(Letters(26)).compare(["red"], BOATS)
    monkeypatch.setattr("recto.search.embedder.RETRY_AFTER_S", 0.0)
    vectors = opened(Letters(10))
    assert "another length" in vectors.compare(["red"], BOATS).warning
    near = vectors.compare(["red"], BOATS)
    assert near.cosines is not None
    assert near.missing == 0


def test_a_damaged_file_is_rebuilt(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "sources.db").write_bytes(b"this is no database at all" * 100)
    near = opened(Letters()).compare(["red"], BOATS)
    assert near.cosines is not None
    assert near.missing == 0


# -- calibration


def test_a_calibration_puts_other_embedders_on_the_scale_of_minilm() -> None:
    other = Calibration(unrelated=0.7, related=0.9)
    read = other.rescale(np.array([0.7, 0.9], np.float32)).tolist()
    assert read == pytest.approx([MINILM_CALIBRATION.unrelated, MINILM_CALIBRATION.related], abs=1e-5)


def test_an_embedder_that_hardly_separates_the_samples_is_not_rescaled() -> None:
    cosines = np.array([0.7, 0.9], np.float32)
    assert Calibration(0.9, 0.91).rescale(cosines) is cosines


def test_a_calibration_is_measured_on_sample_questions() -> None:
    assert len(SAMPLE_QUESTIONS) == len(SAMPLE_TEXTS)
    grid = np.full((len(SAMPLE_TEXTS), len(SAMPLE_QUESTIONS) + 1), 0.1, np.float32)
    np.fill_diagonal(grid, 0.5)
    assert calibrate(grid) == Calibration(pytest.approx(0.1), pytest.approx(0.5))  # type: ignore[arg-type]
