"""The complete form: what is exported is imported as it was, and what is not whole is refused with its place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import Open, Script
from tests.transfer.conftest import bring, export

from recto.api.blocking import Desk, open_desk
from recto.base.ids import new_id
from recto.chat.blocks import (
    Block,
    Compaction,
    DocumentReference,
    File,
    Image,
    Made,
    MessageRange,
    Quote,
    References,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from recto.chat.message import Message, Tokens, Usage
from recto.errors import Invalid, RectoError, TooNew
from recto.store.check import check_store
from recto.store.store import Store
from recto.transfer.importer import Importer
from recto.transfer.recto_json import VERSION, RectoFile

HASH = "a" * 64
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
whole = st.integers(0, 10**6)
made = st.none() | st.builds(Made, texts, texts, st.none() | st.floats(0, 100))
files = st.builds(File, texts, texts, made=made, url=texts, base64=texts)
images = st.builds(Image, st.just("image/png"), base64=texts, name=texts, url=texts, made=made)
blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, texts, made),
    st.builds(Thinking, texts, st.none() | texts, st.none() | texts, made),
    st.builds(ToolCall, texts, texts, texts, made),
    st.builds(
        ToolResult,
        texts,
        texts,
        texts,
        is_error=st.booleans(),
        approval=texts,
        made=made,
        media=st.lists(st.just(f"image/png {HASH}"), max_size=2).map(tuple),
        attachments=st.lists(files | images, max_size=2).map(tuple),
    ),
    files,
    images,
    st.builds(
        References,
        st.lists(st.builds(DocumentReference, texts, st.none() | texts, summary=st.none() | texts)).map(tuple),
        told=texts,
        vault=texts,
        quotes=st.lists(st.builds(Quote, texts, texts, texts, whole, texts, texts), max_size=2).map(tuple),
    ),
)
messages = st.builds(
    Message,
    id=st.builds(new_id),
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    blocks=st.lists(blocks, max_size=3).map(tuple),
    status=st.sampled_from(["done", "stopped", "error", "pending"]),
    error=st.none() | texts,
    context_type=st.sampled_from(["primary", "tool_output"]),
    priority=st.integers(1, 10),
    agent=texts,
    model=st.none() | texts,
    usage=st.none() | st.builds(Usage, whole, whole, reported=st.booleans()),
    tokens=st.builds(Tokens, st.none() | whole, blocks=st.lists(whole, max_size=2).map(tuple)),
    task_runs=st.lists(st.dictionaries(texts, whole, max_size=2), max_size=2).map(tuple),
)
STORED_TIME = "2026-01-31T12:00:00.000Z"


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


def compaction(last: Message, **more: Any) -> Compaction:
    block = Compaction(1, STORED_TIME, last.id, "They met.", 1, 10, 5, "model", "full", pinned=(last.id,))
    ranges = (MessageRange(1, 2),)
    return replace(block, read=ranges, unread=ranges, checks={"facts": 2}, excerpts={last.id: "Th"}, **more)


@given(
    said=st.lists(st.tuples(messages, whole, st.booleans()), max_size=8),
    title=texts,
    details=st.dictionaries(texts.filter(bool), texts | whole | st.lists(whole, max_size=2), max_size=3),
)
def test_any_conversation_comes_back_as_the_same_bytes(
    homes: Path, said: list[tuple[Message, int, bool]], title: str, details: dict[str, Any]
) -> None:
    folder = homes / new_id()
    folder.mkdir()
    with Store(folder / "one.db") as store, Store(folder / "two.db") as other:
        home = store.tree.create(title=title, details=details).id
        so_far: list[Message] = []
        for message, parent, is_covered in said:
            above = so_far[parent % len(so_far)] if so_far and parent % 5 else None
            told = replace(message, parent=above.id if above else None)
            if above and is_covered:
                told = replace(told, role="system", blocks=(compaction(above),))
            so_far.append(store.tree.append(home, told).message)
        file = folder / "one.jsonl"
        file.write_bytes(export(store, home))
        bring(other, file)
        assert export(other, home) == file.read_bytes()
        assert [other.tree.message(each.id) for each in so_far] == [store.tree.message(each.id) for each in so_far]
        assert other.tree.conversation(home) == replace(store.tree.conversation(home), number=1)
        assert check_store(other).problems == ()


# -- real conversations


def test_a_real_conversation_comes_back_with_its_records(talked: Desk, other: Store, tmp_path: Path) -> None:
    file = talked.export(tmp_path / "out.jsonl")
    done = bring(other, file)
    assert [each.outcome for each in done.conversations] == ["added"]
    assert export(other) == file.read_bytes()
    ids = talked.store.records.ids()
    assert other.records.ids() == ids
    assert len(ids) >= 6
    assert [other.records.rebuild(id) for id in ids] == [talked.store.records.rebuild(id) for id in ids]
    assert [other.records.record(id) for id in ids] == [talked.store.records.record(id) for id in ids]
    for id in ids:
        assert sorted(other.source_uses.of(id), key=lambda use: use.id) == sorted(
            talked.store.source_uses.of(id), key=lambda use: use.id
        )
    assert other.document_uses.uses() == talked.store.document_uses.uses()
    assert check_store(other).problems == ()


def test_a_conversation_goes_on_after_its_import(talked: Desk, tmp_path: Path, script: Script) -> None:
    file = talked.export(tmp_path / "out.jsonl")
    with open_desk(home=tmp_path / "elsewhere", model=script({"text": "On and on."})) as desk:
        done = desk.import_file(file)
        talk = desk.conversation(done.conversations[0].id)
        before = talk.compaction()
        assert before is not None
        assert before.pinned
        assert talk.ask("And now?").text == "On and on."
        assert desk.search("spruce")
        assert all(difference is None for _, difference in desk.verify())


def test_an_unfinished_reply_is_exported_as_far_as_it_came(store: Store, other: Store, tmp_path: Path) -> None:
    home = store.tree.create(title="Cut").id
    asked = store.tree.append(home, Message(new_id(), "user", (Text("Go on."),))).message
    reply = store.tree.append(home, Message(new_id(), "assistant", (), asked.id, status="unfinished")).message
    store.tree.grow(reply.id, [["text", "Half a "], ["text", "sentence"]])
    (tmp_path / "out.jsonl").write_bytes(export(store))
    bring(other, tmp_path / "out.jsonl")
    assert other.tree.message(reply.id).text == "Half a sentence"
    assert export(other) == export(store)


def test_all_conversations_are_told_one_after_another(talked: Desk, other: Store, tmp_path: Path) -> None:
    talked.conversation().ask("Another one.")
    file = talked.export(tmp_path / "all.jsonl", everything=True)
    one = talked.export(tmp_path / "one.jsonl", 1).read_bytes().partition(b"\n")[2]
    assert one in file.read_bytes(), "the same lines"
    assert [each.outcome for each in bring(other, file).conversations] == ["added", "added"]
    assert export(other) == file.read_bytes()


def test_rights_that_a_conversation_brings_along_are_told(store: Store, other: Store, tmp_path: Path) -> None:
    rights = {"sources": {"allowed": {"shell/run": "0" * 64}}, "vault": "/home/someone/notes"}
    store.tree.create(title="Trust me", details=rights)
    file = tmp_path / "out.jsonl"
    file.write_bytes(export(store))
    assert bring(other, file).conversations[0].notes == (
        "these tools run in it without asking, if unchanged since they were allowed: shell/run",
        "its messages are sent with notes of /home/someone/notes",
    )


# -- what is there already


def chat(store: Store, *words: str) -> str:
    home = store.tree.create().id
    parent = None
    for place, word in enumerate(words):
        message = Message(new_id(), "assistant" if place % 2 else "user", (Text(word),), parent)
        parent = store.tree.append(home, message).message.id
    return home


def test_importing_again_adds_nothing(store: Store, other: Store, tmp_path: Path) -> None:
    chat(store, "one", "two")
    file = tmp_path / "out.jsonl"
    file.write_bytes(export(store))
    assert [each.outcome for each in bring(other, file).conversations] == ["added"]
    assert [each.outcome for each in bring(other, file).conversations] == ["unchanged"]
    assert bring(store, file).messages == 0


def test_a_conversation_that_went_on_here_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    home = chat(store, "one", "two")
    file = tmp_path / "out.jsonl"
    file.write_bytes(export(store))
    head = store.tree.conversation(home).head
    store.tree.append(home, Message(new_id(), "user", (Text("three"),), head))
    (done,) = bring(store, file).conversations
    assert (done.outcome, done.messages) == ("different", 0)
    assert store.tree.conversation(home).messages == 3


# -- what is not whole


def lines_of(store: Store) -> list[bytes]:
    chat(store, "one", "two")
    return export(store).splitlines(keepends=True)


def changed(number: int, **fields: Any) -> Callable[[list[bytes]], list[bytes]]:
    """Changes fields of a line; None takes one out."""

    def change(lines: list[bytes]) -> list[bytes]:
        told = json.loads(lines[number - 1]) | fields
        told = {name: value for name, value in told.items() if value is not None}
        return [*lines[: number - 1], json.dumps(told).encode() + b"\n", *lines[number:]]

    return change


DAMAGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "cut within a line": (
        lambda lines: [*lines[:3], lines[3][:40]],
        "line 4: it does not end, so the file was cut off",
    ),
    "cut after a line": (lambda lines: lines[:4], "after line 4: the file ends here; the end of the conversation of"),
    "cut before a conversation": (
        lambda lines: [lines[0].replace(b":1}", b":2}"), *lines[1:]],
        "after line 5: the file ends here; conversation 2 of 2 is missing",
    ),
    "cut in the second of two": (
        lambda lines: [lines[0].replace(b":1}", b":2}"), *lines[1:], lines[1][:-9]],
        "line 6: it does not end, so the file was cut off",
    ),
    "more than it says": (lambda lines: [*lines, lines[1]], "line 6: there are more conversations"),
    "a changed letter": (
        lambda lines: [each.replace(b'"one"', b'"owe"') for each in lines],
        "line 5: lines 2 to 4 were changed since they were written",
    ),
    "a wrong field": (changed(3, priority="high"), "line 3: Expected `int`, got `str` - at `$.priority`"),
    "a wrong block": (
        changed(3, blocks=[{"type": "text", "text": 5}]),
        "line 3: Expected `str`, got `int` - at `$.blocks[0].text`",
    ),
    "an unknown block": (changed(3, blocks=[{"type": "poem"}]), "line 3: Invalid value 'poem' - at `$.blocks[0].type`"),
    "an unknown role": (changed(3, role="boss"), "line 3: Invalid enum value 'boss' - at `$.role`"),
    "an unknown field": (changed(3, mood="good"), "line 3: Object contains unknown field `mood`"),
    "a missing field": (changed(3, created=None), "line 3: Object missing required field `created`"),
    "no time": (changed(3, created="yesterday"), "line 3: 'yesterday' is not a time"),
    "no such day": (changed(3, created="2026-02-31T00:00:00.000Z"), "line 3: '2026-02-31T00:00:00.000Z' is not a time"),
    "no id": (changed(3, id="x" * 26), "line 3: 'xxxxxxxxxxxxxxxxxxxxxxxxxx' is not an id"),
    "an unknown parent": (changed(3, parent="0" * 26), "does not come before it - at `$.parent`"),
    "an unknown request": (changed(3, request="0" * 26), "does not come before it - at `$.request`"),
    "an unknown head": (changed(2, head="0" * 26), "line 5: the head 00000000000000000000000000 of the conversation"),
    "twice the same": (lambda lines: [*lines[:3], lines[2], *lines[3:]], "is there twice - at `$.id`"),
    "another count": (
        changed(5, messages=7, sha256=None),
        "line 5: there are 2 messages and 0 requests, and it says 7",
    ),
    "a NUL": (changed(3, model="a\0b"), "line 3: it contains the character NUL"),
    "no JSON": (lambda lines: [*lines[:2], b"oh no\n", *lines[2:]], "line 3: JSON is malformed"),
    "deep": (lambda lines: [*lines[:2], b"[" * 100_000 + b"\n", *lines[2:]], "line 3: "),
    "too deep": (
        lambda lines: [*lines[:2], b'{"type":"message","usage":' + b'{"a":' * 100_000 + b"\n", *lines[2:]],
        "line 3: ",
    ),
    "a conversation within": (
        lambda lines: [*lines[:3], lines[1], *lines[3:]],
        "line 4: the conversation of line 2 has",
    ),
    "no conversation": (lambda lines: [lines[0], *lines[2:]], "line 2: expected conversation 1 of 1 here"),
    "a wrong hash": (
        lambda lines: [*lines[:2], b'{"type":"blob","sha256":"' + HASH.encode() + b'","text":"x"}\n', *lines[2:]],
        "line 3: its content does not have this hash - at `$.sha256`",
    ),
    "a wrong version": (changed(1, version=0), "line 1: the version 0 is unknown - at `$.version`"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_with_its_place_and_nothing_is_imported(
    store: Store, other: Store, tmp_path: Path, damage: str
) -> None:
    harm, told = DAMAGES[damage]
    file = tmp_path / "out.jsonl"
    file.write_bytes(b"".join(harm(lines_of(store))))
    with pytest.raises(Invalid) as caught:
        bring(other, file)
    assert told in caught.value.message
    assert other.copies.ids() == []


def test_an_edited_file_is_taken_without_its_hash(store: Store, other: Store, tmp_path: Path) -> None:
    lines = [each.replace(b'"one"', b'"won"') for each in lines_of(store)]
    file = tmp_path / "out.jsonl"
    file.write_bytes(b"".join(changed(5, sha256=None)(lines)))
    assert bring(other, file).messages == 2


def test_a_newer_export_is_not_read(store: Store, other: Store, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_bytes(b"".join(changed(1, version=VERSION + 1, wonders=[1])(lines_of(store))))
    with pytest.raises(TooNew, match="newer Recto"):
        bring(other, file)


@given(place=st.integers(0, 5000), byte=st.integers(0, 255))
def test_a_changed_byte_is_noticed(homes: Path, place: int, byte: int) -> None:
    folder = homes / new_id()
    folder.mkdir()
    with Store(folder / "one.db") as store, Store(folder / "two.db") as other:
        whole = b"".join(lines_of(store))
        at = place % len(whole)
        damaged = whole[:at] + bytes([byte]) + whole[at + 1 :]
        file = folder / "out.jsonl"
        file.write_bytes(damaged)
        try:
            Importer(other.copies).run(RectoFile(file))
        except RectoError:
            assert other.copies.ids() == []
        else:
            assert b"".join(export(other).splitlines(keepends=True)) in (whole, damaged)


def test_what_waits_to_enter_is_exported_too(store: Store, other: Store, tmp_path: Path) -> None:
    home = store.tree.create(title="Busy").id
    store.tree.append(home, Message(new_id(), "user", (Text("One."),)))
    picture = Image("image/png", sha256=store.blobs.put(b"picture"))
    waiting = store.waiting.add(home, (picture, Text("Two.")))
    (tmp_path / "out.jsonl").write_bytes(export(store))
    bring(other, tmp_path / "out.jsonl")
    assert other.waiting.of(home) == [waiting]
    assert other.blobs.get(picture.sha256) == b"picture"
    assert export(other) == export(store)


@pytest.mark.parametrize("prices", [{"input": 1000, "output": 1000}, {"input": 0, "output": 0}, None])
def test_costs_come_along_known_or_not(
    desk: Open, script: Script, other: Store, tmp_path: Path, prices: dict[str, int] | None
) -> None:
    usage = {"input": 100, "output": 10}
    opened = desk(script({"text": "Yes.", "usage": usage}, **({"prices": prices} if prices else {})))
    opened.conversation().ask("hello")
    bring(other, opened.export(tmp_path / "out.jsonl"))
    assert other.spending.by("model") == opened.store.spending.by("model")
    assert export(other) == export(opened.store)
