"""Conversations of other programs: a tree of messages by their own keys, and its conversion to ours.

Our ids are derived from theirs, so that a second import of the same export finds everything. Values of the wrong type
are skipped: exports have many versions, and content matters more than form.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.ids import derived_id
from recto.base.text import clean
from recto.chat.blocks import Block, File, Image, Made, Text, Thinking, ToolCall, ToolResult
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Role, Status, Usage, stored_time
from recto.errors import Invalid
from recto.sources.documents import PDF, image_type
from recto.store.conversation_copy import StoredBytes
from recto.store.paths import title_of
from recto.transfer.report import ImportFormat, IncomingConversation

Json = Any
Object = Mapping[str, Json]
FindMedia = Callable[[str], tuple[str, bytes] | None]
"""Return the name and bytes of the file whose name begins with this key; None if there is none."""
ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Parts without content for a reader: markers of the program itself.
_SILENT = ("token_budget", "flag", "step_start", "agent_update", "redacted_thinking")
_DATA = "data:"


def text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""


def object_of(value: Json) -> Object:
    return value if isinstance(value, Mapping) else {}


def list_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def objects_of(value: Json) -> list[Object]:
    return [each for each in list_of(value) if isinstance(each, Mapping)]


def time_of(value: object) -> str | None:
    """Convert seconds since 1970 or a written time (UTC unless it has a zone) to a stored time; None for others."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            # some programs count milliseconds
            return stored_time(datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC).isoformat())
        if isinstance(value, str) and value:
            moment = datetime.fromisoformat(value.strip())
            return stored_time((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat())
    except (ValueError, OverflowError, OSError):
        pass
    return None


def as_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


class ForeignMessage(Struct):
    """A message of another program. `key` is its id there; `parent` is the key of the previous message."""

    key: str
    parent: str | None
    role: Role
    blocks: list[Block]
    created: str | None = None
    model: str | None = None
    usage: Usage | None = None
    status: Status = "done"


class ForeignConversation(Struct):
    """Also reads parts of messages, in the few forms shared by OpenAI's and Anthropic's APIs and exports, and collects
    their bytes and notes on what could not be imported."""

    key: str
    title: str = ""
    created: str | None = None
    updated: str | None = None
    messages: list[ForeignMessage] = field(default_factory=list)
    head: str | None = None
    """The message that it ends with; by default the last in the list."""
    blobs: list[StoredBytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def missing(self, what: str) -> Text:
        """Note that something is missing in the export, and return a text for its place."""
        self.notes.append(f"{what} is not in the export")
        return Text(f"[{what} is not in the export]")

    def blocks(self, content: Json) -> list[Block]:
        """Convert a text, a part, or a list of them."""
        parts = content if isinstance(content, list) else [content]
        return [block for part in parts if part is not None for block in self._part(part)]

    def _part(self, part: Json) -> list[Block]:
        if not isinstance(part, Mapping):
            return [Text(part if isinstance(part, str) else as_json(part))]
        text = part.get("text")
        match kind := text_of(part.get("type")):
            case "text" | "input_text" | "output_text" | "summary_text":
                # LibreChat: {"value": "…", "annotations": […]}
                return [Text(text_of(text) or text_of(object_of(text).get("value")))]
            case "thinking" | "think" | "reasoning":
                thought = text_of(part.get("thinking") or part.get("think") or part.get("reasoning") or text)
                return [Thinking(thought)] if thought else []
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                return [tool_call(part.get("id"), part.get("name"), part.get("input"))]
            case "tool_result" | "web_search_tool_result" | "mcp_tool_result":
                called, name = text_of(part.get("tool_use_id") or part.get("tool_call_id")), text_of(part.get("name"))
                return [self._result(called or name, name, part.get("content"), is_error=bool(part.get("is_error")))]
            case "tool_call":
                return self._call_with_result(part.get("tool_call"))
            case "image_url" | "input_image":
                given = part.get("image_url")
                return [self._image(text_of(object_of(given).get("url")) or text_of(given))]
            case "image":
                source = object_of(part.get("source"))
                kind, data = text_of(source.get("media_type")) or "image/png", source.get("data")
                url = f"{_DATA}{kind};base64,{data}" if isinstance(data, str) else text_of(source.get("url"))
                return [self._image(url)]
            case "file" | "input_file":
                given = object_of(part.get("file")) or part
                name = text_of(given.get("filename") or given.get("name") or part.get("title")) or "file"
                return [self._file(name, *_data_of(text_of(given.get("file_data"))))]
            case "document":
                return [self._document(text_of(part.get("title")) or "document", object_of(part.get("source")))]
        if kind in _SILENT:
            return []
        return [Text(text) if isinstance(text, str) else self.missing(f"a part of type {kind or 'unknown'}")]

    def _call_with_result(self, part: Json) -> list[Block]:
        """LibreChat: a call and its result are one part."""
        if not isinstance(part, Mapping):
            return []
        function = part["function"] if isinstance(part.get("function"), Mapping) else part
        call = tool_call(part.get("id"), function.get("name"), function.get("args", function.get("arguments")))
        output = function.get("output")
        return [call] if output is None else [call, self._result(call.id, call.name, output)]

    def _result(self, call: str, name: str, content: Json, *, is_error: bool = False) -> ToolResult:
        found = self.blocks(content)
        text = "\n".join(block.text for block in found if isinstance(block, Text))
        attached = tuple(block for block in found if isinstance(block, Image | File))
        return ToolResult(call, name, text, is_error, attachments=attached)

    def _image(self, url: str) -> Block:
        """An image by its address, which may hold its bytes."""
        if url and not url.startswith(_DATA):
            return Image("image/*", url=url)
        kind, data = _data_of(url)
        return self.missing("an image") if data is None else self.media("", kind or "image/png", data)

    def _file(self, name: str, kind: str, data: bytes | None) -> Block:
        return self.missing(f"the file {name}") if data is None else self.media(name, kind, data)

    def _document(self, name: str, source: Object) -> Block:
        if source.get("type") == "text":
            return File(name, text_of(source.get("data")))
        kind = text_of(source.get("media_type")) or PDF
        _, data = _data_of(f"{_DATA}{kind};base64,{source.get('data')}")
        return self._file(name, kind, data or None)

    def media(self, name: str, kind: str, data: bytes) -> Block:
        """An image or a file with these bytes; a text file is kept as text."""
        # by the first bytes, since exports often name the wrong type
        found = image_type(data) or (PDF if data.startswith(b"%PDF-") else "")
        kind = found or kind or "application/octet-stream"
        if not kind.startswith("image/"):
            try:
                return File(name or "file", data.decode(), kind if kind.startswith("text/") else "text/plain")
            except UnicodeDecodeError:
                pass
        stored = StoredBytes(hashlib.sha256(data).hexdigest(), data, is_piece=False)
        self.blobs.append(stored)
        if kind.startswith("image/"):
            return Image(kind, name=name, sha256=stored.sha256)
        return File(name or "file", "", kind, sha256=stored.sha256)


def tool_call(id: Json, name: Json, arguments: Json) -> ToolCall:
    """Arguments are kept as the model's text, if known."""
    called = text_of(name) or "tool"
    told = arguments if isinstance(arguments, str) else as_json({} if arguments is None else arguments)
    return ToolCall(text_of(id) or called, called, told)


def _data_of(url: str) -> tuple[str, bytes | None]:
    """The media type and bytes of a data URL; None if they cannot be read."""
    head, _, data = url.removeprefix(_DATA).partition(",")
    kind, _, coding = head.partition(";")
    try:
        readable = url.startswith(_DATA) and "base64" in coding
        return kind, base64.b64decode("".join(data.split()), validate=True) if readable else None
    except ValueError:
        return kind, None


def turn_messages(message: ForeignMessage) -> list[ForeignMessage]:
    """Split a message with tool results among its blocks: calls, results, and what followed."""
    groups: list[tuple[Role, list[Block]]] = []
    for block in message.blocks:
        role: Role = "tool" if isinstance(block, ToolResult) else message.role
        if not groups or groups[-1][0] != role:
            groups.append((role, []))
        groups[-1][1].append(block)
    groups = groups or [(message.role, [])]
    # the last one keeps the message's own key: its children and the head follow it
    keys = [*(f"{message.key}#{place}" for place in range(1, len(groups))), message.key]
    parents = [message.parent, *keys]
    return [
        replace(message, key=key, parent=parent, role=role, blocks=blocks)
        for key, parent, (role, blocks) in zip(keys, parents, groups, strict=False)
    ]


class ForeignTree:
    """Converts their messages to ours: parents first, skipping empty ones, each under its nearest ancestor."""

    def __init__(self, format: ImportFormat, found: ForeignConversation, place: str, fallback: str) -> None:
        self._format, self._found, self._place = format, found, place
        times = (found.created, *(each.created for each in found.messages))
        self._created = next(filter(None, times), fallback)
        self._by_key = {each.key: each for each in found.messages}
        self._ids: dict[str | None, str | None] = {None: None}
        """Their keys -> our ids; an empty message has the id of its nearest ancestor."""
        self._times: dict[str | None, str] = {None: self._created}
        self._calls: dict[str | None, dict[str, str]] = {None: {}}
        """Our ids -> the tool calls that the next message may answer, with their names."""

    def incoming(self, position: int) -> IncomingConversation:
        found = self._found
        messages = [made for key in self._ordered() if (made := self._message(self._by_key[key])) is not None]
        head = self._ids.get(found.head) if found.head in self._by_key else None
        spoken = next((each.text for each in messages if each.role == "user" and each.text.strip()), "")
        home = Conversation(
            id=self._id(found.created, found.key),
            title=clean(" ".join(found.title.split()))[0] or title_of(spoken),
            head=head or (messages[-1].id if messages else None),
            created=self._created,
            updated=found.updated or max((each.created for each in messages), default=self._created),
        )
        notes = tuple(dict.fromkeys(found.notes))
        return IncomingConversation(home, [*found.blobs, *messages], self._place, position, notes=notes)

    def _ordered(self) -> Iterator[str]:
        """Their keys, parents first, otherwise in list order."""
        done: set[str | None] = {None}
        for key in self._by_key:
            way: dict[str, None] = {}
            at: str | None = key
            while at is not None and at not in done:
                if at in way:
                    shown = clean(at)[0][:60]
                    raise Invalid(f"{self._place}: the message {shown} is its own ancestor; nothing was imported")
                way[at] = None
                at = self._parent(self._by_key[at])
            done.update(way)
            yield from reversed(way)

    def _parent(self, theirs: ForeignMessage) -> str | None:
        return theirs.parent if theirs.parent in self._by_key else None

    def _message(self, theirs: ForeignMessage) -> Message | None:
        parent = self._parent(theirs)
        above = self._ids[parent]
        created = self._times[theirs.key] = theirs.created or self._times[parent]
        paired = [_paired(_cleaned(block), self._calls[above]) for block in theirs.blocks]
        blocks = [block for block in paired if not (isinstance(block, Text) and not block.text)]
        if not blocks:
            self._ids[theirs.key] = above
            return None
        id = self._ids[theirs.key] = self._id(theirs.created, self._found.key, theirs.key)
        self._calls[id] = {block.id: block.name for block in blocks if isinstance(block, ToolCall)}
        has_results = any(isinstance(block, ToolResult) for block in blocks)
        role: Role = "assistant" if theirs.role == "tool" and not has_results else theirs.role
        model = theirs.model and clean(theirs.model)[0]
        made = Made(self._format, model) if model and role == "assistant" else None
        return Message(
            id=id,
            role=role,
            blocks=tuple(replace(block, made=made) if made else block for block in blocks),
            parent=above,
            created=created,
            has_time=theirs.created is not None,
            status=theirs.status,
            model=model,
            provider=self._format if made else None,
            usage=theirs.usage,
        )

    def _id(self, created: str | None, *names: str) -> str:
        moment = round(datetime.fromisoformat(created).timestamp() * 1000) if created else 0
        return derived_id(moment, self._format, *names)


def _cleaned(block: Block) -> Block:
    texts = {name: value for name in block.__struct_fields__ if isinstance(value := getattr(block, name), str)}
    changed: Any = {name: cleaned for name, value in texts.items() if (cleaned := clean(value)[0]) != value}
    return replace(block, **changed) if changed else block


def _paired(block: Block, calls: Mapping[str, str]) -> Block:
    """A result that does not directly follow its call cannot be sent, so it becomes text."""
    if not isinstance(block, ToolResult):
        return block
    call = block.call_id or next(iter(calls), "")  # some programs name no call: then there is only one
    if call in calls:
        return replace(block, call_id=call, name=block.name or calls[call])
    return Text(f"[{block.name or 'a tool'}]\n{block.text}" if block.text else "")
