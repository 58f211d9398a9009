import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text
from tests.conftest import examples
from tests.store.conftest import execute

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.errors import Altered, NotFound
from recto.sources.source import Pick
from recto.store.rebuild import Rebuilder
from recto.store.records import LONGEST_CHAIN
from recto.store.schema import requests
from recto.store.store import Store
from recto.window.account import NO_ACCOUNT, PrefixReuse, RequestAccount, Section
from recto.window.request import Piece, Purpose, Request

MARK = b',"cache_control":{"type":"ephemeral"}'


def request(
    conversation: str, *bodies: bytes, purpose: Purpose = "reply", account: RequestAccount = NO_ACCOUNT
) -> Request:
    pieces = tuple(Piece("message", body) for body in bodies)
    return Request(new_id(), conversation, purpose, "a:b", "openai", {"max_tokens": 5}, pieces, account, created="t")


def with_marks(conversation: str, stable: int, *pieces: Piece, mark: bytes = MARK) -> Request:
    return Request(new_id(), conversation, "reply", "a:b", "x", {}, pieces, created="t", stable=stable, mark_bytes=mark)


def test_sizes_of_many_windows_leave_out_an_account_that_cannot_be_read(store: Store) -> None:
    home = store.tree.create().id
    sent = [request(home, b"{}", account=RequestAccount(total=n, limit=100)) for n in (10, 20, 30)]
    for each in sent:
        store.records.save(each, None)
    with store.database.write() as connection:
        connection.execute(text("UPDATE requests SET account = 'damaged' WHERE id = :id"), {"id": sent[1].id})
    found = store.records.window_sizes([*(each.id for each in sent), new_id()])
    assert {id: (each.total, each.limit, each.model) for id, each in found.items()} == {
        sent[0].id: (10, 100, "a:b"),
        sent[2].id: (30, 100, "a:b"),
    }


SAID = [f"Line {n} of what was said about the mast, the keel and the {n * 7919} planks of the boat." for n in range(40)]


def quoting(store: Store) -> Request:
    """A request that quotes stored messages, and says so."""
    home = store.tree.create().id
    ids: list[str] = []
    for line in SAID:
        said = Message(new_id(), "user", (Text(line),), parent=ids[-1] if ids else None)
        ids.append(store.tree.append(home, said).message.id)
    picks = tuple(Pick("message", id, "holds mast") for id in ids)
    body = json.dumps({"role": "user", "content": "\n".join(f"#{n} user: {line}" for n, line in enumerate(SAID, 1))})
    account = RequestAccount(sections=(Section("recalled", 0, 0, picks[:30]),), not_picked=picks[30:])
    return request(home, b"{", body.encode(), b"}", account=account)


def test_what_a_request_quotes_of_stored_messages_is_hardly_kept_twice(store: Store) -> None:
    sent = quoting(store)
    store.records.save(sent, None)
    assert store.records.rebuild(sent.id) == sent.body
    assert store.records.record(sent.id).account.not_picked == sent.account.not_picked
    with store.database.read() as connection:
        kept = connection.execute(text("SELECT sum(length(data)) FROM pieces")).scalar_one()
        told = connection.execute(text("SELECT length(account) FROM requests")).scalar_one()
    assert kept < len(sent.body) / 5
    assert told < len(list(sent.account.picks())) * 26, "not even the ids"


def test_a_request_that_quotes_a_changed_message_is_altered_not_wrong(store: Store) -> None:
    sent = quoting(store)
    store.records.save(sent, None)
    execute(store, "UPDATE messages SET blocks = replace(blocks, 'keel', 'backbone')")
    with pytest.raises(Altered, match="does not rebuild"):
        store.records.rebuild(sent.id)
    with pytest.raises(Altered, match="cannot be read: a message it was packed with was changed"):
        store.records.record(sent.id)
    [(_, difference)] = store.records.differences([sent.id])
    assert difference is not None
    assert "does not rebuild" in difference


DATA = st.sampled_from([b"", b"a", b"bb", "{ä😀}".encode(), b"\x00\xff", b"d" * 300])
PIECES = DATA.flatmap(
    lambda data: st.builds(Piece, st.just("message"), st.just(data), st.none() | st.integers(0, len(data)))
)
BODIES = st.lists(PIECES, max_size=8)


@settings(max_examples=examples(80, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(BODIES, min_size=1, max_size=6), st.sampled_from([MARK, b"", "·".encode()]), st.integers(0, 8))
def test_marks_are_put_back_where_they_stood(store: Store, bodies: list[list[Piece]], mark: bytes, stable: int) -> None:
    conversation, base = store.tree.create().id, None
    sent = []
    for body in bodies:
        sent.append(with_marks(conversation, min(stable, len(body)), *body, mark=mark))
        store.records.save(sent[-1], base)
        base = sent[-1].id
    assert [store.records.rebuild(each.id) for each in sent] == [each.body for each in sent]
    records = [store.records.record(each.id) for each in sent]
    assert [(each.sha256, each.size) for each in records] == [(each.sha256, len(each.body)) for each in sent]
    assert [difference for _, difference in store.records.differences([each.id for each in sent])] == [None] * len(sent)


@settings(max_examples=examples(60, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BODIES.filter(bool), st.data())
def test_marks_that_move_break_no_prefix_and_store_no_piece_twice(
    store: Store, body: list[Piece], data: st.DataObject
) -> None:
    conversation = store.tree.create().id
    moved = [Piece(piece.kind, piece.data, data.draw(st.none() | st.integers(0, len(piece.data)))) for piece in body]
    first = with_marks(conversation, len(body), *body)
    second = with_marks(conversation, len(body), *moved, Piece("tail", b"]}"))
    store.records.save(first, None)
    before = store.database.scalar(text("SELECT count(*) FROM pieces WHERE data != x'005d7d'"))
    store.records.save(second, first.id)
    prefix = store.records.record(second.id).account.prefix
    assert prefix == PrefixReuse(first.id, len(body), len(body))
    with store.database.read() as connection:
        after = connection.execute(text("SELECT count(*) FROM pieces WHERE data != x'005d7d'")).scalar()
        added = connection.execute(text("SELECT added FROM requests ORDER BY n DESC LIMIT 1")).scalar_one()
    assert after == before
    assert len(json.loads(added)) == 1
    assert [store.records.rebuild(each.id) for each in (first, second)] == [first.body, second.body]


def test_a_request_without_marks_stores_none(store: Store) -> None:
    conversation = store.tree.create().id
    store.records.save(request(conversation, b"{", b"}"), None)
    store.records.save(with_marks(conversation, 0, Piece("head", b"{}", 1), mark=b""), None)
    store.records.save(with_marks(conversation, 0, Piece("head", b"{}"), Piece("tail", b"ab", 1)), None)
    with store.database.read() as connection:
        none, empty, some = connection.execute(text("SELECT marks FROM requests ORDER BY n")).scalars()
    assert (none, empty) == (None, None)
    assert json.loads(some) == {"bytes": MARK.decode(), "at": [[1, 1]]}


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        ("NULL", "do not have the sha256"),
        ("""'{"bytes":"!","at":[[0,1]]}'""", "do not have the sha256"),
        ("""'{"bytes":"!"}'""", "its marks were changed"),
        ("""'{"bytes":7,"at":[[0,1]]}'""", "its marks were changed"),
        ("""'{"bytes":"!","at":[["0","1"]]}'""", "do not have the sha256"),
        ("""'{"bytes":"!","at":[[0,"1"]]}'""", "its marks were changed"),
        ("'[[0,1]'", "its marks were changed"),
    ],
)
def test_marks_that_were_altered_are_noticed(store: Store, marks: str, says: str) -> None:
    sent = with_marks(store.tree.create().id, 0, Piece("head", b"{}", 1))
    store.records.save(sent, None)
    execute(store, f"UPDATE requests SET marks = {marks}")
    with pytest.raises(Altered, match=says):
        store.records.rebuild(sent.id)


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
        ("DELETE FROM pieces WHERE n = 2", "piece 2 of 3 is missing"),
        ("UPDATE requests SET added = '[1,3]'", "do not have the sha256"),
    ],
)
def test_what_was_altered_is_named(store: Store, damage: str, says: str) -> None:
    sent = request(store.tree.create().id, b"{", b"words " * 50, b"}")
    store.records.save(sent, None)
    execute(store, damage)
    with pytest.raises(Altered, match=says):
        store.records.rebuild(sent.id)
    (id, difference), *_ = store.records.differences([sent.id])
    assert id == sent.id
    assert difference is not None
    assert sent.id in difference


def chain(store: Store, count: int = 6) -> list[Request]:
    """A chat's requests, each on the one before, with marks, a compaction and picks that are kept as pieces."""
    home, base = store.tree.create().id, None
    picks = tuple(Pick("tool", f"tool {n}", "always", server="files") for n in range(12))
    sent: list[Request] = []
    for number in range(count):
        cut = 3 if number > 3 else 0
        said = tuple(Piece("message", b',{"content":"%d %b"}' % (n, b"word " * 20), 3) for n in range(cut, number + 3))
        pieces = (Piece("head", b'{"messages":['), *said, Piece("tail", b"]}"))
        account = RequestAccount(sections=(Section("tools", 9, 0, picks),), compaction=cut or None)
        stable = len(pieces) - 2
        made = Request(
            new_id(), home, "reply", "a:b", "x", {}, pieces, account, created="t", stable=stable, mark_bytes=MARK
        )
        store.records.save(made, base)
        base = made.id
        sent.append(made)
    return sent


def test_picks_that_come_again_with_every_request_are_kept_once(store: Store) -> None:
    sent = chain(store, 30)
    record = store.records.record(sent[-1].id)
    assert record.account.sections == sent[-1].account.sections
    told = store.database.scalar(text("SELECT max(length(account)) FROM requests"))
    assert told < 200


COLUMNS = {
    "requests": ("base", "kept", "chain", "size", "added", "marks", "sha256", "account"),
    "pieces": ("data", "sha256"),
}


@settings(max_examples=examples(120, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([(table, column) for table, columns in COLUMNS.items() for column in columns]),
    st.integers(0, 10_000),
    st.integers(0, 10_000),
    st.integers(1, 255),
)
def test_no_damage_to_any_column_goes_unnoticed(
    store: Store, where: tuple[str, str], row: int, place: int, flip: int
) -> None:
    """Either bytes and account still come back as they were, or the request is said to be altered; never others."""
    table, column = where
    sent = chain(store)
    ids = [each.id for each in sent]
    accounts = [store.records.record(id).account for id in ids]
    with store.database.write() as connection:
        _damage(connection, table, column, row, place, flip)
    alone: list[tuple[str, str | None]] = []
    for each in sent:
        try:
            assert store.records.rebuild(each.id) == each.body
            alone.append((each.id, None))
        except Altered as why:
            alone.append((each.id, why.message))
    found = list(store.records.differences(ids))
    for (id, rebuilt), (same, verified) in zip(alone, found, strict=True):
        assert id == same
        # the account is proved besides, when the bytes are as they were
        assert verified == rebuilt or (rebuilt is None and verified and "the account of" in verified)
    for (id, difference), told in zip(found, accounts, strict=True):
        assert id in difference if difference else store.records.record(id).account == told
    if column in ("sha256", "size"):
        assert any(difference for _, difference in found)
    with store.database.write() as connection:
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        for name in ("requests", "pieces"):
            connection.exec_driver_sql(f"DELETE FROM {name}")


def _damage(connection: Connection, table: str, column: str, row: int, place: int, flip: int) -> None:
    """One byte, or one bit of a number, of one row that has something there."""
    connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    query = f"SELECT n, typeof({column}) kind, CAST({column} AS BLOB) data FROM {table} WHERE {column} IS NOT NULL"
    rows = connection.exec_driver_sql(query).all()
    n, kind, data = rows[row % len(rows)]
    if kind == "integer":
        # a base must be one: SQLite refuses a request that is not there
        value: object = rows[place % len(rows)].n if column == "base" else int(data) ^ flip
        connection.exec_driver_sql(f"UPDATE {table} SET {column} = ? WHERE n = ?", (value, n))
        return
    at = place % len(data)
    changed = data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]
    cast = "CAST(? AS TEXT)" if kind == "text" else "?"
    connection.exec_driver_sql(f"UPDATE {table} SET {column} = {cast} WHERE n = ?", (changed, n))


def test_a_damaged_account_is_found_though_the_bytes_are_whole(store: Store) -> None:
    first, second = chain(store, 2)
    with store.database.write() as connection:
        connection.execute(text("UPDATE requests SET account = x'01ff' WHERE id = :id"), {"id": second.id})
    assert store.records.rebuild(second.id) == second.body
    (_, fine), (_, difference) = store.records.differences([first.id, second.id])
    assert fine is None
    assert difference is not None
    assert difference.startswith(f"the account of request {second.id} cannot be read")


def test_a_damaged_request_does_not_stop_the_next_from_being_saved(store: Store) -> None:
    first = request(store.tree.create().id, b"{", b"}")
    store.records.save(first, None)
    execute(store, "UPDATE requests SET added = 'x'")
    second = request(first.conversation, b"{", b"more", b"}")
    store.records.save(second, first.id)
    assert store.records.rebuild(second.id) == second.body


def test_what_is_held_while_verifying_is_bounded(store: Store) -> None:
    sent = chain(store, 20)
    small = Rebuilder(max_bytes=300, max_numbers=10)
    with store.database.read() as connection:
        rows = connection.execute(select(requests).order_by(requests.c.n)).all()
        assert [small.body(connection, row) for row in rows] == [each.body for each in sent]


def test_an_unknown_request_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="no request nowhere"):
        store.records.rebuild("nowhere")
    with pytest.raises(NotFound, match="no request nowhere"):
        list(store.records.differences(["nowhere"]))
    with pytest.raises(NotFound, match="no conversation nowhere"):
        store.records.save(request("nowhere", b"x"), None)


def test_the_latest_request_is_that_of_a_reply_unless_another_purpose_is_asked_for(store: Store) -> None:
    conversation, elsewhere = store.tree.create().id, store.tree.create().id
    assert store.records.latest(conversation) is None
    older, newer = request(conversation, b"1"), request(conversation, b"2")
    summary = request(conversation, b"3", purpose="summary")
    for each in (older, newer, summary, request(elsewhere, b"4")):
        store.records.save(each, None)
    assert store.records.latest(conversation) == newer.id
    assert store.records.latest(conversation, purpose="summary") == summary.id
    assert store.records.latest(elsewhere, "summary") is None


def test_the_record_names_what_broke_the_prefix(store: Store) -> None:
    conversation = store.tree.create().id

    def sent(base: str | None, *pieces: tuple[str, bytes], stable: int, compaction: int | None = None) -> str:
        parts = tuple(Piece(kind, data) for kind, data in pieces)  # type: ignore[arg-type]
        account = RequestAccount(compaction=compaction)
        made = Request(new_id(), conversation, "reply", "a:b", "openai", {}, parts, account, created="t", stable=stable)
        store.records.save(made, base)
        return made.id

    def prefix(id: str) -> dict[str, object]:
        found = store.records.record(id).account.prefix
        assert found
        return found.to_json()

    head, system, tail = ("head", b"{"), ("system", b"s"), ("tail", b"}")
    first = sent(None, head, system, ("message", b"1"), tail, stable=2)
    assert prefix(first) == {"base": None, "kept": 0, "of": 0, "broken_by": None}
    grown = sent(first, head, system, ("message", b"1"), ("message", b"2"), tail, stable=3)
    assert prefix(grown) == {"base": first, "kept": 2, "of": 2, "broken_by": None}
    cut = sent(grown, head, system, ("message", b"2"), tail, stable=2, compaction=1)
    assert prefix(cut) == {"base": grown, "kept": 2, "of": 3, "broken_by": "compaction 1"}
    told = sent(cut, head, ("system", b"other"), ("message", b"2"), tail, stable=2, compaction=1)
    assert prefix(told)["broken_by"] == "the instructions changed"
