"""Exports that are lists of messages: Claude's `conversations.json`, LibreChat's, and lists in the format of OpenAI's
API.

Claude: a list of conversations with `chat_messages`. LibreChat: one conversation, its messages as a list with parents
or as a tree with children. OpenAI: a list, an object with `messages`, or a line for each conversation (as for
fine-tuning) or each message. Lists in the format of Anthropic's API also work.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from recto.chat.blocks import Block, File, Text
from recto.chat.message import Role
from recto.errors import Invalid
from recto.transfer.foreign import (
    ROLES,
    FindMedia,
    ForeignConversation,
    ForeignMessage,
    Json,
    Object,
    list_of,
    object_of,
    objects_of,
    text_of,
    time_of,
    turn_messages,
)

TIMES = ("created_at", "created", "timestamp", "create_time", "date")
TREES = ("messagesTree", "messages")
SYSTEM = "system"
"""The key of the message made from instructions."""


# -- Claude


def is_claude(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list)


def read_claude(value: Json, place: str, media: FindMedia) -> ForeignConversation:
    if not isinstance(value, Mapping):
        raise Invalid(f"{place}: it is not a conversation; nothing was imported")
    found = ForeignConversation(
        key=str(value.get("uuid") or place),
        title=text_of(value.get("name")),
        created=time_of(value.get("created_at")),
        updated=time_of(value.get("updated_at")),
        head=text_of(value.get("current_leaf_message_uuid")) or None,
    )
    before: str | None = None
    for number, message in enumerate(list_of(value.get("chat_messages")), 1):
        if not isinstance(message, Mapping):
            raise Invalid(f"{place}, message {number:,}: it is not an object; nothing was imported")
        sender = text_of(message.get("sender"))
        if ROLES.get(sender) not in ("user", "assistant"):
            found.notes.append(f"the sender {sender[:40]!r} is unknown: kept as assistant")
        blocks = found.blocks(list_of(message.get("content")))
        if not any(isinstance(block, Text) and block.text for block in blocks):
            blocks += found.blocks(text_of(message.get("text")))
        blocks += _claude_files(message, found, media)
        # older exports name no parents: each message follows the previous one
        parent = text_of(message.get("parent_message_uuid", before)) or None
        before = str(message.get("uuid") or number)
        role: Role = "user" if ROLES.get(sender) == "user" else "assistant"
        made = ForeignMessage(before, parent, role, blocks, time_of(message.get("created_at")))
        found.messages += turn_messages(made)
    return found


def _claude_files(message: Object, found: ForeignConversation, media: FindMedia) -> Iterator[Block]:
    """Attachments have their text in the export; other files only their name."""
    names: set[str] = set()
    for each in objects_of(message.get("attachments")):
        name, text = text_of(each.get("file_name")) or "pasted text", text_of(each.get("extracted_content"))
        names.add(name)
        yield File(name, text) if text else found.missing(f"the file {name}")
    for each in objects_of(message.get("files")):
        name = text_of(each.get("file_name")) or "file"
        if name not in names:
            stored = media(text_of(each.get("file_uuid")))
            yield found.media(name, "", stored[1]) if stored else found.missing(f"the file {name}")


# -- LibreChat


def is_librechat(value: Json) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("conversationId"), str)
        and any(isinstance(value.get(name), list) for name in TREES)
    )


def read_librechat(value: Json, place: str, media: FindMedia) -> ForeignConversation:
    if not is_librechat(value):
        raise Invalid(f"{place}: it has no conversationId or no messages; nothing was imported")
    found = ForeignConversation(key=value["conversationId"], title=text_of(value.get("title")))
    messages = next(value[name] for name in TREES if isinstance(value.get(name), list))
    waiting: list[tuple[Json, str | None]] = [(each, None) for each in reversed(messages)]
    while waiting:  # parents first
        message, above = waiting.pop()
        if not isinstance(message, Mapping) or not isinstance(key := message.get("messageId"), str):
            raise Invalid(f"{place}: a message has no messageId; nothing was imported")
        found.messages += turn_messages(_librechat_message(message, above, found))
        waiting += [(each, key) for each in reversed(list_of(message.get("children")))]
    options = object_of(value.get("options"))
    if instructions := text_of(options.get("promptPrefix")) or text_of(options.get("system")):
        known = {message.key for message in found.messages}
        for each in found.messages:
            if each.parent not in known:
                each.parent = SYSTEM
        found.messages.insert(0, ForeignMessage(SYSTEM, None, "system", [Text(instructions)]))
    return found


def _librechat_message(message: Object, above: str | None, found: ForeignConversation) -> ForeignMessage:
    blocks = found.blocks(list_of(message.get("content"))) or found.blocks(text_of(message.get("text")))
    for each in list_of(message.get("files")):
        blocks.append(found.missing(f"the file {text_of(object_of(each).get('filename')) or 'of a message'}"))
    is_user = message.get("isCreatedByUser") is True or text_of(message.get("sender")).lower() == "user"
    return ForeignMessage(
        key=message["messageId"],
        parent=above or text_of(message.get("parentMessageId")) or None,
        role="user" if is_user else "assistant",
        blocks=blocks,
        created=time_of(message.get("createdAt")),
        model=None if is_user else text_of(message.get("model")) or None,
        status="error" if message.get("error") is True else "stopped" if message.get("unfinished") is True else "done",
    )


# -- OpenAI


def is_message(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("role"), str)


def is_openai(value: Json) -> bool:
    if isinstance(value, list):
        return bool(value) and is_message(value[0])
    return is_message(value) or isinstance(object_of(value).get("messages"), list)


def read_openai(value: Json, place: str, media: FindMedia) -> ForeignConversation:
    """Read a list of messages, or an object that holds one."""
    about, messages = object_of(value), value.get("messages") if isinstance(value, Mapping) else value
    if not isinstance(messages, list) or (messages is value and not all(map(is_message, value))):
        raise Invalid(f"{place}: it is neither a message nor a list of messages; nothing was imported")
    key = text_of(about.get("id")) or text_of(about.get("conversation_id"))
    digest = hashlib.sha256(json.dumps([messages, key], sort_keys=True).encode()).hexdigest()
    found = ForeignConversation(key or digest, text_of(about.get("title")))
    if isinstance(system := about.get("system"), str | list):  # Anthropic has it next to the messages
        found.messages.append(ForeignMessage("system", None, "system", found.blocks(system)))
    for number, message in enumerate(messages, 1):
        for part in turn_messages(_openai_message(message, number, found, place)):
            last = found.messages[-1] if found.messages else None
            if last and last.role == part.role == "tool":  # results of one round are one message
                last.blocks += part.blocks
            else:
                part.parent = last.key if last else None
                found.messages.append(part)
    return found


def _openai_message(message: Json, number: int, found: ForeignConversation, place: str) -> ForeignMessage:
    where = f"{place}, message {number:,}"
    if not is_message(message):
        raise Invalid(f"{where}: it has no role; nothing was imported")
    role = ROLES.get(message["role"].lower())
    if role is None:
        known = ", ".join(ROLES)
        raise Invalid(f"{where}: the role {message['role'][:40]!r} is unknown; known are {known}. Nothing was imported")
    created = next((time for name in TIMES if (time := time_of(message.get(name)))), None)
    blocks = _openai_results(message, found) if role == "tool" else _openai_blocks(message, found)
    return ForeignMessage(str(number), None, role, blocks, created, text_of(message.get("model")) or None)


def _openai_blocks(message: Object, found: ForeignConversation) -> list[Block]:
    thought = message.get("reasoning_content") or message.get("reasoning")
    blocks = found.blocks({"type": "thinking", "thinking": thought}) if isinstance(thought, str) else []
    blocks += found.blocks(message.get("content"))
    if isinstance(refusal := message.get("refusal"), str):
        blocks.append(Text(refusal))
    for call in list_of(message.get("tool_calls")):
        blocks += found.blocks({"type": "tool_call", "tool_call": call})
    return blocks


def _openai_results(message: Object, found: ForeignConversation) -> list[Block]:
    """A tool's result, with or without the name of its call."""
    content, name = message.get("content"), text_of(message.get("name"))
    if any(part.get("type") == "tool_result" for part in objects_of(content)):
        return found.blocks(content)
    id = text_of(message.get("tool_call_id"))
    return found.blocks({"type": "tool_result", "tool_use_id": id, "name": name, "content": content or ""})
