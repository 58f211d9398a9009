"""VectorIndex: vectors that exist, that do not exist yet, and that have changed."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.errors import NoVectors
from recto.search.embedder import LOCAL, MINILM, MULTILINGUAL, LocalEmbedder, open_embedder
from recto.search.finder import Finder, Query, SearchResult
from recto.search.hybrid_index import HybridIndex
from recto.search.keyword_index import IndexItem, KeywordIndex, Passage, text_hash
from recto.search.vector_index import BATCH, Nearest, PartitionVectors, VectorIndex, VectorStore

TEXTS = ("The mast is tall.", "Rye bread is baked on Thursday.", "The sail is red.")


class Letters:
    """An embedder that counts letters, in as many numbers as it is told."""

    name = key = "letters"

    def __init__(self, length: int = 26, error: Exception | None = None) -> None:
        self.length, self.error, self.asked = length, error, list[str]()

    def embed(self, texts: Sequence[str]) -> Any:
        if self.error:
            raise self.error
        self.asked += texts
        rows = np.array(
            [[text.lower().count(chr(97 + place)) for place in range(self.length)] for text in texts], float
        )
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def close(self) -> None: ...


def make_all(vectors: VectorIndex, threads: int = 1) -> None:
    while vectors.make_batch(threads):
        pass


def opened(path: Path, embedder: Letters, texts: Sequence[str] = TEXTS) -> tuple[KeywordIndex, VectorIndex]:
    index = KeywordIndex(path)
    if not index.mark("filled"):
        index.add({"a": [IndexItem(n, text, n) for n, text in enumerate(texts)]}, {"filled": "yes"})

    def read(passages: Sequence[Passage]) -> dict[int, str]:
        return {each.number: texts[each.item] for each in passages}

    return index, VectorIndex(index, embedder, read)


def test_before_any_vector_is_made_the_result_is_empty(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    assert meaning.nearest("a tall mast", index.partition("a"))() == Nearest()
    assert meaning.nearest("a tall mast", None)() == Nearest()


def test_similar_texts_are_nearest(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    make_all(meaning)
    found = meaning.nearest("the mast is tall", index.partition("a"))()
    assert found.warning == ""
    best = next(iter(found.similarity))
    assert index.passages([best])[best].item == 0


def test_passages_added_later_are_compared_too(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters(), (*TEXTS, "zzz zebra zoo"))
    make_all(meaning)
    meaning.nearest("x", index.partition("a"))()
    index.add({"a": [IndexItem(3, "zzz zebra zoo", 9)]})
    make_all(meaning)
    near = meaning.nearest("zebra zzz zoo", index.partition("a"))().similarity
    assert len(near) == 5


def test_a_text_is_embedded_once(tmp_path: Path) -> None:
    embedder = Letters()
    _, meaning = opened(tmp_path / "search.db", embedder, ["the same words"] * (BATCH + 5))
    make_all(meaning)
    assert embedder.asked == ["the same words"]


class Embedded(Letters):
    """Goes by the name of the embedder that runs in this process."""

    name = MINILM


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_vectors_are_the_same_on_however_many_processors_they_are_made(tmp_path: Path, threads: int) -> None:
    texts = [f"{'abcdefghij'[n % 10] * (n + 1)} kayak" for n in range(BATCH + 5)]
    found = []
    for name, many in (("one", 1), ("many", threads)):
        index, meaning = opened(tmp_path / f"{name}.db", Embedded(), texts)
        make_all(meaning, many)
        found.append(meaning.nearest("a kayak", index.partition("a"))().similarity)
    assert found[0] == found[1]
    assert len(found[0]) == len(texts)


def test_a_failure_on_one_of_several_processors_is_reported(tmp_path: Path) -> None:
    _, meaning = opened(tmp_path / "search.db", Embedded(error=NoVectors("It is out of order.")))
    assert meaning.make_batch(2) == 0
    assert "out of order" in meaning.problem


def test_vectors_of_another_length_are_made_again_with_a_warning(tmp_path: Path) -> None:
    index, before = opened(tmp_path / "search.db", Letters(26))
    make_all(before)
    index.close()
    index, after = opened(tmp_path / "search.db", Letters(10))
    found = after.nearest("mast", index.partition("a"))()
    assert not found.similarity
    assert "another length" in found.warning
    assert after.waiting == len(TEXTS)
    after._pause.end()
    make_all(after)
    assert len(after.nearest("mast", index.partition("a"))().similarity) == len(TEXTS)


@pytest.mark.parametrize("error", [NoVectors("it is down"), ValueError("a bug in there")])
def test_a_failing_embedder_is_reported_even_with_nothing_to_compare(tmp_path: Path, error: Exception) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters(error=error))
    found = meaning.nearest("mast", index.partition("a"))()
    assert not found.similarity
    assert str(error) in found.warning
    assert "words only" in found.warning
    assert meaning.make_batch() == 0


def test_an_unexpected_error_is_logged_with_its_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _, vectors = opened(tmp_path / "search.db", Letters(error=ValueError("a bug in there")))
    assert vectors.make_batch() == 0
    (record,) = caplog.records
    assert record.name == "recto.search.embedder"
    assert record.exc_info


@pytest.mark.parametrize("room", ["search", "vault"])
def test_logged_errors_are_not_printed(room: str) -> None:
    code = f"import logging, recto.{room}; logging.getLogger('recto.{room}.index').error('a traceback')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b""


def test_forgotten_vectors_are_waiting_again(tmp_path: Path) -> None:
    index, meaning = opened(tmp_path / "search.db", Letters())
    make_all(meaning)
    kept = VectorStore(index.file, "letters")
    assert kept.count == 3
    kept.forget()
    assert kept.count == 0
    assert meaning.waiting == 3


@given(
    said=st.lists(st.sampled_from([f"text number {n}" for n in range(9)]), min_size=1, max_size=20),
    made=st.sets(st.integers(0, 8)),
    failed=st.sets(st.integers(0, 8)),
)
def test_vectors_read_at_once_are_those_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, said: list[str], made: set[int], failed: set[int]
) -> None:
    embedder = Letters()
    index, meaning = opened(tmp_path_factory.mktemp("index") / "search.db", embedder, said)
    vectors = {
        text_hash(f"text number {n}"): embedder.embed([f"text {n}"])[0].astype("float16").tobytes() for n in made
    }
    empty = {text_hash(f"text number {n}"): b"" for n in failed}
    VectorStore(index.file, embedder.key).put(vectors | empty)
    found = list[PartitionVectors]()
    for least in (0, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recto.search.vector_index._MIN_FULL_READ", least)
            found.append(PartitionVectors(missing=dict(index.hashes(index.partition("a")))))
            meaning._extend(found[-1])
    at_once, one_by_one = found
    assert at_once.missing == one_by_one.missing
    assert bool(at_once.matrix) == bool(one_by_one.matrix)
    if at_once.matrix and one_by_one.matrix:
        assert at_once.matrix.numbers.tolist() == one_by_one.matrix.numbers.tolist()
        assert at_once.matrix.rows.tolist() == one_by_one.matrix.rows.tolist()
    meaning.close()
    index.close()


def test_no_vector_is_read_while_most_passages_wait_for_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"The {each} is tall." for each in ("mast", "tree", "house", "wall", "crane")] * 20
    index, meaning = opened(tmp_path / "search.db", Letters(), [f"{n}: {text}" for n, text in enumerate(texts)])
    monkeypatch.setattr("recto.search.vector_index.BATCH", 10)
    assert meaning.make_batch() == 10
    told = "search uses words only until vectors are ready: 10 of 100"
    assert meaning.nearest("a tall mast", index.partition("a"))() == Nearest(warning=told)
    assert not meaning._partitions
    make_all(meaning)
    assert len(meaning.nearest("a tall mast", index.partition("a"))().similarity) == len(texts)


def test_a_question_is_not_embedded_while_very_many_passages_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = Letters()
    index, meaning = opened(tmp_path / "search.db", embedder, [f"{n}: The mast is tall." for n in range(20)])
    monkeypatch.setattr("recto.search.vector_index.MANY_WAITING", 10)
    assert meaning.nearest("a tall mast", index.partition("a"))() == Nearest()
    assert embedder.asked == []
    make_all(meaning)
    assert meaning.nearest("a tall mast", index.partition("a"))().similarity


def test_words_alone_decide_while_a_matching_passage_has_no_vector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.search.vector_index.BATCH", 5)
    texts = [f"The {name} is tall, {n} feet." for n, name in enumerate(("mast", "crane", "wall", "mast") * 10)]
    index, vectors = opened(tmp_path / "search.db", Letters(), texts)
    finder, query = Finder(index), Query("How tall is the crane?", "a")
    words = finder.find(query).hits
    finder.vectors, shares = vectors, list[tuple[int, bool, str]]()
    while True:
        found = finder.find(query)
        shares.append((vectors.waiting, found.hits == words, found.warning))
        if not vectors.make_batch():
            break
    assert all(is_same for waiting, is_same, _ in shares if waiting)
    assert shares[-1] == (0, False, "")
    assert shares[-3][2] == "search uses words only until vectors are ready: 30 of 40"
    assert shares[-2] == (5, True, ""), "a few that are made in a moment are not worth a line"


def test_passages_without_vectors_elsewhere_do_not_turn_similarity_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.search.vector_index.BATCH", 1)
    index, vectors = opened(tmp_path / "search.db", Letters(), [*TEXTS, "Zebras graze."])
    for _ in TEXTS:
        assert vectors.make_batch()
    finder = Finder(index, vectors)
    assert finder.find(Query("mast", "a", spreads=False)).hits[0].similarity
    assert finder.find(Query("zebras", "a", spreads=False)).hits[0].similarity is None


class Choosy(Letters):
    """Rejects texts about bread."""

    def embed(self, texts: Sequence[str]) -> Any:
        if any("bread" in text for text in texts):
            raise NoVectors("no bread")
        return super().embed(texts)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_rejected_text_does_not_turn_similarity_off(tmp_path: Path, is_new: bool) -> None:
    index, vectors = opened(tmp_path / "search.db", Choosy())
    make_all(vectors)
    if is_new:
        index, vectors = opened(tmp_path / "search.db", Choosy())
    assert vectors.nearest("mast", index.partition("a"))().missing == {}


class OneLanguage(Letters):
    """Knows half of what it reads, and nothing in Greek."""

    def familiarity(self, text: str) -> float:
        return 0.5 if text.isascii() else 0.0


def test_similarity_counts_as_far_as_the_embedder_knows_the_language(tmp_path: Path) -> None:
    index, known = opened(tmp_path / "search.db", Letters())
    make_all(known)
    partition = index.partition("a")
    full = known.nearest("a tall mast", partition)().similarity
    half = opened(tmp_path / "search.db", OneLanguage())[1].nearest("a tall mast", partition)().similarity
    assert {each: round(near / 2, 4) for each, near in full.items()} == {n: round(near, 4) for n, near in half.items()}
    assert opened(tmp_path / "search.db", OneLanguage())[1].nearest("πού είναι", partition)() == Nearest()


# -- two embedders


class Known:
    """Knows what a text is about from a table, in as many numbers as there are texts."""

    def __init__(self, name: str, about: dict[str, int], knows: str = "") -> None:
        self.name = self.key = name
        self._about, self._knows = about, knows
        self.asked, self.is_broken = list[str](), False

    def embed(self, texts: Sequence[str]) -> Any:
        if self.is_broken:
            raise NoVectors(f"{self.name} is broken.")
        self.asked += texts
        return np.array([np.eye(len(TEXTS))[self._about.get(text, 0)] for text in texts], np.float32)

    def familiarity(self, text: str) -> float:
        return 1.0 if not self._knows or text.isascii() else 0.0

    def close(self) -> None: ...


ITSELF = {text: number for number, text in enumerate(TEXTS)}


@pytest.fixture
def first() -> Known:
    return Known(MULTILINGUAL, {**ITSELF, "Qué se cuece": 1, "what is cooked": 2})


@pytest.fixture
def second() -> Known:
    return Known("narrow", {**ITSELF, "what is cooked": 1}, knows="English")


@pytest.fixture
def index(tmp_path: Path, first: Known, second: Known) -> Iterator[HybridIndex]:
    def read(passages: Sequence[Passage]) -> dict[int, str]:
        return {each.number: TEXTS[each.item] for each in passages}

    with closing(
        HybridIndex(tmp_path / "search.db", lambda: LocalEmbedder(first, second), read, timeout_s=60, keeps_texts=True)
    ) as opened:
        opened.keywords.add({"a": [IndexItem(n, text, n, branch=n) for n, text in enumerate(TEXTS)]})
        opened.open()
        yield opened


def found(index: HybridIndex, text: str) -> SearchResult:
    return index.finder.find(Query(text, "a", spreads=False))


def similarities(result: SearchResult) -> dict[int, float]:
    return {hit.passage.item: round(hit.similarity or 0.0, 1) for hit in result.hits}


def test_vectors_of_the_first_are_made_first(index: HybridIndex, first: Known, second: Known) -> None:
    assert index.vectors is not None
    assert index.vectors.make_batch() == len(TEXTS)
    assert (len(first.asked), second.asked, index.vectors.waiting, index.vectors.to_make) == (3, [], 0, 3)
    assert index.vectors.make_batch() == len(TEXTS)
    assert (index.vectors.to_make, index.vectors.make_batch()) == (0, 0)


def test_while_vectors_of_the_second_are_missing_the_first_counts_alone(index: HybridIndex) -> None:
    assert index.vectors is not None
    index.vectors.make_batch()
    result = found(index, "what is cooked")
    assert (similarities(result)[2], result.warning) == (1.3, "")


def test_both_count_for_a_text_in_a_language_that_both_know(index: HybridIndex) -> None:
    index.make_vectors()
    told = similarities(found(index, "what is cooked"))
    assert told[1] == 0.5 < told[2] < 1


def test_the_first_counts_alone_where_the_second_does_not_know_the_language(index: HybridIndex) -> None:
    index.make_vectors()
    assert similarities(found(index, "Qué se cuece"))[1] == 1.3


def test_a_second_that_fails_leaves_the_first(index: HybridIndex, second: Known) -> None:
    index.make_vectors()
    second.is_broken = True
    result = found(index, "what is cooked")
    assert (similarities(result)[2], result.warning) == (1.3, "")


def test_a_first_that_fails_leaves_the_second(index: HybridIndex, first: Known) -> None:
    index.make_vectors()
    first.is_broken = True
    assert similarities(found(index, "what is cooked"))[1] == 1.0


def test_one_vector_of_a_short_text_holds_both(tmp_path: Path) -> None:
    embedder = open_embedder(LOCAL, home=tmp_path)
    assert isinstance(embedder, LocalEmbedder)
    with closing(embedder):
        english, same, german, other = embedder.embed(
            ["Who borrowed the ladder?", "Who took our ladder?", "Wer hat die Leiter geliehen?", "The ferry is late."]
        )
    assert english @ same > english @ german > 0.5 > english @ other


def test_words_count_only_as_far_as_they_cover_the_question(tmp_path: Path, first: Known) -> None:
    """A name alone does not bring a note to the top of a question in another language."""
    index = HybridIndex(tmp_path / "s.db", lambda: first, lambda _: {}, timeout_s=60, keeps_texts=True)
    with closing(index):
        index.keywords.add({"a": [IndexItem(n, text, n, branch=n) for n, text in enumerate(TEXTS)]})
        finder = Finder(index.keywords)
        assert [hit.passage.item for hit in finder.find(Query("mast", "a", spreads=False)).hits] == [0]
