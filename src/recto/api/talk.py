"""AsyncTalk: one conversation in the Python API: ask, look, branch, compact. Its blocking twin is Talk."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from msgspec.structs import replace

from recto.agents.agent import apply_agent
from recto.api import goal_run, source_changes
from recto.api.arguments import checked_door
from recto.api.ask_options import AskOptions, Attachment, Reply, call_options, named_agent, reply_of, with_attachments
from recto.api.client_turn import (
    ExtendedPath,
    GivenReply,
    PreparedRequest,
    PrepareOptions,
    answer_turn,
    extend_path,
    notes_of,
    prepare_turn,
    prepared_request,
    read_given,
    reply_parts,
)
from recto.api.loop import in_store, in_thread
from recto.api.source_changes import ApprovalChange, IncludeChange, SourceChanges
from recto.api.talk_queries import AsyncTalkQueries
from recto.base.ids import new_id
from recto.base.text import clean, shown
from recto.chat.blocks import Compaction
from recto.chat.message import Message
from recto.errors import Invalid, ProviderError, RectoError, SpendLimit
from recto.events import Event, Noticed, Referenced, RunEnded, Sent
from recto.providers.remote import remote_of
from recto.settings import settings as configuration
from recto.sources.memory_files import add_note
from recto.sources.overrides import SourceStatus
from recto.store.waiting import WaitingMessage
from recto.tasks.run import RunReport, StoredRun, TaskRun, read_run
from recto.turn.context import STRATEGY, CallOptions
from recto.turn.emitting import Emit, events_of, log_event
from recto.turn.messages import AnswerAgain, Given, TurnStart, edited_message, queue_message, user_message
from recto.turn.session import PROJECT, SETTINGS, ChatSession, NewConversation, SessionChanges
from recto.wire import Json


@checked_door
class AsyncTalk(AsyncTalkQueries):
    """One conversation, from one client's place in it. It is stored with its first message."""

    _system: str | None = None
    _extended: tuple[str, ...] = ()

    # -- what the conversation uses

    async def open_document(self, path: str | None) -> str | None:
        """Sends a document of the vault with every message from now on, as far as it fits; None closes it."""
        if path is not None:
            if self.vault is None:
                raise Invalid("there is no vault to open a document from; set one with --vault")
            path = (await asyncio.to_thread(self.vault.read, path)).path
        self.session.apply(document=path)
        return path

    async def use(self, model: str) -> None:
        """Sets the model of this conversation from the next message on. Raises NotFound if it is unknown, and NoKey if
        its provider has no key."""
        await self._engine.models.model(model)
        if remote := remote_of(self._engine.models.provider(model)):
            remote.checked_key()
        await self._keep(model=model)
        self.session.apply(model=model, declined=0)

    async def use_strategy(self, name: str | None) -> None:
        """Sets the strategy of this conversation from the next message on; None follows the settings again."""
        await self.set_setting(STRATEGY, name)

    async def set_setting(self, key: str, value: Any) -> Any:
        """Sets a context setting, or spend.conversation, for this conversation, overriding those of agent, project and
        user; options of a call still win. None follows these again. Returns the parsed value."""
        full = configuration.conversation_key(key, self.name)
        chosen = {name: known for name, known in self.session.chosen.items() if name != full}
        if value is not None:
            value = configuration.check(full, clean(value)[0] if isinstance(value, str) else value, self.name)
            configuration.changed(apply_agent(self._settings, self.agent), chosen | {full: value}, self.name)
            chosen[full] = value
        await self._keep(settings=chosen or None)
        self.session.apply(chosen=chosen, declined=0)
        return value

    async def wake(self) -> None:
        """Loads the model and what the next message needs in the background, for example while the user types."""
        self._engine.warm_up(self.session)

    async def watch_vault(self) -> None:
        """Keeps the vault's catalogue and search index up to date in the background, while the talk lasts."""
        if self.vault is not None:
            await asyncio.to_thread(self.vault.watch)
            self._engine.vaults.search(self.vault).wake()

    @in_thread
    def remember_in_project(self, text: str) -> Path:
        """Adds a line to the memory file of the conversation's project, which is in every window from then on."""
        return add_note(self.session.project or self._engine.folder, text)

    # -- sources

    async def _changes(self) -> SourceChanges:
        return SourceChanges(self._engine, self.session, await self._session_agent())

    async def add_source(self, named: str) -> SourceStatus:
        """Sends a source, such as `rule:style`, with every message from now on, whatever its include mode."""
        return (await self.add_sources((named,)))[0]

    async def add_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        """Adds several sources; if one cannot be added, none is."""
        return await self._change_sources(names, source_changes.add)

    async def remove_source(self, named: str) -> SourceStatus:
        """Removes a source, even if its file is gone: it does not return with the file."""
        return (await self.remove_sources((named,)))[0]

    async def remove_sources(self, names: Sequence[str]) -> list[SourceStatus]:
        """Removes several sources; if one cannot be removed, none is."""
        return await self._change_sources(names, source_changes.remove)

    async def _change_sources(self, names: Sequence[str], change: source_changes.Change) -> list[SourceStatus]:
        changes = await self._changes()
        await changes.check(names, change)
        await self._stored()
        return [await changes.apply(name, change) for name in names]

    async def set_include(self, named: str, mode: str) -> IncludeChange:
        """Writes a source's include mode into the agent's file: always, manual or agent. `tool:SERVER` names all tools
        of a server."""
        return await (await self._changes()).set_include(named, mode)

    async def allow(self, tool: str) -> None:
        """Lets a tool (`server/tool`), or all of a server, run without asking while this talk lasts. Raises NotFound
        for one that the agent does not have."""
        changes = await self._changes()
        named = await asyncio.to_thread(changes.allowed, tool)
        self.session.apply(allowed=self.session.allowed | {named})

    async def ask_again(self, tool: str) -> ApprovalChange:
        """Asks again before a tool, or any tool of a server, runs."""
        change = await (await self._changes()).ask_again(tool)
        self.session.apply(allowed=self.session.allowed - {change.tool})
        return change

    # -- asking

    def stream(
        self, given: Given = (), *, can_ask: bool = True, **options: Unpack[AskOptions]
    ) -> AsyncGenerator[Event, None]:
        """Sends a message (text or blocks), then those queued meanwhile; without a message, the waiting ones. Yields
        events as they come. Closing the generator stops the reply and keeps what arrived.

        `can_ask`: the reader answers a CompactionProposed or ApprovalAsked before it takes the next event."""
        return events_of(partial(self._ask, given, options, can_ask=can_ask))

    async def _ask(self, given: Given, options: AskOptions, emit: Emit, *, can_ask: bool) -> None:
        chosen = call_options(**options)
        given = await with_attachments(await self._addressed(given, emit), options.get("attachments", ()))
        # rejected before a conversation is created for it
        user_message(given, may_be_empty=given == () and bool(await self.waiting()))
        await self._send(given, chosen, emit, can_ask=can_ask)

    def stream_edit(
        self, message: str, text: str, *, can_ask: bool = True, **options: Unpack[AskOptions]
    ) -> AsyncGenerator[Event, None]:
        """Replaces the text of an earlier user message, keeping its attachments, on a branch beside it. Yields the
        reply as events. Closing the generator stops the reply and keeps what arrived."""
        return events_of(partial(self._ask_edited, message, text, options, can_ask=can_ask))

    async def _ask_edited(self, message: str, text: str, options: AskOptions, emit: Emit, *, can_ask: bool) -> None:
        chosen, found = call_options(**options), await self.message(message)
        given = await with_attachments(edited_message(found, text), options.get("attachments", ()))
        await self._send_from(found.parent, given, chosen, emit, can_ask=can_ask)

    def stream_regenerate(self, *, can_ask: bool = True, **options: Unpack[AskOptions]) -> AsyncGenerator[Event, None]:
        """Requests another reply to the user's last message, on a branch beside the first one, as events. Closing the
        generator stops the reply and keeps what arrived."""
        return events_of(partial(self._ask_again, options, can_ask=can_ask))

    async def _ask_again(self, options: AskOptions, emit: Emit, *, can_ask: bool) -> None:
        chosen = call_options(**options)
        if options.get("attachments"):
            raise Invalid("a new reply cannot have attachments: use `edit` to change its message")
        asked = await self._last_question()
        if chosen.model:
            await self._engine.models.model(chosen.model)  # rejected before the branch begins
        if asked.references:
            await emit(Referenced(asked))
        await self._send_from(asked.id, AnswerAgain(), chosen, emit, can_ask=can_ask)

    async def _last_question(self) -> Message:
        async for message in self.path():
            if message.role == "user":
                return message
        raise Invalid("there is no message yet to answer again")

    async def _send_from(
        self, place: str | None, given: TurnStart, chosen: CallOptions, emit: Emit, *, can_ask: bool
    ) -> None:
        """Sends on a branch after this message. If that fails early, the session returns to where it was."""
        left, has_left = self.session.head, False

        async def note(event: Event) -> None:
            nonlocal has_left
            has_left |= isinstance(event, Sent)
            await emit(event)

        await self._engine.revisions.fork(self.session, place)
        try:
            await self._send(given, chosen, note, can_ask=can_ask)
        except (RectoError, asyncio.CancelledError) as why:
            newest = await anext((message async for message in self.path() if not message.compaction), None)
            is_unsent = not has_left or (isinstance(why, ProviderError) and not why.sent)
            if is_unsent or (newest.id if newest else None) == place:
                await self._engine.revisions.return_to(self.session, left)
                if isinstance(why, RectoError) and not isinstance(given, AnswerAgain):
                    why.add("your new text is kept on a branch of its own")
            raise

    async def _send(self, given: TurnStart, chosen: CallOptions, emit: Emit, *, can_ask: bool) -> None:
        session = self._begun()
        try:
            await self._engine.send(session, given, emit, chosen, can_ask=can_ask)
        except SpendLimit as why:
            why.add(f"your message is kept in {self.name}")
            raise
        except RectoError as why:
            if session.head and not await self._store.do(self._tree.was_sent, session.conversation):
                why.add(f"your message is kept in {self.name}")
            raise

    async def _addressed(self, given: Given, emit: Emit) -> Given:
        """The message without an agent named by its first word (`@reviewer`), who gets the new conversation."""
        name, rest = named_agent(given)
        known = await asyncio.to_thread(self._engine.agents.names) if name else []
        if name not in known:
            folder, is_word = self._engine.folder, name.replace("-", "_").isidentifier()
            if is_word and self.id is None and not any((folder / f"{name}{end}").exists() for end in ("", ".md")):
                near = "".join(get_close_matches(name, known, 1))
                hint = f" (did you mean @{near}?)" if near else ""
                told = f"there is no agent {name}{hint}: the message goes to {self.session.agent} as it is"
                await emit(Noticed(told))
            return given
        if self.id is not None and name != self.session.agent:
            raise Invalid(
                f"this conversation belongs to the agent {self.session.agent}: start a new one with @{name}", name=name
            )
        self.session.apply(agent=name)
        return rest

    async def ask(self, given: Given, **options: Unpack[AskOptions]) -> Reply:
        """The whole reply. Tools and compactions that need approval do not run."""
        return await reply_of(self.stream(given, can_ask=False, **options))

    async def edit(self, message: str, text: str, **options: Unpack[AskOptions]) -> Reply:
        """Replaces the text of an earlier user message, on a branch beside it, and returns the reply."""
        return await reply_of(self.stream_edit(message, text, can_ask=False, **options))

    async def regenerate(self, **options: Unpack[AskOptions]) -> Reply:
        """Another reply to the user's last message, for example by another `model`, on a branch beside the first."""
        return await reply_of(self.stream_regenerate(can_ask=False, **options))

    def stream_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        can_ask: bool = True,
        **options: Unpack[AskOptions],
    ) -> AsyncGenerator[Event, None]:
        """Works toward a goal, turn after turn, as events that end with RunEnded. Without a goal, continues the last
        run of this conversation, with its own limits unless others are given. `max_steps`: rounds of tool calls
        (default: 20); `max_cost`: US dollars. Closing the generator stops the run, which can continue later."""
        return events_of(partial(self._pursue, goal, max_steps, max_cost, options, can_ask=can_ask))

    async def _pursue(
        self,
        goal: str | None,
        max_steps: int | None,
        max_cost: float | None,
        options: AskOptions,
        emit: Emit,
        *,
        can_ask: bool,
    ) -> None:
        chosen = call_options(**options)
        if options.get("attachments"):
            raise Invalid("a goal cannot have attachments: name the files in it")
        begun = goal_run.new_run(goal, max_steps, max_cost) if goal is not None else None
        notes = await goal_run.check_can_run(self._engine, self.session, chosen, max_cost)
        if begun is None and self.id is None:
            goal_run.continued(None, self.name, max_steps, max_cost)
        session = self._begun()
        home = session.creation.id if session.creation else session.conversation
        with goal_run.run_lock(self._engine, home, self.name):
            run = begun or goal_run.continued(await self._store.do(self._last_run), self.name, max_steps, max_cost)
            for note in notes:
                await emit(note)

            async def send(message: str, emit: Emit) -> None:
                await self._send(message, chosen, emit, can_ask=can_ask)

            await goal_run.GoalRun(self._engine, session, run, send).go(emit)

    async def run_goal(
        self,
        goal: str | None = None,
        *,
        max_steps: int | None = None,
        max_cost: float | None = None,
        **options: Unpack[AskOptions],
    ) -> RunReport:
        """The same, to its end. Tools and compactions that need approval do not run."""
        report: RunReport | None = None
        events = self.stream_goal(goal, max_steps=max_steps, max_cost=max_cost, can_ask=False, **options)
        async for event in events:
            report = event.report if isinstance(event, RunEnded) else report
        assert report is not None
        return report

    @in_store
    def last_run(self) -> TaskRun | None:
        """The last run on this path, in its current state; None if there was none."""
        stored = self._last_run()
        return stored.run if stored else None

    def _last_run(self) -> StoredRun | None:
        return read_run(self._tree.page, self.session.head)

    async def stop_goal(self) -> bool:
        """Ends the run in progress here after its round of tool calls; False if there is none."""
        if self.session.run is None:
            return False
        self.session.run.stops = "you stopped it"
        return True

    async def queue(self, given: Given, *, attachments: Sequence[Attachment] = ()) -> WaitingMessage:
        """Stores a message during a reply. It enters before the next request of that turn, or as the next turn; outside
        a turn it waits for one."""
        message = user_message(await with_attachments(given, attachments))
        session = self._begun()
        return await queue_message(self._engine.store, session, message)

    @in_store
    def waiting(self) -> list[WaitingMessage]:
        """Messages waiting to enter this conversation, oldest first."""
        return self._store.waiting.of(self.id) if self.id else []

    @in_store
    def take_back(self, id: str | None = None) -> WaitingMessage:
        """Withdraws a waiting message (by default the newest) and deletes it."""
        return self._store.waiting.take_back(self.session.conversation, id)

    async def undo(self) -> Message:
        """Takes back the last message and its reply; both stay in the store."""
        return await self._engine.revisions.undo(self.session)

    async def fork(self, message: str) -> Message:
        """Continues from an earlier message, given by id or number: the next one starts a branch there."""
        found = await self.message(message)
        await self._engine.revisions.fork(self.session, found.id)
        return found

    async def switch(self, message: str) -> str:
        """Switches to the newest end of the branches through a message, and returns its id."""
        end = await self._store.do(self._tree.newest_end, (await self.message(message)).id)
        await self._engine.revisions.return_to(self.session, end)
        return end

    async def set_priority(self, message: str, priority: int) -> Message:
        """Sets how much a message matters to `hybrid`, from 1 to 10, overriding the priority from Recto."""
        found = await self.message(message)
        if found.compaction:
            raise Invalid("this message is a compaction, which is never sent itself", id=found.id)
        await self._store.do(self._tree.prioritise, found.id, priority)
        self.session.apply(loaded={})
        return found

    # -- compactions

    def stream_compaction(self, keep: str = "") -> AsyncGenerator[Event, None]:
        """Compacts now, as events; `keep` says what must be in the summary above all."""
        return events_of(partial(self._engine.compact, self.session, keep=keep))

    async def compact(self, keep: str = "") -> Compaction:
        async for _ in self.stream_compaction(keep):
            pass
        block = await self.compaction()
        assert block is not None
        return block

    async def clear(self) -> Compaction:
        """Starts over for the model; every message stays in the store."""
        return await self._engine.revisions.clear(self.session)

    async def uncompact(self) -> Compaction:
        """Takes back the newest compaction; later messages stay."""
        return await self._engine.revisions.uncompact(self.session)

    async def edit_summary(self, text: str) -> Compaction:
        return await self._engine.revisions.edit_summary(self.session, text)

    async def pin(self, message: str) -> Compaction:
        """Keeps a message, given by id or number, in every window from now on."""
        return await self._engine.revisions.pin(self.session, (await self.message(message)).id)

    async def unpin(self, message: str) -> Compaction:
        return await self._engine.revisions.unpin(self.session, (await self.message(message)).id)

    # -- your own client

    async def extend(self, messages: Sequence[Json]) -> ExtendedPath:
        """Stores the new ones of these messages, which have the form of OpenAI's or Anthropic's API. Repeating a list
        changes nothing, and a different one continues as a branch. System messages are kept for `prepare`."""
        system, entries = read_given(messages)
        session = self._begun()
        async with session.turn_lock():
            extended = await extend_path(self._engine, session, entries)
        self._system = system if system is not None else self._system
        self._extended = (*self._extended, *extended.notes)
        return extended

    async def prepare(self, given: Given | None = None, **options: Unpack[PrepareOptions]) -> PreparedRequest:
        """The request for a message, or for the messages given to `extend`: stored, compacted if needed, with recalled
        messages, and recorded. Nothing is sent, and no model is called."""
        system, summarizer = options.pop("system", None), options.pop("summarizer", None)
        if summarizer is not None and not callable(summarizer):
            raise Invalid(f"summarizer must be a function, not {shown(summarizer)}", option="summarizer")
        asked: AskOptions = options
        chosen = replace(
            call_options(**asked),
            system=system if system is not None else self._system,
            runs_tools=False,
            may_send=False,
            summarizer=summarizer,
            notes=self._extended,
        )
        start = AnswerAgain() if given is None else await with_attachments(given, asked.get("attachments", ()))
        user_message(start)  # rejected before a conversation is created for it
        session = self._begun()
        notes: list[str] = []

        async def note(event: Event) -> None:
            log_event(event)
            notes.extend(notes_of(event))

        async with session.turn_lock():
            try:
                exchange = await prepare_turn(self._engine, session, start, note, chosen)
            except RectoError as why:
                why.add(f"your message is kept in {self.name}")
                raise
        self._extended = ()
        return prepared_request(exchange, notes)

    async def record(self, prepared: PreparedRequest, reply: Any) -> Reply:
        """Stores the reply to a prepared request: the provider's response as object or dict, or a text. Its tool calls
        wait for their results, which the next message carries."""
        if not isinstance(prepared, PreparedRequest):
            raise Invalid(f"prepared must be the result of prepare, not {shown(prepared)}", argument="prepared")
        parts, session = reply_parts(reply), await self._stored()
        async with session.turn_lock():
            provider = GivenReply(prepared.turn.planned.context.provider, parts)
            answering = partial(answer_turn, self._engine, session, prepared.turn, provider)
            answered = await reply_of(events_of(answering))
        pending = tuple(call for call in answered.message.calls if answered.message.status == "pending")
        return replace(answered, pending_calls=pending)

    # -- the session

    async def _keep(self, **details: Any) -> None:
        if self.id is not None:
            await self._store.do(self._tree.change, self.id, details=details)

    def _begun(self) -> ChatSession:
        """The session; a new conversation is stored with its first message."""
        session = self.session
        if self.id is None and session.creation is None:
            session.apply(creation=NewConversation(new_id(), self._create))
        return session

    async def _stored(self) -> ChatSession:
        """The session of a stored conversation, for what is set before its first message."""
        session = self._begun()
        if session.creation is not None:
            await self._store.do(session.commit, self._engine.store, _no_step)
        return session

    def _create(self, id: str) -> None:
        session = self.session
        details: dict[str, Any] = {"model": session.model} if session.model else {}
        if session.vault and self._settings.origin("vault") == "option":
            details["vault"] = str(session.vault.root)
        if session.project:
            details[PROJECT] = str(session.project)
        if session.chosen:
            details[SETTINGS] = dict(session.chosen)
        self._number = self._tree.create(id=id, details=details, agent=session.agent).number


def _no_step() -> tuple[None, SessionChanges]:
    return None, {}
