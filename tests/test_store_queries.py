"""Looking things up without an engine: conversations and messages by number, requests by many names."""

import subprocess
import sys

import pytest
from tests.conftest import Open, Script

from recto.api.blocking import Talk
from recto.api.store_queries import open_queries
from recto.errors import Invalid, NotFound


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
    with open_queries() as reader:
        assert {reader.conversation(named).id for named in (talk.id, "#2", "2", None)} == {talk.id}
        assert reader.conversation("1").title == "elsewhere"
        with pytest.raises(NotFound, match="no conversation #3"):
            reader.conversation("#3")


def test_a_message_is_found_by_id_and_by_number(talk: Talk) -> None:
    said = talk.messages()
    with open_queries() as reader:
        assert reader.message("#3")[1] == reader.message(said[2].id)[1] == said[2]
        home, message = reader.message("1", "#1")
        assert (home.number, message.text) == (1, "elsewhere")
        with pytest.raises(NotFound, match="conversation #2 has no message #5"):
            reader.message("5")
        with pytest.raises(NotFound, match="is not part of conversation #1"):
            reader.message(said[0].id, "1")


def test_a_request_is_named_in_many_ways(talk: Talk) -> None:
    first, _, second, last = talk.messages()
    with open_queries() as reader:
        names = (last.request, last.id, second.id, "#4", "4", "#3", "last", None)
        assert {reader.record(named).id for named in names} == {last.request}
        assert reader.record("previous").message == first.id
        assert reader.compare("#2", "#4") == reader.compare("last")
        assert dict(reader.verify(["#2", "#4"])) == {reader.request_id("#2"): None, last.request: None}


def test_a_look_up_starts_no_engine(talk: Talk) -> None:
    code = (
        "import sys\nfrom recto.api.store_queries import open_queries\n"
        "with open_queries() as reader:\n    reader.record(), reader.compare(), reader.source_report()\n"
        "print([name for name in ('recto.engine', 'recto.mcp.servers', 'numpy', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_ids_can_be_named_by_their_beginning(talk: Talk) -> None:
    assert talk.id
    first = talk.messages()[0]
    with open_queries() as reader:
        assert reader.conversation(talk.id[:20].lower()).id == talk.id
        assert reader.message(first.id[:24])[1] == first
        reply = talk.messages()[1]
        assert reply.request
        assert reader.request_id(reply.request[:25]) == reader.request_id(reply.id[:25]) == reply.request
        with pytest.raises(NotFound, match="no conversation 01A"):
            reader.conversation(talk.id[:2] + "A")
    assert talk.message(first.id[:24]) == first
    assert [message.id for message in talk.messages(since=reply.id[:25])] == [each.id for each in talk.messages()[1:]]


def test_a_conversation_is_found_by_its_title(talk: Talk, desk: Open, script: Script) -> None:
    opened = desk(script({"text": "Yes."}))
    opened.rename("1", "Apple planning")
    opened.rename("2", "apple pie")
    with open_queries() as reader:
        wanted = ("Apple planning", "apple planning", "APPLE PL", "planning", "  Apple   planning ")
        assert {reader.conversation(title).number for title in wanted} == {1}
        with pytest.raises(Invalid, match="'apple' may mean #2 apple pie, #1 Apple planning; name one by its number"):
            reader.conversation("apple")
        with pytest.raises(NotFound, match="there is no conversation pear"):
            reader.conversation("pear")
    opened.rename("2", "apple planning")
    with open_queries() as reader:
        assert reader.conversation("apple planning").number == 2, "the exact title comes first"
        assert reader.conversation("Apple planning").number == 1
        with pytest.raises(Invalid, match="may mean #2 apple planning, #1 Apple planning"):
            reader.conversation("APPLE PLANNING")
    assert opened.conversation("Apple planning").number == 1
