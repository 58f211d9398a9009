"""A history processor for pydantic-ai: before each request, the messages are made to fit the model's window.

agent = Agent("openai:gpt-4o", capabilities=[ProcessHistory(fit_history("openai:gpt-4o", 8000))])
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

import recto


def fit_history(model: str, max_prompt_tokens: int) -> Callable[[list[ModelMessage]], list[ModelMessage]]:
    def process(messages: list[ModelMessage]) -> list[ModelMessage]:
        given = [_as_dict(message) for message in messages]
        own = {id(each): message for each, message in zip(given, messages, strict=True)}
        fitted = recto.fit(given, model=model, max_prompt_tokens=max_prompt_tokens).messages
        return [own.get(id(each)) or _changed(each, messages) for each in fitted]

    return process


def _as_dict(message: ModelMessage) -> dict[str, Any]:
    """One message of Anthropic's form for each of theirs: it holds several results at once."""
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            result = part.model_response_str()
            blocks.append({"type": "tool_result", "tool_use_id": part.tool_call_id, "content": result})
        elif isinstance(part, ToolCallPart):
            called = {"name": part.tool_name, "input": part.args_as_dict()}
            blocks.append({"type": "tool_use", "id": part.tool_call_id, **called})
        elif isinstance(part, TextPart | UserPromptPart) and isinstance(part.content, str):
            blocks.append({"type": "text", "text": part.content})
    return {"role": "assistant" if isinstance(message, ModelResponse) else "user", "content": blocks}


def _changed(message: dict[str, Any], messages: list[ModelMessage]) -> ModelMessage:
    """The summary, which is new, or a message that is larger than the window, with its beginning and end."""
    content = message["content"]
    if isinstance(content, str):
        return ModelRequest(parts=[UserPromptPart(content)])
    texts = {block["tool_use_id"]: block["content"] for block in content if block["type"] == "tool_result"}
    if not texts:
        return ModelRequest(parts=[UserPromptPart("".join(block["text"] for block in content))])
    parts = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
    return ModelRequest(parts=[replace(p, content=texts[p.tool_call_id]) for p in parts if p.tool_call_id in texts])
