"""The signals that end a program, as an exception in the main thread: so that what was begun is ended in its order, MCP
servers and stored messages above all."""

import signal
import time
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGHUP)
# So long a second signal does not disturb the first, and then it counts again.
CLOSING_S = 10.0


def end_in_order() -> None:
    """For the command itself, not for who imports it. What ignores a signal, as under nohup, goes on to."""
    began: list[float] = []

    def end(number: int, frame: FrameType | None) -> None:
        if began and time.monotonic() - began[-1] < CLOSING_S:
            return
        began.append(time.monotonic())
        raise SystemExit(128 + number)

    for each in ENDING:
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, end)
