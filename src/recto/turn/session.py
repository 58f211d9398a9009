"""ChatSession: one client's place in a conversation: its head, its model and vault, and what it has seen so far."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from recto.chat.message import Role
from recto.events import Branched, BranchStart
from recto.settings.settings import ContextSettings
from recto.sources.source import Pick, SourceId
from recto.store.rows import AppendedMessage
from recto.store.store import Store
from recto.tasks.run import TaskRun
from recto.turn.loaded_view import LoadedView
from recto.turn.spending import SpendCap
from recto.turn.token_cache import TokenCache
from recto.vault.vault import Vault

T = TypeVar("T")
PROJECT = "project"
"""Where a conversation's details hold the folder that it was begun in."""
SETTINGS = "settings"
"""Where a conversation's details hold the settings that were chosen for it, by key."""
ASK_AGAIN_S = 0.005


class LastTools(Struct, frozen=True):
    """The tools of the last request."""

    compaction: int | None = None
    """The number of the Compaction that was in force."""
    chosen: tuple[SourceId, ...] = ()
    """Those that were chosen for a message: they stay until the next compaction."""
    sent: Mapping[SourceId, str] = field(default_factory=dict)
    """All of them, with the hash of the text that was sent."""
    short: frozenset[SourceId] = frozenset()
    """Those that were sent in a short form."""
    left_out: frozenset[SourceId] = frozenset()
    """Those that there was no room for."""


NO_ROOM = "the tools take more than their share of the window"
"""How the reason begins for which a tool is left out, and ends for which it is sent in a short form."""


def last_tools(compaction: int | None, sent: Iterable[Pick], passed: Iterable[Pick]) -> LastTools:
    tools = [pick for pick in sent if pick.kind == "tool"]
    return LastTools(
        compaction,
        tuple(pick.source for pick in tools if pick.mode == "agent"),
        {pick.source: pick.sha256 or "" for pick in tools},
        frozenset(pick.source for pick in tools if pick.because.endswith(NO_ROOM)),
        frozenset(pick.source for pick in passed if pick.kind == "tool" and pick.because.startswith(NO_ROOM)),
    )


class DraftedView(Struct, frozen=True):
    """What the last draft was made of. As long as nothing is said, the next one stands on the same."""

    head: str | None
    token_cache: TokenCache
    room: int
    loaded: LoadedView


SessionChanges = dict[str, Any]
"""What a step changed about a session, by the names of its fields."""


class NewConversation(Struct, frozen=True):
    """A conversation that is not stored yet."""

    id: str
    store: Callable[[str], None]
    """Stores it under its id, in the transaction of its first message: a process that is killed leaves no conversation
    without one."""


_FIRST: dict[Role, BranchStart] = {"assistant": "reply", "tool": "results"}


def moved(placed: AppendedMessage) -> SessionChanges:
    """The session after a message was appended; without a moved head it is on a branch of its own."""
    message = placed.message
    before = message.said - (0 if message.compaction else 1)
    first: BranchStart = "compaction" if message.compaction else _FIRST.get(message.role, "message")
    return {"head": message.id, "branch": None if placed.moved else Branched(message.parent, before, first)}


class ChatSession(Struct):
    """`head` is the last message this client has seen. The stored head may be ahead: then the client is on a branch.

    Steps read the fields and return what they changed; only `apply` and the note methods below write them.
    """

    conversation: str
    """Its id; empty as long as nothing is stored."""
    head: str | None = None
    model: str = ""
    """The model that was asked for by name; empty leaves it to agent and settings."""
    vault: Vault | None = None
    document: str | None = None
    """What the user has open beside the chat, by its path in the vault."""
    agent: str = "default"
    project: Path | None = None
    """The folder that the conversation was begun in: its memory applies wherever the conversation goes on."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """The settings that were chosen for the conversation, by key."""
    is_guest: bool = False
    """Somebody who shares this server: neither tools nor files of the machine are theirs."""
    branch: Branched | None = None
    """Where this client's path left the conversation's own; None as long as they are one."""
    request: str | None = None
    """The last request made from here: the next is stored as what it adds."""
    loaded: dict[TokenCache, LoadedView] = field(default_factory=dict)
    """What the last window was made of, by token cache: the next one adds to it."""
    drafted: DraftedView | None = None
    settings: ContextSettings | None = None
    """Those of the last turn; the next one most likely has the same."""
    last_tools: LastTools | None = None
    """None where the record of the last request has to be read."""
    stored_hashes: frozenset[str] = frozenset()
    """Hashes of source texts that the store has."""
    allowed: frozenset[str] = frozenset()
    """Tools that run without asking as long as this session lasts: `server` or `server/tool`."""
    declined: int = 0
    """How large the window was when the user last refused a compaction."""
    pending: str | None = None
    """The reply whose tool calls wait for results from the caller."""
    suspended: object = None
    """The prepared turn of `pending`, so that it goes on with the same picks."""
    run: TaskRun | None = None
    """The work toward a goal that is going on from here."""
    cap: SpendCap | None = None
    """What the key may spend whose client talks here; None for the owner, and for a key without a limit."""
    creation: NewConversation | None = None
    """What the next step stores first."""
    _shown: set[str] = field(default_factory=set)
    _waiting: list[str] = field(default_factory=list)
    _is_nearly_full: bool = False
    _has_untold_branch: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def apply(self, **changes: Any) -> None:
        """The one place where a session changes."""
        if changes.get("branch") is not None:
            self._has_untold_branch |= self.branch is None
            changes["branch"] = self.branch or changes["branch"]
        if "loaded" in changes:
            self.drafted = None
        for name, value in changes.items():
            setattr(self, name, value)

    def commit(self, store: Store, step: Callable[[], tuple[T, SessionChanges]]) -> T:
        """Runs a step in one transaction, then applies what it changed. The first one of a new conversation stores the
        conversation too.

        Called in the store's thread, so that a cancelled turn cannot part the two.
        """
        create = self.creation
        try:
            with store.database.write():
                if create:
                    create.store(create.id)
                    self.apply(conversation=create.id)
                result, changes = step()
        except BaseException:
            if create:
                self.apply(conversation="")
            raise
        self.apply(**changes)
        self.apply(creation=None)
        return result

    def task_runs(self, *, begins: bool = False) -> tuple[dict[str, object], ...]:
        """What a message that is stored now says about the run that it belongs to."""
        return (self.run.record(begins=begins),) if self.run else ()

    @property
    def is_answering(self) -> bool:
        """Whether a turn is going on here."""
        return self._turn.locked()

    @asynccontextmanager
    async def turn_lock(self) -> AsyncGenerator[None, None]:
        """One turn at a time. A lock of threads, asked again and again: turns may run on different loops."""
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  an Event belongs to one loop
            await asyncio.sleep(ASK_AGAIN_S)
        try:
            yield
        finally:
            self._turn.release()

    # -- notes to the user

    def note_later(self, text: str) -> None:
        """Shown with the next message."""
        self._waiting.append(text)

    def is_new(self, note: str) -> bool:
        """Whether a note was not shown before; it counts as shown from now on."""
        before = len(self._shown)
        self._shown.add(note)
        return len(self._shown) > before

    def new_notes(self, notes: Sequence[str], always: Sequence[str] = ()) -> list[str]:
        """What to show now: notes that waited, and of these the ones not shown before."""
        waiting, self._waiting = self._waiting, []
        if self.vault and (renamed := self.vault.untold_rename()):
            waiting.append(renamed)
        return waiting + [note for note in notes if note in always or self.is_new(note)]

    def new_branch(self) -> Branched | None:
        """The branch that the session has come to be on, once."""
        is_new, self._has_untold_branch = self._has_untold_branch, False
        return self.branch if is_new else None

    def becomes_nearly_full(self, is_nearly_full: bool) -> bool:
        """True once, when the window comes to be nearly full; again after it was not."""
        before, self._is_nearly_full = self._is_nearly_full, is_nearly_full
        return is_nearly_full and not before
