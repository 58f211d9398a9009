"""ChatGPT's export: `conversations.json`, a list of conversations, each a `mapping` of nodes with parents."""

import hashlib
import json
import re
from collections.abc import Mapping

from recto.chat.blocks import Block, Text, Thinking, ToolCall, ToolResult
from recto.errors import Invalid
from recto.transfer.foreign import (
    ROLES,
    FindMedia,
    ForeignConversation,
    ForeignMessage,
    Json,
    Object,
    as_json,
    object_of,
    objects_of,
    text_of,
    time_of,
)

EVERYONE = (None, "", "all")
"""Recipients of text for the user; any other is a tool."""
# Fields that hold the text of some kind of content.
_TEXTS = ("text", "result", "content", "model_set_context", "user_profile", "user_instructions")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
# References to sources that only ChatGPT can resolve, in its two forms.
_CITED = re.compile(
    r" ?(?:\ue200(?:cite|filecite|navlist)\ue202[^\ue200\ue201]{0,500}\ue201|【\d{1,4}(?::\d{1,4})?†[^【】]{0,200}】)"
)
_SILENT = ("reasoning_recap", "app_pairing_content")


def is_chatgpt(value: Json) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping)


def read_chatgpt(value: Json, place: str, media: FindMedia) -> ForeignConversation:
    if not isinstance(value, Mapping):
        raise Invalid(f"{place}: it is not a conversation; nothing was imported")
    nodes = {key: node for key, node in object_of(value.get("mapping")).items() if isinstance(node, Mapping)}
    key = next((id for name in ("conversation_id", "id") if isinstance(id := value.get(name), str)), None)
    found = ForeignConversation(
        key=hashlib.sha256(json.dumps(sorted(nodes)).encode()).hexdigest() if key is None else key,
        title=text_of(value.get("title")),
        created=time_of(value.get("create_time")),
        updated=time_of(value.get("update_time")),
        head=text_of(value.get("current_node")) or None,
    )
    reader = _NodeReader(found, media)
    found.messages = [reader.message(key, node) for key, node in nodes.items()]
    _carry_thoughts(found.messages)
    return found


class _NodeReader:
    def __init__(self, found: ForeignConversation, media: FindMedia) -> None:
        self._found, self._media = found, media

    def message(self, key: str, node: Object) -> ForeignMessage:
        message = object_of(node.get("message"))
        author, about, content = (object_of(message.get(name)) for name in ("author", "metadata", "content"))
        named = text_of(author.get("role")) or "assistant"
        role = "system" if content.get("content_type") in _INSTRUCTIONS else ROLES.get(named)
        if role is None:
            self._found.notes.append(f"the role {named[:40]!r} is unknown: kept as assistant")
            role = "assistant"
        blocks = self._content(content)
        if role == "assistant":
            blocks = [Text(_CITED.sub("", each.text)) if isinstance(each, Text) else each for each in blocks]
        texts = [block.text for block in blocks if isinstance(block, Text) and block.text]
        if texts and role == "assistant" and (recipient := message.get("recipient")) not in EVERYONE:
            blocks = [ToolCall(f"call_{key}", str(recipient), _arguments("\n".join(texts)))]
        elif texts and role == "tool":
            others = [block for block in blocks if not isinstance(block, Text)]
            blocks = [ToolResult("", text_of(author.get("name")), "\n".join(texts)), *others]
        return ForeignMessage(
            key=key,
            parent=text_of(node.get("parent")) or None,
            role=role,
            blocks=blocks + self._files(about, content),
            created=time_of(message.get("create_time")),
            model=text_of(about.get("model_slug")) or None,
            status="stopped" if message.get("status") in ("in_progress", "finished_partial_completion") else "done",
        )

    def _content(self, content: Object) -> list[Block]:
        kind, parts = content.get("content_type"), content.get("parts")
        if kind in _SILENT:
            return []
        if kind == "thoughts":
            return _thoughts(content.get("thoughts"))
        if kind == "code":
            language = text_of(content.get("language"))
            named = "" if language == "unknown" else language
            return [Text(f"```{named}\n{content['text']}\n```")] if content.get("text") else []
        if isinstance(parts, list):
            return [block for part in parts for block in self._part(part)]
        texts = [text for name in _TEXTS if (text := text_of(content.get(name)))]
        if title := content.get("title"):
            texts.insert(0, f"{title} {content.get('url') or ''}".strip())
        return [Text("\n\n".join(texts))] if texts else []

    def _part(self, part: Json) -> list[Block]:
        if not isinstance(part, Mapping):
            return self._found.blocks(part)
        kind = str(part.get("content_type") or part.get("type") or "part")
        if "image" in kind:
            return [self._asset(text_of(part.get("asset_pointer")).rpartition("://")[2].partition("#")[0], "an image")]
        if isinstance(part.get("text"), str):
            return self._found.blocks(part)
        return [self._found.missing("a sound")] if "audio" in kind else []

    def _asset(self, key: str, what: str, name: str = "") -> Block:
        if found := self._media(key):
            return self._found.media(name or found[0], "", found[1])
        return self._found.missing(what)

    def _files(self, about: Object, content: Object) -> list[Block]:
        """The attached files; images are also parts of the content."""
        shown = json.dumps(content.get("parts"))
        named = [(text_of(each.get("id")), text_of(each.get("name"))) for each in objects_of(about.get("attachments"))]
        return [self._asset(key, f"the file {name or key}", name) for key, name in named if key and key not in shown]


def _carry_thoughts(messages: list[ForeignMessage]) -> None:
    """Thoughts have their own nodes: move them into the reply that follows."""
    by_key = {message.key: message for message in messages}
    thoughts = {key: each.blocks for key, each in by_key.items() if {*map(type, each.blocks)} == {Thinking}}
    carried: set[str] = set()
    for message in messages:
        if message.role != "assistant" or not message.blocks or message.key in thoughts:
            continue
        above, seen = message.parent, set[str]()
        while above in by_key and above not in seen and (above in thoughts or not by_key[above].blocks):
            seen.add(above)
            message.blocks = [*thoughts.get(above, []), *message.blocks]
            above = by_key[above].parent
        carried |= seen
    for key in carried & thoughts.keys():
        by_key[key].blocks = []


def _thoughts(given: Json) -> list[Block]:
    parts = ((text_of(each.get("summary")), text_of(each.get("content"))) for each in objects_of(given))
    return [Thinking(text) for each in parts if (text := "\n".join(filter(None, each)))]


def _arguments(text: str) -> str:
    """Tool arguments are an object; anything else becomes its only field."""
    code = text.removeprefix("```").removesuffix("```").partition("\n")[2].strip("\n") if text[:3] == "```" else text
    return code if code.lstrip()[:1] == "{" else as_json({"input": code})
