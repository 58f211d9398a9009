"""Ranking: shares of neighbours, rare words, fused rankings."""

from hypothesis import given
from hypothesis import strategies as st

from recto.search.ranking import (
    RADIUS,
    Posting,
    best_first,
    fuse,
    idf,
    max_score,
    posting_scores,
    rank,
    rough_scores,
    spread_to_neighbours,
    word_scores,
)

numbers = st.lists(st.integers(0, 200), unique=True, max_size=30)


@given(numbers)
def test_a_passage_is_at_no_distance_from_its_own_words(places: list[int]) -> None:
    assert set(places) == set(*spread_to_neighbours(places)[:1])


@given(numbers)
def test_neighbours_share_by_distance_to_the_nearest_occurrence(places: list[int]) -> None:
    near = [(number, min(abs(number - place) for place in places)) for number in range(-9, 210) if places]
    expected = sorted((number, distance) for number, distance in near if distance <= RADIUS)
    rings = enumerate(spread_to_neighbours(places))
    assert sorted((number, distance) for distance, ring in rings for number in ring) == expected


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_rarer_a_word_the_more_it_counts(one: int, other: int) -> None:
    assert idf(min(one, other), 10_000) >= idf(max(one, other), 10_000) >= 0.0


def test_a_rare_word_beats_a_common_one() -> None:
    found = posting_scores([Posting("zebra", [3], 1), Posting("went", [40], 50)], 100)
    scores = word_scores(found, {3: 1.0, 40: 1.0}, 1.0)
    assert scores[3] > scores[40]


def test_the_shorter_of_two_equal_passages_scores_more() -> None:
    scores = word_scores(posting_scores([Posting("zebra", [3, 40], 2)], 100), {3: 0.5, 40: 3.0}, 1.0)
    assert scores[3] > scores[40]


def test_a_date_ignores_length_and_does_not_spread() -> None:
    scores = word_scores(
        posting_scores([Posting("the day", [3, 40], 2, spreads=False)], 100), {3: 0.5, 4: 1.0, 40: 3.0}, 1.0
    )
    assert scores[3] == scores[40] > 0.0
    assert 4 not in scores


@given(numbers, numbers)
def test_only_passages_whose_length_is_known_are_scored(places: list[int], known: list[int]) -> None:
    scores = word_scores(posting_scores([Posting("word", places, len(places))], 300), dict.fromkeys(known, 1.0), 1.0)
    assert set(scores) <= set(known)
    assert all(score > 0.0 for score in scores.values())


@given(st.lists(numbers, min_size=1, max_size=4))
def test_no_passage_of_usual_length_exceeds_the_maximum_score(words: list[list[int]]) -> None:
    postings = [Posting(str(at), places, len(places)) for at, places in enumerate(words)]
    scores = word_scores(posting_scores(postings, 300), dict.fromkeys(range(210), 1.0), 1.0)
    assert all(score <= max_score(postings, 300) + 1e-9 for score in scores.values())


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])))
def test_the_best_come_first_and_among_equals_the_newest(values: dict[int, float]) -> None:
    assert rank(values) == sorted(values, key=lambda number: (-values[number], -number))


def test_the_best_by_words_and_by_meaning_scores_one() -> None:
    assert fuse({7: 3.0, 1: 2.0}, {7: 0.6, 2: 0.5})[7] == 1.0


scores = st.dictionaries(st.integers(0, 50), st.floats(0.01, 3))


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


@given(st.dictionaries(st.integers(0, 5000), st.integers(0, 300).map(float)), st.integers(1, 40))
def test_few_of_many_are_ranked_as_all_are(values: dict[int, float], count: int) -> None:
    assert list(best_first(values, count)) == rank(values)


@given(st.lists(numbers, min_size=1, max_size=4), st.booleans())
def test_rough_scores_are_those_of_passages_of_the_mean_length(words: list[list[int]], spreads: bool) -> None:
    postings = [Posting(str(at), places, len(places), spreads=spreads) for at, places in enumerate(words)]
    prepared = posting_scores(postings, 300)
    assert rough_scores(prepared) == word_scores(prepared, dict.fromkeys(range(-9, 210), 1.0), 1.0)
