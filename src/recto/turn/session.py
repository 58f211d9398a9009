"""ChatSession: one client's place in a conversation: its head, its model and vault, and what it has seen so far."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, field

from recto.events import Branched
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
"""The key of the starting folder in a conversation's details."""
SETTINGS = "settings"
"""The key of the chosen settings in a conversation's details."""
ASK_AGAIN_S = 0.005


class LastTools(Struct, frozen=True):
    compaction: int | None = None
    """The number of the Compaction in force."""
    chosen: tuple[SourceId, ...] = ()
    """Tools chosen for a message, and kept until the next compaction."""
    sent: Mapping[SourceId, str] = field(default_factory=dict)
    """All of them, with the hash of the text that was sent."""
    left_out: frozenset[SourceId] = frozenset()


NO_ROOM = "the tools take more than their share of the window"
"""Begins the reason for leaving a tool out."""


def last_tools(compaction: int | None, sent: Iterable[Pick], passed: Iterable[Pick]) -> LastTools:
    tools = [pick for pick in sent if pick.kind == "tool"]
    return LastTools(
        compaction,
        tuple(pick.source for pick in tools if pick.mode == "agent"),
        {pick.source: pick.sha256 or "" for pick in tools},
        frozenset(pick.source for pick in passed if pick.kind == "tool" and pick.because.startswith(NO_ROOM)),
    )


SessionChanges = dict[str, Any]
"""Changed fields by name."""


class NewConversation(Struct, frozen=True):
    id: str
    store: Callable[[str], None]
    """Stores it in the transaction of its first message, so that a killed process leaves no empty conversation."""


def moved(placed: AppendedMessage) -> SessionChanges:
    """The changes after a message was appended. If the stored head did not move, the session is on its own branch."""
    message = placed.message
    before = message.said - (0 if message.compaction else 1)
    return {"head": message.id, "branch": None if placed.moved else Branched(message.parent, before)}


class ChatSession(Struct):
    """`head` is the last message this client has seen. If the stored head is ahead, the client is on a branch.

    Steps read the fields and return their changes; only `apply` and the note methods below write them."""

    conversation: str
    """Its id; empty until it is stored."""
    head: str | None = None
    model: str = ""
    """The model requested by name; if empty, agent and settings decide."""
    vault: Vault | None = None
    document: str | None = None
    """The document open beside the chat, by its path in the vault."""
    agent: str = "default"
    project: Path | None = None
    """The folder in which the conversation began: its memory applies wherever the conversation continues."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """Settings chosen for the conversation, by key."""
    is_guest: bool = False
    """True for a guest, who may use neither the tools nor the files of this server."""
    branch: Branched | None = None
    """The point where this client's path left the conversation's; None if it has not."""
    request: str | None = None
    """The last request made from here: the next is stored as a difference."""
    loaded: dict[TokenCache, LoadedView] = field(default_factory=dict)
    """The last window's view by token cache, to which the next one adds."""
    settings: ContextSettings | None = None
    """The last turn's settings, probably still right."""
    last_tools: LastTools | None = None
    """None if they must be read from the record of the last request."""
    stored_hashes: frozenset[str] = frozenset()
    """Hashes of source texts in the store."""
    allowed: frozenset[str] = frozenset()
    """Tools that run without asking during this session: `server` or `server/tool`."""
    declined: int = 0
    """The size of the window when the user last refused a compaction."""
    pending: str | None = None
    """The reply whose tool calls wait for results from the caller."""
    suspended: object = None
    """The prepared turn of `pending`, which continues with the same picks."""
    run: TaskRun | None = None
    """The agent's run in progress here."""
    cap: SpendCap | None = None
    """The limit of the client's key; None for the owner, and for a key without one."""
    creation: NewConversation | None = None
    """The conversation that the next step stores first."""
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
        for name, value in changes.items():
            setattr(self, name, value)

    def commit(self, store: Store, step: Callable[[], tuple[T, SessionChanges]]) -> T:
        """Runs a step in one transaction, then applies its changes. The first step of a new conversation also stores
        the conversation.

        Called in the store's thread, so that a cancelled turn cannot separate the two."""
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
        """The run that a message stored now belongs to, if any."""
        return (self.run.record(begins=begins),) if self.run else ()

    @asynccontextmanager
    async def turn_lock(self) -> AsyncGenerator[None, None]:
        """One turn at a time. Turns may run on different loops, so this polls a thread lock."""
        while not self._turn.acquire(blocking=False):  # noqa: ASYNC110  an Event belongs to one loop
            await asyncio.sleep(ASK_AGAIN_S)
        try:
            yield
        finally:
            self._turn.release()

    # -- notes to the user

    def note_later(self, text: str) -> None:
        """Shows a note with the next message."""
        self._waiting.append(text)

    def is_new(self, note: str) -> bool:
        """True for a note that was not shown before; it now counts as shown."""
        before = len(self._shown)
        self._shown.add(note)
        return len(self._shown) > before

    def new_notes(self, notes: Sequence[str], always: Sequence[str] = ()) -> list[str]:
        """`always`, the new notes, and those that waited."""
        waiting, self._waiting = self._waiting, []
        if self.vault and (renamed := self.vault.untold_rename()):
            waiting.append(renamed)
        return waiting + [note for note in notes if note in always or self.is_new(note)]

    def new_branch(self) -> Branched | None:
        """The session's new branch, returned only once."""
        is_new, self._has_untold_branch = self._has_untold_branch, False
        return self.branch if is_new else None

    def becomes_nearly_full(self, is_nearly_full: bool) -> bool:
        """True once; again after it was not full."""
        before, self._is_nearly_full = self._is_nearly_full, is_nearly_full
        return is_nearly_full and not before
