"""A first question whose client got no whole reply is known as such, by its own process and by others."""

from collections.abc import Callable
from pathlib import Path

from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.store.schema import conversations
from recto.store.store import Store


def asked(store: Store) -> str:
    home, message = store.tree.create().id, Message(new_id(), "user", (Text("Count."),))
    store.tree.append(home, message)
    store.awaited_replies.begin(message.id)
    return message.id


def test_a_question_is_lost_when_its_client_has_gone_and_not_while_it_waits(store: Store) -> None:
    message = asked(store)
    assert not store.awaited_replies.is_lost(message)
    store.awaited_replies.end(message, is_delivered=False)
    assert store.awaited_replies.is_lost(message)
    store.awaited_replies.begin(message)
    assert not store.awaited_replies.is_lost(message)
    store.awaited_replies.end(message, is_delivered=True)
    assert not store.awaited_replies.is_lost(message)
    assert not store.awaited_replies.is_lost(new_id())


def test_a_question_is_lost_when_its_server_is_started_again(tmp_path: Path) -> None:
    with Store(tmp_path / "recto.db") as store:
        lost, got = asked(store), asked(store)
        store.awaited_replies.end(got, is_delivered=True)
    with Store(tmp_path / "recto.db") as store:
        assert store.awaited_replies.is_lost(lost)
        assert not store.awaited_replies.is_lost(got)


def test_a_question_is_lost_to_other_servers_when_its_own_has_ended(postgresql: Callable[[], str]) -> None:
    url = postgresql()
    with Store(url) as other:
        with Store(url) as store:
            message = asked(store)
            assert not other.awaited_replies.is_lost(message), "its client may still get the reply"
        assert other.awaited_replies.is_lost(message)


def test_a_conversation_with_a_lost_question_can_be_removed(store: Store) -> None:
    message = asked(store)
    assert store.trash.remove(conversations.c.id == store.tree.owner(message)) == 1
    assert not store.awaited_replies.is_lost(message)
