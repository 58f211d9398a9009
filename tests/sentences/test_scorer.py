"""The fitted scorer: its weights belong to the features, and the same messages give the same probabilities."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from tests.summary.samples import conversations

from recto.sentences.features import FEATURES, PlainMessage, read_conversation
from recto.sentences.scorer import BINDS, LASTING, NEEDED, PRIORITY, rating, scores, weights

pytestmark = pytest.mark.untraced
HEADS = (NEEDED, BINDS, LASTING)


def branches(tree: Any) -> Iterator[tuple[int, float]]:
    if isinstance(tree, list):
        feature, threshold, below, above = tree
        yield feature, threshold
        yield from branches(below)
        yield from branches(above)
    else:
        assert math.isfinite(tree)


def test_the_weights_belong_to_the_features() -> None:
    found = weights()
    assert tuple(found.features) == FEATURES
    assert {*HEADS, PRIORITY} == set(found.heads)
    assert all(0 < figure <= 1 for figure in found.held_out.values())
    for head in found.heads.values():
        used = {feature for tree in head.trees for feature, _ in branches(tree)}
        assert used <= set(range(len(FEATURES)))
        assert len(used) > len(FEATURES) / 3, "a head that looks at few features was fitted on too little"


@given(conversations)
def test_each_sentence_has_all_features_and_probabilities(conversation: list[PlainMessage]) -> None:
    said, rows = read_conversation(conversation)
    assert [each.segment for each in said] == [each for message in conversation for each in message.segments]
    assert all(len(row) == len(FEATURES) and all(map(math.isfinite, row)) for row in rows)
    for head in HEADS:
        found = scores(rows, head)
        assert len(found) == len(said)
        assert all(0 < each < 1 for each in found)
        assert found == scores(read_conversation(conversation)[1], head)
    assert not rows or math.isfinite(rating(rows))


@pytest.mark.parametrize(
    ("needed", "chatter"),
    [
        ("Never deploy to harbour-7 before 9:30.", "Haha, that was fun!"),
        ("Wir zahlen höchstens 12.000 € bis zum 3. Mai.", "Super, danke dir!"),
        ("Il ne faut jamais appeler M. Duval avant 9 h.", "Ah d'accord, merci !"),
        ("El depósito de 900 € no se devuelve.", "¡Qué bien, gracias!"),
        ("Никогда не звони Петрову раньше 9:30.", "Ага, спасибо!"),
        ("Nigdy nie dzwoń do pana Kowala przed 9:30.", "Haha, super!"),
        ("预算不能超过12000元，5月3日之前完成。", "哈哈，好的！"),
        ("予算は12,000円までで、5月3日が締め切りです。", "はい、ありがとう！"),
        ("Bütçe en fazla 12.000 lira, asla aşma.", "Harika, teşekkürler!"),
    ],
)
def test_what_binds_scores_higher_than_chatter_in_any_language(needed: str, chatter: str) -> None:
    texts = ["…", needed, chatter, chatter, needed, "…"]
    _, rows = read_conversation([PlainMessage("user", text) for text in texts])
    for head in (NEEDED, BINDS):
        found = scores(rows, head)
        assert min(found[1], found[4]) > max(found[2], found[3])


def test_lines_that_look_alike_tell_less_the_more_there_are() -> None:
    def score(number: int) -> float:
        log = "\n".join(f"2024-05-01 10:00:{at:02} INFO worker {at} is up" for at in range(number))
        return scores(read_conversation([PlainMessage("tool", log), PlainMessage("user", "ok")])[1])[0]

    assert score(1) > score(4) > score(12)
