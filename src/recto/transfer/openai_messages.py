"""Message lists as OpenAI's API takes them: a list, an object with `messages`, or a line for each conversation (as for
fine-tuning) or each message. Lists in the form of Anthropic's API are read too."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from recto.chat.blocks import Block, Text, ToolCall, ToolResult
from recto.chat.message import Role
from recto.errors import Invalid
from recto.transfer.foreign import ForeignConversation, ForeignMessage, turn_messages
from recto.transfer.foreign_blocks import BlockReader
from recto.transfer.incoming import time_of
from recto.transfer.json_items import JsonItem

Json = Any
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
TIMES = ("created_at", "created", "timestamp", "create_time", "date")


def is_message(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def is_list(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("messages"), list)


def read_lists(items: Iterator[JsonItem]) -> Iterator[tuple[ForeignConversation, JsonItem]]:
    """Each conversation, with the item that it ends with."""
    loose: list[Json] = []
    last: JsonItem | None = None
    for item in items:
        if is_message(item.value):
            loose.append(item.value)
            last = item
        elif is_list(item.value):
            yield _conversation(item.value["messages"], item.value, item.place), item
        elif isinstance(item.value, list) and all(map(is_message, item.value)):
            yield _conversation(item.value, {}, item.place), item
        else:
            raise Invalid(f"{item.place}: it is no message and no list of messages; nothing was imported")
    if last is not None:
        yield _conversation(loose, {}, last.place.partition(",")[0]), last


def _conversation(messages: list[Json], about: Mapping[str, Json], place: str) -> ForeignConversation:
    reader = BlockReader()
    digest = hashlib.sha256(json.dumps([messages, _key(about)], sort_keys=True).encode()).hexdigest()
    title = about.get("title")
    found = ForeignConversation(_key(about) or digest, title if isinstance(title, str) else "")
    if isinstance(system := about.get("system"), str | list):  # Anthropic keeps it beside the messages
        found.messages.append(ForeignMessage("system", None, "system", reader.blocks(system)))
    for number, message in enumerate(messages, 1):
        for part in turn_messages(_message(message, number, found, reader, place)):
            _append(found, part)
    found.blobs, found.notes = reader.blobs, reader.notes
    return found


def _key(about: Mapping[str, Json]) -> str:
    return next((id for name in ("id", "conversation_id") if isinstance(id := about.get(name), str)), "")


def _append(found: ForeignConversation, part: ForeignMessage) -> None:
    """Results of one round are one message."""
    last = found.messages[-1] if found.messages else None
    if last and last.role == part.role == "tool":
        last.blocks += part.blocks
        return
    part.parent = last.key if last else None
    found.messages.append(part)


def _message(message: Json, number: int, found: ForeignConversation, reader: BlockReader, place: str) -> ForeignMessage:
    where = f"{place}, message {number:,}"
    if not is_message(message):
        raise Invalid(f"{where}: it has no role; nothing was imported")
    role = ROLES.get(message["role"].lower())
    if role is None:
        known = ", ".join(ROLES)
        raise Invalid(f"{where}: the role {message['role'][:40]!r} is unknown; known are {known}. Nothing was imported")
    created = next((time for name in TIMES if (time := time_of(message.get(name)))), None)
    blocks = _results(message, found, reader) if role == "tool" else _said(message, reader)
    model = message.get("model")
    return ForeignMessage(str(number), None, role, blocks, created, model if isinstance(model, str) else None)


def _said(message: Mapping[str, Json], reader: BlockReader) -> list[Block]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    blocks = reader.blocks({"type": "thinking", "thinking": thought}) if isinstance(thought, str) else []
    blocks += reader.blocks(message.get("content"))
    if isinstance(message.get("refusal"), str):
        blocks.append(Text(message["refusal"]))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        blocks += reader.blocks({"type": "tool_call", "tool_call": call})
    if isinstance(legacy := message.get("function_call"), Mapping):
        name = str(legacy.get("name") or "tool")
        arguments = legacy.get("arguments")
        blocks.append(ToolCall(name, name, arguments if isinstance(arguments, str) else "{}"))
    return blocks


def _results(message: Mapping[str, Json], found: ForeignConversation, reader: BlockReader) -> list[Block]:
    """What a tool gave. A function's result of old names its function instead of a call."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if any(isinstance(part, Mapping) and part.get("type") == "tool_result" for part in parts):
        return reader.blocks(content)
    name = message.get("name") if isinstance(message.get("name"), str) else ""
    call = message.get("tool_call_id")
    id = call if isinstance(call, str) else name or _open_call(found)
    return reader.blocks({"type": "tool_result", "tool_use_id": id, "name": name, "content": content or ""})


def _open_call(found: ForeignConversation) -> str:
    """The first call that has no result yet."""
    answered = {block.call_id for each in found.messages[-1:] for block in each.blocks if isinstance(block, ToolResult)}
    for message in reversed(found.messages[-2:]):
        for block in message.blocks:
            if isinstance(block, ToolCall) and block.id not in answered:
                return block.id
    return ""
