"""Looking things up without an engine: conversations and messages by number, requests by many names."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Open, Script

from recto.blocking import Talk
from recto.errors import NotFound
from recto.store_reader import open_reader


@pytest.fixture
def talk(desk: Open, script: Script) -> Talk:
    """Conversation #2, with two turns; #1 has one."""
    opened = desk(script({"text": "Yes."}))
    opened.conversation().ask("elsewhere")
    talk = opened.conversation()
    for text in ("first", "second"):
        talk.ask(text)
    return talk


def test_a_conversation_is_found_by_id_by_number_and_as_the_latest(talk: Talk) -> None:
    with open_reader() as reader:
        assert {reader.conversation(named).id for named in (talk.id, "#2", "2", None)} == {talk.id}
        assert reader.conversation("1").title == "elsewhere"
        with pytest.raises(NotFound, match="no conversation #3"):
            reader.conversation("#3")


def test_a_message_is_found_by_id_and_by_number(talk: Talk) -> None:
    said = talk.messages()
    with open_reader() as reader:
        assert reader.message("#3")[1] == reader.message(said[2].id)[1] == said[2]
        home, message = reader.message("1", "#1")
        assert (home.number, message.text) == (1, "elsewhere")
        with pytest.raises(NotFound, match="conversation #2 has no message #5"):
            reader.message("5")
        with pytest.raises(NotFound, match="is not part of conversation #1"):
            reader.message(said[0].id, "1")


def test_numbers_are_those_of_the_path(talk: Talk) -> None:
    first, reply, second, last = talk.messages()
    assert talk.numbered([first.id, last.id, last.request, talk.id]) == ["#1", "#4", "#4", "#2"]
    talk.fork("#2")
    assert talk.numbered(f"{reply.id} {second.id}") == f"#2 {second.id}", "what is on another branch has no number"
    talk.ask("another second")
    third = talk.messages()[2]
    assert talk.numbered([third.id, second.id]) == ["#3", second.id]


def test_a_compaction_has_no_number(talk: Talk) -> None:
    talk.clear()
    assert talk.head is not None
    assert talk.numbered(talk.head) == talk.head


def test_a_request_is_named_in_many_ways(talk: Talk) -> None:
    first, _, second, last = talk.messages()
    with open_reader() as reader:
        names = (last.request, last.id, second.id, "#4", "4", "#3", "last", None)
        assert {reader.record(named).id for named in names} == {last.request}
        assert reader.record("previous").message == first.id
        assert reader.compare("#2", "#4") == reader.compare("last")
        assert dict(reader.verify(["#2", "#4"])) == {reader.request_id("#2"): None, last.request: None}


def test_an_empty_store_has_no_conversation(tmp_path: Path) -> None:
    with open_reader() as reader, pytest.raises(NotFound, match="no conversation yet"):
        reader.record()


def test_a_look_up_starts_no_engine(talk: Talk) -> None:
    code = (
        "import sys\nfrom recto.store_reader import open_reader\n"
        "with open_reader() as reader:\n    reader.record(), reader.compare(), reader.source_report()\n"
        "print([name for name in ('recto.engine', 'recto.mcp.servers', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr
