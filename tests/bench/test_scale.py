"""The bench of several servers: what it counts as lost, doubled and forked."""

from pathlib import Path

import pytest
from bench.load_messages import made_id
from bench.scale import Said, Seen, judge_store

from recto.base.ids import is_id, new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, Role
from recto.store.store import Store

OWN: Said = [("user", "one"), ("assistant", "yes"), ("user", "two"), ("assistant", "no")]


def stored(store: Store, said: Said, name: str = "boat") -> list[str]:
    home, ids = store.tree.create().id, list[str]()
    store.client_messages.own(home, "", name)
    for role, text in said:
        ids.append(add(store, home, role, text, ids[-1] if ids else None))  # type: ignore[arg-type]
    return [home, *ids]


def add(store: Store, home: str, role: Role, text: str, parent: str | None) -> str:
    return store.tree.append(home, Message(new_id(), role, (Text(text),), parent=parent)).message.id


def judged(store: Store, own: Said = OWN) -> tuple[int, int, int]:
    seen = Seen()
    judge_store(store, {"boat": own}, seen)
    return seen.lost, seen.doubled, seen.forked


def test_what_is_stored_as_clients_know_it_is_right(store: Store) -> None:
    stored(store, OWN)
    assert judged(store) == (0, 0, 0)


def test_a_reply_beside_the_path_is_no_fork_and_a_path_without_the_last_reply_is_one(store: Store) -> None:
    home, first, *_ = stored(store, OWN)
    add(store, home, "assistant", "half of it", first)
    assert judged(store) == (0, 0, 0)
    store.tree.move(home, first)
    assert judged(store)[2] == 1


def test_a_message_that_is_missing_or_there_twice_is_counted(store: Store) -> None:
    stored(store, OWN[:2])
    assert judged(store) == (2, 0, 1)
    stored(store, [("user", "one")], name="another")
    assert judged(store)[1] == 1


@pytest.fixture
def store(tmp_path: Path) -> "Store":
    return Store(tmp_path / "recto.db")


def test_made_ids_are_ids_that_sort_by_their_numbers() -> None:
    ids = [made_id(number, "M") for number in (1, 31, 32, 10_000_000)]
    assert ids == sorted(ids)
    assert all(map(is_id, ids))
