"""Pipe: a process that speaks MCP over stdin and stdout, a transport of the SDK with bounds that the SDK's own has
not: the length of a line, what is no protocol, the end of all its children. Imported only with a server at hand."""

import asyncio
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest, jsonrpc_message_adapter

from recto.servers.answer import UNFIT, UNSENT, Long, answered, failed
from recto.servers.reach import Reach
from recto.servers.seen import Seen
from recto.servers.sifted import Streams
from recto.text import clean

LONGEST = 160_000_000
"""Bytes of a line: 50 MB of text, twice, for many servers send it as text and as structured content, and what stands
around it. One that has no end at twice as much ends its server."""
GRACE_S = 1.0
"""For each step of the end: stdin closed, asked to, killed."""
_CHUNK = 1 << 20


@asynccontextmanager
async def pipe(reach: Reach, environment: Mapping[str, str], seen: Seen) -> AsyncIterator[Streams]:
    process = await _whole(_started(reach, environment))
    assert process.stdin
    assert process.stdout
    assert process.stderr
    seen.pid = process.pid
    came, incoming = anyio.create_memory_object_stream[SessionMessage](0)
    outgoing, left = anyio.create_memory_object_stream[SessionMessage](0)
    talking = [
        asyncio.create_task(_read(process.stdout, came, seen)),
        asyncio.create_task(_write(process.stdin, left, came)),
    ]
    drained = asyncio.create_task(seen.tail.drain(process.stderr))
    try:
        yield incoming, outgoing
    finally:
        try:
            await _end(process, talking, drained)
        finally:
            _signal(process, signal.SIGKILL)
            seen.code = process.returncode
            for stream in (came, incoming, outgoing, left):
                stream.close()


async def _whole(starting: Coroutine[Any, Any, Process]) -> Process:
    """A start takes milliseconds; given up halfway, the process would never be seen again."""
    task = asyncio.create_task(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with suppress(OSError):
            process = await task
            _signal(process, signal.SIGKILL)
            await _exited(process)
            process._transport.close()  # type: ignore[attr-defined]
        raise


async def _started(reach: Reach, environment: Mapping[str, str]) -> Process:
    inherited = {name: environment[name] for name in DEFAULT_INHERITED_ENV_VARS if name in environment}
    return await asyncio.create_subprocess_exec(
        reach.command,
        *reach.args,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        limit=_CHUNK,
        env=inherited | dict(reach.env),
        cwd=reach.cwd or None,
        # a group of its own: Ctrl-C is ours alone, and its children end with it
        start_new_session=True,
    )


async def _read(stream: asyncio.StreamReader, came: MemoryObjectSendStream[SessionMessage], seen: Seen) -> None:
    with came, suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for line in _lines(stream):
            if line is None:
                seen.broken = f"it sent a line of more than {2 * LONGEST // 1_000_000} MB"
                return
            if not isinstance(line, Long) and not line.strip():
                continue
            message = answered(line, too_large()) if isinstance(line, Long) else _parsed(line)
            if message:
                await came.send(message)
            else:
                seen.garbage(clean(bytes(line.head if isinstance(line, Long) else line[:200]))[0])
                await seen.breathe()


def too_large() -> str:
    return f"the result is larger than {LONGEST // 1_000_000} MB"


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytearray | bytes | Long | None]:
    """Each line; of one that is too long the two ends; None for one without an end, and then no more. A newline is
    looked for only in what is new."""
    held: bytearray | Long = bytearray()
    while chunk := await stream.read(_CHUNK):
        first, *more = chunk.split(b"\n")
        if isinstance(held, bytearray) and len(held) + len(first) > LONGEST:
            held = Long.of(held)
        held.extend(first)
        if len(held) > 2 * LONGEST:
            yield None
            return
        if more:
            yield held
            for line in more[:-1]:
                yield line
            held = bytearray(more[-1])


def _parsed(line: bytearray | bytes) -> SessionMessage | None:
    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    return _mended(line) or answered(Long.of(line), UNFIT)


def _mended(line: bytearray | bytes) -> SessionMessage | None:
    """Halves of characters, which JavaScript's strings may hold, are replaced; an answer that is none is an error."""
    try:
        read = json.loads(clean(bytes(line))[0])
        text = clean(json.dumps(read, ensure_ascii=False))[0]
    except (ValueError, RecursionError):
        return None
    with suppress(ValueError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    return _failed(read)


def _failed(read: Any) -> SessionMessage | None:
    id = read.get("id") if isinstance(read, dict) and "method" not in read else None
    return failed(id, UNFIT) if isinstance(id, int | str) and not isinstance(id, bool) else None


async def _write(
    stream: asyncio.StreamWriter,
    left: MemoryObjectReceiveStream[SessionMessage],
    came: MemoryObjectSendStream[SessionMessage],
) -> None:
    with left:
        try:
            async for item in left:
                try:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                except (ValueError, RecursionError):
                    if isinstance(item.message, JSONRPCRequest):
                        await came.send(failed(item.message.id, UNSENT))
                    continue
                stream.write(line + b"\n")
                await stream.drain()
        except OSError:
            came.close()  # it reads no more: no answer will come either
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


async def _end(process: Process, talking: list[asyncio.Task[None]], drained: asyncio.Task[None]) -> None:
    """As the protocol has it: stdin closed, then asked to end, then killed; its children with it."""
    assert process.stdin
    assert process.stdout
    for task in talking:
        task.cancel()
    await asyncio.gather(*talking, return_exceptions=True)
    sunk = asyncio.create_task(_sink(process.stdout))
    with suppress(OSError):
        process.stdin.close()
    for step in (signal.SIGTERM, signal.SIGKILL):
        if not await _exited(process):
            _signal(process, step)
    await _exited(process)
    _signal(process, signal.SIGKILL)
    await asyncio.wait({drained}, timeout=0.2)  # its last words
    for task in (sunk, drained):
        task.cancel()
    await asyncio.gather(sunk, drained, return_exceptions=True)
    # closes what a child that left the group may still hold
    process._transport.close()  # type: ignore[attr-defined]
    await asyncio.sleep(0)


async def _sink(stream: asyncio.StreamReader) -> None:
    """A server that is still writing cannot end before somebody reads."""
    while await stream.read(_CHUNK):
        continue


async def _exited(process: Process) -> bool:
    """`Process.wait` would also wait for its children to let go of the pipes."""
    for _ in range(round(GRACE_S / 0.01)):
        if process.returncode is not None:
            return True
        await asyncio.sleep(0.01)
    return False


def _signal(process: Process, which: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, which)
