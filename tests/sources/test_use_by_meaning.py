"""Paraphrases in a reply, found by meaning."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.sources.test_use_detection import source
from tests.sources.used import CASES, FRESH

from recto.errors import NoVectors
from recto.search.embedder import normalize_vectors
from recto.search.onnx_embedder import MiniLM
from recto.sources.source import SourceId
from recto.sources.use_detection import MAX_PAIRS, SentSource, detect_by_meaning, detect_uses

if TYPE_CHECKING:
    from recto.search.embedder import Vectors

TEXT = "The skipper paints the hull in spring.\nNobody may smoke below deck."


class Alike:
    """Finds that everything means the same, and remembers what it was asked."""

    name = key = "alike"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> "Vectors":
        self.asked += texts
        return normalize_vectors(np.ones((len(texts), 3)), texts)

    def close(self) -> None: ...


class Broken(Alike):
    def embed(self, texts: Sequence[str]) -> "Vectors":
        raise NoVectors("The embedder is not there.")


def test_sentences_that_share_a_little_and_mean_the_same_are_paraphrases() -> None:
    (use,) = detect_by_meaning("Every spring the hull gets new paint. Enjoy!", [source("s", TEXT)], "", Alike())
    assert (use.sign, use.detail) == ("paraphrased", "Every spring the hull gets new paint.")


def test_sentences_that_share_nothing_new_are_not_embedded() -> None:
    embedder = Alike()
    assert detect_by_meaning("Lovely weather today.", [source("s", TEXT)], "", embedder)[0].sign == ""
    known = "Who paints the hull in spring?"
    assert (
        detect_by_meaning("Every spring the hull gets new paint.", [source("s", TEXT)], known, embedder)[0].sign == ""
    )
    assert embedder.asked == []


def test_tools_and_scripts_that_the_model_hardly_knows_are_left_alone() -> None:
    tool = SentSource(SourceId("tool", "paint", "yard"), TEXT, "paint")
    assert detect_by_meaning("Every spring the hull gets new paint.", [tool], "", Alike())[0].sign == ""
    russian = source("r", FRESH.sources["russian"])
    assert detect_by_meaning("Гости оставляют пропуск дома.", [russian], "", Alike())[0].sign == ""


def test_the_number_of_embedded_sentences_is_limited() -> None:
    text = "\n".join(f"The hull number {n} gets paint of colour {n * 7} in spring." for n in range(200))
    embedder = Alike()
    detect_by_meaning("Every spring the hull gets new paint.", [source("s", text)], "", embedder)
    assert 0 < len(embedder.asked) <= 2 * MAX_PAIRS


def test_an_embedder_that_fails_says_so() -> None:
    with pytest.raises(NoVectors, match="not there"):
        detect_by_meaning("Every spring the hull gets new paint.", [source("s", TEXT)], "", Broken())


@pytest.mark.skipif(MiniLM.missing() is not None, reason="the embedder's weights are not installed")
def test_meaning_finds_more_and_nothing_wrong(tmp_path: Path) -> None:
    embedder, more, wrong = MiniLM(), 0, []
    texts = {**CASES.sources, **FRESH.sources}
    for turn in (*CASES.turns, *FRESH.turns):
        given = [source(name, texts[name]) for name in (*turn.used, *turn.unused)]
        words = detect_uses(turn.reply, (), given, turn.asked)
        rest = [each for each, use in zip(given, words, strict=True) if not use.sign]
        for use in detect_by_meaning(turn.reply, rest, turn.asked, embedder):
            more += bool(use.sign) and use.id.name in turn.used
            wrong += [use] if use.sign and use.id.name not in turn.used else []
    assert more >= 1
    assert wrong == []
