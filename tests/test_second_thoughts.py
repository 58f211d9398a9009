"""Changing one's mind: another text for a message, another reply to it; nothing that was said is lost."""

from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Desk, Talk
from recto.chat.blocks import File, Image
from recto.errors import Invalid, NotFound, Unreachable


@pytest.fixture
def opened(desk: Open, script: Script) -> Desk:
    return desk(script(*({"text": f"Reply {number}."} for number in range(1, 9))))


@pytest.fixture
def talk(opened: Desk) -> Talk:
    talk = opened.conversation()
    for text in ("first", "second"):
        talk.ask(text)
    return talk


def texts(talk: Talk) -> list[str]:
    return [message.text for message in talk.messages()]


def test_an_edited_message_is_a_branch_beside_the_old_one(talk: Talk) -> None:
    before = talk.messages()
    reply = talk.edit("#3", "second, but better")
    assert reply.text == "Reply 3."
    assert texts(talk) == ["first", "Reply 1.", "second, but better", "Reply 3."]
    assert talk.messages()[2].parent == before[2].parent
    assert [end.message.text for end in talk.branches()] == ["Reply 3.", "Reply 2."]
    talk.fork(before[3].id)
    assert talk.messages() == before


def test_an_edited_message_keeps_its_attachments(opened: Desk, tmp_path: Path) -> None:
    picture, notes = tmp_path / "boat.png", tmp_path / "notes.txt"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 40)
    notes.write_text("The mast is new.")
    talk = opened.conversation()
    talk.ask("look", attachments=(picture, notes))
    before = talk.messages()[0]
    talk.edit("1", "look closely")
    after = talk.messages()[0]
    assert after.text.endswith("look closely")
    kept = [block for block in after.blocks if isinstance(block, Image | File)]
    assert kept == [block for block in before.blocks if isinstance(block, Image | File)]
    assert [difference for _, difference in opened.verify() if difference] == []


def test_what_cannot_be_edited_changes_nothing(talk: Talk) -> None:
    before = talk.messages()
    with pytest.raises(Invalid, match="#2 is not your message"):
        talk.edit("2", "mine")
    with pytest.raises(Invalid, match="the message is empty"):
        talk.edit("1", "  ")
    with pytest.raises(NotFound, match="has no message #9"):
        talk.edit("9", "what")
    with pytest.raises(Invalid, match="there is no option colour"):
        talk.edit("1", "what", colour="red")  # type: ignore[call-arg]
    assert talk.messages() == before


def test_a_new_reply_gets_the_same_window_and_the_message_is_stored_once(talk: Talk, opened: Desk) -> None:
    before = talk.messages()
    reply = talk.regenerate()
    assert reply.text == "Reply 3."
    assert texts(talk) == ["first", "Reply 1.", "second", "Reply 3."]
    assert talk.messages()[:3] == before[:3]
    assert before[3].request
    assert opened.rebuild(reply.request_id) == opened.rebuild(before[3].request)
    assert {end.message.text for end in talk.branches()} == {"Reply 2.", "Reply 3."}
    assert reply.branched is None
    assert [difference for _, difference in opened.verify() if difference] == []
    assert talk.ask("third").text == "Reply 4."


def test_a_new_reply_that_cannot_be_had_changes_nothing(talk: Talk, script: Script) -> None:
    before, ends = talk.messages(), talk.branches()
    with pytest.raises(NotFound, match="nosuch"):
        talk.regenerate(model="nosuch:model")
    assert talk.messages() == before
    with pytest.raises(Unreachable):
        talk.regenerate(model=script({"error": "unreachable"}, {"error": "unreachable"}, {"error": "unreachable"}))
    assert talk.messages() == before
    assert talk.branches() == ends
    assert talk.ask("third").text == "Reply 3."
    assert texts(talk) == ["first", "Reply 1.", "second", "Reply 2.", "third", "Reply 3."]


def test_an_edited_message_that_is_not_sent_is_kept_beside_the_path(talk: Talk) -> None:
    before = talk.messages()
    with pytest.raises(NotFound, match="your new text is kept on a branch of its own"):
        talk.edit("#3", "second, but better", model="nosuch:model")
    assert talk.messages() == before
    assert "second, but better" in [end.message.text for end in talk.branches()]
    assert [end.message.id for end in talk.branches() if end.is_head] == [before[-1].id]
    assert talk.ask("third").text == "Reply 3."


def test_a_message_without_a_reply_gets_one(desk: Open, script: Script) -> None:
    talk = desk(script({"error": "unreachable"}, {"text": "Here I am."}), reply__tries=1).conversation()
    with pytest.raises(Invalid, match="there is no message yet to answer again"):
        talk.regenerate()
    with pytest.raises(Unreachable):
        talk.ask("hello?")
    assert talk.regenerate().text == "Here I am."
    assert texts(talk) == ["hello?", "Here I am."]
