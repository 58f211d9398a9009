"""Replies as they come in: what was shown is stored soon after, of all open streams in one commit."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.conftest import Open, Script

from recto.base.ids import new_id
from recto.chat.message import Message, Tokens
from recto.errors import StoreError
from recto.events import TextDelta
from recto.store.store import Store
from recto.turn.incoming_message import TICK_S, IncomingMessage, OpenStreams
from recto.turn.session import ChatSession
from recto.turn.token_cache import TokenCache

WAIT_S = 60.0


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[OpenStreams]:
    with Store(tmp_path / "recto.db") as store:
        yield OpenStreams(store)


def incoming(streams: OpenStreams) -> IncomingMessage:
    session = ChatSession(streams.store.tree.create().id)
    return IncomingMessage(streams, session, Message(new_id(), "assistant", (), status="unfinished"))


def stored(streams: OpenStreams, stream: IncomingMessage) -> str:
    return streams.store.tree.message(stream.id).text


def test_what_came_of_all_open_streams_is_stored_in_one_commit(streams: OpenStreams) -> None:
    async def come() -> list[str]:
        commits: list[object] = []
        replies = [incoming(streams) for _ in range(8)]
        for number, reply in enumerate(replies):
            await reply.add(["text", f"reply {number}"])
        await streams.flush()
        event.listen(streams.store.database.engine, "commit", lambda connection: commits.append(connection))
        for reply in replies:
            await reply.add(["text", " goes on"])
        await streams.flush()
        assert len(commits) in (1, 2), "a tick may have come first"
        return [stored(streams, reply) for reply in replies]

    assert asyncio.run(come()) == [f"reply {number} goes on" for number in range(8)]


def test_a_tick_leaves_time_for_its_commit_within_a_tenth_of_a_second() -> None:
    assert TICK_S <= 0.1 / 2


def test_what_is_shown_is_stored_while_the_reply_goes_on(desk: Open, script: Script) -> None:
    talk = desk(script({"text": "one two", "delay_s": 3000})).conversation()
    with closing(talk.stream("count")) as events:
        assert any(isinstance(each, TextDelta) and each.text == "one" for each in events)
        ends = time.monotonic() + WAIT_S
        while talk.messages()[-1].text != "one" and time.monotonic() < ends:
            time.sleep(0.01)
        last = talk.messages()[-1]
    assert (last.text, last.status) == ("one", "unfinished")


@pytest.mark.parametrize("how", ["a tick", "the end of a reply"])
def test_what_could_not_be_stored_is_stored_later_once_and_in_order(streams: OpenStreams, how: str) -> None:
    async def come() -> str:
        reply, other = incoming(streams), incoming(streams)
        await reply.add(["text", "one "])
        with closing(sqlite3.connect(streams.store.database.name, isolation_level=None)) as connection:
            table = "INSERT ON deltas" if how == "a tick" else "UPDATE ON messages"
            connection.execute(f"CREATE TRIGGER full BEFORE {table} BEGIN SELECT RAISE(ABORT, 'disk full'); END")
            await reply.add(["text", "two "])
            if how == "a tick":
                await streams.flush()
            else:
                with pytest.raises(StoreError, match="disk full"):
                    await reply.finish("done")
            connection.execute("DROP TRIGGER full")
        if how == "a tick":
            await reply.add(["text", "three"])
        await other.add(["text", "beside"])
        await streams.flush()
        return stored(streams, reply)

    assert asyncio.run(come()) == ("one two three" if how == "a tick" else "one two ")


def test_a_finished_reply_is_stored_once(streams: OpenStreams) -> None:
    async def come() -> str:
        reply = incoming(streams)
        await reply.add(["text", "all of it"])
        await streams.flush()
        await reply.finish("done")
        await streams.flush()
        return stored(streams, reply)

    assert asyncio.run(come()) == "all of it"


def wait_for(streams: OpenStreams, stream: IncomingMessage, text: str) -> bool:
    """Whether the text is stored while nothing else runs in this thread."""
    ends = time.monotonic() + WAIT_S
    while (is_there := stored(streams, stream) == text) is False and time.monotonic() < ends:
        time.sleep(0.01)
    return is_there


def test_the_last_words_of_a_reply_are_stored_though_the_loop_is_busy_when_it_ends(streams: OpenStreams) -> None:
    async def come() -> bool:
        reply = incoming(streams)
        await reply.add(["text", "one"])
        await streams.flush()
        await reply.add(["text", " two"])
        ending = asyncio.ensure_future(reply.finish("done"))
        await asyncio.sleep(0)
        is_stored = wait_for(streams, reply, "one two")
        await ending
        return is_stored

    assert asyncio.run(come())


def test_what_was_shown_is_stored_while_its_tokens_are_counted(
    desk: Open, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def slow(cache: TokenCache, role: str, *_: object) -> Tokens:
        ends = time.monotonic() + WAIT_S
        while role == "assistant" and "two" not in "".join(seen) and time.monotonic() < ends:
            with closing(sqlite3.connect(tmp_path / "home" / "recto.db")) as connection:
                seen[:] = [str(row) for row in connection.execute("SELECT * FROM deltas")]
        return Tokens(1)

    async def count(*args: Any) -> Tokens:
        return slow(*args)

    monkeypatch.setattr("recto.turn.exchange.message_tokens", count)
    monkeypatch.setattr("recto.turn.exchange.LONG_REPLY", 0)
    desk(script({"text": "one two"})).conversation().ask("count")
    assert "two" in "".join(seen)


def test_a_short_reply_ends_in_one_commit(desk: Open, script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[OpenStreams] = []
    monkeypatch.setattr(OpenStreams, "flush_soon", flushed.append)
    desk(script({"text": "one two"})).conversation().ask("count")
    assert flushed == []
