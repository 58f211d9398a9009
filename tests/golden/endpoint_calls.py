"""What clients ask the endpoint, and what stands in for its providers."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.providers.conftest import Loopback
from tests.serve.conftest import assistant, user
from tests.store.golden.world import PDF, PNG, SUMMARY

Json = Any
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
TOOL = {"name": "depth", "description": "Measures.", "parameters": {"type": "object", "properties": {}}}
CLAUDE_TOOL = {"name": "depth", "description": "Measures.", "input_schema": {"type": "object", "properties": {}}}

# One step each, which repeats: no reply depends on what was asked before.
SCRIPTS: dict[str, Json] = {
    "says": {
        "prices": {"input": 2.0, "output": 8.0},
        "attachments": True,
        "steps": [{"text": "She is seven metres long."}],
    },
    "thinks": [{"thinking": "Hm, a boat.", "text": "Seven metres."}],
    "calls": [{"tool_calls": [{"name": "depth", "arguments": {"at": "pier 7"}, "id": "call_1"}]}],
    "cut": [{"text": "Seven", "finish": "length"}],
    "full": {"limit": 2400, "steps": [{"text": "Noted."}, {"when": "summary", "text": SUMMARY}]},
    "down": [{"error": "unreachable"}],
    "limited": [{"error": "rate_limited"}],
    "overflows": [{"error": "overflow"}],
    "half": [{"text": "Seven metres and", "error": "unreachable"}],
}


def scripted(name: str) -> str:
    return f"scripted:models/golden-{name}.json"


def write_scripts(models: Path) -> None:
    for name, script in SCRIPTS.items():
        (models / f"golden-{name}.json").write_text(json.dumps(script))


class Call(Struct, frozen=True):
    path: str
    body: Json = None
    headers: dict[str, str] = {}
    method: str = "POST"


def chat(model: str, *messages: Json, headers: dict[str, str] | None = None, **more: Any) -> Call:
    return Call(CHAT, {"model": model, "messages": list(messages), **more}, headers or {})


def claude(model: str, *messages: Json, headers: dict[str, str] | None = None, **more: Any) -> Call:
    return Call(MESSAGES, {"model": model, "max_tokens": 200, "messages": list(messages), **more}, headers or {})


def respond(model: str, input: Json, **more: Any) -> Call:
    return Call(RESPONSES, {"model": model, "input": input, **more})


def mode(name: str) -> dict[str, str]:
    return {"x-recto-mode": name}


SAYS, CALLS = scripted("says"), scripted("calls")
ASKED, TOLD = user("How long is she?"), assistant("She is seven metres long.")


def long(wind: str) -> list[Json]:
    days = (user(f"Day {day}: " + f"the wind was {wind}. " * 30) for day in range(12))
    return [each for day in days for each in (day, assistant("Aye."))]


PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{b64encode(PNG).decode()}"}}
FILE = {
    "type": "document",
    "source": {"type": "base64", "media_type": "application/pdf", "data": b64encode(PDF).decode()},
}
CALLED = {"id": "call_1", "type": "function", "function": {"name": "depth", "arguments": '{"at":"pier 7"}'}}
PREVIOUS = "$previous"
"""Stands for the id of the reply before."""

# Each case has models of its own: how they count is learned from what providers report.
CASES: dict[str, list[Call]] = {
    "chat-whole": [chat(SAYS, ASKED), chat(SAYS, ASKED, TOLD, user("And wide?")), chat("recto", ASKED)],
    "chat-stream": [
        chat(SAYS, user("A stream?"), stream=True),
        chat(SAYS, user("A stream with usage?"), stream=True, stream_options={"include_usage": True}),
        chat(scripted("thinks"), user("A thought?"), stream=True),
        chat(scripted("cut"), user("Cut off?"), stream=True),
        chat(CALLS, user("A call?"), stream=True, tools=[{"type": "function", "function": TOOL}]),
    ],
    "chat-thinking": [chat(scripted("thinks"), user("What do you think?")), chat(scripted("cut"), user("Cut?"))],
    "chat-parameters": [
        chat(SAYS, user("Warm?"), temperature=0.5, top_p=0.9, max_tokens=50, stop=["x"], seed=7, user="nora"),
        chat(SAYS, user("As JSON?"), response_format={"type": "json_object"}),
        chat(SAYS, {"role": "system", "content": "Be kind."}, user("Kind?")),
        chat(SAYS, {"role": "user", "content": [{"type": "text", "text": "What is it?"}, PICTURE]}),
    ],
    "chat-tools": [
        chat(CALLS, user("How deep?"), tools=[{"type": "function", "function": TOOL}]),
        chat(
            SAYS,
            user("How deep?"),
            {"role": "assistant", "content": None, "tool_calls": [CALLED]},
            {"role": "tool", "tool_call_id": "call_1", "content": "3 m"},
            tools=[{"type": "function", "function": TOOL}],
        ),
    ],
    "chat-conversations": [
        chat(SAYS, user("By name?"), headers={"x-recto-conversation": "mine"}),
        chat(SAYS, user("By name again?"), headers={"x-recto-conversation": "mine"}),
        chat(SAYS, user("A branch?"), TOLD, user("One way?")),
        chat(SAYS, user("A branch?"), TOLD, user("Another way?")),
        chat(SAYS, user("A branch, reworded?"), TOLD, user("Another way?"), TOLD, user("And on?")),
        chat(SAYS, user("Too long a name?"), headers={"x-recto-conversation": "x" * 300}),
    ],
    "chat-compaction": [
        chat(scripted("full"), *long("west"), user("And now?")),
        chat(scripted("full"), *long("west"), user("And now?"), assistant("Noted."), user("And then?"), stream=True),
    ],
    "chat-modes": [
        chat(SAYS, user("Recorded?"), headers=mode("record")),
        chat("whole:m-1", user("Recorded as it is?"), headers=mode("record"), n=2),
        chat("live:m-1", user("Recorded as it comes?"), headers=mode("record"), stream=True),
        chat("live:m-1", user("Managed?")),
        chat("claude:m-1", user("Managed and translated?"), stream=True),
        chat(SAYS, user("How?"), headers=mode("sideways")),
    ],
    "chat-errors": [
        Call(CHAT, b"{"),
        Call(CHAT, b""),
        Call(CHAT, []),
        Call(CHAT, {}),
        Call(CHAT, {"model": SAYS}),
        chat(SAYS),
        chat(SAYS, {"role": "nobody", "content": "x"}),
        chat(SAYS, user("Two?"), n=2),
        chat(SAYS, user("Hot?"), temperature=9),
        chat("scripted:models/secret.json", ASKED),
        chat("nobody:nothing", ASKED),
        chat(scripted("down"), user("Down?")),
        chat(scripted("down"), user("Down in a stream?"), stream=True),
        chat(scripted("limited"), user("Limited?")),
        chat(scripted("overflows"), user("Too much?")),
        chat(scripted("half"), user("Half?")),
        chat(scripted("half"), user("Half in a stream?"), stream=True),
        chat("refusing:m-1", user("Refused?")),
        chat("refusing:m-1", user("Refused as it is?"), headers=mode("record")),
        Call(CHAT, method="GET"),
    ],
    "chat-fallback": [chat(scripted("limited"), user("Who else?"), headers={"x-recto-conversation": "other"})],
    "messages-whole": [
        claude(SAYS, user("Whole?"), system="Be kind."),
        claude(SAYS, user("Whole?"), TOLD, user("And on?"), system=[{"type": "text", "text": "Be kind."}]),
        claude(scripted("thinks"), user("A thought, whole?")),
        claude(SAYS, {"role": "user", "content": [{"type": "text", "text": "What is it?"}, FILE]}),
    ],
    "messages-stream": [
        claude(SAYS, user("Streamed?"), stream=True),
        claude(scripted("thinks"), user("A thought, streamed?"), stream=True),
        claude(CALLS, user("A call, streamed?"), stream=True, tools=[CLAUDE_TOOL]),
        claude(scripted("cut"), user("Cut, streamed?"), stream=True),
    ],
    "messages-tools": [
        claude(CALLS, user("How deep is it?"), tools=[CLAUDE_TOOL]),
        claude(
            SAYS,
            user("How deep is it?"),
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "call_1", "name": "depth", "input": {"at": "pier 7"}}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "3 m"}]},
            tools=[CLAUDE_TOOL],
        ),
    ],
    "messages-modes": [
        claude("quiet:m-2", user("Recorded as it is, Claude?"), headers=mode("record")),
        claude("claude:m-2", user("Managed, Claude?")),
    ],
    "messages-errors": [
        Call(MESSAGES, b"{"),
        Call(MESSAGES, {"model": SAYS, "messages": [ASKED]}),
        claude(SAYS),
        claude(SAYS, user("Odd?"), odd=1),
        claude("nobody:nothing", ASKED),
        claude(scripted("down"), user("Down, Claude?")),
        claude(scripted("limited"), user("Limited, Claude?"), stream=True),
        claude(scripted("half"), user("Half in a stream, Claude?"), stream=True),
        claude("refusing:m-2", user("Refused, Claude?")),
        Call("/v1/nothing", {}, {"anthropic-version": "2023-06-01"}),
    ],
    "responses-whole": [
        respond(SAYS, "How long, in short?"),
        respond(SAYS, "And wide?", previous_response_id=PREVIOUS),
        respond(SAYS, [{"role": "user", "content": "As a list?"}], instructions="Be kind."),
        respond(scripted("full"), [*long("east"), user("And now, in short?")]),
    ],
    "responses-stream": [
        respond(SAYS, "A stream of events?", stream=True),
        respond(scripted("thinks"), "A thought in events?", stream=True),
        respond(CALLS, "A call in events?", stream=True, tools=[{"type": "function", **TOOL}]),
    ],
    "responses-tools": [
        respond(CALLS, "How deep, in short?", tools=[{"type": "function", **TOOL}]),
        respond(
            SAYS,
            [{"type": "function_call_output", "call_id": "call_1", "output": "3 m"}],
            previous_response_id=PREVIOUS,
            tools=[{"type": "function", **TOOL}],
        ),
    ],
    "responses-errors": [
        Call(RESPONSES, {}),
        Call(RESPONSES, {"model": SAYS}),
        respond(SAYS, "x", previous_response_id="resp_nothing"),
        respond(SAYS, "x", tools=[{"type": "web_search"}]),
        respond(scripted("down"), "Down, in short?"),
        respond(scripted("half"), "Half, in events?", stream=True),
    ],
    "embeddings": [
        Call("/v1/embeddings", {"model": "whole:e-1", "input": "boat"}),
        Call("/v1/embeddings", {"model": SAYS, "input": "boat"}),
        Call("/v1/embeddings", b"{"),
    ],
    "models": [Call("/v1/models", method="GET")],
    "health": [Call("/health", method="GET"), Call("/ready", method="GET")],
    "nothing": [Call("/v1/nothing", {}), Call("/", method="GET")],
}

OPENAI_REPLY = {
    "id": "up-1",
    "model": "m-1",
    "odd": {"field": [1]},
    "choices": [{"index": 0, "message": assistant("From afar."), "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
CLAUDE_REPLY = {
    "id": "up-2",
    "type": "message",
    "role": "assistant",
    "model": "m-1",
    "content": [{"type": "text", "text": "From further."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 3},
}
OPENAI_EVENTS = Loopback.events(
    {"id": "up-1", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "From "}}]},
    {"id": "up-1", "choices": [{"index": 0, "delta": {"content": "afar."}, "finish_reason": "stop"}]},
    {"id": "up-1", "choices": [], "usage": OPENAI_REPLY["usage"]},
    "[DONE]",
)
CLAUDE_EVENTS = Loopback.events(
    {"type": "message_start", "message": {"usage": {"input_tokens": 9}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "From further."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
)
REFUSAL = Loopback.error(400, {"error": {"type": "invalid_request_error", "message": "The model is asleep."}})

VECTORS = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
# By the name of the provider: who answers whole, in a stream, in the other format, and who refuses.
UPSTREAMS = {
    "whole": (Loopback.whole(OPENAI_REPLY), "openai"),
    "live": (OPENAI_EVENTS, "openai"),
    "quiet": (Loopback.whole(CLAUDE_REPLY), "anthropic"),
    "claude": (CLAUDE_EVENTS, "anthropic"),
    "refusing": (REFUSAL, "openai"),
}
