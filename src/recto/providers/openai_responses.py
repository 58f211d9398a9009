"""OpenAI's responses API from the client's side: reads its requests, and writes replies, whole or as events.

A compaction is a readable item of the reply: its text is the summary of what is left out.
"""

from collections.abc import Sequence

from msgspec import Struct

from recto.base.text import clean
from recto.chat.blocks import Block, Image, Text, Thinking, ToolCall, ToolResult
from recto.chat.message import Usage
from recto.providers.attachments import split_data_url
from recto.providers.client import CLIENT, ClientRequest, Fields, ReplyHead, joined, parsed
from recto.providers.http import ServerEvent
from recto.providers.model import Attempt, CallPart, Done, ReplyPart, TextPart, ThinkingPart
from recto.providers.openai_client import EFFORTS, EMPTY_SCHEMA, TOOL_CHOICES, openai_error
from recto.sources.source import Tool
from recto.window.request import Entry, NamedTool, Parameters, ResponseFormat
from recto.wire import Json, dumps

PREFIX = "resp_"
ROLES = ("user", "assistant", "system", "developer")
SILENT = ("reasoning", "compaction", "item_reference")
"""Items of earlier replies that say nothing here: their contents are in the store."""


class ResponsesRequest(Struct, frozen=True):
    asked: ClientRequest
    previous: str | None = None
    """The id of the reply that this request follows."""


def read_responses_request(body: bytes) -> ResponsesRequest:
    """Raises Invalid, naming the field, for a request that we cannot serve."""
    fields = parsed(body)
    model, instructions = fields.needed_text("model"), fields.text("instructions") or ""
    previous = fields.text("previous_response_id")
    if previous is not None and not previous.startswith(PREFIX):
        fields.refuse("previous_response_id", "is not the id of a reply")
    system, entries = _input(fields)
    if not entries:
        fields.refuse("input", "must have at least one message")
    fields.only({"background": (False,)})
    tools, reasoning, raw = tuple(_tool(tool) for tool in fields.objects("tools")), fields.object("reasoning"), None
    if tools and (raw := fields.raw("tool_choice")) not in (None, *TOOL_CHOICES):
        raw = NamedTool(Fields(raw, "tool_choice").needed_text("name"))
    parameters = Parameters(
        max_tokens=fields.whole("max_output_tokens"),
        temperature=fields.number("temperature", 2),
        top_p=fields.number("top_p", 1),
        tool_choice=raw,
        parallel_tool_calls=fields.flag("parallel_tool_calls") if tools else None,
        reasoning_effort=reasoning.choice("effort", EFFORTS) if reasoning else None,
        response_format=_response_format(fields),
    )
    text = "\n\n".join(each for each in (instructions, *system) if each)
    stream = bool(fields.flag("stream"))
    return ResponsesRequest(ClientRequest(model, tuple(entries), text, tools, parameters, stream), previous)


def _input(fields: Fields) -> tuple[list[str], list[Entry]]:
    given = fields.raw("input")
    if isinstance(given, str):
        return [], [Entry("user", (Text(clean(given)[0]),))] if given else []
    system, entries, calls = list[str](), list[Entry](), dict[str, str]()
    for item in fields.objects("input"):
        kind = item.text("type") or "message"
        if kind in SILENT:
            continue
        entry = _item(item, kind, calls)
        if entry.role == "system":
            system.append(joined(entry.blocks, ""))
        elif entries and entries[-1].role == entry.role and entry.role in ("tool", "assistant"):
            entries[-1] = Entry(entry.role, entries[-1].blocks + entry.blocks)
        elif entry.blocks:
            entries.append(entry)
    return system, entries


def _item(item: Fields, kind: str, calls: dict[str, str]) -> Entry:
    if kind == "function_call":
        id, name = item.needed_text("call_id"), item.needed_text("name")
        calls[id] = name
        return Entry("assistant", (ToolCall(id, name, clean(item.text("arguments") or "{}")[0]),))
    if kind == "function_call_output":
        id, output = item.needed_text("call_id"), item.raw("output")
        text = output if isinstance(output, str) else dumps(output)
        return Entry("tool", (ToolResult(id, calls.get(id, "tool"), clean(text)[0]),))
    if kind != "message":
        item.refuse("type", "must be message, function_call or function_call_output")
    role = item.needed_choice("role", ROLES)
    content = item.content("content")
    text = content if isinstance(content, str) else ""
    blocks = [Text(text)] if text else [] if isinstance(content, str) else [_part(part) for part in content]
    return Entry("system" if role == "developer" else role, tuple(blocks))


def _part(part: Fields) -> Block:
    kind = part.choice("type", ("input_text", "output_text", "text", "refusal", "input_image"))
    if kind != "input_image":
        return Text(clean(part.text("refusal" if kind == "refusal" else "text") or "")[0])
    url = part.needed_text("image_url")
    data = split_data_url(url)
    return Image(data[0], part.base64("image_url", data[1])) if data else Image("", "", url=url)


def _tool(fields: Fields) -> Tool:
    if fields.text("type") != "function":
        fields.refuse("type", "must be function: tools that run at OpenAI are not supported here")
    schema = fields.mapping("parameters") or EMPTY_SCHEMA
    return Tool(fields.needed_text("name"), fields.text("description") or "", schema, server=CLIENT)


def _response_format(fields: Fields) -> ResponseFormat | None:
    text = fields.object("text")
    format = text.object("format") if text else None
    kind = format.text("type") if format else None
    if format is None or kind in (None, "text"):
        return None
    if kind == "json_object":
        return ResponseFormat("json_object")
    name, strict = format.text("name") or "", format.flag("strict")
    return ResponseFormat("json_schema", format.mapping("schema"), name, strict=strict)


# -- writing


def compaction_item(id: str, summary: str) -> Json:
    """The clients' type of this item has a field for encrypted content; ours is plain text."""
    return {"id": f"cmp_{id}", "type": "compaction", "encrypted_content": summary, "created_by": "recto"}


def write_response(head: ReplyHead, items: Sequence[Json], done: Done | None, previous: str | None) -> Json:
    """The object of a reply; without `done` it is in progress."""
    cut = done is not None and done.finish == "length"
    return {
        "id": head.id,
        "object": "response",
        "created_at": head.created,
        "model": head.model,
        "status": "in_progress" if done is None else "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "instructions": None,
        "metadata": {},
        "output": list(items),
        "parallel_tool_calls": True,
        "previous_response_id": previous,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(done.usage) if done else None,
    }


def _usage(usage: Usage | None) -> Json:
    return usage and {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def output_items(head: ReplyHead, blocks: Sequence[Block]) -> list[Json]:
    found: list[Json] = []
    text = joined(blocks, "")
    thought = "".join(block.text for block in blocks if isinstance(block, Thinking))
    if thought:
        summary = {"type": "summary_text", "text": thought}
        found.append({"id": f"rs_{head.id}", "type": "reasoning", "summary": [summary]})
    if text:
        found.append(_message(head, text, "completed"))
    calls = [block for block in blocks if isinstance(block, ToolCall)]
    return [*found, *(_call(call.id, call.name, call.arguments, "completed") for call in calls)]


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _message(head: ReplyHead, text: str, status: str) -> Json:
    content = [_text_part(text)] if status == "completed" else []
    return {"id": f"msg_{head.id}", "type": "message", "role": "assistant", "status": status, "content": content}


def _call(id: str, name: str, arguments: str, status: str) -> Json:
    call = {"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": name}
    return {**call, "arguments": arguments, "status": status}


class ResponsesWriter:
    """Writes one reply as events. Each item is opened, filled and closed before the next one."""

    def __init__(self, head: ReplyHead, before: Sequence[Json], previous: str | None) -> None:
        """`before`: items that precede the model's words."""
        self._head, self._previous = head, previous
        self._before, self._items = list(before), list[Json]()
        self._open, self._text, self._call = "", "", CallPart(-1)
        self._number, self._has_begun = -1, False

    def write(self, part: ReplyPart) -> list[ServerEvent]:
        if isinstance(part, Attempt):
            return []
        events = [] if self._has_begun else self._begin()
        if isinstance(part, Done):
            events += self._close()
            response = write_response(self._head, self._items, part, self._previous)
            kind = "response.incomplete" if response["status"] == "incomplete" else "response.completed"
            return [*events, self._event(kind, response=response)]
        if isinstance(part, ThinkingPart):
            return events
        if isinstance(part, TextPart):
            return events + (self._added_text(part.text) if part.text else [])
        return events + self._called(part)

    def error(self, error: Exception) -> list[ServerEvent]:
        body = openai_error(error).body["error"]
        why = {"code": body["code"] or body["type"], "message": body["message"]}
        response = write_response(self._head, self._items, None, self._previous) | {"status": "failed", "error": why}
        return [self._event("response.failed", response=response)]

    def _begin(self) -> list[ServerEvent]:
        self._has_begun = True
        response = write_response(self._head, (), None, self._previous)
        events = [self._event(f"response.{kind}", response=response) for kind in ("created", "in_progress")]
        for item in self._before:
            events += [self._item("added", item), self._item("done", item)]
            self._items.append(item)
        return events

    def _added_text(self, text: str) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if self._open != "text":
            events += self._close()
            self._open, self._text = "text", ""
            events.append(self._item("added", _message(self._head, "", "in_progress")))
            events.append(self._event("response.content_part.added", **self._place, part=_text_part("")))
        self._text += text
        return [*events, self._event("response.output_text.delta", **self._place, delta=text, logprobs=[])]

    def _called(self, part: CallPart) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        if self._open != "call" or part.index != self._call.index:
            events += self._close()
            self._open, self._call = "call", CallPart(part.index, part.id, part.name)
            events.append(self._item("added", _call(part.id, part.name, "", "in_progress")))
        if part.arguments:
            self._call = CallPart(part.index, self._call.id, self._call.name, self._call.arguments + part.arguments)
            at = {"item_id": f"fc_{self._call.id}", "output_index": len(self._items)}
            events.append(self._event("response.function_call_arguments.delta", **at, delta=part.arguments))
        return events

    def _close(self) -> list[ServerEvent]:
        kind, self._open = self._open, ""
        if not kind:
            return []
        if kind == "text":
            item = _message(self._head, self._text, "completed")
            done = self._event("response.output_text.done", **self._place, text=self._text, logprobs=[])
            part = self._event("response.content_part.done", **self._place, part=item["content"][0])
            events = [done, part, self._item("done", item)]
        else:
            call = self._call
            item = _call(call.id, call.name, call.arguments, "completed")
            at = {"item_id": item["id"], "output_index": len(self._items)}
            said = {"arguments": call.arguments, "name": call.name}
            done = self._event("response.function_call_arguments.done", **at, **said)
            events = [done, self._item("done", item)]
        self._items.append(item)
        return events

    @property
    def _place(self) -> dict[str, Json]:
        return {"item_id": f"msg_{self._head.id}", "output_index": len(self._items), "content_index": 0}

    def _item(self, what: str, item: Json) -> ServerEvent:
        return self._event(f"response.output_item.{what}", output_index=len(self._items), item=item)

    def _event(self, kind: str, **more: Json) -> ServerEvent:
        self._number += 1
        return ServerEvent(dumps({"type": kind, "sequence_number": self._number, **more}), kind)
