"""Values <-> JSON, once, for store, command line and export alike: UTF-8, compact, construction order, no NaN."""

import json
from functools import cache
from typing import Any

from msgspec import NODEFAULT, MsgspecError, Struct
from msgspec.json import Decoder
from msgspec.structs import asdict

from recto.chat.blocks import BLOCKS, Block, DocumentReference, File, Image, Made, MessageRange, Quote, References, Text
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid

Json = Any
NAMES = {kind.type: frozenset(kind.__struct_fields__) for kind in BLOCKS.values()}


# made once: json.dumps with arguments makes a new encoder at every call
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dumps(value: Json) -> str:
    return _encode(value)


def dumpb(value: Json) -> bytes:
    return dumps(value).encode()


def loads(text: str | bytes) -> Json:
    return json.loads(text)


_decode_fast = Decoder().decode


def _decode(text: str) -> Json:
    """Five times as fast as `json`, which also takes what JSON has no room for: half a surrogate pair, or NaN."""
    try:
        return _decode_fast(text)
    except (MsgspecError, ValueError):
        return json.loads(text)


@cache
def defaults_of(kind: type[Struct]) -> dict[str, Any]:
    """The fields of a kind of value and their defaults; NODEFAULT for a field that has none, or a new one each time."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = [NODEFAULT] * (len(names) - len(defaults))
    return dict(zip(names, (*required, *defaults), strict=True))


def without_defaults(value: Struct) -> dict[str, Json]:
    """The fields that differ from their defaults."""
    given = ((name, getattr(value, name), default) for name, default in defaults_of(type(value)).items())
    return {name: own for name, own, default in given if own != default}


def block_to_json(block: Block) -> dict[str, Json]:
    """The block's fields that say something; defaults are left out."""
    out: dict[str, Json] = {"type": block.type}
    for name, default in defaults_of(type(block)).items():
        value = getattr(block, name)
        if name == "made":
            if value is not None:
                out["made"] = {"provider": value.provider, "model": value.model, "duration_s": value.duration_s}
        elif value != default and value not in ((), {}):
            out[name] = [_plain(each) for each in value] if isinstance(value, tuple) else value
    return out


def reference_to_json(reference: DocumentReference) -> dict[str, Json]:
    return asdict(reference)


def quote_to_json(quote: Quote) -> dict[str, Json]:
    return asdict(quote)


def _plain(value: object) -> Json:
    """In a tuple of a block: texts, ranges, attachments, or references and quotes, whose defaults are left out."""
    if isinstance(value, File | Image):
        return block_to_json(value)
    if isinstance(value, MessageRange):
        return list(value)
    if not isinstance(value, DocumentReference | Quote):
        return value
    return without_defaults(value)


def block_from_json(data: dict[str, Json]) -> Block:
    kind = BLOCKS.get(data.get("type", ""))
    if kind is None:
        raise Invalid(f"unknown block type {data.get('type')!r}; known are {', '.join(BLOCKS)}", value=data.get("type"))
    if kind is Text and len(data) == 2 and "text" in data:  # nearly every block there is
        return Text(data["text"])
    known = NAMES[kind.type]
    values = {name: value for name, value in data.items() if name in known}
    if made := values.get("made"):
        values["made"] = Made(**made)
    for name in ("lifted", "pinned", "notes", "ledger", "references", "media", "unsummarized", "set_aside", "contents"):
        if name in values:
            values[name] = tuple(values[name])
    for name in ("read", "unread"):
        if name in values:
            values[name] = tuple(MessageRange(*each) for each in values[name])
    if "attachments" in values:
        values["attachments"] = tuple(block_from_json(each) for each in values["attachments"])
    try:
        if kind is References:
            values["references"] = tuple(DocumentReference(**each) for each in values.get("references", ()))
            values["quotes"] = tuple(Quote(**each) for each in values.get("quotes", ()))
        return kind(**values)
    except TypeError as why:
        raise Invalid(f"a {kind.type} block lacks a field: {why}") from why


def blocks_to_json(blocks: tuple[Block, ...]) -> str:
    return dumps([block_to_json(block) for block in blocks])


def blocks_from_json(text: str) -> tuple[Block, ...]:
    return tuple([block_from_json(data) for data in _decode(text)])


def message_to_json(message: Message, *, active: bool) -> dict[str, Json]:
    """The message for other programs; `active` says whether it is in the view now."""
    return {
        "id": message.id,
        "parent": message.parent,
        "role": message.role,
        "text": message.text,
        "blocks": [
            block_to_json(block) | {"tokens": tokens}
            for block, tokens in zip(message.blocks, message.block_tokens, strict=True)
        ],
        "status": message.status,
        "active": active,
        "tokens": message.tokens.own,
        "request": message.request,
        "references": [reference_to_json(each) for each in message.references],
        "created": message.created,
        "augmented_tokens": message.tokens.augmented,
        "tool_tokens": message.tokens.tools,
        "tool_description_tokens": message.tokens.descriptions,
        "usage": asdict(message.usage) if message.usage else None,
        "model": message.model,
        "provider": message.provider,
        "agent": message.agent,
        "context_type": message.context_type,
        "priority": message.priority,
        "error": message.error,
        "memory_references": list(message.memory_references),
        "learning_points": list(message.learning_points),
        "task_runs": list(message.task_runs),
    }


def conversation_to_json(conversation: Conversation) -> dict[str, Json]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "messages": conversation.messages,
        "created": conversation.created,
        "updated": conversation.updated,
        "head": conversation.head,
        "agent": conversation.agent,
        "model": conversation.details.get("model"),
        "hidden": conversation.hidden,
        "deleted": conversation.deleted,
    }
