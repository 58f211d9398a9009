"""Exports of other programs: all that is in them comes along, once, and what is wrong is told in one sentence."""

import base64
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Open, Script
from tests.transfer import samples
from tests.transfer.conftest import bring, export
from tests.transfer.samples import DOT

from recto.base.ids import new_id
from recto.chat.blocks import File, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Message
from recto.errors import Invalid, NotFound, RectoError
from recto.store.check import check_store
from recto.store.store import Store
from recto.transfer import formats
from recto.transfer.report import ImportFormat


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_file(value: Any, name: str = "conversations.json") -> Path:
        file = tmp_path / name
        file.write_text(value if isinstance(value, str) else json.dumps(value))
        return file

    return write_file


Write = Callable[..., Path]


def path_of(store: Store, number: int = 1) -> list[Message]:
    head = store.tree.conversation_numbered(number).head
    return store.tree.page(head, most=100)[::-1] if head else []


def told(messages: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


# -- ChatGPT


def test_a_chatgpt_export_keeps_instructions_thoughts_tools_and_branches(store: Store, write: Write) -> None:
    done = bring(store, write(samples.chatgpt()))
    assert done.format == "chatgpt"
    assert [each.outcome for each in done.conversations] == ["empty", "added"]
    system, ask, call, result, answer, picture, last = path_of(store)
    assert (system.role, system.text) == ("system", "I sail.\n\nBe short.")
    assert (ask.role, ask.text, ask.created) == ("user", "How old is she?", "2025-08-24T01:46:41.500Z")
    assert call.blocks == (
        Thinking("Looking\nWhich boat?"),
        ToolCall("call_code", "python", '{"input": "1 + 1"}'),
    )
    assert result.blocks == (ToolResult("call_code", "python", "2"),)
    assert (answer.text, answer.model, answer.provider) == ("She is two.", "gpt-5", "chatgpt")
    lost = "[an image is not in the export]"
    assert picture.text == f"{lost}{lost}And this one?[the file notes.txt is not in the export]"
    assert last.text == "A boat."
    home = store.tree.conversation_numbered(1)
    assert (home.title, home.created, home.updated) == (
        "Old boats",
        "2025-08-24T01:46:40.000Z",
        "2025-08-24T01:53:20.000Z",
    )
    ends = {leaf.text: leaf.status for leaf in store.tree.leaves(home.id)}
    assert ends == {"A boat.": "done", "No.": "done"}
    assert "the role 'critic' is unknown: kept as assistant" in done.conversations[1].notes
    assert check_store(store).problems == ()


def test_images_and_files_of_the_zip_come_along(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("chat.html", "<html>")
        made.writestr("conversations.json", json.dumps(samples.chatgpt()))
        made.writestr("file-AbC123-photo.dat", DOT)
        made.writestr("user-1/file-Notes9-notes.txt", "Masts are of spruce.")
    bring(store, file)
    picture = path_of(store)[5]
    image, notes = picture.blocks[0], picture.blocks[-1]
    assert isinstance(image, Image)
    assert (image.media_type, store.blobs.get(image.sha256)) == ("image/png", DOT)
    assert notes == File("notes.txt", "Masts are of spruce.")


def test_an_unpacked_export_finds_its_images_beside_it(store: Store, write: Write, tmp_path: Path) -> None:
    (tmp_path / "file-AbC123-photo.png").write_bytes(DOT)
    bring(store, write(samples.chatgpt()))
    assert isinstance(path_of(store)[5].blocks[0], Image)


def test_an_export_in_several_files_is_read_as_one(store: Store, tmp_path: Path) -> None:
    talks = samples.chatgpt()
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w") as made:
        for number in range(3):
            one = talks[1] | {"conversation_id": f"c{number}"}
            made.writestr(f"conversations-{number:03}.json", json.dumps([one]))
    assert len(bring(store, file).conversations) == 3


# -- Claude


def test_a_claude_export_keeps_tools_attachments_and_branches(store: Store, write: Write) -> None:
    done = bring(store, write(samples.claude()))
    assert done.format == "claude"
    ask, call, result, answer, thanks = path_of(store, 1)
    assert ask.blocks == (
        Text("What are masts made of?"),
        File("list.txt", "oak, pine"),
        Text("[the file plan.pdf is not in the export]"),
    )
    assert ask.created == "2025-06-01T10:00:00.123Z"
    assert call.blocks[:2] == (Thinking("A search helps."), Text("I look it up."))
    assert [block.name for block in call.calls] == ["web_search"]
    assert [block.text for block in result.results] == ["Spruce."]
    assert (answer.text, thanks.text) == ("Spruce, mostly.", "Thanks.")
    first, second = (store.tree.conversation_numbered(number) for number in (1, 2))
    assert {leaf.text for leaf in store.tree.leaves(first.id)} == {"Thanks.", "Wood."}
    assert second.title == "Hello", "without a name the first line serves"
    assert told(path_of(store, 2)) == [("user", "Hello"), ("assistant", "Hi!")]
    assert check_store(store).problems == ()


# -- LibreChat


@pytest.mark.parametrize("recursive", [True, False])
def test_a_librechat_export_keeps_instructions_tools_and_branches(store: Store, write: Write, recursive: bool) -> None:
    done = bring(store, write(samples.librechat(recursive=recursive)))
    assert done.format == "librechat"
    home = store.tree.conversation_numbered(1)
    assert home.title == "Weather"
    leaves = {leaf.text: leaf for leaf in store.tree.leaves(home.id)}
    assert leaves["No idea."].status == "stopped"
    way = store.tree.page(leaves["Thanks.[the file map.png is not in the export]"].id, most=9)[::-1]
    assert [message.role for message in way] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert way[0].text == "Be brief."
    assert way[2].blocks[0].made is not None
    assert [call.arguments for call in way[2].calls] == ['{"place": "Kiel"}']
    assert [result.text for result in way[3].results] == ["Rain."]
    assert way[4].text == "It rains."


# -- message lists


LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "a list": lambda said: said,
    "an object": lambda said: {"messages": said, "model": "gpt-5"},
    "a list of lists": lambda said: [said],
    "a line for each conversation": lambda said: json.dumps({"messages": said}) + "\n",
    "a line for each message": lambda said: "\n".join(map(json.dumps, said)),
}


@pytest.mark.parametrize("form", LISTS)
def test_a_message_list_is_a_conversation(store: Store, write: Write, form: str) -> None:
    file = write(LISTS[form](samples.message_list()), "talk.jsonl")
    assert bring(store, file).format == "openai"
    said = path_of(store)
    assert [message.role for message in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert [call.name for call in said[2].calls] == ["clock", "date"]
    assert [result.text for result in said[3].results] == ["12:00", "Monday"]
    assert store.tree.conversation_numbered(1).title == "What time is it?"
    assert bring(store, file).messages == 0


def test_messages_without_times_stay_so_wherever_they_go(
    store: Store, other: Store, write: Write, tmp_path: Path
) -> None:
    bring(store, write(samples.message_list()))
    exported = tmp_path / "exported.jsonl"
    exported.write_bytes(export(store))
    bring(other, exported)
    assert export(other) == exported.read_bytes()
    said, head = path_of(other), other.tree.conversation_numbered(1).head
    assert head is not None
    assert {message.time for message in (*said, *other.tree.bare_page(head, most=100))} == {""}
    assert all(message.created for message in said)


def test_each_line_for_fine_tuning_is_a_conversation(store: Store, write: Write) -> None:
    lines = [json.dumps({"messages": [{"role": "user", "content": f"Question {n}"}]}) for n in range(5)]
    assert len(bring(store, write("\n".join(lines), "train.jsonl")).conversations) == 5


def test_images_and_files_of_a_message_list_are_kept(store: Store, write: Write) -> None:
    url = "data:image/png;base64," + base64.b64encode(DOT).decode()
    text = "data:text/plain;base64," + base64.b64encode(b"oak").decode()
    parts = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"filename": "a.txt", "file_data": text}},
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
    ]
    done = bring(store, write([{"role": "user", "content": parts}]))
    kept, linked, file, sound = path_of(store)[0].blocks
    assert isinstance(kept, Image)
    assert store.blobs.get(kept.sha256) == DOT
    assert linked == Image("image/*", url="https://example.com/a.png")
    assert file == File("a.txt", "oak")
    assert sound == Text("[a part of type input_audio is not in the export]")
    assert done.conversations[0].notes == ("a part of type input_audio is not in the export",)


def test_a_list_in_the_form_of_anthropic_is_read(store: Store, write: Write) -> None:
    said = [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "clock", "input": {"zone": "UTC"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "12:00"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Noon."}]},
    ]
    bring(store, write({"system": "Be brief.", "messages": said}))
    assert [message.role for message in path_of(store)] == ["system", "user", "assistant", "tool", "assistant"]


def test_parts_of_the_wrong_type_are_passed_over(store: Store, write: Write) -> None:
    parts = [{"type": {"a": []}}, {"type": ["b"], "text": "Kept."}, {"type": 5}, 7, None]
    done = bring(store, write([{"role": "user", "content": parts, "model": {}, "created": []}]))
    lost = "[a part of type unknown is not in the export]"
    assert path_of(store)[0].text == f"{lost}Kept.{lost}7"
    assert done.conversations[0].notes == ("a part of type unknown is not in the export",)


def test_a_result_without_its_call_becomes_a_text(store: Store, write: Write) -> None:
    said = [{"role": "user", "content": "Well?"}, {"role": "tool", "tool_call_id": "x", "content": "12:00"}]
    bring(store, write(said))
    assert told(path_of(store)) == [("user", "Well?"), ("assistant", "[a tool]\n12:00")]


# -- llm


def fill_responses(db: sqlite3.Connection) -> None:
    """As llm 0.27 writes them."""
    db.executescript("""
    CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
    CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, prompt_json TEXT,
      options_json TEXT, response TEXT, response_json TEXT, conversation_id TEXT, duration_ms INTEGER,
      datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT);
    CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
    CREATE TABLE prompt_attachments (response_id TEXT, attachment_id TEXT, "order" INTEGER);
    CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
    CREATE TABLE prompt_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
    CREATE TABLE system_fragments (response_id TEXT, fragment_id INTEGER, "order" INTEGER);
    CREATE TABLE tool_calls (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, arguments TEXT,
      tool_call_id TEXT);
    CREATE TABLE tool_results (id INTEGER PRIMARY KEY, response_id TEXT, tool_id INTEGER, name TEXT, output TEXT,
      tool_call_id TEXT, exception TEXT);
    INSERT INTO conversations VALUES ('c1', 'Time', 'gpt');
    INSERT INTO fragments VALUES (1, 'h', 'A fragment.', '', '');
    INSERT INTO prompt_fragments VALUES ('r1', 1, 0);
    INSERT INTO tool_calls VALUES (1, 'r1', 1, 'clock', '{"zone": "UTC"}', 't1');
    INSERT INTO tool_results VALUES (1, 'r2', 1, 'clock', '12:00', 't1', NULL);
    INSERT INTO prompt_attachments VALUES ('r3', 'a1', 0), ('r3', 'a2', 1), ('r3', 'a3', 2);
    """)
    row = "INSERT INTO responses VALUES (?, 'gpt', ?, ?, NULL, '{}', ?, NULL, ?, 5, ?, ?, ?, NULL)"
    day = "2025-05-14T16:25:0{}.000000+00:00"
    db.execute(row, ("r1", "What time?", "Be brief.", "I look.", "c1", day.format(1), 12, 3))
    db.execute(row, ("r2", "", "Be brief.", "Noon.", "c1", day.format(2), 20, 2))
    db.execute(row, ("r3", "And this?", None, "A dot.", "c1", day.format(3), None, None))
    db.execute(row, ("r4", "Alone", None, "Yes.", None, day.format(4), None, None))
    attached = "INSERT INTO attachments VALUES (?, 'image/png', ?, ?, ?)"
    db.execute(attached, ("a1", None, None, DOT))
    db.execute(attached, ("a2", None, "https://example.com/x.png", None))
    db.execute(attached, ("a3", "/etc/hostname", None, None))


def fill_threads(db: sqlite3.Connection) -> None:
    """As llm 0.36 writes them."""
    db.executescript("""
    CREATE TABLE messages (hash TEXT PRIMARY KEY, parent_hash TEXT, role TEXT, provider_metadata TEXT);
    CREATE TABLE parts (id INTEGER PRIMARY KEY, message_hash TEXT, position INTEGER, type TEXT, tool_name TEXT,
      text TEXT, payload TEXT);
    CREATE TABLE attachments (id TEXT PRIMARY KEY, type TEXT, path TEXT, url TEXT, content BLOB);
    CREATE TABLE fragments (id INTEGER PRIMARY KEY, hash TEXT, content TEXT, datetime_utc TEXT, source TEXT);
    CREATE TABLE threads (id TEXT PRIMARY KEY, name TEXT, tip_message_hash TEXT, forked_from TEXT, datetime_utc TEXT);
    CREATE TABLE turns (id TEXT PRIMARY KEY, thread_id TEXT, parent_message_hash TEXT, tip_message_hash TEXT,
      model TEXT, input_tokens INTEGER, output_tokens INTEGER, duration_ms INTEGER, datetime_utc TEXT);
    CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
    CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT,
      conversation_id TEXT, datetime_utc TEXT);
    INSERT INTO responses VALUES ('t1', 'gpt', 'What time?', NULL, 'Noon.', 'c1', '2025-05-14T16:25:01+00:00');
    INSERT INTO fragments VALUES (1, 'h', 'A fragment.', '', '');
    INSERT INTO messages VALUES ('m0', NULL, 'system', ''), ('m1', 'm0', 'user', ''), ('m2', 'm1', 'assistant', ''),
      ('m3', 'm2', 'tool', ''), ('m4', 'm3', 'assistant', ''), ('m5', 'm1', 'assistant', '');
    INSERT INTO threads VALUES ('c1', 'Time', 'm4', NULL, '2025-05-14 16:25:00.000000+00:00');
    INSERT INTO turns VALUES ('t1', 'c1', 'm1', 'm2', 'gpt', 12, 3, 5, '2025-05-14T16:25:01+00:00'),
      ('t2', 'c1', 'm3', 'm4', 'gpt', 20, 2, 5, '2025-05-14T16:25:02+00:00'),
      ('t3', 'c1', 'm1', 'm5', 'gpt', 20, 2, 5, '2025-05-14T16:25:03+00:00');
    """)
    parts = [
        ("m0", 0, "text", None, "Be brief.", None),
        ("m1", 0, "text", None, None, {"text_ref": [{"fragment": 1}, {"literal": "\nWhat time?"}]}),
        ("m2", 0, "reasoning", None, "A clock.", None),
        ("m2", 1, "tool_call", "clock", None, {"arguments": {"zone": "UTC"}, "tool_call_id": "t1"}),
        ("m3", 0, "tool_result", "clock", None, {"output": "12:00", "tool_call_id": "t1"}),
        ("m4", 0, "text", None, "Noon.", None),
        ("m5", 0, "text", None, "No idea.", None),
    ]
    for *own, payload in parts:
        told = json.dumps(payload) if payload else None
        db.execute(
            "INSERT INTO parts (message_hash, position, type, tool_name, text, payload) VALUES (?,?,?,?,?,?)",
            (*own, told),
        )


def logs(tmp_path: Path, fill: Callable[[sqlite3.Connection], None]) -> Path:
    file = tmp_path / "logs.db"
    with sqlite3.connect(file) as db:
        fill(db)
    db.close()
    return file


def test_responses_of_llm_become_conversations(store: Store, tmp_path: Path) -> None:
    file = logs(tmp_path, fill_responses)
    done = bring(store, file)
    assert done.format == "llm"
    said = path_of(store, 1)
    assert [message.role for message in said] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert said[1].text == "A fragment.\nWhat time?"
    assert said[2].usage is not None
    assert (said[2].usage.input, said[2].usage.output) == (12, 3)
    image, linked, missing = said[5].blocks[1:]
    assert isinstance(image, Image)
    assert isinstance(linked, Image)
    assert linked.url == "https://example.com/x.png"
    assert missing == Text("[the file /etc/hostname is not in the export]"), "a path is not read for being named"
    assert told(path_of(store, 2)) == [("user", "Alone"), ("assistant", "Yes.")]
    assert bring(store, file).messages == 0


def test_threads_of_llm_become_conversations_with_their_branches(store: Store, tmp_path: Path) -> None:
    done = bring(store, logs(tmp_path, fill_threads))
    assert [each.outcome for each in done.conversations] == ["added"], "the response of the same thread is not doubled"
    said = path_of(store, 1)
    assert [message.role for message in said] == ["system", "user", "assistant", "tool", "assistant"]
    assert said[1].text == "A fragment.\nWhat time?"
    assert said[4].usage is not None
    home = store.tree.conversation_numbered(1)
    assert {leaf.text for leaf in store.tree.leaves(home.id)} == {"Noon.", "No idea."}


def test_another_sqlite_file_is_refused(store: Store, tmp_path: Path) -> None:
    def fill(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE birds (name TEXT)")

    file = logs(tmp_path, fill)
    with pytest.raises(Invalid, match="not a log of llm"):
        bring(store, file)


def test_a_damaged_sqlite_file_is_refused(store: Store, tmp_path: Path) -> None:
    file = logs(tmp_path, fill_responses)
    file.write_bytes(file.read_bytes()[:5000] + b"\xff" * 9000)
    with pytest.raises(Invalid, match="cannot be read"):
        bring(store, file)
    assert store.copies.ids() == []


# -- all of them


SAMPLES: dict[ImportFormat, Callable[[], Any]] = {
    "chatgpt": samples.chatgpt,
    "claude": samples.claude,
    "librechat": lambda: samples.librechat(recursive=True),
    "openai": samples.message_list,
}


@pytest.mark.parametrize("format", SAMPLES)
def test_importing_the_same_export_twice_adds_nothing(store: Store, write: Write, format: ImportFormat) -> None:
    file = write(SAMPLES[format]())
    first = bring(store, file)
    again = bring(store, file)
    assert first.messages > 0
    assert (again.messages, again.count("added")) == (0, 0)


def test_a_later_export_adds_what_was_said_since(store: Store, write: Write) -> None:
    talks = samples.claude()
    bring(store, write(talks))
    more = {"uuid": "u3", "text": "One thing more.", "sender": "human", "created_at": "2025-06-02T10:00:00Z"}
    talks[0]["chat_messages"].append(more | {"parent_message_uuid": "u2"})
    done = bring(store, write(talks))
    assert [(each.outcome, each.messages) for each in done.conversations] == [("extended", 1), ("unchanged", 0)]
    assert path_of(store)[-1].text == "One thing more."


def test_a_later_export_does_not_move_a_conversation_that_went_on_here(store: Store, write: Write) -> None:
    talks = samples.claude()
    bring(store, write(talks))
    home = store.tree.conversation_numbered(1)
    store.tree.append(home.id, Message(new_id(), "user", (Text("Said here."),), home.head))
    more = {"uuid": "u3", "text": "One thing more.", "sender": "human", "parent_message_uuid": "u2"}
    talks[0]["chat_messages"].append(more)
    assert bring(store, write(talks)).messages == 1
    assert path_of(store)[-1].text == "Said here."


@pytest.mark.parametrize("format", SAMPLES)
def test_an_imported_conversation_goes_on(
    desk: Open, script: Script, write: Write, format: ImportFormat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "sent.jsonl"
    monkeypatch.setenv("RECTO_SCRIPTED_LOG", str(log))
    at = desk(script({"text": "On it goes."}))
    done = at.import_file(write(SAMPLES[format]()))
    home = next(each.id for each in done.conversations if each.messages)
    talk = at.conversation(home)
    assert talk.ask("And now?").text == "On it goes."
    sent = json.loads(log.read_text().splitlines()[-1])["messages"]
    open_calls: set[str] = set()
    for message in sent:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        open_calls |= {call["id"] for call in message.get("tool_calls", ())}
    assert not open_calls
    assert at.search("time", complete=True) is not None


HOSTILE: dict[str, tuple[str, str]] = {
    "garbage": ("\x00\x01garbage", "it is not valid JSON (expecting value)"),
    "words": ("hello there", "conversations.json: it is not valid JSON (expecting value) near “hello there”"),
    "a number": ("[1, 2]", "has an unknown format"),
    "another list": ('[{"a": 1}]', "has an unknown format"),
    "an empty list": ("[]", "has an unknown format"),
    "cut in an item": (json.dumps(samples.claude())[:700], "does not end, so the file was cut off"),
    "cut in a text": ('[{"role": "user", "content": "half', "does not end, so the file was cut off"),
    "cut between items": ('[{"role": "user", "content": "a"},', "the list does not end, so the file was cut off"),
    "bad JSON": ('[{"role": "user", "content": }]', "item 1: it is not valid JSON (expecting value) near “"),
    "bad JSON in a conversation": (
        '[{"title": "Apples", "mapping": {}},\n{"title": "Pears",\n"mapping" {}}]',
        "line 3, item 2: it is not valid JSON",
    ),
    "cut in a conversation": (
        '[{"title": "Apples", "mapping": {}}, {"title": "Pears", "mapping": {',
        "item 2: it does not end, so the file was cut off",
    ),
    "something after": ('[{"role": "user", "content": "a"}] {"b": 1}', "unexpected text after the end"),
    "deep": ('[{"role": "user", "content": ' + "[" * 50_000 + "]" * 50_000 + "}]", "nested too deeply"),
    "an unknown role": ('[{"role": "boss", "content": "a"}]', "message 1: the role 'boss' is unknown"),
    "no role": ('{"messages": [{"content": "a"}]}', "message 1: it has no role"),
    "a huge number": ('[{"role": "user", "content": "a", "n": ' + "9" * 5000 + "}]", "digits"),
    "no mapping": ('[{"mapping": {}}, 5]', "item 2: it is not a conversation"),
    "odd messages": ('[{"uuid": "a", "chat_messages": [5]}]', "message 1: it is not an object"),
    "no messageId": ('{"conversationId": "a", "messages": [{}]}', "a message has no messageId"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_wrong_is_told_in_one_sentence(store: Store, write: Write, what: str) -> None:
    content, sentence = HOSTILE[what]
    with pytest.raises(RectoError) as caught:
        bring(store, write(content))
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message
    assert store.copies.ids() == []


def test_a_circle_of_parents_is_refused(store: Store, write: Write) -> None:
    talks = samples.chatgpt()
    talks[1]["mapping"]["ask"]["parent"] = "answer"
    with pytest.raises(Invalid, match=r"conversation 2 \(“Old boats”\): the message \w+ is its own ancestor"):
        bring(store, write(talks))
    assert store.copies.ids() == []


def test_what_is_wrong_at_the_end_keeps_the_beginning_out(store: Store, write: Write) -> None:
    with pytest.raises(Invalid, match="item 3"):
        bring(store, write([*samples.claude(), {"uuid": "x", "chat_messages": ["no"]}]))
    assert store.copies.ids() == []


def test_an_empty_file_a_folder_and_a_missing_file_are_told(store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(" \n")
    with pytest.raises(Invalid, match="is empty"):
        bring(store, tmp_path / "empty.json")
    with pytest.raises(Invalid, match="is a folder; name a file in it"):
        bring(store, tmp_path)
    with pytest.raises(NotFound, match="there is no file"):
        bring(store, tmp_path / "none.json")


def test_a_zip_bomb_is_not_unpacked(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "HARMLESS_BYTES", 1 << 16)
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", "[" + " " * (1 << 22) + "]")
    with pytest.raises(Invalid, match="would unpack to"):
        bring(store, file)
    monkeypatch.setattr(formats, "MAX_UNPACKED_BYTES", 100)
    with pytest.raises(Invalid, match="would unpack to"):
        bring(store, file)


def test_a_zip_that_is_cut_off_damaged_or_of_something_else_is_refused(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("conversations.json", json.dumps(samples.claude()))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Invalid, match="damaged or was cut off"):
        bring(store, file)
    file.write_bytes(whole[:100] + b"\xff\xff\xff" + whole[103:])
    with pytest.raises(Invalid, match="damaged"):
        bring(store, file)
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("photo.png", DOT)
    with pytest.raises(Invalid, match=r"contains no conversations\.json"):
        bring(store, file)


def test_texts_that_cannot_be_stored_are_repaired(store: Store, write: Write, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_bytes(b'[{"role": "user", "content": "half \\ud83d, NUL \\u0000, bytes \xff"}]')
    bring(store, file)
    assert path_of(store)[0].text == "half \ufffd, NUL \ufffd, bytes \ufffd"


def test_the_format_can_be_named(store: Store, write: Write) -> None:
    with pytest.raises(Invalid, match="no conversationId"):
        bring(store, write(samples.message_list()), "librechat")
    with pytest.raises(Invalid, match="not the first line of a Recto export"):
        bring(store, write(samples.message_list()), "recto")
    with pytest.raises(Invalid, match="cannot be read"):
        bring(store, write(samples.message_list()), "llm")


@given(
    values=st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=8),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=12,
        ).map(lambda value: {"value": value}),
        max_size=5,
    ),
    indent=st.none() | st.integers(0, 2),
    is_list=st.booleans(),
)
def test_items_of_a_file_are_those_that_json_knows(
    values: list[Any], indent: int | None, is_list: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("items") / "a.json"
    lines = "\n".join(json.dumps(value, indent=indent) for value in values)
    file.write_text(json.dumps(values, indent=indent) if is_list or not values else lines)
    assert [item.value for item in formats.JsonFile(file).items()] == values
