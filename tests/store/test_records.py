import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from recto.errors import Altered, NotFound
from recto.ids import new_id
from recto.store.records import LONGEST_CHAIN
from recto.store.store import Store
from recto.window.request import Piece, Request


def request(conversation: str, *bodies: bytes, **account: object) -> Request:
    pieces = tuple(Piece("message", body) for body in bodies)
    return Request(new_id(), conversation, "reply", "a:b", "openai", {"max_tokens": 5}, pieces, account, created="t")


def test_a_request_rebuilds_to_the_bytes_that_were_sent(store: Store) -> None:
    sent = request(store.tree.create().id, b"{", b"x" * 5000, b"}", sections=[1])
    store.records.save(sent, None)
    assert store.records.rebuild(sent.id) == sent.body
    record = store.records.record(sent.id)
    assert record.sha256 == hashlib.sha256(sent.body).hexdigest()
    assert (record.size, record.pieces, record.account["sections"]) == (5002, 3, [1])
    assert record.account["parameters"] == {"max_tokens": 5}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(st.sampled_from([b"a", b"bb", b"ccc", b"\x00\xff", b"d" * 300])), min_size=1, max_size=12))
def test_any_chain_of_requests_rebuilds(store: Store, bodies: list[list[bytes]]) -> None:
    conversation, base = store.tree.create().id, None
    sent = []
    for body in bodies:
        sent.append(request(conversation, *body))
        store.records.save(sent[-1], base)
        base = sent[-1].id
    assert [store.records.rebuild(each.id) for each in sent] == [each.body for each in sent]
    assert store.records.ids(conversation) == [each.id for each in sent]


def test_a_long_chain_is_cut_by_full_lists_and_pieces_are_stored_once(store: Store) -> None:
    conversation, base = store.tree.create().id, None
    count = LONGEST_CHAIN * 2 + 5
    for number in range(count):
        sent = request(conversation, *(b"piece %d" % n for n in range(number + 1)))
        store.records.save(sent, base)
        base = sent.id
    assert store.records.rebuild(base or "") == sent.body
    with store.database.read() as connection:
        assert connection.execute(text("SELECT max(chain) FROM requests")).scalar() == LONGEST_CHAIN
        assert connection.execute(text("SELECT count(*) FROM pieces")).scalar() == count


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("UPDATE pieces SET data = x'0041' WHERE n = 2", "piece [0-9a-f]+ was changed"),
        ("DELETE FROM pieces WHERE n = 2", "piece 2 of 3 is gone"),
        ("UPDATE requests SET added = '[1,3]'", "do not have the sha256"),
    ],
)
def test_what_was_altered_is_named(store: Store, damage: str, says: str) -> None:
    sent = request(store.tree.create().id, b"{", b"words " * 50, b"}")
    store.records.save(sent, None)
    with store.database.write() as connection:
        connection.execute(text(damage))
    with pytest.raises(Altered, match=says):
        store.records.rebuild(sent.id)
    (id, difference), *_ = store.records.differences([sent.id])
    assert id == sent.id
    assert difference is not None
    assert sent.id in difference


def test_an_unknown_request_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="no request nowhere"):
        store.records.rebuild("nowhere")
    with pytest.raises(NotFound, match="no conversation nowhere"):
        store.records.save(request("nowhere", b"x"), None)


def test_the_outcome_is_told(store: Store) -> None:
    sent = request(store.tree.create().id, b"x")
    store.records.save(sent, None)
    store.records.outcome(sent.id, attempts=[1], finish="stop")
    assert store.records.record(sent.id).outcome == {"counted": None, "attempts": [1], "finish": "stop"}


def test_the_record_names_what_broke_the_prefix(store: Store) -> None:
    conversation = store.tree.create().id

    def sent(base: str | None, *pieces: tuple[str, bytes], stable: int, compaction: int | None = None) -> str:
        parts = tuple(Piece(kind, data) for kind, data in pieces)  # type: ignore[arg-type]
        account = {"compaction": compaction}
        made = Request(new_id(), conversation, "reply", "a:b", "openai", {}, parts, account, created="t", stable=stable)
        store.records.save(made, base)
        return made.id

    def prefix(id: str) -> dict[str, object]:
        found = store.records.record(id).account["prefix"]
        assert isinstance(found, dict)
        return found

    head, system, tail = ("head", b"{"), ("system", b"s"), ("tail", b"}")
    first = sent(None, head, system, ("message", b"1"), tail, stable=2)
    assert prefix(first) == {"base": None, "kept": 0, "of": 0, "broken_by": None}
    grown = sent(first, head, system, ("message", b"1"), ("message", b"2"), tail, stable=3)
    assert prefix(grown) == {"base": first, "kept": 2, "of": 2, "broken_by": None}
    cut = sent(grown, head, system, ("message", b"2"), tail, stable=2, compaction=1)
    assert prefix(cut) == {"base": grown, "kept": 2, "of": 3, "broken_by": "compaction 1"}
    told = sent(cut, head, ("system", b"other"), ("message", b"2"), tail, stable=2, compaction=1)
    assert prefix(told)["broken_by"] == "the instructions changed"
