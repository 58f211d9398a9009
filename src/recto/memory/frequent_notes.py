"""FrequentNotes: often used notes become facts of kind `reference`: link, path, one line, last use.

Works in the background from the uses counted by the store, so that no turn writes for it. Progress is a mark in the
index of facts; without it all uses are read again, which changes nothing.
"""

import logging
from pathlib import Path

from msgspec.structs import replace

from recto.base.background import BackgroundWorker
from recto.base.locations import vault_folder
from recto.errors import NotFound, RectoError
from recto.memory.fact_memory import FactMemory
from recto.settings.settings import ContextSettings
from recto.store.document_uses import RecentUses
from recto.store.fact import MemoryFact, NoteReference, note_key
from recto.store.store import Store
from recto.turn.citations import document_line
from recto.turn.session import ChatSession
from recto.vault.vault_search import FoundDocument, OpenVaults

log = logging.getLogger(__name__)

LEARNED_BY = "Recto"
# A note is used often if the user named it this many times, in this many conversations. Finds by a search or a tool say
# less: FOUND_PER_NAMED of them count as one.
NAMED, CONVERSATIONS, FOUND_PER_NAMED = 3, 2, 3
# How many of the latest uses are examined; how many uses per step, which names each note once; and how many a caller
# waits for.
LOOKED_AT, BATCH, FEW = 60, 200_000, 2_000
# The bonus of an often used note in the suggestions for a conversation.
RAISED = 0.1
CLOSE_TIMEOUT_S = 1.0


class FrequentNotes:
    def __init__(self, store: Store, facts: FactMemory, vaults: OpenVaults, home: Path) -> None:
        self._store, self._facts, self._vaults, self._home = store, facts, vaults, home
        self._worker = BackgroundWorker(self._some, "recto-notes")

    def wake(self, session: ChatSession, settings: ContextSettings) -> None:
        """Call this when something may have been used."""
        if session.vault and settings.memory_integration and settings.use_facts:
            self._worker.wake()

    def of_vault(self, vault: Path, settings: ContextSettings) -> dict[str, MemoryFact]:
        """The facts about a vault's notes by path, current unless much was used since; none if facts are disabled."""
        if not (settings.memory_integration and settings.use_facts):
            return {}
        if self._store.document_uses.newest - self._facts.uses_seen <= FEW:
            self._step()
        else:
            self._worker.wake()
        notes = self._store.facts.notes()
        return {fact.note.path: fact for fact in notes if fact.note and fact.note.vault == str(vault)}

    def _some(self) -> bool:
        """Do one step of background work. Never raises: the next step tries again."""
        try:
            return self._step()
        except RectoError:
            log.info("could not update the facts about notes", exc_info=True)
        except Exception:
            log.exception("could not update the facts about notes")
        return False

    def _step(self) -> bool:
        if not (newest := self._store.document_uses.newest):
            return False
        reached = self._facts.uses_seen
        if reached > newest:  # the index of another store, or of one that was emptied
            reached = 0
        last = min(newest, reached + BATCH)
        for vault, path in self._store.document_uses.used_between(reached, last):
            if vault:
                self._look_at(vault, path)
        if last != reached:
            self._facts.uses_seen = last
        return last < newest

    def _look_at(self, vault: str, path: str) -> None:
        try:
            known = self._store.facts.of_note(note_key(vault, path))
        except NotFound:  # forgotten facts stay forgotten
            return
        uses = self._store.document_uses.recent(vault, path, LOOKED_AT)
        if known is None and not is_often(uses):
            return
        note = self._described(vault, path) or (known.note if known else None)
        if note is None or (known is None and self._facts.known(note.text)):
            return
        self._store.facts.keep_note(note, LEARNED_BY, uses.count, uses.last or (known.last_used if known else "") or "")

    def _described(self, vault: str, path: str) -> NoteReference | None:
        """The current note; None if it is gone or in no vault."""
        root = Path(vault)
        if not vault_folder(self._home, root).is_dir():
            return None
        try:
            opened = self._vaults.open(root)
            line = document_line(opened.read(path), self._vaults.summaries(opened))
            return NoteReference(vault, path, opened.shortest_link(path), line)
        except RectoError:
            return None

    def close(self) -> None:
        self._worker.close(CLOSE_TIMEOUT_S)


def often_used(hit: FoundDocument, fact: MemoryFact | None) -> FoundDocument:
    """Raise the score of a found note that is used often: learning only raises scores."""
    if fact is None:
        return hit
    last = f", last {fact.last_used[:10]}" if fact.last_used else ""
    because = f"{hit.because}; used often ({fact.uses} times{last})"
    return replace(hit, score=round(min(1.0, hit.score + RAISED), 2), because=because)


def is_often(uses: RecentUses) -> bool:
    weight = uses.named * FOUND_PER_NAMED + uses.found
    return uses.conversations >= CONVERSATIONS and weight >= NAMED * FOUND_PER_NAMED
