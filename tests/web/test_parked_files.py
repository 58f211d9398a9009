"""Attachments that wait for their message: for their visitor alone, within bounds, taken once."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from recto.chat.blocks import File
from recto.errors import Invalid, NotFound
from recto.web import files as parked_files
from recto.web.files import ParkedFiles


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def add(parked: ParkedFiles, name: str, *parts: bytes) -> str:
    return asyncio.run(parked.add(name, chunks(*parts)))


def take(parked: ParkedFiles, *ids: str) -> list[str]:
    return [each.text for each in parked.take(ids) if isinstance(each, File)]


def test_an_upload_is_its_visitors_alone_and_taken_once() -> None:
    anna, ben = ParkedFiles(), ParkedFiles()
    id = add(anna, "x" * 300 + "/\n.txt", b"first, ", b"second")
    with pytest.raises(NotFound):
        take(ben, id)
    assert take(anna, id) == ["first, second"]
    with pytest.raises(NotFound):
        take(anna, id)


def test_the_oldest_go_where_there_are_too_many_or_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_files, "MOST_FILES", 3)
    monkeypatch.setattr(parked_files, "MOST_BYTES", 100)
    parked = ParkedFiles()
    small = [add(parked, "a.txt", b"%d" % number) for number in range(5)]
    with pytest.raises(NotFound):
        take(parked, small[1])
    assert take(parked, *small[2:4]) == ["2", "3"]
    large = [add(parked, "a.txt", b"a" * 60) for _ in range(2)]
    with pytest.raises(NotFound):
        take(parked, large[0])
    assert take(parked, large[1]) == ["a" * 60]


def test_what_cannot_be_attached_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_files, "MAX_BODY", 10)
    for parts in ((b"a" * 6, b"a" * 6), (b"\x00\x01\x02",), ()):
        with pytest.raises(Invalid):
            add(ParkedFiles(), "a.bin", *parts)
