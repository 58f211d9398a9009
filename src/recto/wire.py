"""Values <-> JSON for store, command line and export: UTF-8, compact, construction order, no NaN."""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from msgspec import NODEFAULT, MsgspecError, Struct, ValidationError, convert, to_builtins
from msgspec.json import Decoder

from recto.chat.blocks import BLOCKS, Block, DocumentReference, File, Image, MessageRange, Quote
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid

Json = Any
_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
# json.dumps with arguments makes a new encoder at every call
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def dumps(value: Json) -> str:
    return _encode(value)


def dumpb(value: Json) -> bytes:
    return dumps(value).encode()


def loads(text: str | bytes) -> Json:
    return json.loads(text)


@cache
def defaults_of(kind: type[Struct]) -> dict[str, Any]:
    """The fields of a struct and their defaults; NODEFAULT for a field without one, or with a factory."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    required = [NODEFAULT] * (len(names) - len(defaults))
    return dict(zip(names, (*required, *defaults), strict=True))


def without_defaults(value: Struct) -> dict[str, Json]:
    given = ((name, getattr(value, name), default) for name, default in defaults_of(type(value)).items())
    return {name: own for name, own, default in given if own != default}


def block_to_json(block: Block) -> dict[str, Json]:
    """The block's fields, without defaults."""
    out: dict[str, Json] = {"type": block.type}
    for name, default in defaults_of(type(block)).items():
        value = getattr(block, name)
        if name == "made":
            if value is not None:
                out["made"] = {"provider": value.provider, "model": value.model, "duration_s": value.duration_s}
        elif value != default and value not in ((), {}):
            out[name] = [_plain(each) for each in value] if isinstance(value, tuple) else value
    return out


def fields_to_json(value: object, *names: str) -> dict[str, Json]:
    """These fields and properties of a value, each as JSON."""
    return {name: value_to_json(getattr(value, name)) for name in names}


def value_to_json(value: object) -> Json:
    """Use the value's own `to_json` if it has one."""
    if isinstance(value, tuple | list):
        return [value_to_json(each) for each in value]
    if isinstance(value, Block):
        return block_to_json(value)
    return value.to_json() if hasattr(value, "to_json") else to_builtins(value)


def _plain(value: object) -> Json:
    """Encode the items of a block's tuple: texts, ranges, attachments, or references and quotes without defaults."""
    if isinstance(value, File | Image):
        return block_to_json(value)
    if isinstance(value, MessageRange):
        return list(value)
    if not isinstance(value, DocumentReference | Quote):
        return value
    return without_defaults(value)


def block_from_json(data: dict[str, Json]) -> Block:
    """Ignores fields of a later version."""
    kind = BLOCKS.get(data.get("type", ""))
    if kind is None:
        raise Invalid(f"unknown block type {data.get('type')!r}; known are {', '.join(BLOCKS)}", value=data.get("type"))
    known = {name: value for name, value in data.items() if name == "type" or name in kind.__struct_fields__}
    try:
        return convert(known, kind)
    except ValidationError as why:
        raise Invalid(f"a {data['type']} block cannot be read: {why}") from why


def blocks_to_json(blocks: tuple[Block, ...]) -> str:
    return dumps([block_to_json(block) for block in blocks])


_read_blocks = Decoder(tuple[Block, ...]).decode


def blocks_from_json(text: str) -> tuple[Block, ...]:
    try:
        return _read_blocks(text)
    except (MsgspecError, ValueError):  # also half a surrogate pair, NaN, or a field of a later version
        return tuple(map(block_from_json, loads(text)))


def message_to_json(message: Message, *, active: bool) -> dict[str, Json]:
    """The message for other programs; `active` means that it is in the view."""
    tokens = message.tokens
    blocks = zip(message.blocks, message.block_tokens, strict=True)
    return {
        **fields_to_json(message, "id", "parent", "role", "text"),
        "blocks": [block_to_json(block) | {"tokens": own} for block, own in blocks],
        "status": message.status,
        "active": active,
        "tokens": tokens.own,
        **fields_to_json(message, "request", "references", "created"),
        "augmented_tokens": tokens.augmented,
        "tool_tokens": tokens.tools,
        "tool_description_tokens": tokens.descriptions,
        **fields_to_json(message, "usage", "model", "provider", "agent", "context_type", "priority", "error"),
        **fields_to_json(message, "memory_references", "learning_points", "task_runs"),
    }


def conversation_to_json(conversation: Conversation) -> dict[str, Json]:
    return {
        **fields_to_json(conversation, "id", "title", "messages", "created", "updated", "head", "agent"),
        "model": conversation.details.get("model"),
        **fields_to_json(conversation, "hidden", "deleted"),
    }


def ids_in(value: Json) -> set[str]:
    if isinstance(value, str):
        return set(_ID.findall(value))
    if isinstance(value, Mapping):
        return {id for key, each in value.items() for id in ids_in(key) | ids_in(each)}
    return {id for each in value for id in ids_in(each)} if isinstance(value, list | tuple) else set()


def with_ids(value: Json, renamed: Callable[[str], str]) -> Json:
    """The same JSON value with other ids, or with readable replacements."""
    if isinstance(value, str):
        return _ID.sub(lambda found: renamed(found[0]), value)
    if isinstance(value, Mapping):
        return {with_ids(key, renamed): with_ids(each, renamed) for key, each in value.items()}
    return type(value)(with_ids(each, renamed) for each in value) if isinstance(value, list | tuple) else value
