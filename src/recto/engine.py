"""The walk of one message: append, find, pick, budget, plan, compact, window, send, append.

Whoever reads `send` knows the product; each step is a paragraph below it, or a room of its own.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from pathlib import Path

from recto import places
from recto.agents.agents import Agents
from recto.chat.blocks import Text
from recto.chat.message import Message, Tokens, now
from recto.chat.priority import priority_of
from recto.choice.choosing import Chooser
from recto.errors import DoesNotFit, Invalid, Overflow
from recto.events import Appended, ContextUsage, Event, Noticed, Referenced, Sent
from recto.ids import new_id
from recto.providers.registry import embedding_address
from recto.search.embedder import Embedder
from recto.search.embedders import open_embedder
from recto.servers.servers import Servers
from recto.settings import Settings
from recto.sources.source import SourceId
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.text import clean
from recto.walk.approving import Approving
from recto.walk.archive import OF_A_USER, Archive
from recto.walk.compacting import Compacting, Replan
from recto.walk.exchange import Exchange
from recto.walk.gisting import Gisting
from recto.walk.libraries import Libraries
from recto.walk.linking import Linking
from recto.walk.loading import Loaded, follow, load
from recto.walk.moving import Moving
from recto.walk.opening import largest_named
from recto.walk.reaching import recall_tool
from recto.walk.recalling import Recalling
from recto.walk.setup import Footing, Ready, Setup, tightened
from recto.walk.sourcing import Sourcing
from recto.walk.standing import Standing
from recto.walk.turn import Picked, Told, Turn, account_of, make_turn, weigh_current
from recto.walk.using import Retracing, note_sources, offered_with
from recto.window.request import Request
from recto.window.strategies import compact_now, squeezed
from recto.window.window import Window

MOST_SQUEEZES = 3
NEARLY_FULL, NEARLY_DUE = 0.80, 0.94


class Engine:
    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        home: Path,
        project: Path | None,
        environment: Mapping[str, str],
    ) -> None:
        self.store = store
        self.settings = settings
        self.clerk = Clerk()
        self.archive = Archive(store, home / places.SEARCH_FILE, self._embedder, timeout_s=settings.search.timeout_s)
        self.gisting = Gisting(store, self.clerk)
        self.retracing = Retracing(store, self.clerk, self._embedder)
        self._home, self._environment = home, environment
        self._project = project or Path.cwd()
        self._opened: Embedder | None = None
        self._opening = threading.Lock()
        self.libraries = Libraries(home, self._embedder, timeout_s=settings.search.timeout_s)
        self.setup = Setup(store, self.clerk, settings, home=home, project=project, environment=environment)
        self.agents = Agents(home, project, settings)
        self.servers = Servers(home, environment, timeout_s=settings.tools.timeout_s, start_s=settings.tools.start_s)
        self.chooser = Chooser(home / places.SOURCES_FILE, self._embedder, timeout_s=settings.search.timeout_s)
        self.moving = Moving(store, self.clerk, self.footing)
        self.sourcing = Sourcing(store, self.clerk, settings.tools, self.servers, self.chooser, self.libraries, project)

    async def send(
        self, standing: Standing, text: str | bytes, strategy: str | None = None, *, answers: bool = True
    ) -> AsyncGenerator[Event, None]:
        """One message, all the way through; two from one front end take turns. `answers`: somebody can be asked."""
        async with standing.taking_turns(), aclosing(self._walk(standing, text, strategy, answers)) as events:
            async for event in events:
                yield event

    async def _walk(
        self, standing: Standing, text: str | bytes, strategy: str | None, answers: bool
    ) -> AsyncGenerator[Event, None]:
        """The walk itself. Whatever fails later, the user's words are stored first."""
        message, repaired, branched = await self._append(standing, text)  # 1 append
        yield Appended(message, branched)
        if repaired:
            yield Noticed(f"{repaired} invalid or NUL characters in your message were replaced by U+FFFD")
        ready = await self._ready(standing, strategy, message)  # agent, session, and the sources that it needs
        linking = self._linking(standing, ready)
        message = await linking.keep(message, self.store, self.clerk)  # 2 find
        if message.references:
            yield Referenced(message)
        picked = await linking.pick(message, partial(self._load, standing, ready, message.id))  # 3 pick
        for note in standing.fresh((*ready.notes, *linking.notes), always=linking.notes):
            yield Noticed(note)
        plan = partial(self._plan, standing, message=message, picked=picked, linking=linking)
        recalling = Recalling(self.archive, self.store, self.clerk, standing, message)
        approving = self._approving(standing, ready, answers)
        steps, overflow = 0, None
        while steps <= self.settings.tools.step_limit:
            loaded = await self._load(standing, ready, message.id)
            turn = await plan(ready, loaded, overflow=overflow)  # 4 budget, 5 plan
            reload = partial(self._load, standing, ready, message.id)
            compacting = self._compacting(standing, turn, plan, reload)
            compacting.answers = answers
            async with aclosing(compacting.run()) as events:  # 6 compact, then plan again
                async for event in events:
                    yield event
            standing.loaded = {ready.scale: compacting.turn.loaded} if compacting.is_stored else {}
            turn = await recalling.into(ready, compacting.turn)  # what is archived and bears on the message
            for note in standing.fresh((recalling.note,) if recalling.note else ()):
                yield Noticed(note)
            request = await self._record(standing, turn, message)  # 7 window, recorded before it leaves
            for event in _sent(standing, turn, request):
                yield event
            exchange = Exchange(
                self.store, self.clerk, standing, ready, turn, request, linking.referring, approving, self.retracing
            )
            try:
                async with aclosing(exchange.run()) as events:  # 8 send, 9 append the reply
                    async for event in events:
                        yield event
            except Overflow as why:
                overflow, ready = why, tightened(ready)
                if why.partial or ready.tightened > MOST_SQUEEZES:
                    raise
                recalling.give_up()
                yield Noticed("the provider says that this is too long for it: making the window smaller")
                continue
            self.archive.stir()
            if not exchange.calls:
                linking.end(self.gisting)
                return
            steps, overflow = steps + 1, None
            async with aclosing(exchange.run_tools(may_run=steps <= self.settings.tools.step_limit)) as events:
                async for event in events:
                    yield event
            ready = ready.uncalling() if steps == self.settings.tools.step_limit else ready
        yield Noticed(f"stopped after {self.settings.tools.step_limit} rounds of tool calls (tools.step_limit)")

    async def window(self, standing: Standing, text: str | bytes = "", strategy: str | None = None) -> Window:
        """What would be sent for this message now; nothing is sent, stored or changed, and no model is asked."""
        return (await self.draft(standing, text, strategy)).window

    async def draft(self, standing: Standing, text: str | bytes = "", strategy: str | None = None) -> Turn:
        """The whole turn of which `window` shows the window."""
        said, _ = clean(text)
        message = Message("next", "user", (Text(said),), parent=standing.head)
        ready = await self._ready(standing, strategy, message, keeps=False)
        linking, reload = self._linking(standing, ready), partial(self._load, standing, ready, None)
        message = await linking.find(message)
        picked = await linking.pick(message, reload)
        plan = partial(self._plan, standing, message=message, picked=picked, linking=linking)
        loaded = await reload()
        turn = await plan(ready, replace(loaded, view=replace(loaded.view, current=message.id)))
        recalling = Recalling(self.archive, self.store, self.clerk, standing, message, OF_A_USER)
        if turn.plan.cut is None:
            return await recalling.into(ready, turn)
        after = await self._compacting(standing, turn, plan, reload).preview()
        after = await recalling.into(ready, after)
        return replace(after, window=replace(after.window, plan=turn.plan))

    async def compact(self, standing: Standing, keep: str = "") -> AsyncGenerator[Event, None]:
        """A compaction because the user wants one: of everything but the latest messages; `keep` says what matters."""
        async with standing.taking_turns():
            ready = await self._ready(standing, None)
            message = Message("next", "user", (Text(""),), parent=standing.head)
            turn = await self._plan(standing, ready, await self._load(standing, ready, None), message=message)
            strategy = "hybrid" if ready.context.strategy == "hybrid" else "summarize"
            plan = compact_now(strategy, turn.loaded.view, turn.budget, turn.loaded.counts)
            if plan.cut is None or not plan.summed_up.count:
                raise Invalid("there is nothing to compact: only the latest messages are in the window")
            again = partial(self._plan, standing, message=message)
            reload = partial(self._load, standing, ready, None)
            compacting = self._compacting(standing, replace(turn, plan=plan), again, reload)
            compacting.asked, compacting.keep = True, clean(keep)[0].strip()
            async with aclosing(compacting.run()) as events:
                async for event in events:
                    yield event
            standing.loaded = {}

    def _embedder(self) -> Embedder | None:
        """Who makes vectors, as the settings say: one for messages and notes, since its weights are large."""
        with self._opening:
            if self._opened is None:
                name = self.settings.search.embedder
                address = embedding_address(name, self._environment) if ":" in name else None
                self._opened = open_embedder(name, home=self._home, address=address)
            return self._opened

    # -- the steps

    async def _append(self, standing: Standing, text: str | bytes) -> tuple[Message, int, bool]:
        said, repaired = clean(text)
        if not said.strip():
            raise Invalid("the message is empty: write something to send")
        message = Message(new_id(), "user", (Text(said),), parent=standing.head, agent=standing.choices.agent)
        message = replace(message, priority=priority_of(message, is_first=standing.head is None))
        placed, branched = await self.clerk.do(self._place, standing, message)
        return placed, repaired, branched

    def _place(self, standing: Standing, message: Message) -> tuple[Message, bool]:
        """Stores and stands there in one step of the store's thread: a cancelled turn must not part the two."""
        placed = self.store.tree.append(standing.conversation, message)
        return placed.message, standing.stands_at(placed.message.id, placed.moved)

    async def _ready(
        self, standing: Standing, strategy: str | None, message: Message | None = None, *, keeps: bool = True
    ) -> Ready:
        footing = await self.footing(standing, strategy)
        recall = recall_tool(self.archive, self.store, standing)
        return await self.setup.ready(
            footing, await self.sourcing.gather(standing, footing, message, recall, keeps=keeps)
        )

    async def footing(self, standing: Standing, strategy: str | None = None) -> Footing:
        """Who answers next, and as which agent: its files are read anew at every turn."""
        choices = replace(standing.choices, call=strategy) if strategy else standing.choices
        agent = await asyncio.to_thread(self.agents.last, choices.agent)
        return await self.setup.footing(standing.model or agent.model or self.settings.model, agent, choices)

    async def ready(self, standing: Standing, strategy: str | None = None) -> Ready:
        """What the next turn would stand on, before there is a message."""
        return await self._ready(standing, strategy, keeps=False)

    def _approving(self, standing: Standing, ready: Ready, answers: bool) -> Approving:
        async def remember(tool: SourceId) -> None:
            await self.clerk.do(self.sourcing.amend, standing.conversation, lambda session: session.allow(tool))

        return Approving(ready.sources.session, standing.allowed, answers, remember)

    def _linking(self, standing: Standing, ready: Ready) -> Linking:
        return Linking(standing, ready, self.settings.references, self._project, self.libraries)

    async def _load(self, standing: Standing, ready: Ready, current: str | None) -> Loaded:
        known = standing.loaded.get(ready.scale)
        loaded = await follow(self.store, self.clerk, ready.scale, standing.head, current, known)
        if loaded is None:
            loaded = await load(self.store, self.clerk, ready.scale, standing.head, current, ready.budget.room)
        return loaded

    async def _plan(
        self,
        standing: Standing,
        ready: Ready,
        loaded: Loaded,
        *,
        message: Message,
        picked: Sequence[Picked] = (),
        linking: Linking | None = None,
        overflow: Overflow | None = None,
        promised: int = 0,
    ) -> Turn:
        ready = ready.at(loaded.view)
        current = await weigh_current(ready.scale, message, picked, loaded.view.compaction)
        told = Told(
            standing.conversation,
            (*ready.notes, *(linking.notes if linking else ())),
            promised,
            (*ready.sources.passed, *(linking.not_picked if linking else ())),
        )
        try:
            turn = make_turn(ready, loaded, current, told)
        except DoesNotFit as why:
            raise largest_named(why, ready.opening) from None
        if overflow is None:
            return turn
        plan = squeezed(ready.strategy, loaded.view, turn.budget, loaded.counts)
        if plan.cut is None:
            raise overflow
        return replace(turn, plan=plan)

    def _compacting(
        self, standing: Standing, turn: Turn, replan: Replan, reload: Callable[[], Awaitable[Loaded]]
    ) -> Compacting:
        return Compacting(self.store, self.clerk, self.setup, standing, turn.ready, turn, replan, reload)

    async def _record(self, standing: Standing, turn: Turn, message: Message) -> Request:
        request = Request(
            id=new_id(),
            conversation=standing.conversation,
            purpose="reply",
            model=turn.scale.model.name,
            format=turn.scale.format.name,
            parameters=turn.ready.parameters.given(),
            pieces=turn.pieces,
            account=account_of(turn),
            message=message.id,
            created=now(),
            stable=turn.stable,
            mark_bytes=turn.scale.format.mark_bytes,
        )
        tools = sum(section.tokens for section in turn.window.sections if section.name == "tools")
        whole = (await weigh_current(turn.scale, message, ())).own.tokens
        tokens = Tokens(whole, turn.current.weighed.count.tokens, tools)
        await self.clerk.do(self._write_record, standing, request, turn, replace(message, tokens=tokens))
        return request

    def _write_record(self, standing: Standing, request: Request, turn: Turn, message: Message) -> None:
        with self.store.database.write():
            turn.scale.save()
            self.store.tree.count(message)
            base = standing.request or self.store.records.latest(standing.conversation)
            self.store.records.save(request, base)
            note_sources(self.store, request.id, turn, standing.kept)
        standing.request, standing.offered = request.id, offered_with(turn)

    async def close(self) -> None:
        await asyncio.to_thread(self.servers.close)
        await asyncio.to_thread(self.chooser.close)
        await asyncio.to_thread(self.archive.close)
        await self.gisting.close()
        await self.retracing.close()
        await asyncio.to_thread(self.libraries.close)
        await self.setup.close()
        self.clerk.close()


def _sent(standing: Standing, turn: Turn, request: Request) -> list[Event]:
    usage, due = ContextUsage(turn.window.total, turn.window.limit), turn.budget.due
    events: list[Event] = [usage, Sent(request.id, turn.window)]
    # in a small window the room ends before 80 % of it
    if standing.fills_up(usage.size >= min(NEARLY_FULL * usage.limit, NEARLY_DUE * due)) and turn.budget.trigger:
        full = f"{usage.percent:.0f} % full ({usage.size:,} of {usage.limit:,} tokens; it is compacted at {due:,})"
        events.insert(1, Noticed(f"the context is {full}"))
    return events
