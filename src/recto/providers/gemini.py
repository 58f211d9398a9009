"""Gemini: its OpenAI-compatible endpoint for replies, its own `countTokens` for counts.

A request is counted in Gemini's own form: contents of user and model, a system instruction, declared functions.
"""

from collections.abc import Iterator

from recto.providers.attachments import split_data_url
from recto.providers.openai import INSTRUCTION_ROLES, OpenAIProvider
from recto.providers.remote import CountRequest
from recto.providers.request_fields import json_arguments
from recto.wire import Json, dumpb, loads

NAME = "gemini"
COMPATIBLE = "/openai"
"""Ends the address of the endpoint that speaks OpenAI's format."""


class GeminiProvider(OpenAIProvider):
    def count_request(self, body: bytes) -> CountRequest | None:
        if not self.base_url.endswith(COMPATIBLE):
            return None
        request = loads(body)
        model = f"models/{request['model'].removeprefix('models/')}"
        asked = dumpb({"generateContentRequest": {"model": model, **own_form(request)}})
        address = f"{self.base_url.removesuffix(COMPATIBLE)}/{model}:countTokens"
        # a bearer token would be taken for one of OAuth there
        return CountRequest(address, {"x-goog-api-key": self.checked_key() or ""}, asked, "totalTokens")


def own_form(request: dict[str, Json]) -> dict[str, Json]:
    """The parts of a request that are counted, as Gemini's API takes them."""
    names: dict[str, str] = {}
    instructions: list[Json] = []
    contents: list[Json] = []
    for message in request["messages"]:
        names |= {call["id"]: call["function"]["name"] for call in message.get("tool_calls") or ()}
        if message["role"] in INSTRUCTION_ROLES:
            instructions += _parts(message, names)
        elif parts := list(_parts(message, names)):
            contents.append({"role": "model" if message["role"] == "assistant" else "user", "parts": parts})
    form: dict[str, Json] = {"contents": contents}
    if instructions:
        form["systemInstruction"] = {"parts": instructions}
    if tools := request.get("tools"):
        form["tools"] = [{"functionDeclarations": [_declared(tool["function"]) for tool in tools]}]
    return form


def _parts(message: Json, names: dict[str, str]) -> Iterator[Json]:
    content = message.get("content")
    if message["role"] == "tool":
        name = names.get(message["tool_call_id"], "tool")
        yield {"functionResponse": {"name": name, "response": {"result": content or ""}}}
        return
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        yield from _part(part)
    for call in message.get("tool_calls") or ():
        function = call["function"]
        yield {"functionCall": {"name": function["name"], "args": json_arguments(function["arguments"])}}


def _part(part: Json) -> Iterator[Json]:
    if part["type"] == "text":
        yield {"text": part["text"]}
        return
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]
    if data := split_data_url(url):
        yield {"inlineData": {"mimeType": data[0], "data": data[1]}}


def _declared(function: Json) -> Json:
    told = {"name": function["name"], "description": function.get("description", "")}
    return told | {"parametersJsonSchema": function["parameters"]}
