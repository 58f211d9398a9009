"""Turns: begins turns: which model answers, as which agent, what the message names, and what goes in with it."""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from recto.agents.agent import Agent
from recto.agents.agents import Agents
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.settings.settings import ReferenceSettings
from recto.sources.documents import mentioned_sources
from recto.turn.citations import Citations
from recto.turn.context import NO_OPTIONS, CallOptions, ResolvedModel, TurnContext
from recto.turn.messages import DRAFT
from recto.turn.models import Models
from recto.turn.session import ChatSession
from recto.turn.session_sources import SessionSources, with_sources
from recto.turn.turn import Picker, Turn

Pickers = Callable[[Turn, Citations], list[Picker]]


class Turns:
    def __init__(
        self,
        models: Models,
        agents: Agents,
        sources: SessionSources,
        references: ReferenceSettings,
        pickers: Pickers,
    ) -> None:
        self._models, self._agents, self._sources, self._pickers = models, agents, sources, pickers
        self._store, self._vaults = sources.store, sources.vaults
        self._references = references

    async def resolve(
        self, session: ChatSession, options: CallOptions = NO_OPTIONS, agent: Agent | None = None
    ) -> ResolvedModel:
        """Finds the model and agent that answer next; agent files are read at every turn."""
        if agent is None:
            agent = await asyncio.to_thread(self._agents.read_or_last, session.agent)
        if session.is_guest:  # is offered none of this machine's tools
            options = replace(options, runs_tools=False)
        name = self._models.name(session.model, options, agent)
        return await self._models.resolve(name, agent, session.chosen, options, session.conversation)

    async def new(
        self,
        session: ChatSession,
        message: Message | None,
        options: CallOptions,
        read: Agent | None = None,
        *,
        is_draft: bool = False,
        resolved: ResolvedModel | None = None,
    ) -> Turn:
        """Starts a turn; sources that the message mentions are added to the conversation."""
        sources, store, notes = self._sources, self._store, list[str]()
        resolved = resolved or await self.resolve(session, options, read)
        overrides, compaction = await store.do(sources.state, session)
        agent = await sources.agent_of(session, resolved.agent, resolved.settings)
        if message is not None:
            mentioned, notes = mentioned_sources(message.text, (*agent.rules, *agent.references))
            fresh = [each for each in mentioned if overrides.mode(each) is None]
            add = partial(with_sources, sources=fresh)
            is_stored = fresh and session.conversation and not is_draft
            overrides = await store.do(sources.amend, session.conversation, add) if is_stored else add(overrides)
        resolved = replace(resolved, agent=agent)
        return Turn(store, session, resolved, message, overrides, compaction, options, is_draft, tuple(notes))

    async def begin(self, turn: Turn) -> Turn:
        vault = turn.session.vault
        citations = Citations(vault, self._vaults.summaries(vault) if vault else None, self._references.enabled)
        await turn.begin(self._pickers(turn, citations), citations)
        return turn

    async def prepare(self, turn: Turn, *, is_continued: bool = False) -> Turn:
        """Finds what the message names and picks what goes in with it, for `send`, `draft` and a past turn planned
        again. `is_continued`: the message stays as stored."""
        suspended, asked = turn.session.suspended, turn.asked
        assert asked is not None
        if is_continued and isinstance(suspended, Turn) and suspended.is_for(turn):
            suspended.next_round(may_call=True)
            return suspended
        await self.begin(turn)
        annotated = await turn.annotate(asked if not is_continued else None)
        if annotated is not asked and not turn.is_draft and not is_continued:
            await self._store.do(self._store.tree.refer, annotated)
        await turn.pick()
        return turn

    async def without_message(self, session: ChatSession, options: CallOptions = NO_OPTIONS) -> Turn:
        """A turn for viewing the context."""
        turn = await self.begin(await self.new(session, None, options))
        turn.message = Message(DRAFT, "user", (Text(""),), parent=session.head)
        return turn

    async def context(self, session: ChatSession, options: CallOptions = NO_OPTIONS) -> TurnContext:
        """The context of the next turn, before there is a message."""
        return (await self.begin(await self.new(session, None, options, is_draft=True))).context
