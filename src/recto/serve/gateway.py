"""Gateway: what the endpoint serves from: a desk, its keys, and the replies that are on their way."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

from msgspec import Struct, field

from recto.api.desk import AsyncDesk
from recto.base.concurrency import entered
from recto.chat.message import Message
from recto.errors import Busy, Invalid, NotFound
from recto.providers.registry import is_served
from recto.serve.access import Access, Limits
from recto.serve.metrics import Metrics
from recto.serve.session_cache import SessionCache
from recto.serve.span_exporter import Collector, SpanExporter
from recto.serve.spans import ReplyTrace
from recto.serve.workers import Disconnect, Mode, WorkerPlan, Workers
from recto.store.clients import AccessKey

log = logging.getLogger(__name__)
MODES: tuple[Mode, ...] = get_args(Mode)
# How long a request waits for another server that stores messages of the same key.
PLACING_S = 10.0
OWN_NAMES = ("recto", "default")
"""Names of models that leave the choice to the settings."""


class ServeOptions(Struct, frozen=True):
    mode: Mode = "manage"
    needs_key: bool = True
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By model, the models that answer where it fails; `*` for all others."""
    on_disconnect: Disconnect = "finish"
    """What becomes of a reply whose client has gone."""
    limits: Limits = Limits()
    collector: Collector | None = None
    """Who is told about each request as a span."""
    is_worker: bool = False
    """Another server has counted the requests."""


class Gateway:
    def __init__(self, desk: AsyncDesk, options: ServeOptions, plan: WorkerPlan | None = None) -> None:
        """`plan` is for workers that answer large requests; without it this process answers all."""
        self.desk, self.options = desk, options
        self.engine, self.store = desk.engine, desk.store
        self.access = Access(self.store, needs_key=options.needs_key)
        self.metrics, self.sessions = Metrics(), SessionCache()
        self.workers = Workers(plan, self.metrics) if plan else None
        self._spans = SpanExporter(options.collector, self.store) if options.collector else None
        self._locks: dict[str, asyncio.Lock] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.is_closing = False

    @asynccontextmanager
    async def lock(self, owner: str) -> AsyncIterator[None]:
        """Finding and storing what a client said is one step for each owner, also where several servers share a
        database."""
        async with self._locks.setdefault(owner, asyncio.Lock()):
            if self.store.database.file is not None:
                yield
                return
            async with entered(self.store.database.hold(f"owner {owner}", PLACING_S)) as is_ours:
                if not is_ours:
                    raise Busy("another server has been storing messages of this key for too long; try again")
                yield

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Work that goes on when its client has gone."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (why := task.exception()):
            log.error("work that goes on without its client failed: %s", why, exc_info=why)

    @property
    def running(self) -> int:
        return len(self._running)

    async def close(self, patience_s: float) -> None:
        """Replies that are on their way are finished, as long as there is patience; then what came of them is kept."""
        self.is_closing = True
        if self._running:
            await asyncio.wait(list(self._running), timeout=patience_s)
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running))
        if self._spans:
            await self._spans.close()
        if self.workers:
            await self.workers.close()

    async def tell(self, request: str, reply: Message | None, trace: ReplyTrace, error: BaseException | None) -> None:
        """A request that has ended, for the collector."""
        if self._spans:
            await self.store.do(self._spans.read, request, reply, trace, type(error).__name__ if error else "")
            self._spans.wake()

    async def find_key(self, secret: str) -> AccessKey | None:
        return await self.store.do(self.store.access_keys.find, secret)

    async def check_spending(self, key: AccessKey) -> None:
        if key.spend_day is not None:
            await self.store.do(self.access.check_spending, key)

    def model_for(self, key: AccessKey, asked: str) -> str:
        """The model of a request; some clients must have a name, and mean whichever there is. A client may name models
        of providers that serve any, and those that the owner chose."""
        own, full_name = self.desk.settings.model, self.engine.builder.full_name
        name = own if asked.strip() in OWN_NAMES else asked.strip()
        full = full_name(name)
        others = (other for each in self.options.fallbacks.values() for other in each)
        if not is_served(full.partition(":")[0], os.environ) and full not in map(full_name, (own, *others)):
            raise NotFound(f"There is no model {name[:80]}.", model=name)
        self.access.check_model(key, name, full)
        return name

    def fallbacks(self, model: str) -> Sequence[str]:
        return self.options.fallbacks.get(model) or self.options.fallbacks.get("*") or ()

    def mode_of(self, key: AccessKey, asked: str | None) -> Mode:
        """The key's, the call's own, the server's. A key that was made with a mode keeps to it."""
        mode = asked or key.mode or self.options.mode
        if mode not in MODES:
            raise Invalid(f"x-recto-mode must be one of {', '.join(MODES)}, not {mode[:40]!r}.", field="x-recto-mode")
        if key.mode and mode != key.mode:
            raise Invalid(
                f"The key {key.name} was made for the mode {key.mode}; leave out x-recto-mode.", field="x-recto-mode"
            )
        return mode


CHOSEN: Mapping[str, Any] = {"context.memory_integration": False, "context.confirm": False}
"""Settings of clients' conversations: memory is shared by everybody who uses a home, and nobody can be asked."""


def header_text(text: str) -> str:
    """A text as a header can hold it."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def checked_name(name: str | None) -> str | None:
    if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
        raise NotFound("x-recto-conversation must be an id or a name of at most 200 characters.")
    return name
