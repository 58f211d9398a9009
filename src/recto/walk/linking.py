"""Linking: the documents of one turn: what the message names is found, told and picked; what tools open is followed."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from recto.chat.message import Message
from recto.errors import RectoError
from recto.settings import ReferenceSettings
from recto.sources.documents import Finding, Roots, find_documents
from recto.sources.pick import Pick
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.vault.document import Document
from recto.walk.gisting import Gisting
from recto.walk.libraries import Libraries
from recto.walk.loading import Loaded
from recto.walk.picking import SHARE_OF_SOURCES, SHARE_WITHOUT_TOOLS, Room, pick_current, pick_documents, pick_sources
from recto.walk.referring import Referring
from recto.walk.setup import Ready
from recto.walk.standing import Standing
from recto.walk.turn import Picked, weigh_current


@dataclass(slots=True)
class Linking:
    standing: Standing
    ready: Ready
    settings: ReferenceSettings
    project: Path
    libraries: Libraries
    notes: list[str] = field(default_factory=list)
    """What the user should know: broken links, what does not fit."""
    not_picked: list[Pick] = field(default_factory=list)
    """Sources that were chosen and do not fit."""
    referring: Referring = field(init=False)
    _findings: list[Finding] = field(default_factory=list)
    _opened: Document | None = None

    def __post_init__(self) -> None:
        vault = self.standing.vault
        gists = self.libraries.gists(vault) if vault else None
        self.referring = Referring(vault, gists, self.settings.enabled)

    async def find(self, message: Message) -> Message:
        """The message with the documents that it names; a vault that fails here is noted, and the turn goes on."""
        return await asyncio.to_thread(self._find, message)

    def _find(self, message: Message) -> Message:
        vault = self.standing.vault
        roots = Roots(self.project, vault.root if vault else None, self.settings.outside)
        try:
            self._findings = find_documents(message.text, vault, roots)
            self._opened = self._open()
            return self.referring.asked(message, self._findings, self.ready.reader, self._opened)
        except (RectoError, OSError) as why:
            self.notes.append(f"the linked documents could not be read: {why}")
            return message

    async def keep(self, message: Message, store: Store, clerk: Clerk) -> Message:
        """The same, stored with its documents before anything is sent."""
        told = await self.find(message)
        if told is not message:
            await clerk.do(store.tree.refer, told)
        return told

    async def pick(self, message: Message, load: Callable[[], Awaitable[Loaded]]) -> list[Picked]:
        """What this message calls for, in the room that is not used: sources that were chosen, then documents."""
        chosen = self.ready.sources.chosen
        if not self._findings and not self._opened and not chosen:
            return []
        ready, before = self.ready, (await load()).before
        own = (await weigh_current(ready.scale, message, ())).own.tokens
        used = own + sum(entry.count.tokens for entry in before)
        # a compaction may come first, and makes at least this much room
        unused = max(ready.free - used, ready.budget.room - ready.budget.low_water - own, 0)
        share = SHARE_OF_SOURCES if self._findings or self._opened else SHARE_WITHOUT_TOOLS
        sources, self.not_picked = await pick_sources(ready.scale, chosen, int(unused * share))
        taken = sum(pick.tokens for each in sources for pick in each.picks)
        room = Room(max(0, unused - taken), bool(ready.reader))
        documents, notes = await pick_documents(ready.scale, self._findings, message.text, room)
        self.notes += notes
        picked = [*sources, *documents]
        if self._opened is None or any(pick.name == self._opened.path for each in documents for pick in each.picks):
            return picked
        with_them = (await weigh_current(ready.scale, message, picked)).weighed.count.tokens
        opened = await pick_current(ready.scale, self._opened, max(0, ready.free - used + own - with_them))
        if opened is None:
            self.notes.append(f"{self._opened.path} does not fit in the window and was left out")
        return [*picked, *([opened] if opened else ())]

    def _open(self) -> Document | None:
        """What the user has open beside the chat."""
        path, vault = self.standing.document, self.standing.vault
        if path is None or vault is None:
            return None
        try:
            return vault.read(path)
        except RectoError as why:
            self.notes.append(f"{path} could not be read: {why.message}")
            return None

    def end(self, gisting: Gisting) -> None:
        """The reply is there: lines about long documents are written behind it."""
        referring = self.referring
        if referring.gists and referring.documents and self.settings.gists:
            gisting.begin(self.standing, self.ready, list(referring.documents.values()), referring.gists)
