"""UserMessage: what a caller gives to one turn: text, blocks, results of tool calls; checked, cleaned and stored.

IncomingMessage: a reply or a round of tool results as it comes in, stored in small batches.

A crash loses nothing that was shown for a second.
"""

import asyncio
import base64
import binascii
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from recto.chat.blocks import Block, File, Image, Made, Text, ToolResult
from recto.chat.message import Delta, Message, MessageBuilder, Status, Tokens, Usage
from recto.chat.priority import priority_of
from recto.concurrency import StoreThread
from recto.errors import Invalid
from recto.events import BRANCHED, Appended, Event, Noticed
from recto.ids import new_id
from recto.providers.model import CallPart, TextPart, ThinkingPart
from recto.sources.tools import CANCELLED
from recto.store.store import Store
from recto.store.tree import AppendedMessage
from recto.text import clean
from recto.turn.session import ChatSession, SessionChanges, moved

# How many messages are read at a time to find the one that a turn answers.
PAGE = 64

Given = str | bytes | Sequence[Block]
"""A text, or blocks: text, images, files, and results of tool calls that were handed back."""


@dataclass(frozen=True, slots=True)
class UserMessage:
    blocks: tuple[Block, ...] = ()
    results: tuple[ToolResult, ...] = ()
    repaired: int = 0
    """How many characters could not be stored and were replaced."""


def user_message(given: Given, *, may_be_empty: bool = False) -> UserMessage:
    """Invalid for a message that says nothing, or holds blocks that a user cannot give."""
    repaired = 0
    if not isinstance(given, str | bytes | Sequence):
        raise Invalid(f"a message is a text or a list of blocks, not {given!r}")
    if isinstance(given, str | bytes):
        text, repaired = clean(given)
        given = (Text(text),)
    blocks: list[Block] = []
    results: list[ToolResult] = []
    for block in given:
        if not isinstance(block, Text | File | ToolResult | Image):
            kind = getattr(block, "type", "")
            raise Invalid(f"a message of the user cannot hold {f'a {kind} block' if kind else repr(block)}")
        if not isinstance(block, Image):
            if not isinstance(block.text, str):
                raise Invalid(f"the text of a {block.type} block must be a text, not {block.text!r}")
            text, count = clean(block.text)
            block, repaired = replace(block, text=text), repaired + count
        results.append(block) if isinstance(block, ToolResult) else blocks.append(block)
    says = [block for block in blocks if not isinstance(block, Text) or block.text.strip()]
    if not says and not results and not may_be_empty:
        raise Invalid("the message is empty: write something to send")
    return UserMessage(tuple(blocks) if says or may_be_empty else (), tuple(results), repaired)


@dataclass(frozen=True, slots=True)
class StartedTurn:
    message: Message
    """The message that the turn answers."""
    events: tuple[Event, ...] = ()
    is_continued: bool = False
    """Only results came: the turn goes on where its tool calls were handed back."""


async def append_message(
    store: Store, store_thread: StoreThread, session: ChatSession, given: UserMessage
) -> StartedTurn:
    """Stores the message before anything else happens. Tool calls that wait get their results, or are closed."""
    is_first, was_branched = session.head is None, session.branched
    has_data = any(isinstance(block, Image | File) and block.base64 for block in given.blocks)
    blocks = await store_thread.do(_stored, store, given.blocks) if has_data else given.blocks
    message = Message(new_id(), "user", blocks, agent=session.agent)
    message = replace(message, priority=priority_of(message, is_first=is_first))

    def step() -> tuple[Message, SessionChanges]:
        changes = _answer_calls(store, session, given.results)
        if not blocks:
            return _turn_message(store, session), changes
        head = changes.get("head", session.head)
        placed = store.tree.append(session.conversation, replace(message, parent=head))
        return placed.message, {**changes, **moved(placed.message.id, placed.moved)}

    started = await store_thread.do(session.commit, store, step)
    repaired = f"{given.repaired} invalid or NUL characters in your message were replaced by U+FFFD"
    notes = [Noticed(repaired)] if given.repaired else []
    starts_branch = session.branched and not was_branched
    if blocks:
        return StartedTurn(started, (Appended(started, starts_branch), *notes))
    if starts_branch:
        notes.append(Noticed(BRANCHED))
    return StartedTurn(started, tuple(notes), is_continued=True)


def _stored(store: Store, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Bytes of images and files are kept by their hash, once."""
    return tuple(_by_hash(store, block) for block in blocks)


def _by_hash(store: Store, block: Block) -> Block:
    if not isinstance(block, Image | File) or not block.base64:
        return block
    try:
        data = base64.b64decode(block.base64, validate=True)
    except binascii.Error as why:
        raise Invalid(f"{block.name or block.media_type} is not valid base64") from why
    return replace(block, base64="", sha256=store.blobs.put(data))


def _answer_calls(store: Store, session: ChatSession, results: Sequence[ToolResult]) -> SessionChanges:
    """Every tool call that waits gets its result; one without is closed as cancelled."""
    if session.pending is None or session.head is None:
        if results:
            raise Invalid("no tool call of this conversation waits for a result")
        return {}
    tree = store.tree
    calls, given = tree.message(session.pending).calls, {result.call_id: result for result in results}
    if len(given) < len(results):
        raise Invalid("a tool call has one result: give each call's result once")
    since = tree.page(session.head, most=PAGE, until=session.pending)
    answered = {result.call_id for message in since for result in message.results}
    waiting = [call for call in calls if call.id not in answered]
    if unknown := given.keys() - {call.id for call in waiting}:
        raise Invalid(f"no tool call {min(unknown)!r} waits for a result", id=min(unknown))
    blocks = tuple(
        replace(given[call.id], name=call.name)
        if call.id in given
        else ToolResult(call.id, call.name, CANCELLED, is_error=True)
        for call in waiting
    )
    message = Message(new_id(), "tool", blocks, parent=session.head, context_type="tool_output", agent=session.agent)
    message = replace(message, priority=priority_of(message))
    placed = tree.append(session.conversation, message)
    tree.settle(session.pending)
    return {**moved(placed.message.id, placed.moved), "pending": None}


def pending_reply(store: Store, head: str | None) -> str | None:
    """The reply at a head whose tool calls wait for the caller; results of other tools may follow it."""
    message = store.tree.message(head) if head else None
    if message and message.role == "tool" and message.parent:
        message = store.tree.message(message.parent)
    return message.id if message and message.status == "pending" else None


def _turn_message(store: Store, session: ChatSession) -> Message:
    """The message of the user that the waiting tool calls belong to."""
    at = session.head
    while at:
        page = store.tree.page(at, most=PAGE)
        if found := next((message for message in page if message.role == "user"), None):
            return found
        at = page[-1].parent if len(page) == PAGE else None
    raise Invalid("no message of this conversation waits for an answer")


FLUSH_S = 0.25


class IncomingMessage:
    """A message that grows in the store from its first delta on. Nothing is stored if none ever comes."""

    def __init__(self, store: Store, store_thread: StoreThread, session: ChatSession, draft: Message) -> None:
        self._store = store
        self._store_thread = store_thread
        self._session = session
        self._draft = draft
        self._builder = MessageBuilder(_made(draft))
        self._started = time.monotonic()
        self._flusher: asyncio.Task[None] | None = None
        self._begun = False
        self.is_finished = False
        self.starts_branch = False
        """Another writer had moved the head: the session is on a branch from this message on."""

    @property
    def message(self) -> Message | None:
        """The message so far, once something of it has come."""
        return replace(self._draft, blocks=self._builder.blocks) if self._begun else None

    async def add(self, delta: Delta) -> None:
        # first, so that nothing is missing if the caller is cancelled while the message is begun
        self._builder.add(delta)
        if not self._begun:
            await self._store_thread.do(self._begin)
            self._flusher = asyncio.create_task(self._flush_now_and_then())

    def _begin(self) -> None:
        was_branched = self._session.branched
        placed = self._session.commit(self._store, self._append)
        self._draft, self._begun = placed.message, True
        self.starts_branch = not placed.moved and not was_branched

    def _append(self) -> tuple[AppendedMessage, SessionChanges]:
        placed = self._store.tree.append(self._session.conversation, self._draft)
        return placed, moved(placed.message.id, placed.moved)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self._builder.blocks

    async def finish(
        self,
        status: Status,
        *,
        blocks: tuple[Block, ...] | None = None,
        tokens: Tokens = Tokens(),  # noqa: B008  a frozen value
        usage: Usage | None = None,
        error: str | None = None,
        outcome: dict[str, Any] | None = None,
    ) -> Message | None:
        """Stores the whole message and the outcome of its request; None if nothing had come."""
        if not self._begun:
            return None
        if self._flusher:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        made = _made(self._draft)
        if made is not None:
            made = replace(made, duration_s=round(time.monotonic() - self._started, 3))
        whole = tuple(replace(block, made=made) for block in blocks or self._builder.blocks)
        done = replace(self._draft, blocks=whole, status=status, tokens=tokens, usage=usage, error=error)
        done = replace(done, priority=priority_of(done))
        await self._store_thread.do(self._write, done, outcome)
        return done

    def _write(self, done: Message, outcome: dict[str, Any] | None) -> None:
        with self._store.database.write():
            self._store.tree.finish(done)
            if done.request and outcome is not None:
                self._store.records.outcome(done.request, **outcome)
        self.is_finished = True

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            if deltas := self._builder.take():
                await self._store_thread.do(self._store.tree.grow, self._draft.id, deltas)


def delta_of(part: TextPart | ThinkingPart | CallPart) -> Delta:
    """What a part adds to the message. Its text is cleaned: providers can send characters that cannot be stored."""
    if isinstance(part, TextPart):
        return ["text", clean(part.text)[0]]
    if isinstance(part, ThinkingPart):
        return ["thinking", clean(part.text)[0], part.signature, part.redacted]
    return ["call", part.index, part.id, part.name, clean(part.arguments)[0]]


def _made(message: Message) -> Made | None:
    if message.provider is None or message.model is None:
        return None
    return Made(message.provider, message.model)
