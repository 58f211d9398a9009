"""The store in PostgreSQL: schema, tree and records behave as they do in SQLite."""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, inspect, text
from tests.conftest import Open, Script
from tests.store.conftest import PROCESSES

from recto.api.blocking import open_desk
from recto.base.ids import new_id
from recto.chat.blocks import Compaction, DocumentReference, References, Text
from recto.chat.message import Message
from recto.errors import Altered, Busy, Invalid, NotFound, StoreError, TooNew
from recto.events import PlanChanged
from recto.sources.source import Pick, SourceId
from recto.store.migrations import REVISIONS
from recto.store.schema import metadata
from recto.store.source_uses import SourceUse
from recto.store.store import Store
from recto.transfer.exporter import write_chunks
from recto.transfer.importer import Importer
from recto.transfer.recto_json import RectoFile, json_lines
from recto.window.account import RequestAccount, Section
from recto.window.calibration import UsageReport
from recto.window.count import Count
from recto.window.request import Piece, Request

MARK = b',"cache_control":{"type":"ephemeral"}'


@pytest.fixture
def url(postgresql: Callable[[], str]) -> str:
    return postgresql()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


def say(words: str, parent: str | None = None, id: str | None = None) -> Message:
    return Message(id or new_id(), "user", (Text(words),), parent=parent)


def chat(store: Store, *words: str) -> tuple[str, list[str]]:
    home, ids = store.tree.create(title="Boats").id, list[str]()
    for each in words:
        ids.append(store.tree.append(home, say(each, ids[-1] if ids else None)).message.id)
    return home, ids


def request(home: str, *said: bytes, account: RequestAccount | None = None, mark: int | None = None) -> Request:
    pieces = (Piece("head", b'{"messages":['), *(Piece("message", each, mark) for each in said), Piece("tail", b"]}"))
    given = account or RequestAccount()
    created, stable = "2026-01-31T12:00:00.000Z", len(pieces) - 2
    return Request(
        new_id(), home, "reply", "a:b", "x", {}, pieces, given, created=created, stable=stable, mark_bytes=MARK
    )  # fmt: skip


def test_a_new_database_gets_the_whole_schema_and_opens_again(url: str) -> None:
    with Store(url) as store:
        home, _ = chat(store, "hello")
        with store.database.read() as connection:
            assert set(metadata.tables) <= set(inspect(connection).get_table_names())
            found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    assert found == REVISIONS[-1]
    with Store(url) as again:
        assert [each.id for each in again.tree.conversations()] == [home]


PARTIAL = {"messages_request", "requests_base", "requests_message", "source_uses_learnt"}


def test_a_new_database_has_the_partial_indexes_of_the_schema(store: Store) -> None:
    with store.database.read() as connection:
        query = text("SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE '% WHERE %'")
        assert set(connection.execute(query).scalars()) == PARTIAL


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    with Store(url) as store, store.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(TooNew):
        Store(url)


def test_messages_are_appended_read_and_found_on_their_paths(store: Store) -> None:
    home, (one, two, three) = chat(store, "one", "two", "three")
    branch = store.tree.append(home, say("other", one))
    assert not branch.moved
    assert [each.text for each in store.tree.page(three, most=9)] == ["three", "two", "one"]
    assert [each.text for each in store.tree.stretch(three, 2, 3)] == ["two", "three"]
    assert [each.text for each in store.tree.bare_page(branch.message.id, most=9)] == ["other", "one"]
    assert store.tree.is_on(three, two)
    assert not store.tree.is_on(branch.message.id, two)
    assert store.tree.numbered(three, [2])[2].text == "two"
    assert {each.id for each in store.tree.leaves(home)} == {three, branch.message.id}
    assert [each.message.text for each in store.tree.by_number([1, 3]).values()] == ["one", "three"]
    store.tree.move(home, two)
    assert store.tree.conversation(home).head == two


def test_the_same_message_twice_is_stored_once_and_other_content_is_refused(store: Store) -> None:
    home, (one,) = chat(store, "one")
    assert store.tree.append(home, say("one", id=one)).message.id == one
    with pytest.raises(Invalid, match="other content"):
        store.tree.append(home, say("else", id=one))
    assert store.tree.newest_number() == 1


def test_a_streamed_reply_and_a_compaction_are_read_again(store: Store) -> None:
    home, (one,) = chat(store, "one")
    reply = Message(new_id(), "assistant", (), parent=one, status="unfinished")
    store.tree.append(home, reply)
    store.tree.grow(reply.id, [["text", "so far"]])
    assert store.tree.message(reply.id).text == "so far"
    store.tree.finish(Message(reply.id, "assistant", (Text("whole"),), parent=one))
    assert store.tree.message(reply.id).text == "whole"
    with pytest.raises(Invalid):
        store.tree.finish(Message(reply.id, "assistant", (Text("again"),), parent=one))
    block = Compaction(1, "t", one, "They spoke.", 1, 10, 5, "model", "")
    cut = Message(new_id(), "system", (block,), parent=reply.id)
    store.tree.append(home, cut)
    found, active = store.tree.active(cut.id, most=9)
    assert found == block
    assert one not in [each.id for each in active]


def test_requests_are_saved_rebuilt_verified_and_compared(store: Store) -> None:
    home, ids = chat(store, *(f"Line {n} of the mast, the keel and {n * 7919} planks." for n in range(20)))
    picks = tuple(Pick("tool", f"tool {n}", "always", server="files") for n in range(12))
    recalled = tuple(Pick("message", id, "holds mast") for id in ids)
    account = RequestAccount(sections=(Section("tools", 9, 9, picks), Section("recalled", 5, 9, recalled)), total=14)
    said = [b',{"content":"%d %b"}' % (n, b"word " * 40) for n in range(4)]
    first, second = request(home, *said[:2], account=account), request(home, *said, account=account, mark=3)
    store.records.save(first, None)
    store.records.save(second, first.id)
    assert [store.records.rebuild(each.id) for each in (first, second)] == [first.body, second.body]
    assert list(store.records.differences([first.id, second.id])) == [(first.id, None), (second.id, None)]
    record = store.records.record(second.id)
    assert record.sha256 == hashlib.sha256(second.body).hexdigest()
    assert record.account.sections == account.sections
    assert record.account.prefix
    assert record.account.prefix.base == first.id
    assert store.records.latest(home) == second.id
    assert store.records.before(second.id) == first.id
    assert store.records.compare(first.id, second.id, lambda name: None).came_in == ()
    with pytest.raises(NotFound):
        store.records.save(request("nowhere", b"x"), None)


def test_a_changed_piece_is_found(store: Store) -> None:
    home, _ = chat(store, "hello")
    sent = request(home, b"hello")
    store.records.save(sent, None)
    with store.database.write() as connection:
        connection.execute(text("UPDATE pieces SET data = decode('0078', 'hex') WHERE n = 2"))
    with pytest.raises(Altered):
        store.records.rebuild(sent.id)


def test_counts_blobs_and_uses_are_kept(store: Store) -> None:
    one, two = (hashlib.sha256(data).digest() for data in (b"1", b"2"))
    store.token_counts.save("m", {one: Count(7), two: Count(3, exact=False)})
    store.token_counts.save("m", {one: Count(8)})
    assert store.token_counts.find("m", [one, two]) == {one: Count(8), two: Count(3, exact=False)}
    for number in range(70):
        store.usage_reports.add("model", UsageReport("c", 1, 2, 3, number + 1, "m"))
    assert [report.reported for report in store.usage_reports.latest("model")] == list(range(70, 6, -1))
    name = store.blobs.put(b"Answer in rhymes. " * 50)
    assert store.blobs.put(b"Answer in rhymes. " * 50) == name
    assert store.blobs.get(name) == b"Answer in rhymes. " * 50
    home, (asked,) = chat(store, "How do I log in?")
    sent = Request(new_id(), home, "reply", "a:b", "x", {}, (Piece("head", b"{}"),), message=asked, created="t")
    store.records.save(sent, None)
    style, api = SourceId("rule", "style"), SourceId("reference", "api")
    rows = [SourceUse(style, "always", 4), SourceUse(api, "agent", 9, 0.5)]
    store.source_uses.note(sent.id, rows)
    store.source_uses.signs(sent.id, {style: "", api: "quoted"})
    assert [each.sign for each in store.source_uses.of(sent.id)] == ["", "quoted"]
    assert [(str(each.id), each.replies, each.tokens) for each in store.source_uses.stats()] == [
        ("reference:api", 1, 9),
        ("rule:style", 1, 4),
    ]
    assert store.source_uses.past("default") == [("How do I log in?", frozenset({api}))]
    assert [each.replies for each in store.source_uses.totals()] == [1]
    assert store.source_uses.stats() == store.source_uses.stats(since="1"), "the kept sums, and the requests themselves"
    told = References((DocumentReference("[[Budget]]", "Budget.md"),), vault="/notes")
    store.tree.refer(Message(asked, "user", (Text("How do I log in?"), told)))
    assert [(each.path, each.uses, each.direct) for each in store.document_uses.totals("/notes")] == [
        ("Budget.md", 1, 1)
    ]


def _append_many(url: str, conversation: str, count: int) -> int:
    moved = 0
    with Store(url, busy_timeout_s=30) as store:
        for number in range(count):
            head = store.tree.conversation(conversation).head
            moved += store.tree.append(conversation, say(f"message {number}", head)).moved
    return moved


def test_two_writers_move_one_head_and_nothing_is_lost(url: str) -> None:
    with Store(url) as store:
        conversation = store.tree.create().id
        with ProcessPoolExecutor(2, PROCESSES) as pool:
            moved = sum(job.result() for job in [pool.submit(_append_many, url, conversation, 30) for _ in range(2)])
        assert len(store.tree.after(0, most=1000)) == 60
        head = store.tree.conversation(conversation).head
        assert head
        assert len(store.tree.page(head, most=1000)) == moved


def _append_own(url: str, count: int) -> int:
    with Store(url) as store:
        chat(store, *(f"message {number}" for number in range(count)))
    return count


@pytest.mark.slow
def test_many_processes_that_write_at_once_all_succeed(url: str) -> None:
    Store(url).close()
    with ProcessPoolExecutor(20, PROCESSES) as pool:
        assert {job.result() for job in [pool.submit(_append_own, url, 20) for _ in range(20)]} == {20}


def test_a_writer_waits_for_another_and_then_says_that_the_store_is_busy(url: str) -> None:
    with Store(url) as one, Store(url, busy_timeout_s=0.05) as other:
        home = one.tree.create().id
        with one.database.write():
            one.tree.append(home, say("held"))
            assert other.tree.conversation(home).head is None, "reading goes on, and sees what was committed"
            with pytest.raises(Busy, match="another process"):
                other.tree.append(home, say("wait"))
        assert not other.tree.append(home, say("now")).moved


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    home = store.tree.create().id

    def fails_half_way() -> None:
        with store.database.write():
            store.tree.append(home, say("gone"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_half_way()
    assert store.tree.newest_number() == 0


def test_a_server_that_is_not_there_is_one_sentence(url: str) -> None:
    with pytest.raises(StoreError, match="check RECTO_DB and that the server runs"):
        Store(url.replace("host=", "host=/nowhere"))


def test_a_chat_goes_on_after_a_restart_and_its_requests_are_proved(
    desk: Open, script: Script, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_DB", url)
    model = script({"text": "ok"}, limit=1024)
    at = desk(model)
    talk = at.conversation()
    for number in range(8):
        talk.ask(f"{number} word " * 60)
    assert talk.compaction()
    at.close()
    again = desk(model)
    reply = again.conversation(talk.id).ask("And now?")
    assert reply.text == "ok"
    assert {difference for _, difference in again.verify()} == {None}
    assert not list(again.home.glob("recto.db*")), "nothing went into a file"


def test_a_conversation_moves_from_one_database_to_the_other_and_back(
    url: str, desk: Open, script: Script, tmp_path: Path
) -> None:
    at = desk(script({"text": "Spruce."}, {"text": "Oak."}))
    talk = at.conversation()
    talk.ask("What are masts made of?")
    talk.ask("And keels?")
    talk.undo()
    talk.ask("And decks?")
    first, again, back = (tmp_path / f"{name}.jsonl" for name in ("first", "again", "back"))
    at.export(first)
    with Store(url) as there, Store(tmp_path / "new.db") as here:
        Importer(there.copies).run(RectoFile(first))
        assert Importer(there.copies).run(RectoFile(first)).count("unchanged") == 1
        write_chunks(again, json_lines(there.copies, there.copies.ids()))
        Importer(here.copies).run(RectoFile(again))
        write_chunks(back, json_lines(here.copies, here.copies.ids()))
        assert all(difference is None for _, difference in there.records.differences(there.records.ids()))
    assert back.read_bytes() == again.read_bytes() == first.read_bytes()


def test_the_trash_is_emptied_and_other_requests_are_still_proved(
    desk: Open, script: Script, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_DB", url)
    at = desk(script({"text": "ok"}))
    for _ in range(2):
        talk = at.conversation()
        for words in ("The mast is 14 metres tall, made of spruce, and stands. " * 4, "And then?"):
            talk.ask(words)
    at.delete("1")
    assert at.empty_trash() == 1
    assert {difference for _, difference in at.verify()} == {None}
    assert [each.number for each in at.conversations()] == [2]
    assert at.conversation(talk.id[:24]).id == talk.id if talk.id else False


def test_a_run_on_one_machine_keeps_another_from_going_on_with_it(
    desk: Open, script: Script, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_DB", url)
    steps = [{"text": "open", "status": "active"}]
    plan = {"tool_calls": [{"name": "update_plan", "arguments": json.dumps({"steps": steps})}]}
    model = script(plan, {"text": "still at it", "delay_s": 600})
    first = desk(model).conversation()
    events = first.stream_goal("Do one thing")
    next(event for event in events if isinstance(event, PlanChanged))
    # another machine has a home of its own, and its locks do not show here
    with open_desk(home=tmp_path / "elsewhere", project=tmp_path, model=model) as other:
        second = other.conversation(first.id)
        with pytest.raises(Invalid, match="a run is going on in conversation #1"):
            second.run_goal()
        events.close()
        run = other.conversation(first.id).last_run()  # the head may have moved on since
        assert run is not None
        assert run.status == "stopped"


def test_connections_that_are_in_use_when_a_store_is_closed_are_closed_after_it(url: str) -> None:
    store, opened = Store(url), list[Any]()
    for engine in (store.database.engine, store.database._holding):
        event.listen(engine, "checkout", lambda connection, *_: opened.append(connection))
    with store.database.hold("work"), store.database.read():
        store.close()
        assert not any(connection.closed for connection in opened)
    assert len(opened) == 2
    assert all(connection.closed for connection in opened)


def test_a_name_is_held_until_it_is_let_go(url: str) -> None:
    with Store(url) as one, Store(url) as other:
        with one.database.hold("work") as is_first, other.database.hold("work") as is_second:
            assert (is_first, is_second) == (True, False)
            with other.database.hold("other work") as is_free:
                assert is_free
        with other.database.hold("work") as is_free:
            assert is_free


def test_a_hundred_thousand_conversations_are_looked_up_at_once(store: Store) -> None:
    home, _ = chat(store, "mast")
    unknown = [f"{number:026}" for number in range(100_000)]
    assert store.tree.conversation_numbers([*unknown, home]).keys() == {home}
    assert store.tree.paths([*unknown, home]).keys() == {home}
