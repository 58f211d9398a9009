"""Partition: the scores of passages by words."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import Script

from recto.search.partition import WordScores, score_words
from recto.search.ranking import K1, NEIGHBOUR_WEIGHTS, RADIUS, B, Posting, idf

# -- scores

FAR = 1 << 32
places = st.integers(0, 60) | st.integers(0, 400) | st.integers(FAR, FAR + 30)
word_counts = st.dictionaries(places, st.integers(0, 90), max_size=60)
some_postings = st.lists(
    st.builds(
        Posting,
        name=st.just("word"),
        numbers=st.lists(places, unique=True, max_size=40).map(lambda numbers: sorted(numbers, reverse=True)),
        frequency=st.floats(1, 300),
        weight=st.sampled_from([1.0, 1.5]),
        spreads=st.booleans(),
    ),
    max_size=5,
)


def scored(postings: list[Posting], known: dict[int, float], mean: float) -> dict[int, float]:
    """BM25 of each passage, with a share for the distance to the nearest occurrence, written out."""
    scores: dict[int, float] = {}
    for posting in postings:
        weight = posting.weight * idf(posting.frequency, 300)
        for each, length in known.items():
            distance = min((abs(each - number) for number in posting.numbers), default=RADIUS + 1)
            if posting.spreads and distance <= RADIUS:
                share = NEIGHBOUR_WEIGHTS[distance]
                part = weight * (1 + K1) * share / (share + K1 * (1 - B + B * length / mean))
                scores[each] = scores.get(each, 0.0) + part
            elif distance == 0:
                scores[each] = scores.get(each, 0.0) + weight
    return scores


def listed(scores: WordScores) -> dict[int, float]:
    return dict(zip(scores.numbers.tolist(), scores.scores.tolist(), strict=True))


@given(word_counts, some_postings, st.floats(1, 50))
def test_a_passage_scores_for_its_words_and_those_beside_it(
    counts: dict[int, int], postings: list[Posting], mean: float
) -> None:
    known = {each: float(counts[each]) for each in sorted(counts)}
    numbers, lengths = np.array(list(known), np.int64), np.array(list(known.values()))
    scores = score_words(postings, 300, numbers, lengths, mean)
    assert listed(scores) == pytest.approx(scored(postings, known, mean))
    without = score_words(postings, 300, numbers, lengths, mean, np.array([5, 7]))
    others = [replace(each, numbers=[number for number in each.numbers if number not in (5, 7)]) for each in postings]
    assert listed(without) == pytest.approx(scored(others, known, mean))


SEARCH = """
import sys
from pathlib import Path
from recto.search.finder import Finder, Query
from recto.search.keyword_index import IndexItem
from recto.search.keyword_index import KeywordIndex

index = KeywordIndex(Path(sys.argv[1]))
assert not Finder(index).find(Query("which mast leans?")).hits
print("numpy" in sys.modules)
index.add({"chat": [IndexItem(number, f"the mast number{number} leans") for number in range(30)]})
for partition in ("chat", None):
    assert Finder(index).find(Query("which mast leans?", partition)).hits
print("numpy.ma" in sys.modules)
"""


def test_numpy_is_imported_only_to_score_passages_and_without_masked_arrays(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SEARCH, str(tmp_path / "search.db")], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


ASK = """
import sys
sys.argv = ["recto", "ask", "--model", sys.argv[1], "hi"]
from recto.cli.main import main
try:
    main()
except SystemExit:
    pass
print("numpy" in sys.modules)
"""


def test_a_question_in_an_empty_home_imports_no_numpy(tmp_path: Path, script: Script) -> None:
    asked = [sys.executable, "-c", ASK, script({"text": "Hello."})]
    environment = {**os.environ, "RECTO_HOME": str(tmp_path / "home")}
    done = subprocess.run(asked, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["Hello.", "False"], done.stderr
