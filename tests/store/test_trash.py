"""The trash: what is deleted stays until it is emptied; then it is gone, and everything else is as it was."""

import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.conftest import Script
from tests.store.conftest import differences, is_forgotten, run_processes, tell_a_secret, told

from recto.api.blocking import Desk, open_desk
from recto.errors import Invalid, NotFound
from recto.store import trash
from recto.store.check import check_store
from recto.store.store import Store
from recto.store.trash import Trash

# Long enough to be packed with the messages that it is the first to send.
LONG = (
    "The mast of the Albatross is 14 metres tall, made of spruce, and was stepped by Oskar in the spring of 1987. " * 2
)


def test_the_trash_holds_what_was_deleted_until_it_is_restored(opened: Desk) -> None:
    talk = told(opened.conversation(), "about the mast")
    assert opened.delete("1").deleted
    assert opened.conversations() == []
    assert [each.number for each in opened.conversations(state="deleted")] == [1]
    assert opened.latest() is None
    assert list(opened.search("mast", complete=True)) == []
    with pytest.raises(NotFound, match="conversation #1 is in the trash; `recto conversations restore 1` brings"):
        opened.conversation(1)
    with pytest.raises(NotFound, match="there is no conversation about"):
        opened.conversation("about")
    assert opened.restore("about the mast").deleted is None
    assert opened.conversation(1).messages() == talk.messages()
    assert len(opened.search("mast")) == 1
    with pytest.raises(Invalid, match="conversation #1 is not in the trash"):
        opened.restore("1")


def test_emptying_removes_every_trace(opened: Desk) -> None:
    tell_a_secret(opened)
    opened.delete("2")
    assert opened.empty_trash() == 1
    assert opened.conversations(state="deleted") == []
    is_forgotten(opened)


def test_requests_of_other_conversations_still_rebuild(opened: Desk) -> None:
    """Both sent the same long message: its piece is packed with the messages of the one that was first."""
    first, second = opened.conversation(), opened.conversation()
    told(first, LONG, "and then?")
    told(second, LONG, "and then?")
    sent = {id: opened.rebuild(id) for id, _ in opened.verify()}
    requests = {message.request for message in second.messages() if message.request}
    opened.delete("1")
    assert opened.empty_trash() == 1
    assert differences(opened) == []
    assert {id: opened.rebuild(id) for id in requests} == {id: sent[id] for id in requests}
    told(second, "one more", LONG)
    assert differences(opened) == []
    assert check_store(opened.store).problems == ()


def test_attachments_that_others_need_stay(opened: Desk, tmp_path: Path) -> None:
    shared, own = tmp_path / "shared.png", tmp_path / "own.png"
    for number, path in enumerate((shared, own)):
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes([number]) * 40)
    opened.conversation().ask("look", attachments=(str(shared), str(own)))
    opened.conversation().ask("look", attachments=(str(shared),))
    blobs = {block.sha256 for block in opened.conversation(1).messages()[0].blocks if hasattr(block, "sha256")}
    opened.delete("1")
    opened.empty_trash()
    assert [opened.store.blobs.has(each) for each in sorted(blobs)].count(True) == 1
    assert differences(opened) == []


def test_only_what_was_deleted_long_ago_is_removed(opened: Desk) -> None:
    told(opened.conversation(), "one")
    opened.delete("1")
    assert opened.empty_trash(older_than=1) == 0
    assert len(opened.conversations(state="deleted")) == 1
    with pytest.raises(Invalid, match="older_than must be a whole number from 0 to 36500"):
        opened.empty_trash(older_than=-1)


def test_what_is_stored_while_others_are_read_stays(opened: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    told(opened.conversation(), LONG)
    other = opened.conversation()
    opened.delete("1")
    read = Trash._read_others

    def read_and_send(*args: object) -> None:
        read(*args)  # type: ignore[arg-type]
        told(other, LONG)

    monkeypatch.setattr(Trash, "_read_others", read_and_send)
    assert opened.empty_trash() == 1
    assert differences(opened) == []


def test_what_was_restored_meanwhile_stays(opened: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        told(opened.conversation(), LONG)
        opened.delete(str(len(opened.conversations(state="deleted")) + 1))
    read = Trash._read_others

    def read_and_restore(*args: object) -> None:
        read(*args)  # type: ignore[arg-type]
        opened.restore("1")

    monkeypatch.setattr(Trash, "_read_others", read_and_restore)
    assert opened.empty_trash() == 1
    assert [each.number for each in opened.conversations()] == [1]
    assert differences(opened) == []


@pytest.mark.slow
def test_the_newest_message_may_go_and_numbers_may_come_again(opened: Desk, script: Script) -> None:
    told(opened.conversation(), "one")
    told(opened.conversation(), "two", "three")
    opened.search("three", complete=True)
    opened.delete("2")
    opened.empty_trash()
    home = opened.home
    opened.close()
    with open_desk(home=home, model=script({"text": "It stands well."})) as again:
        assert [each.number for each in again.conversations()] == [1]
        told(again.conversation(), "four")
        assert [hit.message.text for hit in again.search("four", complete=True)] == ["four"]
        assert list(again.search("three", complete=True)) == []


def empty_and_die(path: Path, after: int) -> None:
    """Killed when so many conversations are deleted, the last of them not yet committed."""
    delete, left = trash._delete_conversation, [after]

    def kill(connection: Connection, number: int) -> None:
        delete(connection, number)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    trash._delete_conversation = kill
    Store(path).trash.empty("9")


@pytest.mark.parametrize("at", [1, 2])
def test_a_kill_in_the_middle_leaves_whole_conversations(opened: Desk, at: int) -> None:
    for _ in range(3):
        told(opened.conversation(), LONG, "more")
    opened.delete("1")
    opened.delete("3")
    home = opened.home
    opened.close()
    assert run_processes(1, empty_and_die, home / "recto.db", at) == [-signal.SIGKILL]
    with open_desk(home=home) as again:
        assert [each.number for each in again.conversations(state="deleted")] == [3, 1][: 3 - at]
        assert check_store(again.store).problems == ()
        again.empty_trash()
        assert [each.number for each in again.conversations(state="deleted")] == []
        assert check_store(again.store).problems == ()
        assert len(again.conversation(2).messages()) == 4


def test_what_waits_goes_with_its_conversation_and_keeps_what_it_holds(opened: Desk, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("the same log", "utf-8")
    first, second = told(opened.conversation(), "one"), told(opened.conversation(), "two")
    first.queue("see", attachments=[tmp_path / "log.txt"])
    waiting = second.queue("see", attachments=[tmp_path / "log.txt"])
    opened.delete("1")
    assert opened.empty_trash() == 1
    assert second.waiting() == [waiting]
    assert second.ask("and now?").text == "It stands well."
    assert check_store(opened.store).problems == ()
