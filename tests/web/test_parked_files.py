"""Attachments that wait for their message: on disk, for their visitor alone, within bounds, for an hour."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from recto.chat.blocks import File
from recto.errors import Invalid, NotFound
from recto.web import files as parked_files
from recto.web.files import KEPT_S, ParkedFiles, expiring_files


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def add(parked: ParkedFiles, name: str, *parts: bytes) -> str:
    return asyncio.run(parked.add(name, chunks(*parts)))


def take(parked: ParkedFiles, *ids: str) -> list[str]:
    return [each.text for each in asyncio.run(parked.take(ids)) if isinstance(each, File)]


def files(home: Path) -> list[Path]:
    return [each for each in (home / "attachments").rglob("*") if each.is_file()]


def test_an_upload_outlives_its_server_and_is_taken_once(tmp_path: Path) -> None:
    name = "x" * 300 + "/\n.txt"
    id = add(ParkedFiles(tmp_path, "anna"), name, b"first, ", b"second")
    assert take(ParkedFiles(tmp_path, "anna"), id) == ["first, second"]
    assert files(tmp_path) == []
    with pytest.raises(NotFound):
        take(ParkedFiles(tmp_path, "anna"), id)


def test_an_upload_is_its_visitors_alone(tmp_path: Path) -> None:
    id = add(ParkedFiles(tmp_path, "anna"), "a.txt", b"secret")
    for wanted in (id, f"../{next(each for each in files(tmp_path)).parent.name}/{id}"):
        with pytest.raises(NotFound):
            take(ParkedFiles(tmp_path, "ben"), wanted)
    assert {each.stat().st_mode & 0o077 for each in (tmp_path / "attachments").rglob("*") if each.is_dir()} == {0}
    assert {each.stat().st_mode & 0o077 for each in files(tmp_path)} == {0}


def test_the_oldest_go_where_there_are_too_many_or_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_files, "MOST_FILES", 3)
    monkeypatch.setattr(parked_files, "MOST_BYTES", 100)
    parked = ParkedFiles(tmp_path)
    small = [add(parked, "a.txt", b"%d" % number) for number in range(5)]
    with pytest.raises(NotFound):
        take(parked, small[1])
    assert take(parked, *small[2:4]) == ["2", "3"]
    large = [add(parked, "a.txt", b"a" * 60) for _ in range(2)]
    with pytest.raises(NotFound):
        take(parked, large[0])
    assert take(parked, large[1]) == ["a" * 60]


def test_what_cannot_be_attached_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked_files, "MAX_BODY", 10)
    for parts in ((b"a" * 6, b"a" * 6), (b"\x00\x01\x02",), ()):
        with pytest.raises(Invalid):
            add(ParkedFiles(tmp_path), "a.bin", *parts)
    assert files(tmp_path) == []


def test_an_upload_that_nobody_took_is_gone_after_an_hour_also_after_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parked_files, "SWEEP_S", 0.01)
    parked = ParkedFiles(tmp_path)
    old, new = add(parked, "a.txt", b"old"), add(parked, "b.txt", b"new")

    def age(id: str) -> None:
        for each in files(tmp_path):
            if each.stem == id:
                os.utime(each, (each.stat().st_atime, each.stat().st_mtime - KEPT_S - 1))

    async def run() -> None:
        async with expiring_files(tmp_path):  # a server starts
            assert {each.stem for each in files(tmp_path)} == {new}
            age(new)
            while files(tmp_path):  # noqa: ASYNC110  it goes on
                await asyncio.sleep(0.01)

    age(old)
    asyncio.run(run())
