"""Ranking: rare words, and fused scores."""

from hypothesis import given
from hypothesis import strategies as st

from recto.search.ranking import fuse, idf, rank

scores = st.dictionaries(st.integers(0, 50), st.floats(0.01, 3))


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_rarer_word_counts_more(one: int, other: int) -> None:
    assert (idf(one, 20_000) > idf(other, 20_000)) == (one < other)


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])))
def test_the_best_come_first_and_among_equals_the_newest(values: dict[int, float]) -> None:
    assert rank(values) == sorted(values, key=lambda number: (-values[number], -number))


def test_the_best_by_words_and_by_meaning_scores_one() -> None:
    assert fuse({7: 3.0, 1: 2.0}, {7: 0.6, 2: 0.5})[7] == 1.0


@given(scores, scores)
def test_fused_scores_cover_words_and_meaning_between_zero_and_one(
    by_words: dict[int, float], similarity: dict[int, float]
) -> None:
    fused = fuse(by_words, similarity)
    assert set(fused) == {*by_words, *similarity}
    assert all(0.0 < score <= 1.0 + 1e-9 for score in fused.values())


@given(scores)
def test_words_alone_keep_their_order(by_words: dict[int, float]) -> None:
    assert rank(fuse(by_words, {})) == rank(by_words)


def test_a_faint_similarity_does_not_outweigh_a_clear_match_of_words() -> None:
    assert rank(fuse({1: 1.0, 2: 0.4}, {2: 0.3, 3: 0.1}))[0] == 1
