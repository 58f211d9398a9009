"""Gateway: the shared state of the endpoint: a desk, the keys and their limits, and replies in progress."""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct

from recto.api.desk import AsyncDesk
from recto.base.concurrency import entered
from recto.base.text import dollars
from recto.chat.message import Message
from recto.errors import Busy, Invalid, NoKey, NotFound, RateLimited, Refused, SpendLimit
from recto.providers.registry import is_served
from recto.serve.connections import BodyLimits
from recto.serve.telemetry import Collector, Metrics, ReplyTrace, SpanExporter
from recto.store.clients import AccessKey
from recto.turn.session import ChatSession
from recto.turn.spending import SpendCap
from recto.wire import Json

log = logging.getLogger(__name__)
Mode = Literal["manage", "record"]
Disconnect = Literal["finish", "stop"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Larger bodies are read in a thread; of much larger ones, a key has one read at a time.
SMALL_BYTES, LARGE_BYTES = 64 * 1024, 1024 * 1024
# How long a request waits for another server that stores messages of the same key.
PLACING_S = 10.0
MINUTE_S = 60.0
OWN_NAMES = ("recto", "default")
"""Names of models that leave the choice to the settings."""
CHOSEN: Mapping[str, Any] = {"context.memory_integration": False, "context.confirm": False}
"""Settings of clients' conversations: memory is shared by all users of a home, and nobody can be asked."""
OPEN = AccessKey("", "")


# Tiers that cost no more than the known prices.
USUAL_TIERS = (None, "auto", "default", "flex", "standard_only")
OWN_TOOLS = (None, "function", "custom")
"""Types of tools that the client runs itself."""


class KeyRefused(NoKey):
    """The client's key is missing or unknown."""


class ServerClosing(Busy):
    """The server is shutting down, and accepts no more requests."""


class ServeOptions(Struct, frozen=True):
    mode: Mode = "manage"
    needs_key: bool = True
    fallbacks: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By model, the models that answer if it fails; `*` for all others."""
    on_disconnect: Disconnect = "finish"
    """What happens to a reply whose client has gone."""
    limits: BodyLimits = BodyLimits()
    collector: Collector | None = None


class Gateway:
    def __init__(self, desk: AsyncDesk, options: ServeOptions) -> None:
        self.desk, self.options = desk, options
        self.engine, self.store = desk.engine, desk.store
        self.metrics, self.sessions = Metrics(), SessionCache()
        self._spans = SpanExporter(options.collector, self.store) if options.collector else None
        self._locks: dict[str, asyncio.Lock] = {}
        self._large: dict[str, asyncio.Lock] = {}
        self._asked: dict[str, deque[float]] = {}
        """The times of each key's requests to this process in the last minute."""
        self._running: set[asyncio.Task[None]] = set()
        self.is_closing = False

    @asynccontextmanager
    async def lock(self, owner: str) -> AsyncIterator[None]:
        """Makes finding and storing a client's messages one step per owner, also if several servers share a
        database."""
        async with self._locks.setdefault(owner, asyncio.Lock()):
            if self.store.database.file is not None:
                yield
                return
            async with entered(self.store.database.hold(f"owner {owner}", PLACING_S)) as is_ours:
                if not is_ours:
                    raise Busy("another server has been storing messages of this key for too long; try again")
                yield

    def reading(self, owner: str, size: int) -> AbstractAsyncContextManager[object]:
        """While a large body is prepared, other large ones of the same key wait: each may take half a gigabyte."""
        return self._large.setdefault(owner, asyncio.Lock()) if size > LARGE_BYTES else nullcontext()

    # -- replies in progress

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts work that continues after its client has gone."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (why := task.exception()):
            log.error("work that continued without its client failed: %s", why, exc_info=why)

    @property
    def running(self) -> int:
        return len(self._running)

    async def close(self, patience_s: float) -> None:
        """Waits for replies in progress, then cancels the rest; what has arrived is kept."""
        self.is_closing = True
        if self._running:
            await asyncio.wait(list(self._running), timeout=patience_s)
        for task in list(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(list(self._running))
        if self._spans:
            await self._spans.close()

    async def tell(self, request: str, reply: Message | None, trace: ReplyTrace, error: BaseException | None) -> None:
        if self._spans:
            await self.store.do(self._spans.read, request, reply, trace, type(error).__name__ if error else "")
            self._spans.wake()

    # -- keys

    async def find_key(self, secret: str) -> AccessKey | None:
        return await self.store.do(self.store.access_keys.find, secret)

    async def key_of(self, headers: Mapping[str, str]) -> AccessKey:
        """The key of a request, in either API's header."""
        if not self.options.needs_key:
            return OPEN
        secret = headers.get("x-api-key", "") or headers.get("authorization", "").removeprefix("Bearer ").strip()
        found = await self.find_key(secret) if secret else None
        if found is None:
            what = "is unknown" if secret else "is missing"
            raise KeyRefused(f"The key of this server {what}; its owner makes one with `recto serve keys add`.")
        return found

    def admit(self, key: AccessKey) -> None:
        """Counts one more request; raises RateLimited if there are too many."""
        if not key.requests_per_minute:
            return
        asked, at = self._asked.setdefault(key.name, deque()), time.monotonic()
        while asked and asked[0] <= at - MINUTE_S:
            asked.popleft()
        if len(asked) >= key.requests_per_minute:
            wait_s = max(1.0, asked[0] + MINUTE_S - at)
            limit = f"{key.requests_per_minute} requests a minute"
            raise RateLimited(f"The key {key.name} may make {limit}; wait a moment.", retry_after_s=wait_s)
        asked.append(at)

    async def check_spending(self, key: AccessKey) -> None:
        """Rejects a key with nothing left to spend, before anything is stored for it. The cost of a call is checked
        when its bound is stored."""
        if key.spend_day is None:
            return
        spent = await self.store.do(self.store.charges.spent_today, key.name)
        if spent >= key.spend_day:
            why = f"The key {key.name} has spent its {dollars(key.spend_day)} for today."
            raise SpendLimit(why, at_most=0.0, spent=spent, limit=key.spend_day, key=key.name)

    def model_for(self, key: AccessKey, asked: str) -> str:
        """The model of a request; clients that must name one may say `recto` or `default`. A client may name models of
        providers that serve any, and those that the owner chose."""
        own, full_name = self.desk.settings.model, self.engine.models.full_name
        name = own if asked.strip() in OWN_NAMES else asked.strip()
        full = full_name(name)
        others = (other for each in self.options.fallbacks.values() for other in each)
        if not is_served(full.partition(":")[0], os.environ) and full not in map(full_name, (own, *others)):
            raise NotFound(f"There is no model {name[:80]}.", model=name)
        if key.models and not any(fnmatchcase(given, each) for each in key.models for given in (name, full)):
            raise Refused(f"The key {key.name} may not ask {name}; it may ask {', '.join(key.models)}.")
        return name

    def fallbacks(self, model: str) -> Sequence[str]:
        return self.options.fallbacks.get(model) or self.options.fallbacks.get("*") or ()

    def mode_of(self, key: AccessKey, asked: str | None) -> Mode:
        """A key made with a mode keeps it; else the call's own mode, then the server's."""
        mode, field = asked or key.mode or self.options.mode, "x-recto-mode"
        if mode not in MODES:
            raise Invalid(f"{field} must be one of {', '.join(MODES)}, not {mode[:40]!r}.", field=field)
        if key.mode and mode != key.mode:
            raise Invalid(f"The key {key.name} was made for the mode {key.mode}; leave out {field}.", field=field)
        return mode


def cap_of(key: AccessKey) -> SpendCap | None:
    return None if key.spend_day is None else SpendCap(key.name, key.spend_day)


def objects_in(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def check_fields(key: str, fields: Mapping[str, Json], known: frozenset[str]) -> None:
    """Rejects fields that may raise the price of a call, for a key with a limit. Unknown fields may: some gateways
    accept another model, or a search, in a field of their own."""
    unknown = sorted(set(fields) - known)
    if fields.get("service_tier") not in USUAL_TIERS:
        unknown.append("service_tier")
    if any(each.get("type") not in OWN_TOOLS for each in objects_in(fields.get("tools"))):
        unknown.append("tools")
    if unknown:
        raise Invalid(
            f"{unknown[0][:80]} is not allowed here: the key {key} has a spending limit, and the cost of this "
            "cannot be known before the call.",
            field=unknown[0],
        )


# -- sessions between requests

MOST_TOKENS = 4_000_000
"""In all windows together; a token takes some twenty bytes, as text and as sent."""
MESSAGE_TOKENS = 100


class SessionCache:
    """Sessions of recently answered conversations, with the parts of their last windows.

    A client's next request most likely continues one of them: then only new messages are read and counted. A session is
    taken by one request at a time; others read the store. Used in the store's threads too.
    """

    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._most, self._total, self._lock = most, 0, threading.Lock()
        self._kept: dict[str, tuple[ChatSession, int]] = {}

    def take(self, conversation: str, head: str | None) -> ChatSession | None:
        """The session of a conversation, if nobody has changed it since."""
        with self._lock:
            session, tokens = self._kept.pop(conversation, (None, 0))
            self._total -= tokens
        return session if session is not None and session.head == head else None

    def keep(self, session: ChatSession) -> None:
        """Keeps the session after a reply, unless it is on a side branch: then the conversation is elsewhere."""
        if session.branch is not None:
            return
        counted = [units for loaded in session.loaded.values() for units in loaded.counted_units.values()]
        tokens = sum(MESSAGE_TOKENS + unit.count.tokens for units in counted for unit in units)
        with self._lock:
            _, before = self._kept.pop(session.conversation, (None, 0))
            self._kept[session.conversation] = session, tokens
            self._total += tokens - before
            while self._total > self._most:
                self._total -= self._kept.pop(next(iter(self._kept)))[1]
