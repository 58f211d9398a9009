"""ScriptedProvider: answers from a JSON file, step by step. For tests, demos and benchmarks; uses no network.

The file is a list of steps, or {"limit": the window in tokens, null for unknown, "attachments": true if it takes images
and files, "exact": false if our counts are estimates, "summarizes": false for a model that writes no
summaries, "answers_from_notes": false for one that only quotes notes, "tools": false for one that cannot call tools,
"one_slot": true for one that answers one request at a time, "prices": US dollars as in models.toml, "steps": a list}.
A step is one of
    {"text": …, "tool_calls": [{"name", "arguments", "id"}]}     either or both; "thinking" may come before
    {"error": "overflow" | "rate_limited" | "unreachable"}       after its "text", or the first "after" words of it
and may also have
    "when"      "reply", "summary", "ahead", "gist" or "facts": answers requests of that purpose only
    "usage"     the reported usage, or null; by default our own count. An object with any of "input", "output",
                "cache_read", "cache_write" and "reasoning"
    "finish"    the reported finish reason: "length", "refusal", any word; by default "tool_calls" or "stop"
    "hang_s"    seconds of silence before the reply
    "delay_s"   seconds between words
    "until"     a file: the reply waits for it, at the beginning or after the first "after" words
Within one open provider each step answers once, in order, and the last matching step keeps answering. Steps without
`when` answer replies, and every purpose that no step names.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, field
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.message import Usage
from recto.errors import Invalid, NotFound, Overflow, ProviderError, RateLimited, Unreachable
from recto.providers.http import Sleep
from recto.providers.model import (
    ASSUMED_WINDOW,
    CallPart,
    Done,
    Model,
    Prices,
    ReplyPart,
    TextPart,
    ThinkingPart,
    VocabularyCounter,
)
from recto.providers.openai import OpenAIFormat
from recto.window.request import Format, Piece, Purpose
from recto.wire import Json, dumpb, dumps, loads

LOG_VARIABLE = "RECTO_SCRIPTED_LOG"
LOOKED_EVERY_S = 0.01
ERRORS: dict[str, tuple[type[ProviderError], str]] = {
    "overflow": (Overflow, "The script says that the request is too long."),
    "rate_limited": (RateLimited, "The script asks to slow down; try again in a while."),
    "unreachable": (Unreachable, "The script breaks off here; ask again."),
}
Whole = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0, lt=3600)]
Token = Literal["input", "output", "cache_read", "cache_write", "reasoning"]
Price = Literal[Token, "requests"]
_WORD = re.compile(r"\s*\S+|\s+\Z")


class ScriptCall(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""


class ScriptStep(Struct, frozen=True, forbid_unknown_fields=True):
    text: str | UnsetType = UNSET
    thinking: str = ""
    tool_calls: tuple[ScriptCall, ...] | UnsetType = UNSET
    error: Literal["overflow", "rate_limited", "unreachable"] | None = None
    after: Whole | None = None
    """The number of words before the error or the wait; None for all or none."""
    until: str = ""
    when: Purpose | None = None
    finish: Annotated[str, Meta(min_length=1)] | None = None
    hang_s: Seconds = 0.0
    delay_s: Seconds = 0.0
    usage: dict[Token, int] | UnsetType | None = UNSET
    """Unset to report our own count."""

    def __post_init__(self) -> None:
        says = self.text is not UNSET or self.tool_calls is not UNSET
        if (self.error and self.tool_calls is not UNSET) or not (says or self.error):
            raise ValueError("A step has text, tool_calls or both, or an error")

    @property
    def said(self) -> str:
        return self.text or ("word " * (self.after or 0) if self.error and self.text is UNSET else "")

    @property
    def calls(self) -> list[CallPart]:
        return [
            CallPart(index, call.id, call.name, given if isinstance(given := call.arguments, str) else dumps(given))
            for index, call in enumerate(self.tool_calls or ())
        ]


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    steps: Annotated[tuple[ScriptStep, ...], Meta(min_length=1)]
    limit: Whole | None = ASSUMED_WINDOW
    attachments: bool = False
    exact: bool = True
    summarizes: bool = True
    answers_from_notes: bool = True
    tools: bool = True
    one_slot: bool = False
    prices: dict[Price, Annotated[float, Meta(ge=0)]] | None = None

    def next(self, purpose: str, played: set[int]) -> ScriptStep:
        named = any(step.when == purpose for step in self.steps)
        # gists are requested in the background, so they must not use the step of a reply
        allowed = {purpose, None} if purpose == "reply" or (not named and purpose == "summary") else {purpose}
        matching = [number for number, step in enumerate(self.steps) if step.when in allowed]
        if not matching:
            raise Invalid(f'The script has no step for a {purpose}; give it a step without "when".')
        number = next((number for number in matching if number not in played), matching[-1])
        played.add(number)
        return self.steps[number]


class ScriptedProvider:
    name = "scripted"

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self.format: Format = OpenAIFormat()
        self._sleep = sleep
        self._scripts: dict[str, tuple[Script, set[int]]] = {}
        """Each with the steps that have answered."""

    async def model(self, name: str) -> Model:
        path = name.removeprefix("scripted:")
        script, _ = self._script(path)
        return replace(
            _model(path),
            window=script.limit or None,
            exact=script.exact,
            summarizes=script.summarizes,
            answers_from_notes=script.answers_from_notes,
            tools=script.tools,
            one_slot=script.one_slot,
            prices=None if script.prices is None else replace(Prices(), **script.prices),
            images=script.attachments,
            files=script.attachments,
        )

    async def counter(self, model: Model) -> VocabularyCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        _log(body)
        request = loads(body)
        script, played = self._script(request["model"])
        step = script.next(purpose, played)
        if step.hang_s:
            await self._sleep(step.hang_s)
        if step.thinking:
            yield ThinkingPart(step.thinking)
        words = _WORD.findall(step.said)
        pause = min(step.after or 0, len(words))
        for number, word in enumerate(words[: step.after] if step.error else words):
            if number == pause:
                await self._until(step.until)
            if number and step.delay_s:
                await self._sleep(step.delay_s)
            yield TextPart(word)
        if pause == len(words):
            await self._until(step.until)
        if step.error:
            kind, sentence = ERRORS[step.error]
            error = kind(sentence)
            error.partial = bool(step.thinking or words[: step.after])
            raise error
        for call in step.calls:
            yield CallPart(call.index, call.id or f"call_{new_id()}", call.name)
            yield CallPart(call.index, arguments=call.arguments)
        if step.usage is UNSET:
            usage: Usage | None = await _count_usage(request, step)
        else:
            usage = None if step.usage is None else convert(step.usage, Usage)
        yield Done(step.finish or ("tool_calls" if step.calls else "stop"), usage)

    async def _until(self, path: str) -> None:
        is_there = os.path.exists
        while path and not is_there(path):
            await self._sleep(LOOKED_EVERY_S)

    async def close(self) -> None:
        self._scripts.clear()

    def _script(self, path: str) -> tuple[Script, set[int]]:
        if path not in self._scripts:
            self._scripts[path] = read_script(path), set()
        return self._scripts[path]


def _model(path: str) -> Model:
    return Model(f"scripted:{path}", "scripted", path, None, "scripted file", exact=True)


async def _count_usage(request: Json, step: ScriptStep) -> Usage:
    counter = VocabularyCounter(_model(request["model"]), OpenAIFormat())
    pieces = [Piece("tool", dumpb(tool)) for tool in request.get("tools", ())]
    pieces += [Piece("message", dumpb(message)) for message in request["messages"]]
    sent = sum(count.tokens for count in await counter.count(pieces)) + counter.priming.tokens
    replied = (step.thinking, step.said, *(f"{call.name}{call.arguments}" for call in step.calls))
    return Usage(input=sent, output=sum(counter.text(text).tokens for text in replied))


def _log(body: bytes) -> None:
    path = os.environ.get(LOG_VARIABLE)
    if not path:
        return
    try:
        with open(path, "ab", buffering=0) as log:
            log.write(body + b"\n")
    except OSError as why:
        raise Invalid(f"{LOG_VARIABLE} names {path}, which cannot be written: {why.strerror}.") from why


def read_script(path: str) -> Script:
    """Raises NotFound for a missing file, and Invalid, naming the place, for one that is not a script."""
    try:
        data = loads(Path(path).expanduser().read_bytes())
        return convert({"steps": data} if isinstance(data, list) else data, Script)
    except FileNotFoundError as why:
        raise NotFound(f"There is no scripted file {path}; check the path.", path=path) from why
    except OSError as why:
        raise Invalid(f"The scripted file {path} cannot be read: {why.strerror}.", path=path) from why
    except ValidationError as why:
        raise Invalid(f"The scripted file {path} is not a script: {why}.", path=path) from why
    except (ValueError, RecursionError) as why:
        raise Invalid(f"The scripted file {path} is not JSON: {why}.", path=path) from why
