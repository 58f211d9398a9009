"""The large store is a real one, and every command of the table runs on it."""

from pathlib import Path

import pytest
from bench.commands import Homes, prepared

from recto.store.check import check_store
from recto.store.store import Store

pytestmark = pytest.mark.untraced


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    monkeypatch.setattr("bench.large_store.TURNS", 4)
    monkeypatch.setattr("bench.commands.REPEATS", 2)
    return prepared(tmp_path, 3)


def test_copies_are_conversations_like_the_first(homes: Homes) -> None:
    assert homes.messages == 8 + 2 * 16
    with Store(homes.full / "recto.db") as store:
        assert not check_store(store).problems
        first, second, third = sorted(store.tree.conversations(), key=lambda each: each.number)
        said = [store.tree.message(each.head).said for each in (first, second, third) if each.head]
        assert said == [8, 16, 16]
        assert len({each.title for each in (first, second, third)}) == 3


def test_the_stores_are_made_once_and_asked_by_processes(homes: Homes) -> None:
    assert prepared(homes.full.parent, 3) == homes
    for command in ("conversations list", "request verify {request}", "conversations search 'function argument'"):
        assert all(each > 0 for each in homes.timed(homes.full, command))
