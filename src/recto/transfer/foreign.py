"""Conversations of other programs: their messages as a tree by their own keys, and the same as ours.

The ids are derived from theirs, so that a second import of the same export finds everything there.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.ids import derived_id
from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Role, Status, Usage
from recto.errors import Invalid
from recto.store.conversation_copy import StoredBytes, StoredItem
from recto.store.paths import title_of
from recto.transfer.incoming import IncomingConversation, milliseconds
from recto.transfer.report import ImportFormat


class ForeignMessage(Struct):
    """A message of another program. `key` is its id there; `parent` is the key of the message before it."""

    key: str
    parent: str | None
    role: Role
    blocks: list[Block]
    created: str | None = None
    model: str | None = None
    usage: Usage | None = None
    status: Status = "done"
    error: str | None = None


class ForeignConversation(Struct):
    key: str
    title: str = ""
    created: str | None = None
    updated: str | None = None
    messages: list[ForeignMessage] = field(default_factory=list)
    head: str | None = None
    """The message that it ends with; by default the last of the list."""
    blobs: list[StoredBytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class ForeignTree:
    """Makes our messages of theirs: parents first, without the empty ones, each under its nearest ancestor."""

    def __init__(self, format: ImportFormat, found: ForeignConversation, place: str, fallback: str) -> None:
        self._format, self._found, self._place = format, found, place
        self._created = found.created or _first(each.created for each in found.messages) or fallback
        self._by_key = {each.key: each for each in found.messages}
        self._ids: dict[str | None, str | None] = {None: None}
        """Their keys -> our ids; an empty message has the id of its nearest ancestor."""
        self._times: dict[str | None, str] = {None: self._created}
        self._calls: dict[str | None, dict[str, str]] = {None: {}}
        """Our ids -> the tool calls that the message after it may answer, with their names."""

    def incoming(self, position: int) -> IncomingConversation:
        found = self._found
        messages = [made for key in self._ordered() if (made := self._message(self._by_key[key])) is not None]
        head = self._ids.get(found.head) if found.head in self._by_key else None
        spoken = next((each.text for each in messages if each.role == "user" and each.text.strip()), "")
        home = Conversation(
            id=self._id(self._created if found.created else None, found.key),
            title=clean(" ".join(found.title.split()))[0] or title_of(spoken),
            head=head or (messages[-1].id if messages else None),
            created=self._created,
            updated=found.updated or max((each.created for each in messages), default=self._created),
        )
        items: list[StoredItem] = [*found.blobs, *messages]
        return IncomingConversation(home, items, self._place, position, notes=tuple(dict.fromkeys(found.notes)))

    def _ordered(self) -> Iterator[str]:
        """Their keys, each after its parent's, in the order of the list otherwise."""
        done: set[str | None] = {None}
        for key in self._by_key:
            way: dict[str, None] = {}
            at: str | None = key
            while at is not None and at not in done:
                if at in way:
                    raise Invalid(f"{self._place}: the message {_shown(at)} comes before itself; nothing was imported")
                way[at] = None
                parent = self._by_key[at].parent
                at = parent if parent in self._by_key else None
            done.update(way)
            yield from reversed(way)

    def _message(self, theirs: ForeignMessage) -> Message | None:
        parent = theirs.parent if theirs.parent in self._by_key else None
        above, calls = self._ids[parent], self._calls[self._ids[parent]]
        created = theirs.created or self._times[parent]
        self._times[theirs.key] = created
        blocks = tuple(self._paired(_cleaned(block), calls) for block in theirs.blocks)
        blocks = tuple(block for block in blocks if not (isinstance(block, Text) and not block.text))
        if not blocks:
            self._ids[theirs.key] = above
            return None
        id = self._id(theirs.created, self._found.key, theirs.key)
        self._ids[theirs.key] = id
        self._calls[id] = {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
        has_results = any(isinstance(block, ToolResult) for block in blocks)
        role: Role = "assistant" if theirs.role == "tool" and not has_results else theirs.role
        model = theirs.model and clean(theirs.model)[0]
        made = Made(self._format, model) if model and role == "assistant" else None
        return Message(
            id=id,
            role=role,
            blocks=tuple(replace(block, made=made) for block in blocks) if made else blocks,
            parent=above,
            created=created,
            has_time=theirs.created is not None,
            status=theirs.status,
            error=theirs.error and clean(theirs.error)[0],
            model=model,
            provider=self._format if made else None,
            usage=theirs.usage,
        )

    def _id(self, created: str | None, *names: str) -> str:
        return derived_id(milliseconds(created) if created else 0, self._format, *names)

    @staticmethod
    def _paired(block: Block, calls: Mapping[str, str]) -> Block:
        """A result whose call does not come right before it could not be sent: it becomes a text."""
        if not isinstance(block, ToolResult):
            return block
        call = block.call_id or next(iter(calls), "")  # some programs name no call: then it is the only one
        if call in calls:
            return replace(block, call_id=call, name=block.name or calls[call])
        return Text(f"[{block.name or 'a tool'}]\n{block.text}" if block.text else "")


def turn_messages(message: ForeignMessage) -> list[ForeignMessage]:
    """A message as several, where results of tools stand among its blocks: calls, results, and what followed."""
    groups: list[tuple[Role, list[Block]]] = []
    for block in message.blocks:
        role: Role = "tool" if isinstance(block, ToolResult) else message.role
        if groups and groups[-1][0] == role:
            groups[-1][1].append(block)
        else:
            groups.append((role, [block]))
    parts: list[ForeignMessage] = []
    for place, (role, blocks) in enumerate(groups or [(message.role, [])], 1):
        # the last one has the message's own key: its children and the head follow it
        key = message.key if place == max(len(groups), 1) else f"{message.key}#{place}"
        parent = parts[-1].key if parts else message.parent
        own: dict[str, Any] = {"usage": message.usage} if key == message.key and role == "assistant" else {}
        parts.append(
            ForeignMessage(key, parent, role, blocks, message.created, message.model, status=message.status, **own)
        )
    return parts


def _cleaned(block: Block) -> Block:
    if isinstance(block, Text):  # nearly every block there is
        text, repaired = clean(block.text)
        return Text(text) if repaired else block
    if not isinstance(block, Text | Thinking | ToolCall | ToolResult | File | Image):
        return block
    texts = {name: value for name in block.__struct_fields__ if isinstance(value := getattr(block, name), str)}
    changed: Any = {name: told for name, value in texts.items() if (told := clean(value)[0]) != value}
    return replace(block, **changed) if changed else block


def _first(times: Iterable[str | None]) -> str | None:
    return next((time for time in times if time), None)


def _shown(key: str) -> str:
    return clean(key)[0][:60]
