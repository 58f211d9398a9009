"""The store in PostgreSQL: schema, tree and records behave as they do in SQLite."""

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text
from tests.conftest import Open, Script
from tests.store import (
    test_blobs,
    test_document_uses,
    test_paths,
    test_source_uses,
    test_spending,
    test_token_counts,
    test_tree,
)
from tests.store.conftest import PROCESSES, say
from tests.store.test_database import append_many, append_own

from recto.api.blocking import open_desk
from recto.base.ids import new_id
from recto.errors import Busy, Invalid, NotFound, StoreError, TooNew
from recto.events import PlanChanged
from recto.sources.source import Pick
from recto.store.migrations import REVISIONS
from recto.store.schema import metadata
from recto.store.store import Store
from recto.transfer.exporter import write_chunks
from recto.transfer.importer import Importer
from recto.transfer.recto_json import RectoFile, json_lines
from recto.window.account import RequestAccount, Section
from recto.window.request import Piece, Request

MARK = b',"cache_control":{"type":"ephemeral"}'


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


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


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    with Store(url) as store, store.database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(TooNew):
        Store(url)


SHARED: list[Callable[[Store], None]] = [
    test_blobs.test_all_are_kept_or_none,
    test_blobs.test_the_same_text_is_kept_once,
    test_paths.test_messages_come_in_the_order_they_were_stored_with_their_home,
    test_source_uses.test_agents_are_told_apart_and_time_can_be_bounded,
    test_source_uses.test_modes_signs_and_conversations_are_counted,
    test_document_uses.test_uses_are_counted_by_document_and_by_conversation,
    test_source_uses.test_past_turns_tell_what_was_used_for_which_message_the_latest_first,
    test_spending.test_calls_of_no_conversation_are_in_the_sums,
    test_spending.test_costs_are_summed_by_day_model_conversation_and_purpose,
    test_spending.test_tokens_are_those_that_were_reported,
    test_token_counts.test_a_count_can_be_corrected_and_many_can_be_asked_for,
    test_token_counts.test_counts_come_back_by_meter_exact_or_not,
    test_token_counts.test_the_latest_reports_of_a_model_are_kept_newest_first,
    test_tree.test_a_fork_is_a_new_child_and_the_other_branch_stays,
    test_tree.test_a_message_is_on_the_paths_of_its_descendants_only,
    test_tree.test_all_compactions_on_the_path_are_found,
    test_tree.test_an_unfinished_message_shows_what_has_come_and_is_folded_at_the_end,
    test_tree.test_many_messages_appended_at_once_are_as_if_appended_one_by_one,
    test_tree.test_the_newest_compaction_on_the_path_is_known_at_every_message,
    test_tree.test_the_paths_of_several_conversations_are_found_at_once,
    test_tree.test_the_same_message_twice_is_stored_once_and_another_under_its_id_is_refused,
]


@pytest.mark.parametrize("promise", SHARED, ids=lambda promise: promise.__name__)
def test_what_holds_in_a_file_holds_on_a_server(store: Store, promise: Callable[[Store], None]) -> None:
    promise(store)


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
    assert store.records.compare(first.id, second.id).came_in == ()
    with pytest.raises(NotFound):
        store.records.save(request("nowhere", b"x"), None)


def test_two_writers_move_one_head_and_nothing_is_lost(url: str) -> None:
    with Store(url) as store:
        conversation = store.tree.create().id
        with ProcessPoolExecutor(2, PROCESSES) as pool:
            moved = sum(job.result() for job in [pool.submit(append_many, url, conversation, 30) for _ in range(2)])
        assert len(store.tree.after(0, most=1000)) == 60
        head = store.tree.conversation(conversation).head
        assert head
        assert len(store.tree.page(head, most=1000)) == moved


@pytest.mark.slow
def test_many_processes_that_write_at_once_all_succeed(url: str) -> None:
    Store(url).close()
    with ProcessPoolExecutor(20, PROCESSES) as pool:
        assert {job.result() for job in [pool.submit(append_own, url, 20) for _ in range(20)]} == {20}


def test_a_writer_waits_for_another_and_then_says_that_the_store_is_busy(url: str) -> None:
    with Store(url) as one, Store(url, busy_timeout_s=0.05) as other:
        home = one.tree.create().id
        with one.database.write():
            one.tree.append(home, say("held"))
            assert other.tree.conversation(home).head is None, "reading goes on, and sees what was committed"
            with pytest.raises(Busy, match="another process"):
                other.tree.append(home, say("wait"))
        assert not other.tree.append(home, say("now")).moved


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


def test_a_hundred_thousand_conversations_are_looked_up_at_once(store: Store) -> None:
    home, _ = chat(store, "mast")
    unknown = [f"{number:026}" for number in range(100_000)]
    assert store.tree.conversation_numbers([*unknown, home]).keys() == {home}
    assert store.tree.paths([*unknown, home]).keys() == {home}
