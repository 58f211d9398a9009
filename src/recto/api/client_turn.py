"""Turns whose request the client sends: its messages are stored, a request is prepared, its reply is stored.

The steps are those of `engine.py`, but nothing is sent and no tool is run. `PreparedRequest` and what follows it serve
`talk.extend`, `talk.prepare` and `talk.record`; the endpoint uses the rest."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.api.ask_options import AskOptions
from recto.base.ids import new_id
from recto.base.text import clean, shown
from recto.chat.chain import ChainLink, Continuation, continuation, print_of
from recto.chat.message import Message, Status
from recto.compaction.revisions import fork_to
from recto.engine import Engine
from recto.errors import Invalid
from recto.events import ContextCompacted, Event, Noticed
from recto.providers.client_formats import client_format_of, read_client_reply
from recto.providers.model import Done, Model, Provider, ReplyPart, TextPart
from recto.sentences.priority import priority_of
from recto.store.store import Store
from recto.turn.approvals import Approvals
from recto.turn.context import CallOptions, Summarizer
from recto.turn.emitting import Emit
from recto.turn.exchange import Exchange
from recto.turn.messages import TurnStart, stored_blocks
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import ChatSession, SessionChanges, moved
from recto.turn.turn import Turn
from recto.window.count import TokenCounter
from recto.window.request import Entry, Format, Purpose, Request
from recto.window.window import Window
from recto.wire import Json, loads

PAGE = 1000
SHOWN = 80


class ExtendedPath(Struct, frozen=True):
    stored: int
    """The number of new messages."""
    branched: bool = False
    """The messages left the conversation's path."""
    notes: tuple[str, ...] = ()
    """Which messages were reworded, and which the client no longer sends."""
    messages: tuple[str, ...] = ()


# -- the client's messages


async def extend_path(engine: Engine, session: ChatSession, given: Sequence[Entry]) -> ExtendedPath:
    """Stores new messages below those on the path to the session's head."""
    entries = await kept_entries(engine, given)
    adding = partial(add_to_path, engine.store, session, entries, chain_links(entries))
    return await engine.store.do(adding)


async def kept_entries(engine: Engine, given: Sequence[Entry]) -> list[Entry]:
    """Moves the data of images and files to the store."""
    kept = [(entry, await stored_blocks(engine.store, entry.blocks)) for entry in given]
    return [entry if blocks is entry.blocks else replace(entry, blocks=blocks) for entry, blocks in kept]


def chain_links(given: Sequence[Entry]) -> list[ChainLink]:
    return [ChainLink(entry.role, print_of(entry.role, entry.blocks)) for entry in given]


def add_to_path(
    store: Store,
    session: ChatSession,
    given: Sequence[Entry],
    links: Sequence[ChainLink],
    *,
    at: str | None = None,
    base: str | None = None,
    same: int = 0,
    known: int = 0,
    goes_back: bool = False,
    follows: bool = False,
) -> ExtendedPath:
    """Stores the new messages below the path to `at`, or to the session's head. Runs in the store's thread. `same`: the
    number of leading messages known to be the path to `base`, which is not read again. `known`: the number of messages
    up to `at`. `goes_back`: the session's head moves to the last of the list, even if more messages followed it.
    `follows`: all messages come after `at`, and the list does not repeat earlier ones."""
    path = said_path(store, at or session.head, base) or []
    rest = [link_of(message) for message in path]
    found = Continuation(len(path), 0) if follows else continuation(links[same:], rest, max(0, known - same))
    adding = partial(_extend, store, session, given, links, path, found, base, same, goes_back=goes_back)
    return session.commit(store, adding)


def _extend(
    store: Store,
    session: ChatSession,
    given: Sequence[Entry],
    links: Sequence[ChainLink],
    path: Sequence[Message],
    found: Continuation,
    base: str | None,
    same: int,
    *,
    goes_back: bool,
) -> tuple[ExtendedPath, SessionChanges]:
    """`path` is the path after `base`; `found` says how the list continues it. Both exclude the first `same`
    messages."""
    last, new = path[found.at - 1].id if found.at else base, same + found.new
    parent = last
    while new < len(links) and (child := _child(store, session.conversation, parent, links[new])):
        parent, new = child, new + 1
    notes = tuple(_notes(given[same:], path, found))
    changes: SessionChanges = {"suspended": None, "pending": None}
    is_ahead = new == len(links) and (parent == last or any(message.id == parent for message in path))
    leaves = parent != _last_said(store, session.head) and not (is_ahead and not goes_back)
    if leaves:
        changes |= {**fork_to(store, session, parent), "loaded": {}, "pending": None}
    head, added, history = changes.get("head", session.head), list[str](), _history_length(given)
    for number, entry in enumerate(given[new:], new):
        message = Message(new_id(), entry.role, entry.blocks, parent=head, status=_status(given, number))
        message = replace(message, priority=priority_of(message, is_first=head is None), agent=session.agent)
        message = replace(message, has_time=number >= history)
        if message.role == "tool":
            message = replace(message, context_type="tool_output")
        placed = store.tree.append(session.conversation, message)
        changes |= moved(placed)
        head = message.id
        added.append(head)
    return ExtendedPath(len(added), leaves and bool(path or same), notes, tuple(added)), changes


def _last_said(store: Store, head: str | None) -> str | None:
    while head and (message := store.tree.message(head)).compaction:
        head = message.parent
    return head


def said_path(store: Store, head: str | None, base: str | None = None) -> list[Message] | None:
    """All messages of the path to a head, oldest first, without compactions. With `base`, only those after it; None if
    the path does not run through it."""
    found: list[Message] = []
    while head and head != base:
        page = store.tree.bare_page(head, most=PAGE, until=base)
        found += [message for message in page if message.compaction is None]
        head = page[-1].parent
    return found[::-1] if head == base else None


def link_of(message: Message) -> ChainLink:
    return ChainLink(message.role, print_of(message.role, message.blocks), message.id)


def _child(store: Store, conversation: str, parent: str | None, link: ChainLink) -> str | None:
    """The newest child of a message with the same content."""
    ids = store.tree.children(parent, role=link.role) if parent else store.tree.roots(conversation)
    found = [message for message in store.tree.messages(ids) if link_of(message).print == link.print] if ids else []
    return found[-1].id if found else None


def _history_length(given: Sequence[Entry]) -> int:
    """The number of leading messages from an unknown, earlier time: up to the last reply."""
    return max((number for number, entry in enumerate(given, 1) if entry.role == "assistant"), default=0)


def _status(given: Sequence[Entry], number: int) -> Status:
    """Calls at the end of a list wait for their results."""
    is_open = number == len(given) - 1 and any(block.type == "tool_call" for block in given[number].blocks)
    return "pending" if is_open else "done"


def _notes(given: Sequence[Entry], path: Sequence[Message], found: Continuation) -> Iterator[str]:
    """Notes on reworded messages, and on those no longer sent."""
    for at, place in found.reworded:
        said = "".join(getattr(block, "text", "") for block in given[at].blocks)
        parts = (f"“{clean(part[:SHOWN])[0]}”" for part in differing_parts(path[place].text, said))
        told = f"message #{path[place].said} came back in other words, and the stored ones are sent"
        yield f"{told}: {' → '.join(parts)}"
    if found.cut > 0:
        yield f"the client no longer sends {found.cut} earlier messages: they stay in reach"


def differing_parts(one: str, other: str) -> tuple[str, str]:
    first = _common(one, other)
    last = _common(one[first:][::-1], other[first:][::-1])
    return one[first : len(one) - last], other[first : len(other) - last]


def _common(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((n for n in range(shorter) if one[n] != other[n]), shorter)


# -- the request


async def prepare_turn(
    engine: Engine, session: ChatSession, given: TurnStart, emit: Emit, options: CallOptions
) -> Exchange:
    turn = await engine.start(session, given, emit, options, can_ask=False)
    if turn is None:
        raise Invalid("there is nothing to answer")
    return await engine.prepare_request(turn, emit)


# -- the reply


class GivenReply:
    def __init__(self, provider: Provider, parts: Sequence[ReplyPart]) -> None:
        self.name, self.format = provider.name, provider.format
        self._provider, self._parts = provider, parts

    name: str
    format: Format

    async def model(self, name: str) -> Model:
        return await self._provider.model(name)

    async def counter(self, model: Model) -> TokenCounter:
        return await self._provider.counter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart, None]:
        for part in self._parts:
            yield part

    async def close(self) -> None:
        return None


class ClientTurn(Struct):
    """A recorded request that waits for its reply."""

    turn: Turn
    planned: PlannedRequest
    request: Request
    approvals: Approvals
    head: str | None
    is_answered: bool = False


async def answer_turn(
    engine: Engine, session: ChatSession, waiting: ClientTurn, provider: Provider, emit: Emit
) -> None:
    """Reads the reply from `provider`. If the session has moved on, the reply is on a branch."""
    if waiting.is_answered:
        raise Invalid("the reply to this request is recorded already", id=waiting.request.id)
    waiting.is_answered = True
    turn, planned = waiting.turn, waiting.planned
    if session.head != waiting.head:
        turn = turn.beside(ChatSession(session.conversation, waiting.head, session.model, agent=session.agent))
    planned = replace(planned, context=replace(planned.context, provider=provider))
    exchange = Exchange(turn, planned, waiting.request, engine.streams)
    await exchange.run(emit)
    engine.after_reply(exchange)


class PreparedRequest(Struct, frozen=True):
    """A request in the form of the provider's API. It is recorded; pass the reply to `talk.record`."""

    request_id: str
    messages: list[Json]
    tools: list[Json]
    system: Json
    """For Anthropic, whose API takes it apart from the messages; None for OpenAI."""
    window: Window
    notes: tuple[str, ...]
    turn: ClientTurn

    @property
    def tokens(self) -> int:
        return self.window.total

    @property
    def because(self) -> str:
        """Why messages are left out, or that all are there."""
        block = self.turn.planned.loaded.view.compaction
        return block.because if block else self.window.plan.because

    @property
    def archived(self) -> int:
        """The number of earlier messages that are not sent verbatim."""
        block = self.turn.planned.loaded.view.compaction
        return block.messages_archived if block else 0


class PrepareOptions(AskOptions, total=False):
    """`tools` are those that the caller runs."""

    system: str | None
    """Instructions in place of those of agent and settings, and of given system messages."""
    summarizer: Summarizer | None
    """An asynchronous function from the messages of a summary request to the summary."""


def read_given(messages: Sequence[Json]) -> tuple[str | None, list[Entry]]:
    """The texts of leading instructions, and the other messages as ours; results of one round are joined."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise Invalid(f"messages must be a list, not {shown(messages)}", argument="messages")
    read = client_format_of(messages).read_messages(messages)
    entries = [entry for group in read for entry in group if entry.blocks]
    system = [entry for entry in entries if entry.role == "system"]
    said: list[Entry] = []
    for entry in entries:
        if entry.role == "tool" and said and said[-1].role == "tool":
            said[-1] = Entry("tool", said[-1].blocks + entry.blocks)
        elif entry.role != "system":
            said.append(entry)
    texts = ["".join(getattr(block, "text", "") for block in entry.blocks) for entry in system]
    return "\n\n".join(texts) if texts else None, said


def prepared_request(exchange: Exchange, notes: Sequence[str]) -> PreparedRequest:
    turn, planned, request = exchange.turn, exchange.planned, exchange.request
    body, window = loads(request.body), planned.window
    return PreparedRequest(
        request.id,
        body["messages"],
        body.get("tools") or [],
        body.get("system"),
        window,
        tuple(dict.fromkeys((*notes, *window.notes))),
        ClientTurn(turn, planned, request, turn.approvals, turn.session.head),
    )


def reply_parts(reply: Any) -> list[ReplyPart]:
    """A reply as the parts that its stream would yield."""
    if isinstance(reply, str):
        return [TextPart(reply), Done("stop")]
    dumps = [dump for name in ("model_dump", "to_dict") if callable(dump := getattr(reply, name, None))]
    plain = dumps[0]() if dumps else reply  # a reply of an SDK
    if not isinstance(plain, Mapping):
        raise Invalid(f"a reply must be text or the provider's response, not {shown(reply)}", argument="reply")
    return read_client_reply(dict(plain))


def notes_of(event: Event) -> Sequence[str]:
    if isinstance(event, Noticed):
        return (event.text,)
    return event.notes if isinstance(event, ContextCompacted) else ()
