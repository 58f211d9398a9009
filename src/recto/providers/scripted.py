"""ScriptedProvider: answers from a JSON file, step by step. For tests, demos and benchmarks; uses no network.

The file is a list of steps, or {"limit": the window in tokens, null for unknown, "attachments": whether it takes images
and files, "exact": false where our counts are to be estimates, "summarizes": false for a model that writes no
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
    "until"     a file: the reply goes on when it is there, from the beginning or after the first "after" words
Within one open provider each step answers once, in order, and the last matching step keeps answering. Steps without
`when` answer replies, and every purpose that no step names.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import NoReturn, get_args

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.ids import new_id
from recto.chat.message import Usage
from recto.errors import Invalid, NotFound, Overflow, ProviderError, RateLimited, Unreachable
from recto.providers.families import VocabularyCounter
from recto.providers.http import Sleep
from recto.providers.model import ASSUMED_WINDOW, CallPart, Done, Model, ReplyPart, TextPart, ThinkingPart
from recto.providers.openai import OpenAIFormat
from recto.providers.prices import Prices
from recto.window.request import Format, Piece, Purpose
from recto.wire import Json, dumpb, dumps, loads

LOG_VARIABLE = "RECTO_SCRIPTED_LOG"
LOOKED_EVERY_S = 0.01
ERRORS: dict[str, Callable[[], ProviderError]] = {
    "overflow": lambda: Overflow("The script says that the request is too long."),
    "rate_limited": lambda: RateLimited("The script asks to slow down; try again in a while."),
    "unreachable": lambda: Unreachable("The script breaks off here; ask again."),
}
PURPOSES: tuple[str, ...] = get_args(Purpose)
USAGE = ("input", "output", "cache_read", "cache_write", "reasoning")
PRICE_NAMES = (*USAGE, "requests")
_WORD = re.compile(r"\s*\S+|\s+\Z")


class ScriptStep(Struct, frozen=True):
    text: str = ""
    thinking: str = ""
    calls: tuple[CallPart, ...] = ()
    error: str | None = None
    after: int | None = None
    """How many words of the text precede the error or the wait; None for all, or for none."""
    until: str = ""
    when: str | None = None
    finish: str = ""
    """The reported finish reason; empty for the one that the step implies."""
    hang_s: float = 0.0
    delay_s: float = 0.0
    usage: Usage | None = None
    counts: bool = True
    """True to report our own count; False to report `usage`, even if it is None."""


class Script(Struct):
    window: int | None
    steps: tuple[ScriptStep, ...]
    takes_attachments: bool = False
    is_exact: bool = True
    summarizes: bool = True
    answers_from_notes: bool = True
    one_slot: bool = False
    tools: bool = True
    prices: Prices | None = None
    played: set[int] = field(default_factory=set)

    def next(self, purpose: str) -> ScriptStep:
        named = any(step.when == purpose for step in self.steps)
        # gists are requested in the background, so they must not use the step of a reply
        allowed = {purpose, None} if purpose == "reply" or (not named and purpose == "summary") else {purpose}
        matching = [number for number, step in enumerate(self.steps) if step.when in allowed]
        if not matching:
            raise Invalid(f'The script has no step for a {purpose}; give it a step without "when".')
        number = next((number for number in matching if number not in self.played), matching[-1])
        self.played.add(number)
        return self.steps[number]


NOTES = "answers_from_notes"


class ScriptedProvider:
    name = "scripted"

    def __init__(self, sleep: Sleep = asyncio.sleep) -> None:
        self.format: Format = OpenAIFormat()
        self._sleep = sleep
        self._scripts: dict[str, Script] = {}

    async def model(self, name: str) -> Model:
        path = name.removeprefix("scripted:")
        script = self._script(path)
        model = replace(_model(path, script.window), exact=script.is_exact, summarizes=script.summarizes)
        model = replace(model, one_slot=script.one_slot, tools=script.tools, prices=script.prices)
        model = replace(model, answers_from_notes=script.answers_from_notes)
        return replace(model, images=script.takes_attachments, files=script.takes_attachments)

    async def counter(self, model: Model) -> VocabularyCounter:
        return VocabularyCounter(model, self.format)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        _log(body)
        request = loads(body)
        step = self._script(request["model"]).next(purpose)
        if step.hang_s:
            await self._sleep(step.hang_s)
        if step.thinking:
            yield ThinkingPart(step.thinking)
        words = _WORD.findall(step.text)
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
            error = ERRORS[step.error]()
            error.partial = bool(step.thinking or words[: step.after])
            raise error
        for call in step.calls:
            yield CallPart(call.index, call.id or f"call_{new_id()}", call.name)
            yield CallPart(call.index, arguments=call.arguments)
        usage = await _count_usage(request, step) if step.counts else step.usage
        yield Done(step.finish or ("tool_calls" if step.calls else "stop"), usage)

    async def _until(self, path: str) -> None:
        is_there = os.path.exists  # a glance that takes no time
        while path and not is_there(path):
            await self._sleep(LOOKED_EVERY_S)

    async def close(self) -> None:
        self._scripts.clear()

    def _script(self, path: str) -> Script:
        if path not in self._scripts:
            self._scripts[path] = read_script(path)
        return self._scripts[path]


def _model(path: str, window: int | None) -> Model:
    return Model(f"scripted:{path}", "scripted", path, window, "scripted file", exact=True)


async def _count_usage(request: Json, step: ScriptStep) -> Usage:
    counter = VocabularyCounter(_model(request["model"], None), OpenAIFormat())
    pieces = [Piece("tool", dumpb(tool)) for tool in request.get("tools", ())]
    pieces += [Piece("message", dumpb(message)) for message in request["messages"]]
    sent = sum(count.tokens for count in await counter.count(pieces)) + counter.priming.tokens
    replied = (step.thinking, step.text, *(f"{call.name}{call.arguments}" for call in step.calls))
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
    """Raises NotFound for a missing file, and Invalid, naming the place and what is allowed, for one that is no
    script."""
    try:
        data = loads(Path(path).expanduser().read_bytes())
    except FileNotFoundError as why:
        raise NotFound(f"There is no scripted file {path}; check the path.", path=path) from why
    except OSError as why:
        raise Invalid(f"The scripted file {path} cannot be read: {why.strerror}.", path=path) from why
    except (ValueError, RecursionError) as why:
        raise Invalid(f"The scripted file {path} is not JSON: {why}.", path=path) from why
    limit: Json = ASSUMED_WINDOW
    takes: Json = False
    exact: Json = True
    summarizes: Json = True
    notes: Json = True
    one_slot: Json = False
    tools: Json = True
    prices: Json = None
    if isinstance(data, dict):
        known = ("limit", "attachments", "exact", "summarizes", NOTES, "tools", "one_slot", "prices", "steps")
        _check_keys(path, "the file", data, known)
        one_slot, tools, prices = data.get("one_slot", one_slot), data.get("tools", tools), data.get("prices")
        notes = data.get(NOTES, notes)
        exact, summarizes = data.get("exact", exact), data.get("summarizes", summarizes)
        limit, takes, data = data.get("limit", limit), data.get("attachments", takes), data.get("steps")
    if limit is not None and not _is_whole(limit):
        _bad(path, "limit", "a whole number of tokens, or null for an unknown window")
    switches = {"attachments": takes, "exact": exact, "summarizes": summarizes, "tools": tools, "one_slot": one_slot}
    switches[NOTES] = notes
    for name, value in switches.items():
        if not isinstance(value, bool):
            _bad(path, name, "true or false")
    if not _are_prices(prices):
        _bad(path, "prices", f"an object with numbers for {', '.join(PRICE_NAMES)}")
    if not isinstance(data, list) or not data:
        _bad(path, "the file", 'a list of steps, or {"limit": n, "steps": [...]}, with at least one step')
    steps = tuple(_step(path, f"step {n}", step) for n, step in enumerate(data, 1))
    priced = None if prices is None else replace(Prices(), **prices)
    return Script(limit or None, steps, takes, exact, summarizes, notes, one_slot, tools, priced)


def _step(path: str, place: str, data: Json) -> ScriptStep:
    if not isinstance(data, dict):
        _bad(path, place, "an object")
    _check_keys(path, place, data, tuple(CHECKS))
    for name, value in data.items():
        good, allowed = CHECKS[name]
        if not good(value):
            _bad(path, f"{name} of {place}", allowed)
    if not data.keys() & {"text", "tool_calls", "error"} or data.keys() >= {"tool_calls", "error"}:
        _bad(path, place, "a step with text, tool_calls or both, or with an error")
    after = data.get("after")
    return ScriptStep(
        text=data.get("text", "word " * (after or 0) if "error" in data else ""),
        thinking=data.get("thinking", ""),
        calls=tuple(_call(index, call) for index, call in enumerate(data.get("tool_calls", ()))),
        error=data.get("error"),
        after=after,
        until=data.get("until", ""),
        when=data.get("when"),
        finish=data.get("finish", ""),
        hang_s=data.get("hang_s", 0.0),
        delay_s=data.get("delay_s", 0.0),
        usage=Usage(**data["usage"]) if data.get("usage") is not None else None,
        counts="usage" not in data,
    )


def _call(index: int, call: Json) -> CallPart:
    arguments = call.get("arguments", {})
    return CallPart(
        index, call.get("id", ""), call["name"], arguments if isinstance(arguments, str) else dumps(arguments)
    )


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_whole(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_wait(value: Json) -> bool:
    return type(value) in (int, float) and 0 <= value < 3600


def _are_calls(value: Json) -> bool:
    return isinstance(value, list) and all(
        isinstance(call, dict)
        and call.keys() <= {"id", "name", "arguments"}
        and all(isinstance(call.get(name, ""), str) for name in ("id", "name"))
        and bool(call.get("name"))
        and isinstance(call.get("arguments", {}), dict | str)
        for call in value
    )


def _is_usage(value: Json) -> bool:
    return value is None or (
        isinstance(value, dict) and value.keys() <= set(USAGE) and all(type(count) is int for count in value.values())
    )


def _are_prices(value: Json) -> bool:
    return value is None or (
        isinstance(value, dict)
        and value.keys() <= set(PRICE_NAMES)
        and all(type(price) in (int, float) and price >= 0 for price in value.values())
    )


CHECKS: dict[str, tuple[Callable[[Json], bool], str]] = {
    "text": (_is_text, "a text"),
    "thinking": (_is_text, "a text"),
    "tool_calls": (_are_calls, 'a list of {"name": …, "arguments": an object or a text}'),
    "error": (lambda value: _is_text(value) and value in ERRORS, "one of " + ", ".join(ERRORS)),
    "after": (_is_whole, "a whole number of words"),
    "when": (lambda value: value in PURPOSES, "one of " + ", ".join(PURPOSES)),
    "finish": (lambda value: _is_text(value) and value != "", "a word such as stop, length or refusal"),
    "hang_s": (_is_wait, "a number of seconds"),
    "delay_s": (_is_wait, "a number of seconds"),
    "until": (_is_text, "the path of a file"),
    "usage": (_is_usage, "null or an object with numbers for " + ", ".join(USAGE)),
}


def _check_keys(path: str, place: str, data: Json, allowed: Collection[str]) -> None:
    for name in data:
        if name not in allowed:
            _bad(path, f"key {name!r} of {place}", f"one of {', '.join(allowed)}")


def _bad(path: str, place: str, allowed: str) -> NoReturn:
    raise Invalid(f"Scripted file {path}: {place} must be {allowed}.", path=path)
