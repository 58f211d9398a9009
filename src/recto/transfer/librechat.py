"""LibreChat's export: one conversation as JSON, its messages as a list with parents or as a tree with children."""

from collections.abc import Iterator, Mapping
from typing import Any

from recto.chat.blocks import Text
from recto.errors import Invalid
from recto.transfer.foreign import ForeignConversation, ForeignMessage, turn_messages
from recto.transfer.foreign_blocks import BlockReader
from recto.transfer.incoming import time_of
from recto.transfer.json_items import JsonItem

Json = Any
LISTS = ("messagesTree", "messages")
SYSTEM = "system"
"""The key of the message that we make of the instructions."""


def is_librechat(value: Json) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("conversationId"), str)
        and any(isinstance(value.get(name), list) for name in LISTS)
    )


def read_librechat(items: Iterator[JsonItem]) -> Iterator[tuple[ForeignConversation, JsonItem]]:
    for item in items:
        if not is_librechat(item.value):
            raise Invalid(f"{item.place}: it has no conversationId or no messages; nothing was imported")
        yield _conversation(item.value, item.place), item


def _conversation(value: Mapping[str, Json], place: str) -> ForeignConversation:
    reader = BlockReader()
    options = value.get("options")
    found = ForeignConversation(key=value["conversationId"], title=_text(value.get("title")))
    about = options if isinstance(options, Mapping) else {}
    instructions = _text(about.get("promptPrefix")) or _text(about.get("system"))
    for message, above in _flat(next(value[name] for name in LISTS if isinstance(value.get(name), list)), place):
        found.messages += turn_messages(_message(message, above, reader))
    if instructions:
        known = {message.key for message in found.messages}
        for each in found.messages:
            if each.parent not in known:
                each.parent = SYSTEM
        found.messages.insert(0, ForeignMessage(SYSTEM, None, "system", [Text(instructions)]))
    found.blobs, found.notes = reader.blobs, reader.notes
    return found


def _flat(messages: list[Json], place: str) -> Iterator[tuple[Mapping[str, Json], str | None]]:
    """Each message with the key of its parent, parents first."""
    waiting: list[tuple[Json, str | None]] = [(each, None) for each in reversed(messages)]
    while waiting:
        message, above = waiting.pop()
        if not isinstance(message, Mapping) or not isinstance(message.get("messageId"), str):
            raise Invalid(f"{place}: a message has no messageId; nothing was imported")
        yield message, above or _text(message.get("parentMessageId")) or None
        children = message.get("children")
        if isinstance(children, list):
            waiting += [(each, message["messageId"]) for each in reversed(children)]


def _message(message: Mapping[str, Json], above: str | None, reader: BlockReader) -> ForeignMessage:
    content = message.get("content")
    blocks = reader.blocks(content) if isinstance(content, list) else []
    blocks = blocks or reader.blocks(_text(message.get("text")))
    files = message.get("files")
    for each in files if isinstance(files, list) else []:
        name = _text(each.get("filename")) if isinstance(each, Mapping) else ""
        blocks.append(Text(reader.missing(f"the file {name or 'of a message'}")))
    is_user = message.get("isCreatedByUser") is True or _text(message.get("sender")).lower() == "user"
    return ForeignMessage(
        key=message["messageId"],
        parent=above,
        role="user" if is_user else "assistant",
        blocks=blocks,
        created=time_of(message.get("createdAt")),
        model=None if is_user else _text(message.get("model")) or None,
        status="error" if message.get("error") is True else "stopped" if message.get("unfinished") is True else "done",
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
