"""Decisions told the wrong way round: what is marked, and above all what is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.summary.check import Checked, Covered, Former, check
from recto.summary.marks import MARK
from recto.summary.stances import stances

FOR_REDIS = "We decided to use Redis for the queue."
SWAPPED = "Let's use Redis instead of Postgres."


def checked(summary: str, *said: str, former: Former | None = None, role: Role = "user") -> Checked:
    known = Covered()
    known.add([Message(str(number), role, (Text(text),), said=number) for number, text in enumerate(said, 1)])
    return check(summary, known, former or Former())


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (FOR_REDIS, "They decided against Redis*."),
        (FOR_REDIS, "The team decided not to use Redis*."),
        (FOR_REDIS, "Redis* was rejected."),
        (FOR_REDIS, "They will not use Redis* for the queue."),
        (FOR_REDIS, "Don't use Redis*."),
        (FOR_REDIS, "Decided: no caching yet, and avoid using Redis*."),
        (SWAPPED, "They use Postgres instead of Redis*."),
        (SWAPPED, "They chose Postgres over Redis*."),
        (SWAPPED, "Use Postgres, not Redis*, for everything."),
        ("Use Python 3.12, not 3.11.", "They use Python 3.11, not 3.12*."),
        ("I chose Postgres over Redis.", "The user chose Redis over Postgres*."),
        ("Let's not use Redis.", "They decided to use Redis*."),
        ("We agreed to drop Kafka.", "They agreed to keep Kafka*."),
        ("We decided to deploy on Friday.", "They decided not to deploy on Friday*."),
        ("Never deploy on weekends, please.", "They will deploy on weekends*."),
        ("ok, SQLite it is", "They decided against SQLite*."),
        ("In the end we went with SQLite.", "SQLite* was ruled out."),
        ("Wir nehmen Redis statt Postgres.", "Wir nehmen Postgres statt Redis*."),
        ("On utilise Redis au lieu de Postgres.", "On utilise Postgres au lieu de Redis*."),
        ("Usamos Redis en vez de Postgres.", "Usamos Postgres en vez de Redis*."),
    ],
)
def test_a_decision_that_is_turned_round_is_marked(said: str, summary: str) -> None:
    found = checked(summary.replace("*", ""), said)
    assert found.text == summary.replace("*", MARK)
    assert found.invented == 1


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (("Let's not use Redis.",), "They decided against Redis."),
        (("Let's not use Redis.",), "Redis was ruled out."),
        ((FOR_REDIS,), "Redis was chosen for the queue."),
        ((FOR_REDIS, "Redis does not scale here."), "They decided against Redis."),
        ((FOR_REDIS, "Actually, the licence is a problem. Drop it."), "They decided not to use Redis."),
        ((FOR_REDIS, "Let's take Postgres for the queue instead."), "They decided against Redis."),
        ((FOR_REDIS, "The licence is a problem.", "Postgres then."), "They chose Postgres over Redis."),
        ((FOR_REDIS, "Let's not use Redis after all."), "They decided to use Redis at first."),
        ((SWAPPED, "On second thought, use Postgres."), "They use Postgres instead of Redis."),
        ((FOR_REDIS,), "They decided against Redis for sessions."),
        ((FOR_REDIS,), "The tests run against Redis."),
        ((FOR_REDIS,), "Redis was not used in the tests."),
        ((FOR_REDIS,), "If Redis fails they may not use Redis."),
        (("Should we use Redis?", "No."), "They decided against Redis."),
        (("We decided not to deploy the app on Friday, but on Monday.",), "They decided to deploy the app."),
        (("We use Redis because we don't know Postgres.",), "They use Redis, not Postgres."),
        (("We decided not to drop Kafka.",), "They decided to keep Kafka."),
        (("Don't touch the parser.",), "The parser must not be touched."),
        (("It must not only be fast but use Redis.",), "It must use Redis."),
        (("Wir nehmen kein Redis.",), "Sie haben sich gegen Redis entschieden."),
    ],
)
def test_a_true_sentence_gets_no_mark(said: tuple[str, ...], summary: str) -> None:
    assert checked(summary, *said).text == summary


def test_what_a_machine_wrote_refutes_nobody() -> None:
    assert checked("They decided against Redis.", FOR_REDIS, role="tool").invented == 0


def test_a_turned_decision_is_lost_so_that_the_ledger_tells_it_as_it_was() -> None:
    found = checked("They decided against Redis for the queue.", FOR_REDIS)
    assert "We decided to use Redis for the queue" in [lead.item for lead in found.lost]


def test_a_mark_on_a_turned_decision_outlives_the_messages() -> None:
    former = Former("They decided against Redis [unverified].", ("#1 We decided to use Redis for the queue",))
    assert checked("They decided against Redis.", "Fine.", former=former).text == former.summary
    assert checked("They decided against Redis.", "Let's not use Redis.", former=former).invented == 0


VOCABULARY = """
Redis Postgres Kafka we they decided to not use never don't against instead of rather than let's drop keep chose
over was rejected it is and but because if the queue on Friday no , ; avoid using will should it
"""
words = st.sampled_from(VOCABULARY.split())
spoken = st.lists(words, min_size=1, max_size=12).map(lambda said: " ".join(said) + ".")


@given(st.lists(spoken, min_size=1, max_size=6), st.data())
def test_sentences_of_the_originals_are_never_taken_for_turned_ones(said: list[str], data: st.DataObject) -> None:
    told = data.draw(st.lists(st.sampled_from(said), min_size=1, max_size=4))
    assert checked(" ".join(told), *said).invented == 0


@given(st.text())
def test_stances_lie_where_they_say(text: str) -> None:
    for stance in stances(text):
        assert 0 <= stance.start < stance.end <= len(text)
