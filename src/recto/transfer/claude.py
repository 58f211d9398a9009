"""Claude's export: `conversations.json`, a list of conversations with `chat_messages`."""

from collections.abc import Iterator, Mapping
from typing import Any

from recto.chat.blocks import Block, File, Text
from recto.errors import Invalid
from recto.transfer.foreign import ForeignConversation, ForeignMessage, turn_messages
from recto.transfer.foreign_blocks import BlockReader
from recto.transfer.incoming import time_of
from recto.transfer.json_items import JsonItem
from recto.transfer.media import FindMedia

Json = Any
SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}


def is_claude(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list)


def read_claude(items: Iterator[JsonItem], media: FindMedia) -> Iterator[tuple[ForeignConversation, JsonItem]]:
    for item in items:
        if not isinstance(item.value, Mapping):
            raise Invalid(f"{item.place}: it is no conversation; nothing was imported")
        yield _conversation(item.value, item.place, media), item


def _conversation(value: Mapping[str, Json], place: str, media: FindMedia) -> ForeignConversation:
    messages = value.get("chat_messages")
    head = value.get("current_leaf_message_uuid")
    found = ForeignConversation(
        key=str(value.get("uuid") or place),
        title=_text(value.get("name")),
        created=time_of(value.get("created_at")),
        updated=time_of(value.get("updated_at")),
        head=head if isinstance(head, str) else None,
    )
    reader = BlockReader()
    before: str | None = None
    for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
        if not isinstance(message, Mapping):
            raise Invalid(f"{place}, message {number:,}: it is no object; nothing was imported")
        key = str(message.get("uuid") or number)
        # older exports name no parents: each message follows the one before it
        parent = message.get("parent_message_uuid", before)
        found.messages += turn_messages(_message(message, key, _text(parent) or None, reader, media))
        before = key
    found.blobs, found.notes = reader.blobs, reader.notes
    return found


def _message(
    message: Mapping[str, Json], key: str, parent: str | None, reader: BlockReader, media: FindMedia
) -> ForeignMessage:
    sender = _text(message.get("sender"))
    if sender not in SENDERS:
        reader.notes.append(f"the sender {sender[:40]!r} is unknown: kept as assistant")
    content = message.get("content")
    blocks = reader.blocks(content) if isinstance(content, list) else []
    if not any(isinstance(block, Text) and block.text for block in blocks):
        blocks += reader.blocks(_text(message.get("text")))
    role = "user" if SENDERS.get(sender) == "user" else "assistant"
    files = _files(message, reader, media)
    return ForeignMessage(key, parent, role, [*blocks, *files], time_of(message.get("created_at")))  # type: ignore[arg-type]


def _files(message: Mapping[str, Json], reader: BlockReader, media: FindMedia) -> list[Block]:
    """Attachments have their text in the export; of other files it has the name."""
    blocks: list[Block] = []
    names: set[str] = set()
    for each in _objects(message.get("attachments")):
        name = _text(each.get("file_name")) or "pasted text"
        names.add(name)
        text = _text(each.get("extracted_content"))
        blocks.append(File(name, text) if text else Text(reader.missing(f"the file {name}")))
    for each in _objects(message.get("files")):
        name, key = _text(each.get("file_name")) or "file", _text(each.get("file_uuid"))
        if name in names:
            continue
        found = media(key) if key else None
        blocks.append(reader.media(name, "", found[1]) if found else Text(reader.missing(f"the file {name}")))
    return blocks


def _objects(value: Json) -> list[Mapping[str, Json]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
