"""Processes that are forked to be killed, or to keep threads and open files out of this one."""

import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Tell = Callable[[str, Any], object]
"""Called by the process that will be killed with what it shows."""


@dataclass(frozen=True, slots=True)
class Told:
    """A line of what was shown: when, which kind, and what."""

    at: float
    kind: str
    what: Any


def killed(act: Callable[[Tell], None], delay_s: float) -> tuple[list[Told], float]:
    """Runs it in a process that is killed so long after its first event. Returns what was shown, and when it died."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        with _ending():
            act(
                lambda kind, what: (
                    os.write(writer, (json.dumps([time.monotonic(), kind, what]) + "\n").encode()) and None
                )
            )
    os.close(writer)
    raw, ends = b"", None
    while ends is None or time.monotonic() < ends:
        if select.select([reader], [], [], 60 if ends is None else max(0.0, ends - time.monotonic()))[0]:
            data = os.read(reader, 1 << 16)
            if not data:
                break
            raw += data
            ends = ends or time.monotonic() + delay_s
        elif ends is None:
            break
    killed = time.monotonic()
    os.kill(process, signal.SIGKILL)
    while data := os.read(reader, 1 << 16):
        raw += data
    os.close(reader)
    os.waitpid(process, 0)
    lines = [Told(*json.loads(line)) for line in raw.decode().splitlines()]
    return [line for line in lines if line.at <= killed], killed


def forked(work: Callable[[], Any]) -> Any:
    """Runs it in a process of its own, so that this one never has threads or open stores."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        with _ending():
            answer = json.dumps(work()).encode()
            os.write(writer, answer[: 1 << 16])
    os.close(writer)
    raw = b""
    while data := os.read(reader, 1 << 16):
        raw += data
    os.close(reader)
    _, status = os.waitpid(process, 0)
    if status:
        raise SystemExit("a process failed; see above")
    return json.loads(raw)


@contextmanager
def _ending() -> Iterator[None]:
    """Ends a forked process without the exit handlers of its parent."""
    try:
        yield
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
