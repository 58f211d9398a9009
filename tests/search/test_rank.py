"""Ranking: words that neighbours share, rarities, places fused."""

from hypothesis import given
from hypothesis import strategies as st

from recto.search.rank import RADIUS, Posting, fuse, held, most_possible, ranked, rarity, spread, word_scores

numbers = st.lists(st.integers(0, 200), unique=True, max_size=30)


@given(numbers)
def test_a_passage_has_all_of_a_word_that_it_holds(places: list[int]) -> None:
    assert all(spread(places)[place] == 1.0 for place in places)


@given(numbers)
def test_neighbours_share_by_how_near_the_nearest_stands(places: list[int]) -> None:
    for number, share in spread(places).items():
        nearest = min(abs(number - place) for place in places)
        assert nearest <= RADIUS
        assert share == 0.6**nearest


@given(numbers, numbers)
def test_more_places_never_take_away(few: list[int], others: list[int]) -> None:
    less, more = spread(few), spread(list({*few, *others}))
    assert all(more[number] >= share for number, share in less.items())


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_rarer_a_word_the_more_it_counts(one: int, other: int) -> None:
    assert rarity(min(one, other), 10_000) >= rarity(max(one, other), 10_000) >= 0.0


def test_a_rare_word_beats_a_common_one() -> None:
    found = held([Posting("zebra", [3], 1), Posting("went", [40], 50)], 100)
    scores = word_scores(found, {3: 1.0, 40: 1.0}, 1.0)
    assert scores[3] > scores[40]


def test_of_two_that_hold_the_same_the_shorter_counts_more() -> None:
    scores = word_scores(held([Posting("zebra", [3, 40], 2)], 100), {3: 0.5, 40: 3.0}, 1.0)
    assert scores[3] > scores[40]


def test_a_day_counts_alike_in_long_and_short_passages_and_stays_where_it_is() -> None:
    scores = word_scores(held([Posting("the day", [3, 40], 2, spreads=False)], 100), {3: 0.5, 4: 1.0, 40: 3.0}, 1.0)
    assert scores[3] == scores[40] > 0.0
    assert 4 not in scores


@given(numbers, numbers)
def test_only_passages_whose_length_is_known_are_scored(places: list[int], known: list[int]) -> None:
    scores = word_scores(held([Posting("word", places, len(places))], 300), dict.fromkeys(known, 1.0), 1.0)
    assert set(scores) <= set(known)
    assert all(score > 0.0 for score in scores.values())


@given(st.lists(numbers, min_size=1, max_size=4))
def test_nothing_of_usual_length_scores_more_than_is_possible(words: list[list[int]]) -> None:
    postings = [Posting(str(at), places, len(places)) for at, places in enumerate(words)]
    scores = word_scores(held(postings, 300), dict.fromkeys(range(210), 1.0), 1.0)
    assert all(score <= most_possible(postings, 300) + 1e-9 for score in scores.values())


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])))
def test_the_best_come_first_and_of_equals_the_newest(values: dict[int, float]) -> None:
    assert ranked(values) == sorted(values, key=lambda number: (-values[number], -number))


def test_first_in_every_ranking_is_worth_one() -> None:
    assert fuse([7, 1, 2], [7, 2, 1])[7] == 1.0


@given(numbers, numbers)
def test_fused_are_all_of_both_between_nought_and_one(one: list[int], other: list[int]) -> None:
    fused = fuse(one, other)
    assert set(fused) == {*one, *other}
    assert all(0.0 < score <= 1.0 for score in fused.values())


@given(st.lists(st.integers(0, 50), unique=True, min_size=1))
def test_one_ranking_fused_with_itself_keeps_its_order(ranking: list[int]) -> None:
    fused = fuse(ranking, ranking)
    assert sorted(ranking, key=lambda each: -fused[each]) == ranking
