"""Talk: one conversation from where a front end stands in it: ask, look, branch, compact."""

from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from recto import settings as configuration
from recto.agents.agent import Agent
from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message, Usage, now
from recto.chat.references import DocumentReference, once
from recto.engine import Engine
from recto.errors import Invalid, NotFound, RectoError, Unreachable
from recto.events import BRANCHED, Appended, ContextCompacted, Event, Noticed, Question, Referenced, Replied
from recto.loop import Loop
from recto.sources.session import Listed, Listing, Session, found
from recto.sources.source import KINDS, Kind, Source, SourceId, bare
from recto.text import clean
from recto.vault.vault import Vault
from recto.walk.setup import Choices
from recto.walk.standing import Standing
from recto.window.window import Window

# messages read at a time on a walk along a path
PAGE = 500


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one message, with what is known about it."""

    text: str
    message: Message
    window: Window
    request_id: str
    notes: tuple[str, ...] = ()
    asked: Message | None = None
    """The message that it answers, with the documents that it names."""

    @property
    def references(self) -> tuple[DocumentReference, ...]:
        """The documents of question and reply, each once."""
        return once((*(self.asked.references if self.asked else ()), *self.message.references))

    @property
    def usage(self) -> Usage:
        assert self.message.usage is not None
        return self.message.usage


@dataclass(frozen=True, slots=True)
class Covered:
    """What of a path its newest Compaction has archived."""

    depth: int = 0
    """Messages up to here are covered."""
    lifted: frozenset[str] = frozenset()
    compaction: str | None = None

    def active(self, message: Message) -> bool:
        """Whether the message is in the view now."""
        if message.compaction:
            return message.id == self.compaction
        return message.depth > self.depth or message.id in self.lifted


class Talk:
    """One conversation, from where this front end stands in it."""

    def __init__(
        self,
        engine: Engine,
        loop: Loop,
        vault: Vault | None,
        conversation: Conversation | None,
        agent: str = "default",
    ) -> None:
        self._engine, self._loop, self._vault = engine, loop, vault
        self._tree, self._settings = engine.store.tree, engine.settings
        self._choices = Choices(agent)
        self._document: str | None = None
        self._allowed: set[str] = set()
        # a model that was asked for by name stays with the conversation; one from the settings may change with them
        self._chosen = self._settings.model if self._settings.origin("model") == "option" else None
        self._standing: Standing | None = None
        if conversation is not None:
            model = self._chosen or str(conversation.details.get("model") or "")
            choices = Choices(conversation.agent, conversation.details.get("strategy"))
            self._standing = Standing(
                conversation.id, conversation.head, model, vault, choices=choices, allowed=self._allowed
            )
            # one that is named now wins over the conversation's own, and that over the settings'
            if self._settings.origin("vault") != "option" and conversation.details.get("vault"):
                self._remember(self._standing, Path(conversation.details["vault"]))

    def _remember(self, standing: Standing, folder: Path) -> None:
        """The vault that the conversation was begun over; one that is gone is told, and the chat goes on."""
        try:
            standing.vault = self._engine.libraries.open(folder)
        except RectoError as why:
            standing.notes.append(f"the vault of this conversation cannot be used: {why.message}")

    @property
    def standing(self) -> Standing:
        """Where we stand; a new conversation is stored when it is first needed."""
        if self._standing is None:
            details = {"model": self._chosen} if self._chosen else {}
            if self._vault and self._settings.origin("vault") == "option":
                details["vault"] = str(self._vault.root)
            if self._choices.conversation:
                details["strategy"] = self._choices.conversation
            made = self._tree.create(details=details, agent=self._choices.agent)
            self._standing = replace(self._outside, conversation=made.id)
        return self._standing

    @property
    def _outside(self) -> Standing:
        """Where we stand as long as nothing is stored: in no conversation yet."""
        return self._standing or Standing(
            "", None, self._chosen or "", self._vault, self._document, self._choices, allowed=self._allowed
        )

    @property
    def id(self) -> str | None:
        return self._standing.conversation if self._standing else None

    @property
    def model(self) -> str:
        """Who answers: asked for by name, else the agent's, else the settings'."""
        return self._outside.model or self.agent.model or self._settings.model

    @property
    def agent(self) -> Agent:
        """Whose conversation it is, as its files say now."""
        return self._engine.agents.last(self._outside.choices.agent)

    @property
    def vault(self) -> Vault | None:
        return self._outside.vault

    @property
    def document(self) -> str | None:
        """What is open beside the chat."""
        return self._outside.document

    def open_document(self, path: str | None) -> str | None:
        """A document of the vault goes with every message from now on, as far as it fits; None closes it."""
        if path is not None:
            if self.vault is None:
                raise Invalid("there is no vault to open a document of; --vault names one")
            path = self.vault.read(path).path
        self._document = path
        if self._standing is not None:
            self._standing.document = path
        return path

    def use(self, model: str) -> None:
        """Another model from the next message on, for this conversation. NotFound when nobody knows it."""
        self._loop.run(self._engine.setup.provider(model).model(model))
        self._chosen = model
        if self._standing is not None:
            self._standing.model, self._standing.declined = model, 0
            self._tree.change(self._standing.conversation, details={"model": model})

    @property
    def strategy(self) -> str | None:
        """What was chosen for this conversation; None when it follows agent, model and settings."""
        return self._outside.choices.conversation

    def use_strategy(self, name: str | None) -> None:
        """Another strategy for this conversation from the next message on; None follows the settings again."""
        if name is not None:
            configuration.check("context.strategy", name, "strategy")
        self._choices = replace(self._choices, conversation=name)
        if self._standing is not None:
            self._standing.choices = replace(self._standing.choices, conversation=name)
            self._tree.change(self._standing.conversation, details={"strategy": name})

    # -- sources

    def sources(self, kinds: Collection[Kind] = KINDS, *, fresh: bool = False) -> Listing:
        """Rules, references and tools of the agent, and how they are in this conversation; tools may start servers.
        `fresh`: every server is asked, whatever lists were kept."""
        return self._loop.run(self._engine.sourcing.listing(self._outside, self.agent, kinds, fresh=fresh))

    def add_source(self, named: str) -> Listed:
        """A source, such as `rule:style`, goes with every message from now on, whatever its include mode."""
        return self._amend(named, lambda session, source: session.add(source, now()))

    def remove_source(self, named: str) -> Listed:
        """Also one that was added and is there no longer: it does not come back when its file does."""
        session = self._engine.sourcing.session(self.id or "")
        try:
            return self._amend(named, lambda session, source: session.remove(source, now()))
        except NotFound:
            if session.forget(named) is None:
                raise
            self._engine.sourcing.amend(self.standing.conversation, lambda known: known.forget(named) or known)
            return Listed(bare(SourceId.parse(named)), "manual", None)

    def _amend(self, named: str, change: Callable[[Session, Source], Session]) -> Listed:
        listed = found(self.sources((SourceId.parse(named).kind,)), named)
        change(self._engine.sourcing.session(self.id or ""), listed.source)  # refused before anything is stored
        session = self._engine.sourcing.amend(self.standing.conversation, lambda known: change(known, listed.source))
        return session.listed(listed.source, listed.approval)

    def allow(self, tool: str) -> None:
        """Lets a tool (`server/tool`), or all of a server, run without asking, as long as this talk lasts."""
        self._allowed.add(tool)

    def ask_again(self, tool: str) -> None:
        """Takes back that a tool, or all tools of a server, may run without asking."""
        self._allowed.discard(tool)
        if self.id:
            self._engine.sourcing.amend(self.id, lambda session: session.disallow(tool))

    # -- asking

    async def send(
        self, text: str | bytes, *, strategy: str | None = None, answers: bool = True
    ) -> AsyncGenerator[Event, None]:
        """The message on its way, as events, in the caller's own loop; `strategy` is for this message alone.

        `answers`: whoever takes the events answers a CompactionProposed; without, nobody is asked.
        """
        if self._standing is None and not clean(text)[0].strip():
            raise Invalid("the message is empty: write something to send")  # before a conversation is made for it
        if strategy is not None:
            configuration.check("context.strategy", strategy, "strategy")
        async with aclosing(self._engine.send(self.standing, text, strategy, answers=answers)) as events:
            async for event in events:
                yield event
                if isinstance(event, Question):
                    event.settle()

    def stream(self, text: str | bytes, *, strategy: str | None = None, answers: bool = True) -> Generator[Event]:
        """The same for synchronous code; closing it (or Ctrl-C) stops the reply and keeps what came."""
        return self._loop.stream(self.send(text, strategy=strategy, answers=answers))

    def ask(self, text: str | bytes, *, strategy: str | None = None) -> Reply:
        last: Replied | None = None
        asked: Message | None = None
        notes: list[str] = []
        for event in self.stream(text, strategy=strategy, answers=False):
            if isinstance(event, Replied):
                last = event
            elif isinstance(event, Referenced):
                asked = event.message
            elif isinstance(event, Noticed):
                notes.append(event.text)
            elif isinstance(event, ContextCompacted):
                notes.extend(event.notes)
            elif isinstance(event, Appended) and event.branched:
                notes.append(BRANCHED)
        if last is None:
            raise Unreachable("the model gave no reply")
        return Reply(last.message.text, last.message, last.window, last.request, tuple(notes), asked)

    def window(self, text: str | bytes = "", *, strategy: str | None = None) -> Window:
        """What would be sent for this message, without sending or changing anything."""
        if strategy is not None:
            configuration.check("context.strategy", strategy, "strategy")
        return self._loop.run(self._engine.window(self._outside, text, strategy))

    def path(self) -> Iterator[Message]:
        """From the head back to the first message, read a page at a time."""
        at = self._outside.head
        while at:
            page = self._tree.page(at, most=PAGE)
            yield from page
            at = page[-1].parent if len(page) == PAGE else None

    def messages(self, *, limit: int | None = None) -> list[Message]:
        """The path to the head, oldest first; with `limit`, only its last messages."""
        return list(islice(self.path(), limit))[::-1]

    def covered(self) -> Covered:
        """What of the path is archived now."""
        tree, head = self._tree, self._outside.head
        newest = tree.compaction(head) if head else None
        if newest is None or newest.compaction is None:
            return Covered()
        last = newest.compaction.last
        depth = tree.message(last).depth if last else 0
        return Covered(depth, frozenset(newest.compaction.lifted), newest.id)

    def undo(self) -> Message:
        return self._loop.run(self._engine.moving.undo(self._outside))

    def fork(self, message: str) -> None:
        if self._standing is None:
            raise NotFound(f"message {message} is not part of this conversation, which has none yet", id=message)
        self._loop.run(self._engine.moving.fork(self._standing, message))

    def clear(self) -> Compaction:
        return self._loop.run(self._engine.moving.clear(self._outside))

    # -- compactions

    def compacting(self, keep: str = "") -> Generator[Event]:
        """A compaction now, as events; `keep` says what must be in its summary above all."""
        return self._loop.stream(self._engine.compact(self._outside, keep))

    def compact(self, keep: str = "") -> Compaction:
        for _ in self.compacting(keep):
            pass
        block = self.compaction()
        assert block is not None
        return block

    def compaction(self) -> Compaction | None:
        """The Compaction in force."""
        newest = self._tree.compaction(self._outside.head) if self._outside.head else None
        return newest.compaction if newest else None

    def compactions(self, *, limit: int = 100) -> list[Compaction]:
        """All on the path, the newest first: those that were replaced, edited or taken back too."""
        head = self._outside.head
        found = self._tree.compactions(head, limit=limit) if head else []
        return [message.compaction for message in found if message.compaction]

    def uncompact(self) -> Compaction:
        """Takes the newest compaction back; what was said since stays."""
        return self._loop.run(self._engine.moving.uncompact(self._outside))

    def edit_summary(self, text: str) -> Compaction:
        return self._loop.run(self._engine.moving.edit_summary(self._outside, text))

    def pin(self, message: str) -> Compaction:
        """The message is in every window from now on."""
        return self._loop.run(self._engine.moving.pin(self._outside, message))

    def unpin(self, message: str) -> Compaction:
        return self._loop.run(self._engine.moving.unpin(self._outside, message))

    def prioritise(self, message: str, priority: int) -> None:
        """How much a message matters to `hybrid`, from 1 to 10, in place of what it was given by itself."""
        if self.id is None or self._tree.owner(message) != self.id:
            raise NotFound(f"message {message} is not part of this conversation", id=message)
        if self._tree.message(message).compaction:
            raise Invalid(f"message {message} is a compaction, which is never sent itself", id=message)
        self._tree.prioritise(message, priority)
        self._outside.loaded = {}
