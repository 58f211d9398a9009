"""Events: work reports them with `await emit(event)`, and a listener reads them one after another."""

import asyncio
import logging
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from recto.events import (
    Appended,
    Branched,
    ContextCompacted,
    Event,
    Noticed,
    Question,
    Replied,
    Retrying,
    RunEnded,
    Sent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    Working,
)

T = TypeVar("T")
Emit = Callable[[Event], Awaitable[None]]
"""Returns when the listener has read the event and asks for the next one."""
PATIENCE_S = 0.5


class _Telling:
    """The awaitable behind `emit`, passed up to the driver of the work."""

    def __init__(self, event: Event) -> None:
        self.event = event

    def __await__(self) -> Generator["_Telling", None, None]:
        yield self


async def _emit(event: Event) -> None:
    await _Telling(event)


@types.coroutine
def _waited_for(future: Any) -> Generator[Any, None, None]:
    """Passes the work's own awaitables on to the loop."""
    yield future


async def events_of(work: Callable[[Emit], Coroutine[Any, Any, object]]) -> AsyncGenerator[Event, None]:
    """The events of some work, for a reader who answers a question before taking the next event. Closing the generator
    cancels the work, and waits until it has cleaned up.

    The work is driven step by step in the reader's task: a separate task would switch twice for each event, which made
    a turn a quarter slower. So `emit` must not be called in a task that the work starts."""
    coroutine = work(_emit)
    step: Callable[[], Any] = partial(coroutine.send, None)
    left: BaseException | None = None  # the reason why nobody is reading any more
    while True:
        try:
            waits_for = step()
        except StopIteration:
            break
        except asyncio.CancelledError:
            if left is None:
                raise
            break
        step = partial(coroutine.send, None)
        try:
            if not isinstance(waits_for, _Telling):
                await _waited_for(waits_for)
            elif left is None:
                event = waits_for.event
                log_event(event)
                yield event
                if isinstance(event, Question):
                    event.settle()
        except GeneratorExit as why:
            left, step = why, partial(coroutine.throw, asyncio.CancelledError())
        except BaseException as why:
            left, step = left and why, partial(coroutine.throw, why)
    if left is not None:
        raise left


async def patiently(work: Coroutine[Any, Any, T], emit: Emit, tell: Callable[[], Working]) -> T:
    """Does some work, and reports it once it takes long. `tell` may read files, so it runs in a thread."""
    task = asyncio.ensure_future(work)
    try:
        if not (await asyncio.wait([task], timeout=PATIENCE_S))[0]:
            await emit(await asyncio.to_thread(tell))
        return await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


# without a handler Python would print our logged tracebacks to stderr
logging.getLogger("recto").addHandler(logging.NullHandler())
log = logging.getLogger("recto.events")


def log_event(event: Event) -> None:
    """The texts of messages, replies and results are logged only at DEBUG."""
    # called for every piece of a reply
    if isinstance(event, TextDelta | ThinkingDelta) or not log.isEnabledFor(logging.WARNING):
        return
    if isinstance(event, Retrying):
        log.warning("attempt %d failed; trying again in %g s", event.number, event.wait_s)
    if log.isEnabledFor(logging.INFO):
        words, texts = _told(event)
        if words:
            log.info("%s", words)
        if texts:
            log.debug("%s: %s", type(event).__name__, texts)


def _told(event: Event) -> tuple[str, str]:
    """An event in words, and its texts."""
    match event:
        case Appended(message=message):
            branch = " on a new branch" if event.branched else ""
            return f"message #{message.said} stored as {message.id}{branch}", message.text
        case Sent(request=request, window=window):
            return f"request {request} sent to {window.model}: {window.total:,} of {window.limit:,} tokens", ""
        case Replied(message=message):
            usage = message.usage
            counts = f": {usage.input:,} tokens in, {usage.output:,} out" if usage else ""
            return f"reply #{message.said} stored as {message.id}{counts}", message.text
        case ToolStarted(call=call):
            return f"tool {call.name} started", f"{call.name} {call.arguments}"
        case ToolFinished(call=call, result=result):
            end = "failed" if result.is_error else "finished"
            return f"tool {call.name} {end}: {len(result.text):,} characters", f"{call.name} → {result.text}"
        case ContextCompacted():
            sizes = f"{event.context_size_before:,} to {event.context_size_after:,} tokens"
            archived = f"{event.messages_archived} messages archived"
            words = f"compaction {event.compaction_number} by {event.made_by}: {archived}, {sizes}"
            return words, "\n".join((event.summary, *event.notes))
        case RunEnded(report=report):
            return f"run {report.run} ended after {report.steps} steps: {report.outcome}", ""
        case Noticed(text=text) | Branched(text=text) | Retrying(error=text):
            return "", text
        case _:
            return "", ""
