"""Background work, which yields to turns.

The whole process knows about a running turn. Background work waits for it between two pieces, and a piece that can be
stopped is stopped when a turn begins.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

log = logging.getLogger(__name__)

M_ARENA_MAX = -8  # in malloc.h of glibc


class Foreground:
    """Tracks running turns in this process, so that background work waits for them."""

    # Longest wait of background work, in all and for one turn, whose client may have abandoned it.
    MAX_WAIT_S, MAX_TURN_S = 0.5, 1.0
    # Pause after a turn: programs send the next message right away.
    QUIET_S = 0.1

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._turns: dict[ForegroundTurn, float] = {}
        self._ended = -self.QUIET_S

    def begin(self) -> "ForegroundTurn":
        """Register a turn."""
        turn = ForegroundTurn(self)
        with self._changed:
            self._turns[turn] = time.monotonic()
        return turn

    def end(self, turn: "ForegroundTurn") -> None:
        with self._changed:
            if self._turns.pop(turn, None) is not None:
                self._ended = time.monotonic()
                self._changed.notify_all()

    def wait(self, quiet_s: float = QUIET_S, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until no turn has run for `quiet_s`; background work calls this between two pieces. After a change of
        `is_stopped`, call `recheck`."""
        until = time.monotonic() + self.MAX_WAIT_S
        with self._changed:
            while (now := time.monotonic()) < until and not is_stopped():
                self._turns = {turn: began for turn, began in self._turns.items() if now - began <= self.MAX_TURN_S}
                quiet = self._ended + quiet_s
                if not self._turns and now >= quiet:
                    return
                self._changed.wait((until if self._turns else min(until, quiet)) - now)

    def recheck(self) -> None:
        """Make waiting work check whether it should stop."""
        with self._changed:
            self._changed.notify_all()


class ForegroundTurn:
    def __init__(self, foreground: Foreground) -> None:
        self._foreground = foreground

    def __enter__(self) -> "ForegroundTurn":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the turn; a second call does nothing."""
        self._foreground.end(self)


FOREGROUND = Foreground()

_thread = threading.local()


def is_background() -> bool:
    """True if nobody waits for this thread's work; a turn's own work must not yield to the turn."""
    return getattr(_thread, "is_background", False)


@contextmanager
def in_background() -> Iterator[None]:
    """Mark this thread's work within the block as background."""
    before, _thread.is_background = is_background(), True
    try:
        yield
    finally:
        _thread.is_background = before


# The niceness of background threads.
NICE = 10
# Pause between two steps, so that a turn in the same process can start.
PAUSE_S = 0.002
# Idle time after which a worker's thread ends.
IDLE_S = 30.0
# Wake-ups after which a worker releases free memory.
RELEASE_EVERY = 100


class BackgroundWorker:
    """Runs work at low priority in one thread, which ends after a while without work."""

    def __init__(
        self, step: Callable[[], bool], name: str, *, delay_s: float = 0.0, quiet_s: float = Foreground.QUIET_S
    ) -> None:
        """`step` does a part of the work and returns whether more is left. Errors are logged, and the next `wake` tries
        again. It starts once nothing has woken the worker for `delay_s`, or after ten times that, and no turn has run
        for `quiet_s`."""
        self._step, self._name, self._delay_s, self._quiet_s = step, name, delay_s, quiet_s
        self._thread: threading.Thread | None = None
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def wake(self) -> None:
        """Start the worker: there may be something to do."""
        with self._lock:
            self._woken.set()
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        with suppress(AttributeError, OSError):  # not every system has thread priorities
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        wakings = 0
        with in_background():
            while self._should_continue():
                self._await_quiet()
                while self._paused_step():
                    time.sleep(PAUSE_S)
                wakings += 1
                if wakings % RELEASE_EVERY == 0:
                    release_memory()

    def _paused_step(self) -> bool:
        FOREGROUND.wait(self._quiet_s, self._stopped.is_set)
        try:
            return not self._stopped.is_set() and self._step()
        except Exception:  # nobody would see it here, and a full disk may have room again later
            log.exception("%s failed", self._name)
            return False

    def _await_quiet(self) -> None:
        latest = time.monotonic() + 10 * self._delay_s
        self._woken.clear()
        while self._delay_s and not self._stopped.wait(self._delay_s) and self._woken.is_set():
            self._woken.clear()
            if time.monotonic() > latest:
                return

    def _should_continue(self) -> bool:
        """Wait until the worker is woken; False ends the thread."""
        if not self._stopped.is_set():  # the wake-up may have been consumed before the timeout was noticed
            self._woken.wait(IDLE_S)
        with self._lock:
            if self._stopped.is_set():
                return False
            if self._woken.is_set():
                return True
            self._thread = None
            return False

    def close(self, timeout_s: float = 5.0) -> None:
        with self._lock:
            self._stopped.set()
            self._woken.set()
            thread = self._thread
        FOREGROUND.recheck()
        if thread is not None:
            thread.join(timeout_s)


def release_memory() -> None:
    """Return free memory to the system: glibc's allocator accumulates it in a long-running process."""
    _call_allocator("malloc_trim", 0)


def share_heap() -> None:
    """Make all threads share one heap. With a heap per thread, glibc does not reuse freed memory across threads, and a
    long-lived desk grows by a third. A number that the user chose is kept."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        _call_allocator("mallopt", M_ARENA_MAX, 1)


def _call_allocator(function: str, *args: int) -> None:
    import ctypes  # only for long-running processes

    with suppress(AttributeError, OSError):  # not glibc
        getattr(ctypes.CDLL(None), function)(*args)
