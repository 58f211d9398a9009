"""What the pick bench asks is worth asking, and what it counts is what was chosen."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bench.pick import Outcome, _by_meaning, _hands, _ours, _plain
from bench.pick_data import SORTS, Message, filled, groups, messages, sources

from recto.search.text_vectors import TextVectors
from recto.sources.chooser import Chooser
from recto.sources.source import SourceId, Tool

pytestmark = pytest.mark.untraced


def test_there_are_as_many_sources_and_messages_as_promised() -> None:
    kinds = Counter(source.kind for source in sources())
    assert kinds["tool"] >= 120
    assert kinds["rule"] >= 40
    assert kinds["reference"] >= 40
    sorts = Counter(message.sort for message in messages())
    assert set(sorts) == set(SORTS)
    assert sorts["nothing"] >= 60
    assert sorts.total() - sorts["nothing"] >= 240


def test_every_message_is_asked_once_and_needs_what_is_there() -> None:
    texts = [message.text for message in messages()]
    assert len(texts) == len(set(texts))
    known = {source.id for source in filled(0)}
    for message in messages():
        assert message.right | message.harmless <= known
        assert bool(message.right) == (message.sort != "nothing")


@pytest.mark.parametrize("size", [500, 5000])
def test_others_fill_up_and_none_of_them_is_another_twice(size: int) -> None:
    every = filled(size)
    assert len({source.id for source in every}) == size
    assert every == filled(size)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", source.name) for source in every if isinstance(source, Tool))


def test_among_fifty_every_message_that_needs_something_is_asked_once() -> None:
    hands = _hands(50)
    assert [len(hand.sources) for hand in hands][:-1] == [50] * (len(hands) - 1)
    asked = Counter(message.text for hand in hands for message in hand.asked if message.right)
    assert set(asked.values()) == {1}
    assert len(asked) == sum(bool(message.right) for message in messages() if message.is_held_out)
    assert len(_hands(500)) == 1


def test_an_outcome_counts_what_is_right_wrong_harmless_and_for_nothing() -> None:
    a, b, c = (SourceId("rule", name) for name in "abc")
    outcome, weights = Outcome(), {a: 10, b: 20, c: 30}
    outcome.add(Message("words", "x", frozenset({a}), frozenset({b})), [a, b, c], weights)
    outcome.add(Message("words", "y", frozenset({a}), frozenset()), [], weights)
    outcome.add(Message("nothing", "z", frozenset(), frozenset()), [c], weights)
    assert (outcome.recall, outcome.chosen, outcome.wrong, outcome.for_nothing) == (0.5, 3, 1, 1)
    assert outcome.tokens == 90


class Letters:
    name = key = "letters"

    def embed(self, texts: Sequence[str]) -> Any:
        rows = np.array([[text.lower().count(chr(97 + at)) + 0.01 for at in range(26)] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def close(self) -> None: ...


def test_every_way_of_choosing_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    hand, home = _hands(50)[0], tmp_path_factory.mktemp("pick")
    chooser = Chooser(home / "a.db", lambda: None, timeout_s=10)
    vectors = TextVectors(home / "b.db", lambda: Letters(), timeout_s=10)
    known = {source.id for source in hand.sources}
    first = next(source for source in groups(50)[0] if isinstance(source, Tool))
    for pick in (_ours(chooser, hand), _by_meaning(vectors, hand), _plain(Letters(), hand)):
        assert set(pick(first.description)) <= known
        assert first.id in pick(first.description)
    chooser.close()
    vectors.close()


# -- fitting
