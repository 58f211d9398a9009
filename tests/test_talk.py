"""What a conversation tells about itself and lets be changed, through the door."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.errors import Invalid, NoKey, NotFound, StoreError
from recto.events import Question
from recto.store.tree import Tree


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    rules = folder / "agents" / "default" / "rules"
    rules.mkdir(parents=True)
    for name in ("style", "tone"):
        (rules / f"{name}.md").write_text(f"---\ninclude: manual\n---\nThe rule {name}.\n")
    return folder


@pytest.fixture
def talk(home: Path, desk: Open, script: Script) -> Talk:
    return desk(script({"text": "Yes."})).conversation()


def test_sources_are_added_all_or_none(talk: Talk) -> None:
    with pytest.raises(NotFound):
        talk.add_sources(["rule:style", "rule:nobody"])
    assert not talk.overrides().added
    assert [each.mode for each in talk.add_sources(["rule:style", "rule:tone"])] == ["manual", "manual"]
    with pytest.raises(Invalid, match="is in this conversation already"):
        talk.add_sources(["rule:style"])


def test_sources_are_removed_all_or_none(talk: Talk, home: Path) -> None:
    talk.add_sources(["rule:style", "rule:tone"])
    with pytest.raises(NotFound):
        talk.remove_sources(["rule:style", "rule:nobody"])
    assert len(talk.overrides().added) == 2
    (home / "agents" / "default" / "rules" / "tone.md").unlink()
    talk.remove_sources(["rule:style", "rule:tone"])
    assert not talk.overrides().added, "also one whose file is gone"


def test_a_transcript_tells_what_is_still_sent(talk: Talk) -> None:
    for text in ("first", "second"):
        talk.ask(text)
    talk.pin("1")
    talk.clear()
    talk.ask("third")
    said = [entry for entry in talk.transcript() if not entry.message.compaction]
    assert [entry.active for entry in said] == [False, False, False, False, True, True]
    assert [entry.message.text for entry in talk.transcript(limit=2)] == ["third", "Yes."]


def test_stopping_while_a_question_waits_stays_a_stop() -> None:
    async def stopped() -> None:
        question: Question[str] = Question()
        waiting = asyncio.create_task(question.settled())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def closed() -> None:
        question: Question[str] = Question()
        waiting = asyncio.create_task(question.settled())
        await asyncio.sleep(0)
        question.settle()
        await waiting

    asyncio.run(stopped())
    asyncio.run(closed())


def test_an_attachment_is_read_back(desk: Open, script: Script, tmp_path: Path) -> None:
    opened = desk(script({"text": "seen"}))
    (tmp_path / "dot.gif").write_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")
    talk = opened.conversation()
    talk.ask("look", attachments=[tmp_path / "dot.gif"])
    message = talk.messages()[0]
    place = next(number for number, block in enumerate(message.blocks) if block.type == "image")
    assert opened.attached(message.id, place) == ("image/gif", b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")
    for wrong in (99, 1 - place):
        with pytest.raises(NotFound, match="no attachment"):
            opened.attached(message.id, wrong)


def test_the_text_of_any_pick_is_read_as_it_was_sent(talk: Talk, desk: Open) -> None:
    talk.add_source("rule:style")
    reply = talk.ask("hello")
    opened = desk(None)
    assert "The rule style." in opened.sent_pick(reply.request_id, "rules", 0).text
    for section, place in (("rules", 1), ("nothing", 0)):
        with pytest.raises(NotFound, match="of this request hold"):
            opened.sent_pick(reply.request_id, section, place)
    with pytest.raises(NotFound, match="is not kept alone"):
        opened.sent_pick(reply.request_id, "message", 0)


def test_a_desk_takes_other_notes_and_another_model_for_new_conversations(
    desk: Open, script: Script, tmp_path: Path
) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Note.md").write_text(f"# The {name} note")
    at = desk(script({"text": "Yes."}), vault=str(tmp_path / "old"))
    before = at.conversation()
    before.ask("hello")
    other = script({"text": "Another."})
    at.use(vault=tmp_path / "new", model=other)
    fresh = at.conversation()
    assert fresh.vault
    assert (fresh.vault.root.name, fresh.model) == ("new", other)
    assert fresh.ask("hello").text == "Another."
    assert before.vault
    assert before.vault.root.name == "old"
    with pytest.raises(NotFound):
        at.use(vault=tmp_path / "nowhere")
    with pytest.raises(Invalid):
        at.use(model="nobody:")
    assert at.conversation().model == other


def test_a_conversation_is_stored_with_its_first_message_or_not_at_all(
    desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = desk(script({"text": "Yes."}))
    talk = at.conversation()
    with monkeypatch.context() as full:

        def refuse(*_: object) -> None:
            raise StoreError("the disk is full")

        full.setattr(Tree, "append", refuse)
        with pytest.raises(StoreError):
            talk.ask("hello")
    assert (talk.id, talk.number, list(at.conversations())) == (None, None, [])
    assert talk.ask("hello").text == "Yes."
    assert (talk.number, len(list(at.conversations()))) == (1, 1)


KILLED = """
import os, sys
from recto.api.blocking import open_desk
from recto.store.tree import Tree
Tree.append = lambda *_: os._exit(9)
open_desk(model=sys.argv[1]).conversation().ask("hello")
"""


def test_a_process_that_is_killed_before_its_first_message_leaves_no_conversation(desk: Open, script: Script) -> None:
    model = script({"text": "Yes."})
    assert subprocess.run([sys.executable, "-c", KILLED, model]).returncode == 9
    assert list(desk(model).conversations()) == []


def test_the_task_may_come_after_a_greeting(desk: Open, script: Script) -> None:
    talk = desk(script(*[{"text": "Gladly."}] * 3)).conversation()
    for text in ("hi there", "Write a rhyme about the sea", "and a second one"):
        talk.ask(text)
    assert [message.priority for message in talk.messages() if message.role == "user"] == [3, 8, 3]


def test_a_model_without_a_key_is_not_chosen(desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    talk = desk(script({"text": "Yes."})).conversation()
    before = talk.model
    with pytest.raises(NoKey, match="recto keys set openai"):
        talk.use("gpt-4o")
    assert talk.model == before
