"""The lines of an export: one JSON object each. Values, and what a line must be; knows neither files nor the store.

header, then for each conversation: conversation, its blobs, messages, pieces and requests, end. `docs/transfer.md`
describes the fields. Fields at their defaults are left out, and none is unknown: a reader loses nothing silently.
"""

import base64
import binascii
import hashlib
import re
from datetime import datetime
from functools import reduce
from operator import or_
from types import GenericAlias
from typing import Annotated, Any

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct, field
from msgspec.structs import fields

from recto.base.ids import is_id
from recto.chat.blocks import BLOCKS, Block, File, Image, ToolResult
from recto.chat.conversation import Conversation
from recto.chat.message import ContextType, Message, Role, Status, Tokens, Usage
from recto.sources.advice import Sign
from recto.sources.source import Mode, SourceId, SourceKind
from recto.store.conversation_copy import StoredBytes, StoredItem, StoredRequest
from recto.store.source_uses import SourceUse
from recto.store.waiting import WaitingMessage
from recto.window.account import RequestAccount
from recto.window.request import Purpose
from recto.wire import without_defaults

VERSION = 1
FORMAT = "recto-conversations"
"""The type of the first line."""

Whole = Annotated[int, Meta(ge=0, le=2**53)]
Id = Annotated[str, Meta(min_length=26, max_length=26)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Dollars = Annotated[float, Meta(ge=0, le=1e12)]
Priority = Annotated[int, Meta(ge=1, le=10)]


class Line(Struct, frozen=True, tag_field="type", forbid_unknown_fields=True, omit_defaults=True):
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
    archived: str | None = None
    deleted: str | None = None


class BytesLine(Line, frozen=True):
    sha256: Sha256
    text: str | UnsetType = UNSET
    base64: str | UnsetType = UNSET
    """Where the bytes are no text."""


class PieceLine(BytesLine, tag="piece", frozen=True):
    pass


class BlobLine(BytesLine, tag="blob", frozen=True):
    pass


# -- blocks: the same fields as in `chat.blocks`, with a type, so that they can be checked


def _twin(kind: type[Block], **instead: Any) -> type[Struct]:
    """A Struct with the fields of a block, and its type as a tag."""
    own = [(each.name, instead.get(each.name, each.type), each) for each in fields(kind)]
    given = [(name, hint) if _is_required(each) else (name, hint, _default(each)) for name, hint, each in own]
    return defstruct(
        f"{kind.__name__}Line",
        given,
        tag_field="type",
        tag=kind.type,
        frozen=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
    )


def _is_required(each: msgspec.structs.FieldInfo) -> bool:
    return each.default is NODEFAULT and each.default_factory is NODEFAULT


def _default(each: msgspec.structs.FieldInfo) -> Any:
    return each.default if each.default is not NODEFAULT else field(default_factory=each.default_factory)


_FILES = {kind.type: _twin(kind) for kind in (File, Image)}
_ATTACHMENTS = GenericAlias(tuple, (reduce(or_, _FILES.values()), ...))
_TWINS: dict[str, type[Struct]] = {
    name: _FILES.get(name) or (_twin(kind, attachments=_ATTACHMENTS) if kind is ToolResult else _twin(kind))
    for name, kind in BLOCKS.items()
}
_KINDS = {twin: BLOCKS[name] for name, twin in _TWINS.items()}
AnyBlock = reduce(or_, _TWINS.values())


def _block_to_line(block: Block) -> Struct:
    twin, values = _TWINS[block.type], without_defaults(block)
    if isinstance(block, ToolResult) and block.attachments:
        values["attachments"] = tuple(_block_to_line(each) for each in block.attachments)
    return twin(**values)


def _block_of(line: Struct) -> Block:
    kind, values = _KINDS[type(line)], _values(line)
    if kind is ToolResult and values["attachments"]:
        values["attachments"] = tuple(_block_of(each) for each in values["attachments"])
    return kind(**values)


def _values(value: Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


class MessageLine(Line, tag="message", frozen=True):
    id: Id
    role: Role
    created: str
    blocks: tuple[AnyBlock, ...]  # type: ignore[valid-type]
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


class UsedSource(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A source of a request; not a line of its own."""

    kind: SourceKind
    name: str
    mode: Mode
    server: str = ""
    tokens: Whole = 0
    score: float | None = None
    sign: Sign | None = None


class RequestLine(Line, tag="request", frozen=True):
    id: Id
    purpose: Purpose
    created: str
    sha256: Sha256
    size: Whole
    stable: Whole
    stable_sha256: Sha256
    pieces: tuple[Sha256, ...]
    account: dict[str, Any]
    message: Id | None = None
    base: Id | None = None
    kept: Whole = 0
    marks: dict[str, Any] | None = None
    outcome: dict[str, Any] = field(default_factory=dict)
    sources: tuple[UsedSource, ...] = ()
    model: str | None = None
    cost_bound: Dollars | None = None
    cost: Dollars | None = None


class WaitingLine(Line, tag="waiting", frozen=True):
    """A message that was said while a reply came, and has not entered the conversation."""

    id: Id
    created: str
    blocks: tuple[AnyBlock, ...]  # type: ignore[valid-type]


class EndLine(Line, tag="end", frozen=True):
    """The end of a conversation: what a cut or changed file is noticed by."""

    messages: Whole
    requests: Whole
    sha256: Sha256 | None = None
    """Of the bytes of its lines; a file that was edited on purpose may leave it out."""


AnyLine = HeaderLine | ConversationLine | PieceLine | BlobLine | MessageLine | RequestLine | WaitingLine | EndLine
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyLine)


# What JSON leaves as it is, and a terminal would obey: DEL, C1, and what turns a line around, in UTF-8.
_STEERING = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")


def encode_line(line: AnyLine) -> bytes:
    """One line, in which nothing steers a terminal."""
    return _STEERING.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), _encoder.encode(line)) + b"\n"


def decode_line(data: bytes) -> AnyLine:
    """Raises ValueError with the place in the line, or RecursionError."""
    line: AnyLine = _decoder.decode(data)
    return line


# -- values to lines. Msgspec leaves out a default only where it is the same object: so defaults are not passed on.


def line_of(item: Conversation | StoredItem) -> AnyLine:
    match item:
        case Message():
            return _message_line(item)
        case StoredBytes():
            return _bytes_line(item)
        case StoredRequest():
            return _request_line(item)
        case WaitingMessage():
            return WaitingLine(item.id, item.created, tuple([_block_to_line(block) for block in item.blocks]))
        case Conversation():
            named = {name: getattr(item, name) for name in ConversationLine.__struct_fields__}
            return ConversationLine(**named)


def _message_line(message: Message) -> MessageLine:
    values = {name: value for name, value in without_defaults(message).items() if name in _MESSAGE_FIELDS}
    return MessageLine(**values, blocks=tuple([_block_to_line(block) for block in message.blocks]))


_MESSAGE_FIELDS = frozenset(MessageLine.__struct_fields__) - {"blocks"}


def _bytes_line(stored: StoredBytes) -> PieceLine | BlobLine:
    kind = PieceLine if stored.is_piece else BlobLine
    try:
        return kind(stored.sha256, text=stored.data.decode())
    except UnicodeDecodeError:
        return kind(stored.sha256, base64=base64.b64encode(stored.data).decode())


def _request_line(request: StoredRequest) -> RequestLine:
    sources = tuple(
        UsedSource(**without_defaults(use.id), **{name: v for name, v in without_defaults(use).items() if name != "id"})
        for use in request.sources
    )
    needed: dict[str, Any] = {"size": 0, "stable": 0, "pieces": (), "account": {}}
    said = {name: value for name, value in _values(request).items() if value is not None}
    # a cost of 0 is known, and none is not
    given = {name: value for name, value in said.items() if name in ("cost", "cost_bound") or value not in (0, (), {})}
    return RequestLine(**needed | given | {"sources": sources})


# -- lines to values, checked


def conversation_of_line(line: ConversationLine) -> Conversation:
    _check_ids(line.id, line.head)
    for name in ("created", "updated", *(name for name in ("archived", "deleted") if getattr(line, name) is not None)):
        _check_time(name, getattr(line, name))
    return Conversation(**_values(line))


def item_of(line: MessageLine | PieceLine | BlobLine | RequestLine | WaitingLine) -> StoredItem:
    """Raises ValueError or Invalid where the line says what cannot be."""
    if isinstance(line, MessageLine):
        return _message_of(line)
    if isinstance(line, RequestLine):
        return _request_of(line)
    return _waiting_of(line) if isinstance(line, WaitingLine) else _bytes_of(line)


def _message_of(line: MessageLine) -> Message:
    _check_ids(line.id, line.parent, line.request)
    _check_time("created", line.created)
    values = {name: getattr(line, name) for name in _MESSAGE_FIELDS}
    return Message(**values, blocks=tuple([_block_of(block) for block in line.blocks]))


def _waiting_of(line: WaitingLine) -> WaitingMessage:
    _check_ids(line.id)
    _check_time("created", line.created)
    return WaitingMessage(line.id, tuple([_block_of(block) for block in line.blocks]), line.created)


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


def _request_of(line: RequestLine) -> StoredRequest:
    _check_ids(line.id, line.message, line.base)
    _check_time("created", line.created)
    try:
        RequestAccount.from_json(line.account)
    except ValueError as why:
        raise ValueError(f"{why} - at `$.account`") from why
    uses = tuple(
        SourceUse(SourceId(each.kind, each.name, each.server), each.mode, each.tokens, each.score, each.sign)
        for each in line.sources
    )
    return StoredRequest(**_values(line) | {"sources": uses})


def _check_ids(*ids: str | None) -> None:
    for id in ids:
        if id is not None and not is_id(id):
            raise ValueError(f"{id!r} is not an id")


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _check_time(name: str, text: str) -> None:
    if not _TIME.fullmatch(text):
        raise ValueError(f"{text!r} is not a time such as 2026-01-31T12:00:00.000Z - at `$.{name}`")
    datetime.fromisoformat(text)
