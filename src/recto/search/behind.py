"""Behind: work that nobody waits for, done bit by bit in a thread of its own while there is any."""

import contextlib
import os
import threading
import time
from collections.abc import Callable

# As `nice` counts: whoever chats comes first.
NICE = 10
# Between two bits, so that a turn in the same process gets its share at once.
BREATH_S = 0.002


class Behind:
    def __init__(self, some: Callable[[], bool], name: str) -> None:
        """`some` does a bit of the work and says whether more is left; it must not raise."""
        self._some, self._name = some, name
        self._thread: threading.Thread | None = None
        self._stirred, self._stopped = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def stir(self) -> None:
        """There may be something to do."""
        with self._lock:
            self._stirred.set()
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # not every system knows priorities of threads
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while not self._stopped.is_set():
            self._stirred.clear()
            while not self._stopped.is_set() and self._some():
                time.sleep(BREATH_S)
            if self._stopped.is_set() or not self._goes_on():
                return

    def _goes_on(self) -> bool:
        """Ends the thread unless it was stirred meanwhile: a desk that rests holds none."""
        with self._lock:
            if self._stirred.is_set():
                return True
            self._thread = None
            return False

    def close(self, timeout_s: float = 5.0) -> None:
        with self._lock:
            self._stopped.set()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
