"""How pydantic-ai-harness keeps to a window: its hook by itself, to be timed, and the body that its agent really sends.

Runs with the peers' Python. What would be the network answers every request with the same fixed text.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# the peers' packages are not in the environment that checks types
import httpx2
from openai import AsyncOpenAI  # type: ignore[import-not-found]
from pydantic_ai import Agent  # type: ignore[import-not-found]
from pydantic_ai.messages import (  # type: ignore[import-not-found]
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters  # type: ignore[import-not-found]
from pydantic_ai.models.openai import OpenAIChatModel  # type: ignore[import-not-found]
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]
from pydantic_ai.tools import RunContext  # type: ignore[import-not-found]
from pydantic_ai.usage import RunUsage  # type: ignore[import-not-found]
from pydantic_ai_harness.compaction import (  # type: ignore[import-not-found]
    ClampOversizedMessages,
    ClearToolResults,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
)

from bench.wire import Limits, Wire, tokens

Native = Any
Tokenizer = Callable[[str], int] | None
TOKENIZERS: dict[str, Tokenizer] = {"approximate": None, "exact": tokens}


def sliding(limits: Limits, tokenizer: Tokenizer) -> Native:
    return SlidingWindowCompaction(max_tokens=limits.trigger, keep_tokens=limits.keep, tokenizer=tokenizer)


def tiered(limits: Limits, tokenizer: Tokenizer) -> Native:
    """The ladder that its manual recommends: oversized parts, then tool results, then a summary."""
    tiers = [
        ClampOversizedMessages(max_part_tokens=limits.keep, keep_head_chars=500, keep_tail_chars=500),
        ClearToolResults(max_tokens=1, keep_pairs=3),
        SummarizingCompaction(max_messages=1, keep_tokens=limits.keep, tokenizer=tokenizer),
    ]
    return TieredCompaction(tiers=tiers, target_tokens=limits.trigger, tokenizer=tokenizer)


STRATEGIES: dict[str, Callable[[Limits, Tokenizer], Native]] = {"harness, sliding": sliding, "harness, tiered": tiered}


class Answering:
    """The end of the world: takes bodies, says the same text to each."""

    def __init__(self, text: str) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._text = text
        web = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))
        client = AsyncOpenAI(api_key="none", base_url="http://model.invalid/v1", http_client=web, max_retries=0)
        self.model = OpenAIChatModel("fixed", provider=OpenAIProvider(openai_client=client))

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(json.loads(request.content))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": self._text}}
        known = {"id": "1", "object": "chat.completion", "created": 1, "model": "fixed", "choices": [choice]}
        return httpx2.Response(200, json=known)


def native(messages: Iterable[Wire]) -> list[Native]:
    """As the library keeps them: the results of one round, like the instructions and the first question, together."""
    made: list[Native] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            names |= {call["id"]: call["function"]["name"] for call in calls}
            made.append(ModelResponse(parts=[*_said(message), *map(_call, calls)]))
        elif made and isinstance(made[-1], ModelRequest) and message["role"] == "tool":
            made[-1].parts.append(_part(message, names))
        else:
            made.append(ModelRequest(parts=[_part(message, names)]))
    return _joined(made)


def _joined(messages: Sequence[Native]) -> list[Native]:
    first, *rest = messages
    if rest and isinstance(first.parts[0], SystemPromptPart) and isinstance(rest[0], ModelRequest):
        rest[0].parts.insert(0, first.parts[0])
        return rest
    return [first, *rest]


def _part(message: Wire, names: dict[str, str]) -> Native:
    if message["role"] == "tool":
        id = message["tool_call_id"]
        return ToolReturnPart(names.get(id, "unknown"), message["content"], tool_call_id=id)
    return (SystemPromptPart if message["role"] == "system" else UserPromptPart)(message["content"])


def _said(message: Wire) -> list[Native]:
    return [TextPart(message["content"])] if message["content"] else []


def _call(call: Wire) -> Native:
    return ToolCallPart(call["function"]["name"], call["function"]["arguments"], tool_call_id=call["id"])


async def hooked(strategy: Native, model: Native, messages: list[Native]) -> list[Native]:
    """What the strategy makes of the messages before a request; it changes the list, as it does in a run."""
    context = RunContext(deps=None, model=model, usage=RunUsage(), messages=messages)
    request = ModelRequestContext(
        model=model, messages=list(messages), model_settings=None, model_request_parameters=ModelRequestParameters()
    )
    found: list[Native] = (await strategy.before_model_request(context, request)).messages
    return found


async def sent(strategy: Native, answering: Answering, messages: list[Native]) -> list[Wire]:
    """The messages of the last body that a run with this strategy sends."""
    agent = Agent(answering.model, capabilities=[strategy])
    await agent.run(None, message_history=messages)
    wired: list[Wire] = answering.bodies[-1]["messages"]
    return wired
