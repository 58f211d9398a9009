"""ChatGPT's export: `conversations.json`, a list of conversations, each a `mapping` of nodes with parents."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from recto.chat.blocks import Block, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Role
from recto.errors import Invalid
from recto.transfer.foreign import ForeignConversation, ForeignMessage
from recto.transfer.foreign_blocks import BlockReader
from recto.transfer.incoming import time_of
from recto.transfer.json_items import JsonItem
from recto.transfer.media import FindMedia

Json = Any
ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}
EVERYONE = (None, "", "all")
"""Recipients of what is said to the user; any other is a tool."""
# Fields that hold the text of one kind of content or another.
_TEXTS = ("text", "result", "content", "model_set_context", "user_profile", "user_instructions")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_SILENT = ("reasoning_recap", "app_pairing_content")


def is_chatgpt(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


def read_chatgpt(items: Iterator[JsonItem], media: FindMedia) -> Iterator[tuple[ForeignConversation, JsonItem]]:
    for item in items:
        if not isinstance(item.value, Mapping):
            raise Invalid(f"{item.place}: it is no conversation; nothing was imported")
        yield _ChatGptReader(item.value, media).read(), item


class _ChatGptReader:
    def __init__(self, value: Mapping[str, Json], media: FindMedia) -> None:
        self._value, self._media = value, media
        mapping = value.get("mapping")
        nodes = mapping if isinstance(mapping, Mapping) else {}
        self._nodes = {key: node for key, node in nodes.items() if isinstance(node, Mapping)}
        self._blocks = BlockReader()

    def read(self) -> ForeignConversation:
        value = self._value
        key = next((id for name in ("conversation_id", "id") if isinstance(id := value.get(name), str)), None)
        title, head = value.get("title"), value.get("current_node")
        found = ForeignConversation(
            key=key or hashlib.sha256(json.dumps(sorted(self._nodes)).encode()).hexdigest(),
            title=title if isinstance(title, str) else "",
            created=time_of(value.get("create_time")),
            updated=time_of(value.get("update_time")),
            head=head if isinstance(head, str) else None,
        )
        found.messages = [self._message(key, node) for key, node in self._nodes.items()]
        self._carry_thoughts(found)
        found.blobs, found.notes = self._blocks.blobs, self._blocks.notes
        return found

    def _message(self, key: str, node: Mapping[str, Json]) -> ForeignMessage:
        told, parent = node.get("message"), node.get("parent")
        message: Mapping[str, Json] = told if isinstance(told, Mapping) else {}
        above = parent if isinstance(parent, str) else None
        author, about, content = (_mapping(message.get(name)) for name in ("author", "metadata", "content"))
        kind = content.get("content_type")
        role = "system" if kind in _INSTRUCTIONS else ROLES.get(str(author.get("role") or "assistant"))
        if role is None:
            self._blocks.notes.append(f"the role {str(author.get('role'))[:40]!r} is unknown: kept as assistant")
            role = "assistant"
        model = about.get("model_slug")
        return ForeignMessage(
            key=key,
            parent=above,
            role=role,
            blocks=self._said(key, role, message, content) + self._files(about, content),
            created=time_of(message.get("create_time")),
            model=model if isinstance(model, str) else None,
            status="stopped" if message.get("status") in ("in_progress", "finished_partial_completion") else "done",
        )

    def _said(self, key: str, role: Role, message: Mapping[str, Json], content: Mapping[str, Json]) -> list[Block]:
        blocks = self._content(content)
        texts = [block.text for block in blocks if isinstance(block, Text) and block.text]
        recipient = message.get("recipient")
        if role == "assistant" and recipient not in EVERYONE and texts:
            return [ToolCall(f"call_{key}", str(recipient), _arguments("\n".join(texts)))]
        if role == "tool" and texts:
            name = _mapping(message.get("author")).get("name")
            others = [block for block in blocks if not isinstance(block, Text)]
            return [ToolResult("", name if isinstance(name, str) else "", "\n".join(texts)), *others]
        return blocks

    def _content(self, content: Mapping[str, Json]) -> list[Block]:
        kind, parts = content.get("content_type"), content.get("parts")
        if not content or kind in _SILENT:
            return []
        if kind == "thoughts":
            return _thoughts(content.get("thoughts"))
        if kind == "code":
            language = content.get("language")
            named = language if isinstance(language, str) and language != "unknown" else ""
            return [Text(f"```{named}\n{content.get('text') or ''}\n```")] if content.get("text") else []
        if isinstance(parts, list):
            return [block for part in parts for block in self._part(part)]
        texts = [text for name in _TEXTS if isinstance(text := content.get(name), str) and text]
        if title := content.get("title"):
            texts.insert(0, f"{title} {content.get('url') or ''}".strip())
        return [Text("\n\n".join(texts))] if texts else []

    def _part(self, part: Json) -> list[Block]:
        if not isinstance(part, Mapping):
            return self._blocks.blocks(part)
        kind = str(part.get("content_type") or part.get("type") or "part")
        if "image" in kind:
            return [self._asset(part.get("asset_pointer"), "an image")]
        if "audio" in kind and not isinstance(part.get("text"), str):
            return [Text(self._blocks.missing("a sound"))]
        return self._blocks.blocks([part]) if isinstance(part.get("text"), str) else []

    def _asset(self, pointer: Json, what: str, name: str = "") -> Block:
        key = str(pointer or "").rpartition("://")[2].partition("#")[0]
        found = self._media(key) if key else None
        if found is None:
            return Text(self._blocks.missing(what))
        return self._blocks.media(name or found[0], "", found[1])

    def _files(self, about: Mapping[str, Json], content: Mapping[str, Json]) -> list[Block]:
        """The attached files; images among them are parts of the content too."""
        attached = about.get("attachments")
        shown = json.dumps(content.get("parts")) if content.get("parts") else ""
        blocks: list[Block] = []
        for each in attached if isinstance(attached, list) else []:
            key, name = (str(_mapping(each).get(field) or "") for field in ("id", "name"))
            if key and key not in shown:
                blocks.append(self._asset(key, f"the file {name or key}", name))
        return blocks

    def _carry_thoughts(self, found: ForeignConversation) -> None:
        """Thoughts stand in a node of their own: they become part of the reply that follows."""
        by_key = {message.key: message for message in found.messages}
        thoughts = {key: message.blocks for key, message in by_key.items() if _is_thought(message)}
        told: set[str] = set()
        for message in found.messages:
            if message.role != "assistant" or not message.blocks or message.key in thoughts:
                continue
            above, seen = message.parent, set[str]()
            while above in by_key and above not in seen and (above in thoughts or not by_key[above].blocks):
                seen.add(above)
                message.blocks = [*thoughts.get(above, []), *message.blocks]
                above = by_key[above].parent
            told |= seen
        for key in told & thoughts.keys():
            by_key[key].blocks = []


def _is_thought(message: ForeignMessage) -> bool:
    return bool(message.blocks) and all(isinstance(block, Thinking) for block in message.blocks)


def _thoughts(told: Json) -> list[Block]:
    found: list[Block] = []
    for each in told if isinstance(told, list) else []:
        parts = (_mapping(each).get(name) for name in ("summary", "content"))
        if text := "\n".join(part for part in parts if isinstance(part, str) and part):
            found.append(Thinking(text))
    return found


def _arguments(text: str) -> str:
    """Arguments of a call are an object; what is none becomes its only field."""
    code = text.removeprefix("```").removesuffix("```").partition("\n")[2].strip("\n") if text[:3] == "```" else text
    try:
        return code if isinstance(json.loads(code), dict) else json.dumps({"input": code}, ensure_ascii=False)
    except (ValueError, RecursionError):
        return json.dumps({"input": code}, ensure_ascii=False)


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}
