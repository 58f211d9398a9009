"""Where the time of a turn goes: functions of the engine, wrapped from outside and timed step by step.

A step counts its own time: what another step does within it, in the same thread, counts for that one alone. A coroutine
counts while it runs, not while it waits. MiniLM embeds in threads of its own, beside the other steps: whoever waits for
it counts as well. A name that is wrapped here and no longer there is an error.
"""

import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from typing import Any

STEPS: Mapping[str, Sequence[str]] = {
    "store": ("recto.base.concurrency:StoreThread.submit",),
    "search": ("recto.recall.message_index:MessageIndex.recall",),
    "embed": ("recto.search.onnx_embedder:OnnxEmbedder.embed",),
    "count": ("recto.turn.token_cache:TokenCache.count", "recto.turn.token_cache:TokenCache.count_pieces"),
    "assemble": (
        "recto.turn.planned_request:plan_turn",
        "recto.turn.planned_request:with_current",
        "recto.turn.planned_request:PlannedRequest.pieces",
        "recto.turn.preamble:build_preamble",
    ),
    "record": ("recto.store.records:Records.save",),
    "files": ("recto.agents.agents:Agents.read_or_last",),
}
REST = "rest"
BESIDE = ("embed",)
# What is handed over, not the waiting for it, is the step.
HANDED_OVER = ("recto.base.concurrency:StoreThread.submit",)

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ran:
    """A step ran in some thread from here to there, with no other step within."""

    step: str
    begin: float
    end: float


@dataclass(slots=True)
class Recorder:
    """Notes which step runs in which thread."""

    ran: list[Ran] = field(default_factory=list)
    _threads: threading.local = field(default_factory=threading.local)

    @contextmanager
    def inside(self, step: str) -> Iterator[None]:
        stack: list[str] = self._threads.__dict__.setdefault("stack", [])
        self._switch(stack)
        stack.append(step)
        try:
            yield
        finally:
            self._switch(stack)
            stack.pop()

    def _switch(self, stack: Sequence[str]) -> None:
        now = time.perf_counter()
        if stack:
            self.ran.append(Ran(stack[-1], self._threads.since, now))
        self._threads.since = now

    def take(self, spans: Sequence[Span]) -> dict[str, float]:
        """Seconds by step within these spans, and the rest of them; forgets what was noted."""
        ran, self.ran = self.ran, []
        return seconds_by_step(ran, spans)


def seconds_by_step(ran: Sequence[Ran], spans: Sequence[Span]) -> dict[str, float]:
    """Seconds by step within these spans, and the rest, which no step but those beside took.

    Steps that run at the same time in several threads share it: all of them and the rest make up the spans.
    """
    found = dict.fromkeys((*STEPS, REST), 0.0)
    for span in spans:
        inside = [each for each in ran if each.begin < span[1] and each.end > span[0]]
        edges = sorted(
            {*span, *(edge for each in inside for edge in (each.begin, each.end) if span[0] < edge < span[1])}
        )
        for begin, end in pairwise(edges):
            running = [each.step for each in inside if each.begin <= begin and each.end >= end]
            sharing = [step for step in running if step not in BESIDE] or [REST]
            for step in sharing:
                found[step] += (end - begin) / len(sharing)
            for step in set(running) & set(BESIDE):
                found[step] += end - begin
    return found


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Every step is timed inside the block."""
    recorder = Recorder()
    with ExitStack() as stack:
        for step, names in STEPS.items():
            for name in names:
                stack.enter_context(_replaced(name, _timed(recorder, step, name)))
        yield recorder


def find(name: str) -> tuple[Any, str, Callable[..., Any]]:
    """The owner of a wrapped function, its name there, and the function."""
    module, _, path = name.partition(":")
    *parents, last = path.split(".")
    try:
        owner = functools.reduce(getattr, parents, import_module(module))
        return owner, last, vars(owner)[last]
    except (ImportError, AttributeError, KeyError) as why:
        raise LookupError(f"{name} is not there any more: bench/steps.py must follow it") from why


@contextmanager
def _replaced(name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """In its owner, and wherever a module has imported it by name."""
    owner, attribute, original = find(name)
    owners = [owner, *(_importers(original) if inspect.ismodule(owner) else ())]
    wrapped = wrap(original)
    for each in owners:
        setattr(each, attribute, wrapped)
    try:
        yield
    finally:
        for each in [owner, *(_importers(wrapped) if inspect.ismodule(owner) else ())]:
            setattr(each, attribute, original)


def _importers(function: Callable[..., Any]) -> list[Any]:
    ours = [module for name, module in list(sys.modules.items()) if name.startswith("recto.")]
    return [module for module in ours if vars(module).get(function.__name__) is function]


def _timed(recorder: Recorder, step: str, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def run(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        with recorder.inside(step):
            return work(*args, **named)

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def hand_over(self: Any, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
            return original(self, run, work, *args, **named)

        async def resume(*args: Any, **named: Any) -> Any:
            return await _Resumed(recorder, step, original(*args, **named))

        def call(*args: Any, **named: Any) -> Any:
            return run(original, *args, **named)

        how = hand_over if name in HANDED_OVER else resume if inspect.iscoroutinefunction(original) else call
        return functools.wraps(original)(how)

    return wrap


class _Resumed:
    """A coroutine, timed from each resumption to its next suspension."""

    def __init__(self, recorder: Recorder, step: str, work: Any) -> None:
        self._recorder, self._step, self._work = recorder, step, work

    def __await__(self) -> Generator[Any, Any, Any]:
        going = self._work.__await__()
        resume: Callable[[], Any] = functools.partial(going.send, None)
        while True:
            try:
                with self._recorder.inside(self._step):
                    waits_for = resume()
            except StopIteration as done:
                return done.value
            try:
                resume = functools.partial(going.send, (yield waits_for))
            except BaseException as why:  # raised where the coroutine waits
                resume = functools.partial(going.throw, why)
