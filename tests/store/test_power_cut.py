"""A power cut at any moment loses nothing that a user was told is stored.

A library (power_cut.c) is loaded into a process that chats, backs up and deletes; it logs every write, sync and rename.
From the log the disk is rebuilt as a power cut may leave it: what was synced is there, of the rest everything, nothing,
or any pages of 4 kB; a name is there for certain when its folder was synced. Each such disk is opened.
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from msgspec import Struct, field

from recto.settings.keys import KeyStore
from recto.store.backup import backups
from recto.store.check import check_store
from recto.store.store import Store

pytestmark = pytest.mark.slow

PAGE = 4096
POINTS = 200
ACKS = "acks"
Kept = Literal["all", "none", "some"]
# What of the unsynced is there after the cut: of contents, of names.
WAYS: list[tuple[Kept, Kept]] = [("all", "all"), ("none", "none"), ("none", "all"), ("all", "none"), ("some", "some")]

CHAT = """
import json, os, sys
from pathlib import Path
from recto.api.blocking import open_desk
from recto.events import Appended
from recto.settings.keys import KeyStore
from recto.api.store_files import StoreFiles

root, model = Path(sys.argv[1]), sys.argv[2]
acks = os.open(root / "acks", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)


def ack(kind, *values):
    os.write(acks, json.dumps([kind, *values]).encode() + b"\\n")


for session in range(3):
    with open_desk(home=root / "home", model=model) as desk:
        for number in range(4):
            talk = desk.conversation()
            for turn in range(4):
                said = f"Session {session}, conversation {number}, turn {turn}. " + "A story. " * (600 * (turn % 2))
                for event in talk.stream(said):
                    if isinstance(event, Appended):
                        ack("message", event.message.id, said)
                last = talk.messages()[-1]
                assert last.role == "assistant" and last.status == "done", last
                ack("message", last.id, last.text)
            if number == 1:
                ack("deletes", *(message.id for message in talk.messages()))
                desk.delete(talk.id)
                desk.empty_trash()
        KeyStore(root / "home").put(f"NAME_{session}_API_KEY", f"secret-{session}")
        ack("key", f"NAME_{session}_API_KEY", f"secret-{session}")
        backup = root / "home" / "backups" / f"recto-2020-01-0{session + 1}.db"
        ack("backup", StoreFiles(root / "home").backup(backup).name)
"""


# -- the log


class Operation(NamedTuple):
    kind: str
    inode: int
    offset: int
    data: bytes


def read_log(path: Path) -> Iterator[Operation]:
    content, at, head = path.read_bytes(), 0, struct.Struct("=cQQQ")
    while at < len(content):
        kind, inode, offset, size = head.unpack_from(content, at)
        at += head.size
        yield Operation(kind.decode(), inode, offset, content[at : at + size])
        at += size


class File(Struct, eq=False):
    synced: bytearray = field(default_factory=bytearray)
    pending: list[Operation] = field(default_factory=list)

    def sync(self) -> None:
        self.synced, self.pending = self.content("all", random.Random()), []

    def content(self, kept: Kept, chance: random.Random) -> bytearray:
        content = bytearray(self.synced)
        for each in self.pending if kept != "none" else ():
            if each.kind == "T" and (kept == "all" or chance.random() < 0.5):
                content = content[: each.offset].ljust(each.offset, b"\0")
            for start, part in _pages(each) if each.kind == "W" else ():
                if kept == "all" or chance.random() < 0.5:
                    content = content.ljust(start, b"\0")
                    content[start : start + len(part)] = part
        return content


def _pages(write: Operation) -> Iterator[tuple[int, bytes]]:
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // PAGE + 1) * PAGE)
        yield start, write.data[start - write.offset : stop - write.offset]
        start = stop


class Folder(Struct, eq=False):
    synced: "dict[str, File | Folder]" = field(default_factory=dict)
    pending: "list[dict[str, File | Folder | None]]" = field(default_factory=list)
    """Changes of names, in order: a folder's journal keeps it. None removes a name."""

    def sync(self) -> None:
        self.synced, self.pending = self.names("all", random.Random()), []

    def names(self, kept: Kept, chance: random.Random) -> "dict[str, File | Folder]":
        count = {"all": len(self.pending), "none": 0, "some": chance.randint(0, len(self.pending))}[kept]
        names: dict[str, File | Folder | None] = dict(self.synced)
        for change in self.pending[:count]:
            names |= change
        return {name: node for name, node in names.items() if node is not None}


class Disk:
    def __init__(self, root: int) -> None:
        self.root = Folder()
        self._nodes: dict[int, File | Folder] = {root: self.root}
        self._acks: File | Folder | None = None
        self.acks = b""

    def do(self, each: Operation, before: Operation | None) -> None:
        node = self._nodes.get(each.inode)
        if node is None:  # of a file that was there before, or has no name any more
            return
        if each.kind == "S":
            node.sync()
        elif isinstance(node, File):
            node.pending.append(each)
            if node is self._acks:
                self.acks += each.data
        else:
            self._do_name(node, each, before)

    def _do_name(self, folder: Folder, each: Operation, before: Operation | None) -> None:
        name = each.data.decode()
        if each.kind in "ND":
            self._nodes[each.offset] = Folder() if each.kind == "D" else File()
        if each.kind == "N" and name == ACKS:
            self._acks = self._nodes[each.offset]
        target = None if each.kind == "U" else self._nodes.get(each.offset)
        if each.kind == "U" and before and before.kind == "R" and before.inode == each.inode:
            folder.pending[-1][name] = None  # one step with the new name
        else:
            folder.pending.append({name: target})

    def write(self, place: Path, contents: Kept, names: Kept, chance: random.Random) -> None:
        """The disk after a cut, as files. What the processes share in memory is not on it."""
        self._write(self.root, place, contents, names, chance)

    def _write(self, folder: Folder, place: Path, contents: Kept, names: Kept, chance: random.Random) -> None:
        place.mkdir()
        for name, node in folder.names(names, chance).items():
            if isinstance(node, Folder):
                self._write(node, place / name, contents, names, chance)
            elif not name.endswith("-shm") and name != ACKS:
                (place / name).write_bytes(node.content(contents, chance))


# -- what must be there


class Acknowledged:
    def __init__(self, acks: bytes) -> None:
        told = [json.loads(line) for line in acks.splitlines()]
        gone = {id for kind, *ids in told if kind == "deletes" for id in ids}
        self.messages = {each[1]: each[2] for each in told if each[0] == "message" and each[1] not in gone}
        self.keys = {each[1]: each[2] for each in told if each[0] == "key"}
        self.backups = {each[1] for each in told if each[0] == "backup"}

    def check(self, home: Path, *, thoroughly: bool) -> None:
        if self.messages:
            assert (home / "recto.db").exists()
        if home.exists():
            with Store(home / "recto.db") as store:
                for id, text in self.messages.items():
                    message = store.tree.message(id)
                    assert (message.text, message.status) == (text, "done")
                if thoroughly:
                    assert check_store(store).problems == ()
        assert {name: KeyStore(home).get(name) for name in self.keys} == self.keys
        valid = {backup.file.name for backup in backups(home / "recto.db")}
        assert self.backups <= valid
        assert {file.name for file in (home / "backups").glob("recto-*.db")} == valid, "no half backup has a name"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("library") / "power_cut.so"
    source = Path(__file__).with_name("power_cut.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, source, "-ldl", "-lpthread"], check=True)
    return made


def logged_chat(library: Path, root: Path, model: str) -> list[Operation]:
    log = root.parent / "power.log"
    environment = {**os.environ, "LD_PRELOAD": str(library), "POWER_ROOT": str(root), "POWER_LOG": str(log)}
    subprocess.run([sys.executable, "-c", CHAT, str(root), model], env=environment, check=True)
    return list(read_log(log))


def cut_points(operations: Sequence[Operation], chance: random.Random) -> list[int]:
    """Before a sync, when most is in the balance, and after one; and the first moments of a home."""
    syncs = [at for at, each in enumerate(operations) if each.kind == "S"]
    assert len(syncs) > POINTS
    return sorted(set(chance.sample([*syncs, *(at + 1 for at in syncs)], POINTS - 20)) | set(syncs[:20]))


def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECTO_STORE_BACKUP", "on")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    root, chance = tmp_path / "disk", random.Random(1)
    root.mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"text": "It stands well, and has done so for long. " * 20}]))
    operations = logged_chat(library, root, f"scripted:{script}")
    points, disk, before = set(cut_points(operations, chance)), Disk(root.stat().st_ino), None
    cuts = 0
    for at, operation in enumerate(operations):
        if at in points:
            known = Acknowledged(disk.acks)
            for contents, names in WAYS:
                disk.write(tmp_path / "after", contents, names, chance)
                try:
                    known.check(tmp_path / "after" / "home", thoroughly=cuts % 20 == 0)
                except BaseException as why:
                    why.add_note(
                        f"cut before operation {at} of {len(operations)}, kept: {contents} contents, {names} names"
                    )
                    raise
                shutil.rmtree(tmp_path / "after")
                cuts += 1
        disk.do(operation, before)
        before = operation
    assert cuts == len(points) * len(WAYS)
    assert len(Acknowledged(disk.acks).messages) == 3 * 4 * 4 * 2 - 3 * 4 * 2
