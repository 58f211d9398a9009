"""Watcher: a thread that reports changed files. Knows paths, not notes; if it cannot run, `warning` says why."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path

# Editors write a file in several steps: how long to wait for the rest of them.
DEBOUNCE_MS, STEP_MS = 50, 20
# How often the thread wakes up without changes; the first time shows that it is watching.
_POLL_MS = 500
_IGNORE_FILE = ".gitignore"


class Watcher:
    def __init__(self, root: Path, on_change: Callable[[set[str]], object]) -> None:
        """`on_change` gets relative paths; an empty set when watching begins, as anything may have changed before."""
        self.warning = ""
        """Why the folder is not watched; empty if all is well."""
        self._root = root
        self._on_change = on_change
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="vault-watcher", daemon=True)
        self._thread.start()

    @property
    def is_watching(self) -> bool:
        return self._ready.is_set() and self._thread.is_alive()

    def wait(self, timeout_s: float) -> bool:
        """Waits until it is watching. Returns False if that takes longer."""
        return self._ready.wait(timeout_s) and self.is_watching

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            self._watch()
        except Exception as why:  # scanning goes on, and finds the changes later
            self.warning = f"the vault cannot be watched ({why}); changes are found by scanning it instead"
        finally:
            self._ready.clear()

    def _watch(self) -> None:
        from watchfiles import watch  # only watching needs it

        batches = watch(
            self._root,
            watch_filter=lambda _, path: self._is_relevant(path),
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=_POLL_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            # it would also ignore every other failure, such as a missing folder
            ignore_permission_denied=False,
        )
        inode = self._root.stat().st_ino
        for changes in batches:
            # a folder that was replaced is another one, and no changes of it arrive
            if self._root.stat().st_ino != inode:
                raise FileNotFoundError(errno.ENOENT, "the folder was moved")
            if not self._ready.is_set():
                self._ready.set()
                self._on_change(set())
            if changes:
                self._on_change({self._relative(path) for _, path in changes})

    def _relative(self, path: str) -> str:
        return Path(path).relative_to(self._root).as_posix()

    def _is_relevant(self, path: str) -> bool:
        location = Path(path)
        if not location.is_relative_to(self._root):
            return False
        *folders, name = location.relative_to(self._root).parts or (".",)
        return not any(part.startswith(".") for part in (*folders, name)) or (
            name == _IGNORE_FILE and not any(part.startswith(".") for part in folders)
        )
