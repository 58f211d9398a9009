"""Built-in models on the page, to choose or download.

A process downloads one model at a time, in a thread. The download continues when its page is closed; if the process
ends, the next one resumes it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Literal

from recto.api.desk import AsyncDesk
from recto.base.locations import folder_of
from recto.errors import Invalid, RectoError
from recto.providers.embedded import ENGINE
from recto.providers.embedded import NAME as EMBEDDED
from recto.settings.settings import set_setting
from recto.web.live import LiveConversations, failure_of
from recto.web.templates import fill
from recto.weights import Weights, chat_models, pull

Change = Literal["progress", "state", "chosen"]
Watcher = Callable[[Change], object]

ANSWERS = {
    "standard": "The best answers of the three, and the slowest.",
    "small": "Faster, with simpler answers.",
    "tiny": "The fastest. It is often wrong: to try Recto, not to rely on.",
}
DRAW_S = 0.5
BEGINNING = "Looking at what is here. If another program downloads it, this waits for that."


class _Stopped(Exception):
    """Ends the thread of a download."""


class Download:
    """A model being downloaded, or the reason for its failure."""

    def __init__(self, weights: Weights, *, is_choice: bool) -> None:
        """`is_choice`: it answers in new conversations once downloaded."""
        self.weights, self.is_choice = weights, is_choice
        self.done, self.source, self.failure = 0, BEGINNING, ""
        self._is_stopped = False
        # the process does not wait for it
        self._thread = Thread(target=self._fetch, name=f"download of {weights.name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive() and not self._is_stopped

    def stop(self) -> None:
        """Stop, keeping the bytes so far. The thread ends at the next ones; a new download waits for that."""
        self._is_stopped = True

    def _fetch(self) -> None:
        try:
            with suppress(_Stopped):
                pull(self.weights, self._hear, self._count)
        except Exception as why:
            self.failure = failure_of(why, "a download")

    def _hear(self, words: str) -> None:
        self._count(self.done, 0)
        self.source = words

    def _count(self, done: int, total: int) -> None:
        if self._is_stopped:
            raise _Stopped
        self.done = done


class _Current:
    """The process's download, and the pages that show it."""

    def __init__(self) -> None:
        self.download: Download | None = None
        self.watchers: set[Watcher] = set()

    def show(self, download: Download | None) -> None:
        self.download = download
        self.tell("state")

    def tell(self, change: Change) -> None:
        for watcher in tuple(self.watchers):
            watcher(change)


_current = _Current()


class BuiltInModels:
    """Actions on the machine's models, for its owner only."""

    def __init__(self, desk: AsyncDesk, live: LiveConversations, watcher: Watcher) -> None:
        self._desk, self._live, self._watcher = desk, live, watcher
        _current.watchers.add(watcher)

    def leave(self) -> None:
        """Unregister a closed page."""
        _current.watchers.discard(self._watcher)

    async def do_use_built_in(self, size: str) -> None:
        """Make a model the default, now or once it is downloaded."""
        weights = _sized(size)
        if _is_here(weights):
            await self._choose(weights)
        else:
            self._download(weights, is_choice=True)

    async def do_download(self, size: str) -> None:
        self._download(_sized(size), is_choice=False)

    async def do_stop_download(self) -> None:
        if _current.download:
            _current.download.stop()
            _current.show(None)

    async def do_close_download(self) -> None:
        if _current.download and not _current.download.is_running:
            _current.show(None)

    def _download(self, weights: Weights, *, is_choice: bool) -> None:
        if not (running := _running()):
            _current.show(Download(weights, is_choice=is_choice))
            self._live.start(self._follow())
        elif running.weights != weights:
            raise Invalid(f"the {running.weights.size} model is being downloaded: wait for it, or stop it first")

    async def _follow(self) -> None:
        download = _current.download
        while download and download.is_running:
            await asyncio.sleep(DRAW_S)
            _current.tell("progress")
        if download and _current.download is download and not download.failure and _is_here(download.weights):
            _current.download = None
            if download.is_choice:
                try:
                    await self._choose(download.weights)
                    return
                except RectoError as why:
                    download.failure, _current.download = why.message, download
        _current.tell("state")

    async def _choose(self, weights: Weights) -> None:
        model = f"{EMBEDDED}:{weights.name}"
        await self._desk.use(model=model)
        await asyncio.to_thread(set_setting, "model", model, home=self._desk.home)
        _current.tell("chosen")


def choices_html(model: str) -> str:
    """The choice of built-in models; `model` is the current one."""
    choices = [
        {
            "weights": each,
            "answers": ANSWERS.get(each.size, ""),
            "memory": f"{each.memory_mb / 1000:.1f} GB",
            "is_here": _is_here(each),
            "is_current": model == f"{EMBEDDED}:{each.name}",
        }
        for each in chat_models()
    ]
    return fill("built_in", choices=choices, running=_running(), has_engine=folder_of(ENGINE) is not None)


def download_html(model: str = "") -> str:
    """The download's progress or failure. Else an offer of `model`, if that is built in and missing."""
    return fill("download", download=_current.download, missing=missing(model))


def missing(model: str) -> Weights | None:
    """The weights of a built-in model that is not on this machine."""
    own = next((each for each in chat_models() if model == f"{EMBEDDED}:{each.name}"), None)
    return None if own is None or _is_here(own) else own


def _running() -> Download | None:
    return _current.download if _current.download and _current.download.is_running else None


def _is_here(weights: Weights) -> bool:
    try:
        return weights.find() is not None
    except Invalid:  # damaged: a download replaces it
        return False


def _sized(size: str) -> Weights:
    found = next((each for each in chat_models() if each.size == size), None)
    if found is None:
        raise Invalid("choose one of the built-in models")
    return found
