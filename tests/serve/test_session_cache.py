"""Sessions that are kept between two requests: they save reading, and never hide what others did to a conversation."""

from typing import Any

import pytest
from tests.conftest import Script
from tests.serve.conftest import Endpoint, Start, assistant, text_of, user

from recto.chat.message import Message
from recto.events import Branched
from recto.serve.gateway import SessionCache
from recto.store.tree import Tree
from recto.turn.session import ChatSession


def test_a_session_is_given_to_one_request_and_only_at_the_head_that_it_knows() -> None:
    cache, session = SessionCache(), ChatSession("home", "head")
    cache.keep(session)
    assert cache.take("home", "head") is session
    assert cache.take("home", "head") is None
    cache.keep(session)
    assert cache.take("home", "another head") is None
    cache.keep(ChatSession("home", "head", branch=Branched("before", 1)))
    assert cache.take("home", "head") is None


def test_the_oldest_sessions_go_when_their_windows_take_too_much(endpoint: Start, script: Script) -> None:
    server = endpoint(script({"text": "Yes."}))
    for number in range(3):
        server.chat(user(f"Question {number}?"))
    kept = [session for session, _ in server.gateway.sessions._kept.values()]
    assert len(kept) == 3
    few = SessionCache(most=150)  # a window of one short message takes some hundred
    for session in kept:
        few.keep(session)
    assert [few.take(session.conversation, session.head) is not None for session in kept] == [False, False, True]


def told(server: Endpoint, *said: Any) -> list[Any]:
    """The list with the reply to it."""
    return [*said, assistant(text_of(server.chat(*said)))]


def test_the_next_request_reads_only_what_is_new(
    endpoint: Start, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = endpoint(script({"text": "Yes, it is as dry as it was in the last summer."}))
    said = told(server, user("Is it dry?"))
    for number in range(30):
        said = told(server, *said, user(f"And locker {number}?"))
    read: list[int] = []
    bare_page = Tree.bare_page

    def counted(tree: Tree, *given: Any, **more: Any) -> list[Message]:
        page = bare_page(tree, *given, **more)
        read.append(len(page))
        return page

    monkeypatch.setattr(Tree, "bare_page", counted)
    server.chat(*said, user("And the mast?"))
    assert sum(read) <= 4


def test_what_another_program_does_to_a_conversation_is_in_the_next_window(
    endpoint: Start, script: Script, sent: Any
) -> None:
    server = endpoint(script({"text": "Yes."}, {"text": "Another summary.", "when": "summary"}))
    said = told(server, user("Is the keel dry?"))
    said = told(server, *said, user("And the mast?"))
    (home,) = server.run(server.desk.conversations())
    talk = server.run(server.desk.conversation(home.id))
    server.run(talk.clear())
    server.chat(*said, user("And the hull?"))
    window = str(sent()[-1]["messages"])
    assert "hull" in window
    assert "keel" not in window
