"""Watcher: a thread that hears of files as they change. Knows paths, not notes; where none can be, it says so."""

import errno
import threading
from collections.abc import Callable
from pathlib import Path

# Editors write a file in several steps: so long is waited for the rest of them.
DEBOUNCE_MS, STEP_MS = 50, 20
# As long as nothing happens this is how often the thread looks up; the first time tells that it is listening.
_LOOK_UP_MS = 500
_IGNORE_FILE = ".gitignore"


class Watcher:
    def __init__(self, root: Path, on_change: Callable[[set[str]], object]) -> None:
        """`on_change` hears of relative paths; of none when watching has begun and anything may have changed before."""
        self.note = ""
        """Why nobody watches; empty when all is well."""
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
        """Until it watches; False when it does not within this time."""
        return self._ready.wait(timeout_s) and self.is_watching

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            self._watch()
        except (ImportError, OSError, RuntimeError) as why:
            self.note = f"changes in the vault are not heard of at once ({why}); it is looked through instead"
        finally:
            self._ready.clear()

    def _watch(self) -> None:
        from watchfiles import watch  # only who watches needs it

        batches = watch(
            self._root,
            watch_filter=lambda _, path: self._counts(path),
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._stop,
            rust_timeout=_LOOK_UP_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            # it would pass over every other failure as well, a folder that is not there among them
            ignore_permission_denied=False,
        )
        place = self._root.stat().st_ino
        for changes in batches:
            # a folder that was taken away and put back is another one, of which nothing is heard
            if self._root.stat().st_ino != place:
                raise FileNotFoundError(errno.ENOENT, "the folder was moved")
            if not self._ready.is_set():
                self._ready.set()
                self._on_change(set())
            if changes:
                self._on_change({self._relative(path) for _, path in changes})

    def _relative(self, path: str) -> str:
        return Path(path).relative_to(self._root).as_posix()

    def _counts(self, path: str) -> bool:
        place = Path(path)
        if not place.is_relative_to(self._root):
            return False
        *folders, name = place.relative_to(self._root).parts or (".",)
        return not any(part.startswith(".") for part in (*folders, name)) or (
            name == _IGNORE_FILE and not any(part.startswith(".") for part in folders)
        )
