"""Gate: lets threads in while a program runs, and sees them out before it ends.

Python ends threads that nobody waits for wherever they are. In the midst of a library written in C++ that kills the
whole process, after its work was done and with an ugly message.
"""

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# No text takes that long; a library that hangs must not hold up the end for ever.
SEEN_OUT_S = 10.0


class Gate:
    def __init__(self) -> None:
        self._inside = 0
        self._is_shut = False
        self._changed = threading.Condition()
        atexit.register(self.shut)

    @contextmanager
    def passed(self) -> Iterator[bool]:
        """Whether it was open; who was let in is waited for."""
        with self._changed:
            is_in = not self._is_shut
            self._inside += is_in
        try:
            yield is_in
        finally:
            with self._changed:
                self._inside -= is_in
                self._changed.notify_all()

    def shut(self) -> None:
        with self._changed:
            self._is_shut = True
            self._changed.wait_for(lambda: self._inside == 0, SEEN_OUT_S)
