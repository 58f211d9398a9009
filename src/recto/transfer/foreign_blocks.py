"""Parts of messages as other programs write them, as blocks. OpenAI's and Anthropic's APIs, Claude's export and
LibreChat's use the same few forms under different names."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from recto.chat.blocks import Block, File, Image, Text, Thinking, ToolCall, ToolResult
from recto.store.conversation_copy import StoredBytes

Json = Any
# Parts that say nothing to a reader: marks of the program itself.
_SILENT = frozenset({"token_budget", "flag", "step_start", "agent_update", "redacted_thinking"})
_DATA = "data:"


class BlockReader:
    """Turns parts into blocks; collects the bytes that they hold, and what could not be brought along."""

    def __init__(self) -> None:
        self.blobs: list[StoredBytes] = []
        self.notes: list[str] = []

    def blocks(self, content: Json) -> list[Block]:
        """Of a text, one part or a list of them."""
        if content is None:
            return []
        if isinstance(content, str):
            return [Text(content)]
        parts = content if isinstance(content, list) else [content]
        return [block for part in parts for block in self._part(part)]

    def _part(self, part: Json) -> list[Block]:
        if not isinstance(part, Mapping):
            return [] if part is None else [Text(part if isinstance(part, str) else _as_json(part))]
        kind = part.get("type")
        if read := _PARTS.get(str(kind)):
            return read(self, part)
        if kind in _SILENT:
            return []
        if isinstance(text := part.get("text"), str):
            return [Text(text)]
        return [Text(self.missing(f"a part of type {kind or 'unknown'}"))]

    def missing(self, what: str) -> str:
        """Notes that something is not in the export; gives the words that stand in its place."""
        self.notes.append(f"{what} is not in the export")
        return f"[{what} is not in the export]"

    # -- texts

    def _text(self, part: Mapping[str, Json]) -> list[Block]:
        text = part.get("text")
        if isinstance(text, Mapping):  # LibreChat: {"value": "…", "annotations": […]}
            text = text.get("value")
        return [Text(_text_of(text))]

    def _refusal(self, part: Mapping[str, Json]) -> list[Block]:
        return [Text(_text_of(part.get("refusal")))]

    def _thinking(self, part: Mapping[str, Json]) -> list[Block]:
        text = _text_of(part.get("thinking") or part.get("think") or part.get("reasoning") or part.get("text"))
        return [Thinking(text)] if text else []

    # -- tools

    def _tool_use(self, part: Mapping[str, Json]) -> list[Block]:
        name = _text_of(part.get("name")) or "tool"
        return [ToolCall(_text_of(part.get("id")) or name, name, _arguments(part.get("input")))]

    def _tool_result(self, part: Mapping[str, Json]) -> list[Block]:
        name = _text_of(part.get("name"))
        text, attachments = self._given(part.get("content"))
        id = _text_of(part.get("tool_use_id") or part.get("tool_call_id")) or name
        return [ToolResult(id, name, text, bool(part.get("is_error")), attachments=tuple(attachments))]

    def _given(self, content: Json) -> tuple[str, list[Image | File]]:
        """What a tool gave: its texts, and its images and files."""
        found = self.blocks(content)
        texts = [block.text for block in found if isinstance(block, Text)]
        return "\n".join(texts), [block for block in found if isinstance(block, Image | File)]

    def _tool_call(self, part: Mapping[str, Json]) -> list[Block]:
        """LibreChat: the call and what it gave are one part."""
        call = part.get("tool_call")
        if not isinstance(call, Mapping):
            return []
        function: Mapping[str, Json] = call["function"] if isinstance(call.get("function"), Mapping) else call
        name = _text_of(function.get("name")) or "tool"
        id = _text_of(call.get("id")) or name
        asked = ToolCall(id, name, _arguments(function.get("args", function.get("arguments"))))
        output = function.get("output")
        return [asked, ToolResult(id, name, self._given(output)[0])] if output is not None else [asked]

    # -- images and files

    def _image_url(self, part: Mapping[str, Json]) -> list[Block]:
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, Mapping) else given
        return [self.image(_text_of(url))]

    def _image(self, part: Mapping[str, Json]) -> list[Block]:
        """Anthropic: `source` holds the bytes or an address."""
        source = part.get("source")
        if not isinstance(source, Mapping):
            return [Text(self.missing("an image"))]
        kind = _text_of(source.get("media_type")) or "image/png"
        data, url = source.get("data"), source.get("url")
        return [self.image(f"{_DATA}{kind};base64,{data}" if isinstance(data, str) else _text_of(url))]

    def image(self, url: str) -> Block:
        """An image by its address, which may hold its bytes."""
        if not url.startswith(_DATA):
            return Image("image/*", url=url) if url else Text(self.missing("an image"))
        kind, data = _data_of(url)
        return self.media("", kind or "image/png", data) if data is not None else Text(self.missing("an image"))

    def _file(self, part: Mapping[str, Json]) -> list[Block]:
        given = part.get("file")
        given = given if isinstance(given, Mapping) else part
        name = _text_of(given.get("filename") or given.get("name") or part.get("title")) or "file"
        url = _text_of(given.get("file_data"))
        kind, data = _data_of(url) if url.startswith(_DATA) else ("", None)
        return [self.media(name, kind, data) if data is not None else Text(self.missing(f"the file {name}"))]

    def _document(self, part: Mapping[str, Json]) -> list[Block]:
        source = part.get("source")
        source = source if isinstance(source, Mapping) else {}
        name = _text_of(part.get("title")) or "document"
        if source.get("type") == "text":
            return [File(name, _text_of(source.get("data")))]
        kind = _text_of(source.get("media_type")) or "application/pdf"
        _, data = _data_of(f"{_DATA}{kind};base64,{source.get('data')}")
        return [self.media(name, kind, data) if data else Text(self.missing(f"the file {name}"))]

    def media(self, name: str, kind: str, data: bytes) -> Block:
        """An image or a file with these bytes; a text file is kept as its text."""
        kind = sniffed_kind(data) or kind or "application/octet-stream"
        if not kind.startswith("image/"):
            try:
                return File(name or "file", data.decode(), kind if kind.startswith("text/") else "text/plain")
            except UnicodeDecodeError:
                pass
        stored = StoredBytes(hashlib.sha256(data).hexdigest(), data, is_piece=False)
        self.blobs.append(stored)
        if kind.startswith("image/"):
            return Image(kind, name=name, sha256=stored.sha256)
        return File(name or "file", "", kind, sha256=stored.sha256)

    def _sound(self, part: Mapping[str, Json]) -> list[Block]:
        return [Text(self.missing("a sound"))]


_PARTS: dict[str, Callable[[BlockReader, Mapping[str, Json]], list[Block]]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text"), BlockReader._text),
    "refusal": BlockReader._refusal,
    **dict.fromkeys(("thinking", "think", "reasoning"), BlockReader._thinking),
    **dict.fromkeys(("tool_use", "server_tool_use", "mcp_tool_use"), BlockReader._tool_use),
    **dict.fromkeys(("tool_result", "web_search_tool_result", "mcp_tool_result"), BlockReader._tool_result),
    "tool_call": BlockReader._tool_call,
    **dict.fromkeys(("image_url", "input_image"), BlockReader._image_url),
    "image": BlockReader._image,
    **dict.fromkeys(("file", "input_file"), BlockReader._file),
    "document": BlockReader._document,
    "input_audio": BlockReader._sound,
}
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}


def sniffed_kind(data: bytes) -> str:
    """The media type of images and PDFs, by their first bytes: exports name many of them wrongly."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), "")


def _data_of(url: str) -> tuple[str, bytes | None]:
    """The media type and the bytes of a data address; None where they cannot be read."""
    head, _, data = url.removeprefix(_DATA).partition(",")
    kind, _, coding = head.partition(";")
    if "base64" not in coding:
        return kind, None
    try:
        return kind, base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return kind, None


def _arguments(given: Json) -> str:
    """Arguments are kept as the text that the model wrote, where that is known."""
    return given if isinstance(given, str) else _as_json(given if given is not None else {})


def _as_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _text_of(value: Json) -> str:
    return value if isinstance(value, str) else ""
