"""OpenAI's chat completions, spoken by many: entries to bytes, events to Parts, and the provider that uses both.

Knows nothing of the network, nor of where the facts about a model come from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlsplit

from recto.chat.blocks import Block, File, Image, Text, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.ids import new_id
from recto.providers.fence import fenced
from recto.providers.http import Reported, Transport
from recto.providers.provider import CallPart, Done, Part, TextPart, ThinkingPart
from recto.providers.remote import Catalog, RemoteProvider
from recto.providers.rooted import rooted
from recto.providers.sse import ServerEvent
from recto.sources.source import Tool
from recto.window.request import Entry, Parameters, Piece
from recto.wire import Json, dumpb, dumps, loads

FINISHES = {"function_call": "tool_calls", "content_filter": "refusal", "max_tokens": "length", "end_turn": "stop"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """Where servers of this format differ in what they take."""

    max_tokens_field: str = "max_tokens"
    asks_usage: bool = True


PLAIN = Dialect()
# OpenAI's reasoning models refuse max_tokens, its other ones take both; Mistral refuses every field it does not know
DIALECTS = {
    "api.openai.com": Dialect(max_tokens_field="max_completion_tokens"),
    "api.mistral.ai": Dialect(asks_usage=False),
}


class OpenAIFormat:
    name = "openai"
    mark_bytes = b""

    def __init__(self, dialect: Dialect = PLAIN) -> None:
        self.dialect = dialect

    def opening(self, model: str, parameters: Parameters, system: str, tools: Sequence[Tool]) -> list[Piece]:
        usage = b',"stream_options":{"include_usage":true}' if self.dialect.asks_usage else b""
        head = b'{"model":' + dumpb(model) + b',"stream":true' + usage
        pieces = [Piece("head", head + (b',"tools":[' if tools else b',"messages":['))]
        for number, tool in enumerate(tools):
            pieces.append(Piece("tool", b"," * (number > 0) + dumpb(_tool(tool))))
        if tools:
            pieces.append(Piece("join", b'],"messages":['))
        if system:
            pieces.append(Piece("system", dumpb({"role": "system", "content": system})))
        return pieces

    def opened(self, system: str) -> bool:
        return bool(system)

    def entry(self, entry: Entry, provider: str) -> list[bytes]:
        if entry.role == "tool":
            results = [block for block in entry.blocks if isinstance(block, ToolResult)]
            return [dumpb({"role": "tool", "tool_call_id": each.call_id, "content": each.text}) for each in results]
        if entry.role != "assistant":
            content = _content(entry.blocks)
            return [dumpb({"role": entry.role, "content": content})] if content else []
        message: dict[str, Json] = {"role": entry.role, "content": _text(entry.blocks) or None}
        if calls := [_call(block) for block in entry.blocks if isinstance(block, ToolCall)]:
            message["tool_calls"] = calls
        return [dumpb(message)] if message["content"] or "tool_calls" in message else []

    def closing(self, parameters: Parameters) -> Piece:
        """A thinking budget has no place in this format; what a model thinks of its own accord is read all the same."""
        asked = {
            self.dialect.max_tokens_field: parameters.max_tokens,
            "temperature": parameters.temperature,
            "tool_choice": parameters.tool_choice,
        }
        given = (f',"{name}":{dumps(value)}' for name, value in asked.items() if value is not None)
        return Piece("tail", ("]" + "".join(given) + "}").encode())

    def mark_place(self, piece: Piece) -> int | None:
        """Nowhere: servers of this format find what they know by themselves."""
        return None


def _tool(tool: Tool) -> Json:
    function = {"name": tool.name, "description": tool.description, "parameters": rooted(tool.schema)}
    return {"type": "function", "function": function}


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _content(blocks: Sequence[Block]) -> Json:
    """A plain string, or a list of parts where there are images."""
    if not any(isinstance(block, Image) for block in blocks):
        return _text(blocks)
    parts: list[Json] = []
    for _, group in groupby(blocks, lambda block: isinstance(block, Image)):
        together = list(group)
        if text := _text(together):
            parts.append({"type": "text", "text": text})
        urls = [f"data:{block.media_type};base64,{block.base64}" for block in together if isinstance(block, Image)]
        parts += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return parts


def _text(blocks: Sequence[Block]) -> str:
    """Texts run on as they are; a file stands apart by blank lines."""
    if len(blocks) == 1 and isinstance(blocks[0], Text):  # nearly every message, and a window has hundreds
        return blocks[0].text
    paragraphs: list[str] = []
    readable = [block for block in blocks if isinstance(block, Text | File)]
    for _, group in groupby(readable, type):
        together = list(group)
        paragraphs.append("".join(block.text for block in together if isinstance(block, Text)))
        paragraphs += [fenced(block) for block in together if isinstance(block, File)]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


class OpenAIReader:
    """One reply's events, in the order they come."""

    def __init__(self) -> None:
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._ids: list[str] = []
        self._place: dict[int, int] = {}

    def read(self, event: ServerEvent) -> list[Part]:
        data = event.data.strip()
        if data == "[DONE]":
            self._finish = self._finish or "stop"
            return self.end()
        chunk = loads(data) if data else {}
        if event.name == "error" or chunk.get("error"):
            raise Reported(chunk)
        self._usage = _usage(chunk.get("usage")) or self._usage
        return [part for choice in chunk.get("choices") or () for part in self._choice(choice)]

    def end(self) -> list[Part]:
        # some servers say stop although they have just called a tool
        finish = "tool_calls" if self._finish == "stop" and self._ids else self._finish
        return [Done(finish, self._usage)] if finish else []

    def _choice(self, choice: Json) -> list[Part]:
        delta = choice.get("delta") or {}
        parts: list[Part] = []
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            parts.append(ThinkingPart(thought))
        parts += _said(delta.get("content")) + _said(delta.get("refusal"))
        parts += [self._called(call) for call in delta.get("tool_calls") or ()]
        reason = "refusal" if delta.get("refusal") else choice.get("finish_reason")
        if reason and self._finish != "refusal":
            self._finish = FINISHES.get(reason, reason)
        return parts

    def _called(self, call: Json) -> CallPart:
        function = call.get("function") or {}
        id, name, raw = call.get("id") or "", function.get("name") or "", function.get("arguments")
        arguments = raw if isinstance(raw, str) else "" if raw is None else dumps(raw)
        index = self._known(call.get("index"), id, name)
        if index is not None:
            return CallPart(index, arguments=arguments)
        self._ids.append(id if id and id not in self._ids else f"call_{new_id()}")
        new = len(self._ids) - 1
        self._place[call.get("index", new)] = new
        return CallPart(new, self._ids[new], name, arguments)

    def _known(self, given: int | None, id: str, name: str) -> int | None:
        """The call that this one goes on with; None for a new one.

        Some servers leave the index out, some give 0 to every call: then a name with another id, or with none, begins
        a new one.
        """
        place = len(self._ids) - 1 if given is None else self._place.get(given, -1)
        if place < 0 or (name and (id != self._ids[place] if id else given is None)):
            return None
        return place


def _said(content: Json) -> list[Part]:
    """Text as a string; or, as Mistral's reasoning models send it, a list of parts."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    parts: list[Part] = []
    for item in content or ():
        if item.get("type") == "thinking":
            parts.append(ThinkingPart("".join(thought["text"] for thought in item["thinking"])))
        elif item.get("text"):
            parts.append(TextPart(item["text"]))
    return parts


def _usage(raw: Json) -> Usage | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("prompt_tokens"), int):
        return None
    details = raw.get("prompt_tokens_details") or {}
    return Usage(
        input=raw["prompt_tokens"],
        output=raw.get("completion_tokens") or 0,
        cache_read=details.get("cached_tokens") or 0,
        cache_write=details.get("cache_write_tokens") or 0,
    )


class OpenAIProvider(RemoteProvider):
    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        catalog: Catalog,
        *,
        key_variable: str | None = None,
        dialect: Dialect | None = None,
        transport: Transport | None = None,
    ) -> None:
        super().__init__(name, base_url, key, catalog, key_variable=key_variable, transport=transport)
        self.format = OpenAIFormat(dialect or DIALECTS.get(urlsplit(self.base_url).hostname or "", PLAIN))
        self.reader = OpenAIReader

    @property
    def url(self) -> str:
        return f"{self.base_url}/chat/completions"

    def headers(self, key: str | None) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}
