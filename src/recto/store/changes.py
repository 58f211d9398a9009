"""StoreChanges: follows the writes of other processes on a database server (LISTEN and NOTIFY) and ends the replies of
dead ones. A store in a file has none: its processes read it when they need to.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from recto.errors import RectoError, StoreError
from recto.store.database import Change, Database
from recto.store.dialect import heard_changes
from recto.store.replies import LEFT, left_replies
from recto.store.tree import Tree

log = logging.getLogger(__name__)
Listener = Callable[[Change], object]
EVERY: tuple[Change, ...] = ("messages", "removed")
# The longest delay before the thread ends, or retries after a failure.
PATIENCE_S = 1.0
# How often replies of dead processes are looked for. Two rounds are needed, so that a lost lease can be taken again in
# between.
SWEEP_S = 5.0
SWEEPING = "recto open replies"


class StoreChanges:
    def __init__(self, database: Database, tree: Tree) -> None:
        self._database, self._tree = database, tree
        self._left: set[str] = set()
        self._swept = time.monotonic()
        self._listeners: list[Listener] = []
        self._thread: threading.Thread | None = None
        self._stopped, self.is_listening = threading.Event(), threading.Event()

    def watch(self, listener: Listener) -> None:
        """Calls the listener, in another thread, for each change by another process from now on. After a lost
        connection it is called for every kind of change, since some may have been missed."""
        self._listeners.append(listener)
        if self._database.file is None and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="recto-changes", daemon=True)
            self._thread.start()

    def unwatch(self, listener: Listener) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _run(self) -> None:
        is_again = False
        while not self._stopped.is_set():
            try:
                with self._database.translate_errors():
                    self._listen(is_again=is_again)
            except StoreError as why:
                log.warning("changes by other processes are not seen for now: %s", why.message)
            except Exception:  # the thread continues: the next try may succeed
                log.exception("listening for changes by other processes failed")
            is_again = True
            self.is_listening.clear()
            self._stopped.wait(PATIENCE_S)

    def _listen(self, *, is_again: bool) -> None:
        with self._database.engine.connect() as connection:
            connection.detach()  # it listens until it is closed
            for change in heard_changes(connection, self._database.instance, PATIENCE_S):
                if not self.is_listening.is_set():
                    self.is_listening.set()
                    self._tell(EVERY if is_again else ())
                if self._stopped.is_set():
                    return
                self._tell([each for each in EVERY if each == change])
                if time.monotonic() - self._swept > SWEEP_S:
                    self._swept = time.monotonic()
                    self.end_left_replies()

    def _tell(self, changes: Sequence[Change]) -> None:
        for listener in tuple(self._listeners):
            for change in changes:
                try:
                    listener(change)
                except Exception:  # the other listeners still get the change
                    log.exception("a change in the store could not be followed")

    def end_left_replies(self) -> int:
        """Ends replies of dead processes that the previous round found too, with the text so far; returns their number.
        Only one process does this at a time."""
        with self._database.hold(SWEEPING) as is_ours:
            if not is_ours:
                return 0
            left, ended = set(left_replies(self._database)), 0
            for id in left & self._left:
                try:
                    self._tree.finish(replace(self._tree.message(id), status="stopped", error=LEFT))
                    ended += 1
                except RectoError as why:
                    log.info("a reply that was left was not ended: %s", why.message)
            self._left = left
            return ended

    def close(self) -> None:
        """Returns immediately; the thread ends within a second."""
        self._stopped.set()
