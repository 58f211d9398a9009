"""UserMessage: the input of one turn: text, blocks, results of tool calls; checked, cleaned and stored."""

import base64
import binascii
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from recto.base.concurrency import run_to_completion
from recto.base.ids import new_id
from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Text, ToolResult
from recto.chat.message import Message
from recto.errors import Invalid
from recto.events import Appended, Event, Noticed
from recto.sentences.priority import TASK_WITHIN, awaits_task, priority_of
from recto.sources.tools import CANCELLED
from recto.store.store import Store
from recto.store.waiting import WaitingMessage
from recto.turn.session import ChatSession, SessionChanges, moved

# Messages per page while looking for the one that a turn answers; it is usually the last one.
PAGE, FIRST_PAGE = 64, 2
DRAFT = "next"
"""The id of a message that is not stored."""


class AnswerAgain(Struct, frozen=True):
    """Requests another reply to the user's last message on the path."""


Given = str | bytes | Sequence[Block]
"""A text, or blocks: text, images, files, and results of handed-back tool calls."""
TurnStart = Given | AnswerAgain


class UserMessage(Struct, frozen=True):
    blocks: tuple[Block, ...] = ()
    results: tuple[ToolResult, ...] = ()
    repaired: int = 0
    """The number of characters that could not be stored and were replaced."""
    answers_again: bool = False


def user_message(given: TurnStart, *, may_be_empty: bool = False) -> UserMessage:
    """Raises Invalid if the message is empty, or holds blocks that a user cannot give."""
    if isinstance(given, AnswerAgain):
        return UserMessage(answers_again=True)
    if not isinstance(given, str | bytes | Sequence):
        raise Invalid(f"a message must be text or a list of blocks, not {given!r}")
    repaired, blocks, results = 0, list[Block](), list[ToolResult]()
    if isinstance(given, str | bytes):
        text, repaired = clean(given)
        given = (Text(text),)
    for block in given:
        if not isinstance(block, Text | File | ToolResult | Image):
            kind = getattr(block, "type", "")
            raise Invalid(f"a user message cannot contain {f'a {kind} block' if kind else repr(block)}")
        if not isinstance(block, Image):
            if not isinstance(block.text, str):
                raise Invalid(f"the text of a {block.type} block must be a text, not {block.text!r}")
            text, count = clean(block.text)
            block, repaired = replace(block, text=text), repaired + count
        results.append(block) if isinstance(block, ToolResult) else blocks.append(block)
    says = any(not isinstance(block, Text) or block.text.strip() for block in blocks)
    if not says and not results and not may_be_empty:
        raise Invalid("the message is empty: write something to send")
    return UserMessage(tuple(blocks) if says or may_be_empty else (), tuple(results), repaired)


class StartedTurn(Struct, frozen=True):
    message: Message
    events: tuple[Event, ...] = ()
    is_continued: bool = False
    """The message was stored before: it has new tool results, or is answered again."""


async def append_message(store: Store, session: ChatSession, given: UserMessage) -> StartedTurn | None:
    """Stores the message, together with those waiting, before anything else happens. Pending tool calls get their
    results or are closed. None if there is nothing to say: the waiting messages were withdrawn."""
    own = await stored_blocks(store, given.blocks)

    def step() -> tuple[tuple[Message, int | None] | None, SessionChanges]:
        """The message, and how many waiting ones it includes; None for a message stored before."""
        if given.answers_again:
            return (_turn_message(store, session), None), {}
        waiting = store.waiting.take(session.conversation)
        blocks = _joined([*(each.blocks for each in waiting), own])
        if not blocks and not given.results:
            return None, {}
        changes = _answer_calls(store, session, given.results)
        if not blocks:
            return (_turn_message(store, session), None), changes
        message = Message(new_id(), "user", blocks, parent=changes.get("head", session.head), agent=session.agent)
        priority = priority_of(message, is_first=awaits_task_at(store, session.head))
        message = replace(message, priority=priority, task_runs=session.task_runs(begins=True))
        placed = store.tree.append(session.conversation, message)
        return (placed.message, len(waiting)), {**changes, **moved(placed)}

    appended = await run_to_completion(store.submit(session.commit, store, step))
    if appended is None:
        return None
    message, waited = appended
    branch, events = session.new_branch(), list[Event]()
    if waited is not None:
        if session.run:
            session.run.begin_turn(message.id)
        events.append(Appended(message, branch is not None, waited))
    events += [branch] if branch else []
    if given.repaired:
        text = f"{given.repaired} invalid or NUL characters in your message were replaced by U+FFFD"
        events.append(Noticed(text))
    return StartedTurn(message, tuple(events), is_continued=waited is None)


def awaits_task_at(store: Store, head: str | None) -> bool:
    """True if the user's next message is the task: what came before, if anything, are greetings."""
    if head is None:
        return True
    return store.tree.place(head)[1] < TASK_WITHIN and awaits_task(store.tree.bare_page(head, most=TASK_WITHIN))


def _joined(messages: Sequence[tuple[Block, ...]]) -> tuple[Block, ...]:
    """Several messages as one, with an empty line between their texts."""
    blocks: list[Block] = []
    for message in messages:
        for place, block in enumerate(message):
            last = blocks[-1] if blocks and not place else None
            if isinstance(last, Text) and isinstance(block, Text):
                blocks[-1] = replace(last, text=f"{last.text}\n\n{block.text}")
            else:
                blocks.append(block)
    return tuple(blocks)


async def queue_message(store: Store, session: ChatSession, given: UserMessage) -> WaitingMessage:
    if given.results or not given.blocks:
        raise Invalid("only a message can wait; send tool results with the next message")
    blocks = await stored_blocks(store, given.blocks)
    add = partial(session.commit, store, lambda: (store.waiting.add(session.conversation, blocks), {}))
    return await store.do(add)


async def is_waiting(store: Store, session: ChatSession) -> bool:
    """True if messages wait to enter the conversation now. Handed-back calls are answered first."""
    return session.pending is None and bool(await store.do(store.waiting.of, session.conversation))


async def stored_blocks(store: Store, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Replaces the data of images and files by their hash."""

    def stored(block: Block) -> Block:
        if not isinstance(block, Image | File) or not block.base64:
            return block
        try:
            data = base64.b64decode(block.base64, validate=True)
        except binascii.Error as why:
            raise Invalid(f"{block.name or block.media_type} is not valid base64") from why
        return replace(block, base64="", sha256=store.blobs.put(data))

    has_data = any(isinstance(block, Image | File) and block.base64 for block in blocks)
    return await store.do(lambda: tuple(map(stored, blocks))) if has_data else blocks


def _answer_calls(store: Store, session: ChatSession, results: Sequence[ToolResult]) -> SessionChanges:
    """Gives every pending tool call its result, or closes it as cancelled."""
    if session.pending is None or session.head is None:
        if results:
            raise Invalid("no tool call of this conversation waits for a result")
        return {}
    tree = store.tree
    calls, given = tree.message(session.pending).calls, {result.call_id: result for result in results}
    if len(given) < len(results):
        raise Invalid("a tool call has only one result: give each call's result once")
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
    return {**moved(placed), "pending": None}


def pending_reply(store: Store, head: str | None) -> str | None:
    """The reply at a head whose tool calls wait for the caller; results of other tools may follow it."""
    message = store.tree.message(head) if head else None
    if message and message.role == "tool" and message.parent:
        message = store.tree.message(message.parent)
    return message.id if message and message.status == "pending" else None


def edited_message(message: Message, text: str) -> tuple[Block, ...]:
    """The new text with the message's attachments. Raises Invalid if the message is not the user's."""
    if message.role != "user":
        raise Invalid(f"#{message.said} is not your message: only your own can be edited", id=message.id)
    attached = tuple(block for block in message.blocks if isinstance(block, Image | File))
    if not text.strip() and not attached:
        raise Invalid("the message is empty: write something to send")
    return (*attached, Text(text))


def _turn_message(store: Store, session: ChatSession) -> Message:
    """The last user message on the path."""
    at, most = session.head, FIRST_PAGE
    while at:
        page = store.tree.page(at, most=most)
        if found := next((message for message in page if message.role == "user"), None):
            return found
        at, most = page[-1].parent if len(page) == most else None, PAGE
    raise Invalid("no message of this conversation waits for an answer")
