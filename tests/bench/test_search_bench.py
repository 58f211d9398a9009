"""What the search bench asks is really there to be found, by us and by plain FTS5 alike."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bench.plain import Plain
from bench.search_words import FILTERS, conversation, queries_of

from recto.search.finder import Finder, Query
from recto.search.keyword_index import KeywordIndex

pytestmark = pytest.mark.untraced

EACH, CONVERSATIONS = 20, 40


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Finder, Plain]]:
    folder: Path = tmp_path_factory.mktemp("search")
    with closing(KeywordIndex(folder / "index.db")) as index, closing(Plain(folder / "plain.db")) as plain:
        for number in range(CONVERSATIONS):
            items = conversation(number, EACH, CONVERSATIONS)
            index.add({str(number): items})
            plain.add(items)
        yield Finder(index), plain


def test_every_query_is_answered_by_both(both: tuple[Finder, Plain]) -> None:
    finder, plain = both
    for query in queries_of(EACH, CONVERSATIONS):
        best = finder.find(Query(query.text, spreads=False, limit=1)).hits[0].passage.item
        assert plain.find(query.text, FILTERS["no filter"], 60), query
        assert plain.holds(query.text, best), query


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_means_the_same_to_both(both: tuple[Finder, Plain], name: str) -> None:
    (finder, plain), only = both, FILTERS[name]
    found = finder.find(Query("object", filter=only, spreads=False, limit=1000)).hits
    assert {hit.passage.item for hit in found} == set(plain.find("object", only, 1000))
    assert found
