"""Texts by their hash: kept once, found again, and never given back changed."""

import hashlib
import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from tests.conftest import examples
from tests.store.conftest import execute

from recto.errors import Altered, NotFound
from recto.store.blobs import LARGE
from recto.store.store import Store


def rows(store: Store) -> int:
    return int(store.database.scalar(text("SELECT count(*) FROM kept")))


@settings(max_examples=examples(50, few=10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=2000), max_size=6))
def test_whatever_is_kept_is_found_by_its_sha256(store: Store, some: list[bytes]) -> None:
    names = store.blobs.put_all(some)
    assert names == [hashlib.sha256(data).hexdigest() for data in some]
    assert [store.blobs.get(name) for name in names] == some


def test_the_same_text_is_kept_once(store: Store) -> None:
    first = store.blobs.put(b"Answer in metric units.")
    assert store.blobs.put(b"Answer in metric units.") == first
    assert store.blobs.put_all([b"a", b"b", b"a"])[0] == store.blobs.put(b"a")
    assert rows(store) == 3


@pytest.mark.parametrize("data", [b"line of a log\n" * (LARGE // 7), os.urandom(LARGE + 1)], ids=["text", "noise"])
def test_a_large_result_comes_back_whole(store: Store, data: bytes) -> None:
    assert store.blobs.get(store.blobs.put(data)) == data
    assert store.database.scalar(text("SELECT length(data) FROM kept")) <= len(data) + 1


def test_fifty_megabytes_are_kept(store: Store) -> None:
    data = b"".join(b"%08d: the same few words again\n" % number for number in range(50_000_000 // 39))
    assert store.blobs.get(store.blobs.put(data)) == data


@pytest.mark.parametrize("name", ["0" * 64, "no hash at all", ""])
def test_what_was_never_kept_is_not_found(store: Store, name: str) -> None:
    assert not store.blobs.has(name)
    with pytest.raises(NotFound, match="no text with the sha256"):
        store.blobs.get(name)


@pytest.mark.parametrize("blob", ["x'00'", "x''", "x'07ff'", "x'01ffff'"])
def test_a_changed_text_is_altered_not_wrong(store: Store, blob: str) -> None:
    name = store.blobs.put(b"Rotate the keys every ninety days.")
    execute(store, f"UPDATE kept SET data = {blob}")
    with pytest.raises(Altered, match="was changed"):
        store.blobs.get(name)


def test_all_are_kept_or_none(store: Store) -> None:
    with suppress(RuntimeError), store.database.write():
        store.blobs.put_all([b"one", b"two"])
        raise RuntimeError
    assert rows(store) == 0
