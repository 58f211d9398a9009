"""Link: one server and all its runs: started when it is needed, asked, watched, ended, and started anew.

Everything here happens in the one loop aside. A run is one task that opens and closes its session.
"""

import asyncio
import importlib
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from recto.errors import RectoError
from recto.servers.kept import Kept
from recto.servers.listing import Listing
from recto.servers.reach import Reach
from recto.servers.seen import Seen
from recto.servers.state import Doing, State
from recto.servers.tail import Tail
from recto.sources.tools import Arguments, Outcome

if TYPE_CHECKING:
    from mcp import Client

ANSWER_S = 5.0
"""How long a server may keep silent after a call was cancelled."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Between two starts, doubled each time; a wait of no more than the first is sat out."""
REFRESH_EVERY_S = 0.5
REFRESH_PATIENCE_S = 2.0


@dataclass(frozen=True, slots=True)
class Place:
    """What a link is told about its surroundings."""

    kept: Kept
    key: str
    """Of its kept list."""
    log: Path
    environment: Mapping[str, str]
    start_s: float


@dataclass(frozen=True, slots=True)
class _Up:
    """A run that came about."""

    client: "Client"
    seen: Seen
    run: asyncio.Task[str]


class Link:
    def __init__(self, reach: Reach, place: Place) -> None:
        self.reach, self._place = reach, place
        self.listing = place.kept.read(place.key) or Listing()
        self._state: Doing = "stopped"
        self._why = ""
        self._seen: Seen | None = None
        self._news: list[str] = []
        self._run: asyncio.Task[str] | None = None
        self._came: asyncio.Future[_Up] | None = None
        self._is_closed = False
        self.failure = ""
        """Why the last start failed, in a sentence without its end, until one comes about."""
        self._ending = ""
        self._tries, self._started_at = 0, 0.0
        self._calls: set[object] = set()
        self._used_at = time.monotonic()
        self._check: asyncio.Task[None] | None = None
        self._is_stale = False
        self._refresh: asyncio.Task[None] | None = None

    @property
    def state(self) -> State:
        pid = self._seen.pid if self._seen and self._run else None
        return State(self.reach.name, self._state, self._why, len(self.listing.tools), pid)

    def is_idle(self, for_s: float) -> bool:
        return not self._calls and time.monotonic() - self._used_at >= for_s

    async def start(self) -> None:
        await self._up()

    async def tools(self, *, fresh: bool = False) -> Listing:
        """As the server has them now, with all that the user was not told yet; it is started where it does not run."""
        was_up, self._used_at = self._state == "running", time.monotonic()
        up = await self._up()
        if fresh and was_up:
            await self._listed(up.client)
        elif self._refresh:
            await asyncio.wait({self._refresh}, timeout=REFRESH_PATIENCE_S)
        return replace(self.listing, notes=(*self._take_news(), *self.listing.notes))

    async def renewed(self) -> None:
        """Asks for the list anew where it runs; what goes wrong is told by the calls."""
        if self._state == "running" and self._came:
            with suppress(Exception):
                await self._listed(self._came.result().client)

    async def call(self, tool: str, arguments: Arguments, call: object, within_s: float) -> Outcome:
        """`call` is this one's sign, to be given back by who gives it up. Its time begins when it is sent: that the
        server has to start, or that one which hangs has to be ended first, is not its fault."""
        from recto.servers.session import Gone, call_tool  # slow to load

        if self._check:
            await asyncio.wait({self._check})
        up = await self._up()
        self._calls.add(call)
        try:
            async with asyncio.timeout(within_s):
                outcome = await call_tool(up.client, up.seen, tool, arguments)
        except (asyncio.CancelledError, TimeoutError):
            self.give_up(call)
            raise
        except Gone:
            # that it ends takes a moment, and says why
            up.seen.gone.set()
            await asyncio.wait({up.run})
            return Outcome(f"{self._said_of(up.run.result())}; the call was under way and is not repeated", True)
        finally:
            self._calls.discard(call)
            self._used_at = time.monotonic()
        self._tries = 0
        return outcome

    def give_up(self, call: object) -> None:
        """A server that keeps silent after a call was given up hangs, unless it is busy with another."""
        if call not in self._calls:
            return
        self._calls.discard(call)
        if not self._calls and self._came and not self._check:
            self._check = asyncio.create_task(self._checked(self._came.result()))

    async def close(self) -> None:
        """For good: it does not start again."""
        self._is_closed = True
        await self._end("was stopped")

    async def _end(self, why: str) -> None:
        if self._run:
            self._ending = self._ending or why
            self._stop(self._run)
            await asyncio.wait({self._run})

    async def _up(self) -> "_Up":
        if self._run and (self._run.cancelling() or (self._seen and self._seen.gone.is_set())):
            await asyncio.wait({self._run})
        if self._came is None:
            await self._wait_turn()
        if self._is_closed:
            raise RectoError(self._said_of("was stopped"))
        if self._came is None:
            self._start()
        assert self._came
        # several may wait for one start: who is cancelled does not cancel it for the others
        return await asyncio.shield(self._came)

    async def _wait_turn(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._started_at + _wait_s(self._tries) - loop.time() if self._tries else 0.0
        if wait > FIRST_WAIT_S:
            raise RectoError(f"{self._said_of(self._why)}; it starts again in {wait:.0f} s at the earliest")
        await asyncio.sleep(wait)

    def _start(self) -> None:
        importlib.import_module("recto.servers.session")  # a second, before the clock starts
        loop = asyncio.get_running_loop()
        self._started_at, self._tries = loop.time(), self._tries + 1
        self._state, self._why, self._ending = "starting", "", ""
        self._is_stale = False
        self._news = self._take_news()
        self._came = loop.create_future()
        self._run = loop.create_task(self._live(self._came))

    async def _live(self, came: "asyncio.Future[_Up]") -> str:
        """One run, to its end; what became of it, to be said of the server."""
        self._seen = seen = Seen(self.reach.name, Tail(self._place.log), self._changed)
        timer = asyncio.get_running_loop().call_later(self._place.start_s, self._late, came)
        why = ""
        try:
            from recto.servers.session import list_tools, session  # slow to load

            async with session(self.reach, self._place.environment, seen) as client:
                self._keep(await list_tools(client, self.reach.name))
                timer.cancel()
                if not came.done() and self._run:
                    came.set_result(_Up(client, seen, self._run))
                    self._state, self.failure = "running", ""
                    self._changed(self._is_stale)
                    await seen.gone.wait()
        except asyncio.CancelledError:
            why = "it was stopped"
        except (Exception, BaseExceptionGroup) as problem:
            why = _told(problem)
        timer.cancel()
        why = self._ending or _ended(seen, why, is_up=came.done())
        self._over(came, why)
        return why

    def _late(self, came: "asyncio.Future[_Up]") -> None:
        """Whoever waits is told at once; that the process ends may take a moment longer."""
        if not came.done():
            said = _said(self._seen) if self._seen else ""
            self._ending = f"did not start within {self._place.start_s:g} s{said}"
            self._fail(came, self._ending)
            if self._run:
                self._stop(self._run)

    def _stop(self, run: asyncio.Task[str]) -> None:
        """Once: a second time would disturb it in ending its process."""
        if not run.cancelling():
            run.cancel()

    def _over(self, came: "asyncio.Future[_Up]", why: str) -> None:
        self._run = self._came = None
        if not came.done() and not self._ending:
            self._fail(came, why)
        elif not came.done():
            came.cancel()
        if self._state != "failed":
            self._state, self._why = "stopped", why
        if self._refresh:
            self._refresh.cancel()
        self._refresh = None

    def _fail(self, came: "asyncio.Future[_Up]", why: str) -> None:
        self._state, self._why, self.failure = "failed", why, self._said_of(why)
        self._place.kept.forget(self._place.key)
        came.set_exception(RectoError(self.failure))
        came.exception()  # nobody may be waiting

    def _said_of(self, why: str) -> str:
        return f"the MCP server {self.reach.name} {why}"

    def _take_news(self) -> list[str]:
        """What the user should know and was not told yet, of this run and those before."""
        news, self._news = self._news, []
        return news + (self._seen.take_news() if self._seen else [])

    async def _checked(self, up: "_Up") -> None:
        from recto.servers.session import answers  # slow to load

        try:
            if not await answers(up.client, ANSWER_S) and self._run is up.run:
                await self._end("was ended: it did not answer any more after a call was cancelled")
        finally:
            self._check = None

    def _changed(self, is_stale: bool = True) -> None:
        self._is_stale = is_stale
        if is_stale and self._state == "running" and self._came and not self._refresh:
            self._refresh = asyncio.create_task(self._refreshed(self._came.result().client))

    async def _refreshed(self, client: "Client") -> None:
        while self._is_stale:
            self._is_stale = False
            try:
                await self._listed(client)
            except Exception:  # it is asked again at the next change, and the calls will tell
                break
            if self._is_stale:
                await asyncio.sleep(REFRESH_EVERY_S)
        self._refresh = None

    async def _listed(self, client: "Client") -> None:
        from recto.servers.session import list_tools  # slow to load

        self._keep(await asyncio.wait_for(list_tools(client, self.reach.name), self._place.start_s))

    def _keep(self, listing: Listing) -> None:
        self.listing = listing
        self._place.kept.write(self._place.key, listing)


def _wait_s(tries: int) -> float:
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(tries - 1, 10))


def _told(problem: BaseException) -> str:
    from recto.servers.session import told  # slow to load

    return told(problem)


def _ended(seen: Seen, why: str, *, is_up: bool) -> str:
    """What became of it, to be said of the server."""
    if seen.broken:
        return f"was ended: {seen.broken}"
    if seen.gone.is_set() and seen.code is not None:
        why = f"exit code {seen.code}" if seen.code >= 0 else f"signal {-seen.code}"
        return f"ended ({why}){_said(seen)}" if is_up else f"did not start: it ended ({why}){_said(seen)}"
    why = ": ".join(filter(None, (seen.failure, why))) or "the connection ended"
    return f"is gone: {why}" if is_up else f"did not start: {why}{_said(seen)}"


def _said(seen: Seen) -> str:
    return f" (it said: {seen.tail.said})" if seen.tail.said else ""
