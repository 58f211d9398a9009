"""The complete form of conversations: JSON lines that restore the same store, written and read line by line.

A header, then for each conversation: conversation, its blobs, messages, pieces and requests, end. `docs/transfer.md`
describes the fields. Default values are omitted, and unknown fields refused: a reader loses nothing silently. A
conversation has the same bytes in every export, whatever else the export holds.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, field

from recto.base.ids import is_id
from recto.base.text import clean
from recto.chat.blocks import Block, ToolResult
from recto.chat.conversation import Conversation
from recto.chat.message import ContextType, Message, Role, Status, Tokens, Usage, stored_time
from recto.errors import Invalid, TooNew
from recto.store.conversation_copy import (
    ConversationCopies,
    Id,
    Sha256,
    StoredBytes,
    StoredItem,
    StoredRequest,
    UsedSource,
    Whole,
)
from recto.store.waiting import WaitingMessage
from recto.transfer.report import ImportFormat, IncomingConversation
from recto.window.account import RequestAccount
from recto.wire import defaults_of

VERSION = 1
FORMAT = "recto-conversations"
# The limit of one line: a larger attachment could not be sent either.
MAX_LINE_BYTES = 1 << 28

Priority = Annotated[int, Meta(ge=1, le=10)]


class Line(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True):
    """A line of an export; the field `type` comes first."""


class HeaderLine(Line, tag=FORMAT, frozen=True):
    version: int
    conversations: Whole


class ConversationLine(Line, tag="conversation", frozen=True):
    id: Id
    title: str
    agent: str
    created: str
    updated: str
    head: Id | None = None
    details: dict[str, Any] = field(default_factory=dict)
    hidden: str | None = None
    deleted: str | None = None


class BytesLine(Line, frozen=True):
    sha256: Sha256
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    """Set if the bytes are not text."""


class PieceLine(BytesLine, tag="piece", frozen=True):
    pass


class BlobLine(BytesLine, tag="blob", frozen=True):
    pass


class MessageLine(Line, tag="message", frozen=True):
    id: Id
    role: Role
    created: str
    blocks: tuple[Block, ...]
    parent: Id | None = None
    status: Status = "done"
    error: str | None = None
    context_type: ContextType = "primary"
    priority: Priority = 5
    agent: str = "default"
    model: str | None = None
    provider: str | None = None
    request: Id | None = None
    usage: Usage | None = None
    tokens: Tokens = Tokens()
    memory_references: tuple[str, ...] = ()
    learning_points: tuple[str, ...] = ()
    task_runs: tuple[dict[str, object], ...] = ()
    has_time: bool = True


class EndLine(Line, tag="end", frozen=True):
    """The end of a conversation, which reveals a truncated or changed file."""

    messages: Whole
    requests: Whole
    sha256: Sha256 | None = None
    """The hash of the bytes of its lines; may be omitted in a deliberately edited file."""


AnyLine = HeaderLine | ConversationLine | PieceLine | BlobLine | MessageLine | StoredRequest | WaitingMessage | EndLine
_decoder = msgspec.json.Decoder(AnyLine)


# -- values to lines

# Characters that JSON allows unescaped but a terminal obeys: DEL, C1, and bidirectional controls, in UTF-8.
_STEERING = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
_LINES: dict[type[Struct], type[Line]] = {Conversation: ConversationLine, Message: MessageLine}


def encode_item(item: Conversation | StoredItem) -> bytes:
    if isinstance(item, StoredBytes):
        return encode_line(_bytes_line(item))
    instead: dict[str, Any] = {}
    if isinstance(item, Message | WaitingMessage):
        instead["blocks"] = [_block_fields(block) for block in item.blocks]
    elif isinstance(item, StoredRequest):
        instead["sources"] = tuple(_fields(UsedSource, source, {}) for source in item.sources)
    kind = _LINES.get(type(item), type(item))
    return _encoded({"type": kind.__struct_config__.tag, **_fields(kind, item, instead)})


def encode_line(line: AnyLine) -> bytes:
    return _encoded({"type": line.__struct_config__.tag, **_fields(type(line), line, {})})


def _encoded(line: dict[str, Any]) -> bytes:
    """One line, with terminal controls escaped."""
    return _STEERING.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), msgspec.json.encode(line)) + b"\n"


def _fields(kind: type[Struct], value: Struct, instead: dict[str, Any]) -> dict[str, Any]:
    """The non-default fields of `kind`, in order."""
    given = (
        (name, instead[name] if name in instead else getattr(value, name), default)
        for name, default in defaults_of(kind).items()
    )
    return {name: own for name, own, default in given if default is NODEFAULT or (own != default and own != {})}


def _block_fields(block: Block) -> dict[str, Any]:
    attached = [_block_fields(each) for each in block.attachments] if isinstance(block, ToolResult) else []
    return {"type": block.type, **_fields(type(block), block, {"attachments": attached} if attached else {})}


def _bytes_line(stored: StoredBytes) -> PieceLine | BlobLine:
    kind = PieceLine if stored.is_piece else BlobLine
    try:
        return kind(stored.sha256, text=stored.data.decode())
    except UnicodeDecodeError:
        return kind(stored.sha256, base64=base64.b64encode(stored.data).decode())


# -- lines to values, checked: these raise ValueError or Invalid with the place in the line


def decode_line(data: bytes) -> AnyLine:
    """Also raises RecursionError."""
    line: AnyLine = _decoder.decode(data)
    if rb"\u0000" in data.replace(rb"\\", b""):
        raise ValueError("it contains the character NUL, which cannot be stored")
    return line


def conversation_of(line: ConversationLine) -> Conversation:
    return Conversation(**_checked(line))


def item_of(line: MessageLine | PieceLine | BlobLine | StoredRequest | WaitingMessage) -> StoredItem:
    match line:
        case MessageLine():
            return Message(**_checked(line))
        case WaitingMessage():
            _checked(line)
            return line
        case StoredRequest():
            return _request_of(line)
    return _bytes_of(line)


def _checked(line: Struct) -> dict[str, Any]:
    """The fields of a line, with its ids and times checked."""
    fields = {name: getattr(line, name) for name in line.__struct_fields__}
    for name in ("id", "head", "parent", "request", "message", "base"):
        if (id := fields.get(name)) is not None and not is_id(id):
            raise ValueError(f"{id!r} is not an id - at `$.{name}`")
    for name in ("created", "updated", "hidden", "deleted"):
        if (time := fields.get(name)) is not None and not _is_time(time):
            raise ValueError(f"{time!r} is not a time such as 2026-01-31T12:00:00.000Z - at `$.{name}`")
    return fields


def _is_time(text: str) -> bool:
    try:
        return stored_time(text) == text
    except (ValueError, OverflowError):
        return False


def _bytes_of(line: PieceLine | BlobLine) -> StoredBytes:
    if (line.text is UNSET) == (line.base64 is UNSET):
        raise ValueError("it needs either `text` or `base64`")
    try:
        data = line.text.encode() if line.text is not UNSET else base64.b64decode(str(line.base64), validate=True)
    except binascii.Error as why:
        raise ValueError(f"{why} - at `$.base64`") from why
    if hashlib.sha256(data).hexdigest() != line.sha256:
        raise ValueError("its content does not have this hash - at `$.sha256`")
    return StoredBytes(line.sha256, data, isinstance(line, PieceLine))


def _request_of(line: StoredRequest) -> StoredRequest:
    _checked(line)
    try:
        RequestAccount.from_json(line.account)
    except ValueError as why:
        raise ValueError(f"{why} - at `$.account`") from why
    return line


# -- files


def json_lines(copies: ConversationCopies, ids: Sequence[str]) -> Iterator[bytes]:
    yield encode_line(HeaderLine(VERSION, len(ids)))
    for id in ids:
        found = copies.find(id)
        if found is None:
            raise Invalid(f"conversation {id} was deleted meanwhile", id=id)
        yield from conversation_lines(found, copies.read(id))


def conversation_lines(conversation: Conversation, items: Iterable[StoredItem]) -> Iterator[bytes]:
    messages = requests = 0
    digest = hashlib.sha256()
    for each in chain((conversation,), items):
        messages += isinstance(each, Message)
        requests += isinstance(each, StoredRequest)
        data = encode_item(each)
        digest.update(data)
        yield data
    yield encode_line(EndLine(messages, requests, digest.hexdigest()))


class RectoFile:
    """An export of Recto. Everything is checked while it is read: an error names the line."""

    name: ImportFormat = "recto"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def conversations(self) -> Generator[IncomingConversation, None, None]:
        with self._path.open("rb") as file:
            reader = _LineReader(file, self._path.name)
            count = reader.header().conversations
            for number in range(1, count + 1):
                items = _Items(reader, f"conversation {number} of {count}")
                found, place = items.conversation, f"{reader.name}, line {reader.number:,}"
                notes = _rights(found)
                yield IncomingConversation(found, items, place, reader.position, is_complete=True, notes=notes)
                for _ in items:  # the importer may have stopped early
                    pass
            if file.readline(1):
                reader.number += 1
                raise reader.error("there are more conversations than the first line says")


def _rights(conversation: Conversation) -> tuple[str, ...]:
    """What the next message of an imported conversation would use, to be reviewed first: allowed tools and a vault."""
    sources, vault = conversation.details.get("sources"), conversation.details.get("vault")
    allowed = sources.get("allowed") if isinstance(sources, dict) else None
    notes = []
    if isinstance(allowed, dict) and (named := ", ".join(map(str, allowed))):
        notes.append(f"these tools run in it without asking, if unchanged since they were allowed: {named}")
    if vault:
        notes.append(f"its messages are sent with notes of {vault}")
    return tuple(notes)


class _FirstLine(Struct, tag_field="type", tag=FORMAT):
    version: Any = 0


class _LineReader:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self.number = self.position = 0
        self.ids: set[str] = set()

    def read(self, expected: str) -> tuple[bytes, AnyLine]:
        """The next line. `expected` is named if the file ends before it."""
        data = self._file.readline(MAX_LINE_BYTES + 1)
        if not data:
            raise self.error(f"the file ends here; {expected} is missing, so it was cut off", after=True)
        self.number += 1
        self.position += len(data)
        if len(data) > MAX_LINE_BYTES:
            raise self.error(f"it is longer than {MAX_LINE_BYTES:,} bytes")
        if not data.endswith(b"\n"):
            raise self.error("it does not end, so the file was cut off")
        try:
            return data, decode_line(data)
        except RecursionError:
            raise self.error("it is nested too deeply") from None
        except ValueError as why:
            raise self.error(str(why)) from why

    def note_id(self, id: str) -> None:
        if id in self.ids:
            raise ValueError(f"{id} is there twice - at `$.id`")
        self.ids.add(id)

    def header(self) -> HeaderLine:
        """The first line. Its version is read before anything else: a newer one may have other fields."""
        try:
            first = msgspec.json.decode(self._file.readline(MAX_LINE_BYTES + 1), type=_FirstLine)
        except (ValueError, RecursionError):
            self.number = 1
            raise self.error("it is not the first line of a Recto export") from None
        self._file.seek(0)
        if isinstance(first.version, int) and first.version > VERSION:
            newer = f"version {first.version}, this one knows {VERSION}"
            raise TooNew(f"{self.name} was written by a newer Recto ({newer}); upgrade Recto to import it")
        _, line = self.read("its header")
        assert isinstance(line, HeaderLine)
        if line.version != VERSION:
            raise self.error(f"the version {line.version} is unknown - at `$.version`")
        return line

    def error(self, why: str, *, after: bool = False) -> Invalid:
        where = f"after line {self.number:,}" if after else f"line {self.number:,}"
        return Invalid(f"{self.name}, {where}: {clean(why)[0]}; nothing was imported", line=self.number)


class _Items:
    """The items of a conversation, read from its lines; checks their references and their end."""

    def __init__(self, reader: _LineReader, place: str) -> None:
        data, line = reader.read(place)
        if not isinstance(line, ConversationLine):
            raise reader.error(f"expected {place} here")
        self._reader = reader
        self._digest = hashlib.sha256(data)
        self._name = f"the conversation of line {reader.number:,}"
        self._first = reader.number
        self._messages: set[str] = set()
        self._requests: set[str] = set()
        self._is_over = False
        try:
            self.conversation = conversation_of(line)
            reader.note_id(line.id)
        except ValueError as why:
            raise reader.error(str(why)) from why

    def __iter__(self) -> Iterator[StoredItem]:
        while not self._is_over:
            data, line = self._reader.read(f"the end of {self._name}")
            if isinstance(line, EndLine):
                self._end(line)
                return
            if isinstance(line, HeaderLine | ConversationLine):
                raise self._reader.error(f"{self._name} has not ended")
            self._digest.update(data)
            try:
                item = item_of(line)
                self._check(item)
            except ValueError as why:
                raise self._reader.error(str(why)) from why
            yield item

    def _check(self, item: StoredItem) -> None:
        """Raises ValueError if the item refers to something that did not precede it."""
        if isinstance(item, StoredBytes):
            return
        self._reader.note_id(item.id)
        if isinstance(item, Message):
            _check_named("parent", self._messages, item.parent)
            _check_named("request", self._requests, item.request)
            if block := item.compaction:
                named = {"last": (block.last,), "cleared": (block.cleared,)}
                for name, ids in (named | {"lifted": block.lifted, "pinned": block.pinned}).items():
                    _check_named(f"blocks[…].{name}", self._messages, *ids)
            self._messages.add(item.id)
        elif isinstance(item, StoredRequest):
            _check_named("message", self._messages, item.message)
            _check_named("base", self._requests, item.base)
            self._requests.add(item.id)

    def _end(self, line: EndLine) -> None:
        self._is_over = True
        counted, head = (len(self._messages), len(self._requests)), self.conversation.head
        if (line.messages, line.requests) != counted:
            there = f"{counted[0]:,} messages and {counted[1]:,} requests"
            raise self._reader.error(f"there are {there}, and it says {line.messages:,} and {line.requests:,}")
        if head is not None and head not in self._messages:
            raise self._reader.error(f"the head {head} of {self._name} is missing")
        if line.sha256 is not None and line.sha256 != self._digest.hexdigest():
            since = f"lines {self._first:,} to {self._reader.number - 1:,} were changed since they were written"
            raise self._reader.error(f"{since} (a file that you changed on purpose leaves out this line's sha256)")


def _check_named(name: str, known: set[str], *ids: str | None) -> None:
    for id in ids:
        if id is not None and id not in known:
            raise ValueError(f"{id} does not come before it - at `$.{name}`")
