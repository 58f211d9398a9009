"""The multilingual encoder itself, with its real weights."""

import base64
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import NoVectors
from recto.search.onnx_embedder import MultilingualEncoder

KNOWN = json.loads(Path(__file__).with_name("multilingual_vectors.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    return MultilingualEncoder()


def test_fifty_sentences_in_sixteen_languages_have_their_vectors_on_any_machine(encoder: MultilingualEncoder) -> None:
    known = np.array([np.frombuffer(base64.b64decode(each), np.int8) for each in KNOWN["vectors"]], np.float32)
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    assert ((encoder.embed(KNOWN["sentences"]) * known).sum(1) > 0.99).all()


@pytest.mark.parametrize(
    "question",
    [
        "Wer hat die Leiter ausgeliehen?",
        "¿Quién tiene la escalera?",
        "Кто взял лестницу?",
        "谁借走了梯子？",
        "梯子は誰が借りた？",
    ],
)
def test_a_question_in_another_language_finds_its_answer(encoder: MultilingualEncoder, question: str) -> None:
    texts = ["Tom from number 9 has our ladder.", "The hens lay nine eggs a day.", "The ferry leaves at noon."]
    asked, *found = encoder.embed([question, *texts])
    assert int(np.argmax([asked @ each for each in found])) == 0


def test_a_vector_does_not_depend_on_the_batch(encoder: MultilingualEncoder) -> None:
    together = encoder.embed(KNOWN["sentences"][:5])
    assert all((encoder.embed([text])[0] == row).all() for text, row in zip(KNOWN["sentences"], together, strict=False))


@given(text=st.text())
def test_any_text_has_a_vector_of_length_one_or_none(encoder: MultilingualEncoder, text: str) -> None:
    (vector,) = encoder.embed([text])
    assert vector.shape == (MultilingualEncoder.width,)
    assert abs(np.linalg.norm(vector) - 1) < 1e-3 or not vector.any()


@pytest.mark.parametrize("text", ["", " \n\t", "\ud800", "—…!?"])
def test_a_text_without_words_gets_zeros(encoder: MultilingualEncoder, text: str) -> None:
    assert not encoder.embed([text]).any()


def test_only_the_beginning_of_a_megabyte_counts(encoder: MultilingualEncoder) -> None:
    whole, beginning = encoder.embed(["word " * 200_000, "word " * 400])
    assert (whole == beginning).all()


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime_extensions"])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert MultilingualEncoder.missing() is None
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoVectors, match=rf"needs {name}; run .*recto models pull multilingual"):
        MultilingualEncoder().embed(["one"])


def test_where_a_package_is_not_published_another_embedder_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    monkeypatch.setitem(sys.modules, "onnxruntime_extensions", None)
    with pytest.raises(NoVectors, match=r"not published for Python 3\.14: .*search\.embedder = minilm"):
        MultilingualEncoder().embed(["one"])
