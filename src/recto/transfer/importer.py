"""Imports files into the store. A file is read twice: first to check all of it, then to store whole conversations, a
few per transaction."""

import hashlib
from collections.abc import Generator, Iterable
from contextlib import closing

from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid
from recto.store.conversation_copy import ConversationCopies, StoredBytes, StoredItem
from recto.transfer.recto_json import conversation_lines
from recto.transfer.report import (
    ConversationSource,
    ImportedConversation,
    ImportReport,
    IncomingConversation,
    Outcome,
    Tell,
)

# Messages per transaction; a single conversation may exceed it.
TOGETHER = 1_000


class Importer:
    def __init__(self, copies: ConversationCopies, tell: Tell | None = None) -> None:
        self._copies, self._tell = copies, tell

    def run(self, source: ConversationSource) -> ImportReport:
        """Store everything or, if anything in the file is wrong, nothing."""
        # closes the file immediately, even if an error ends the reading
        with closing(self._read(source, 0)) as read:
            outcomes = [self._outcome(each, each.items) for each in read]
        done: list[ImportedConversation] = []
        with closing(self._read(source, source.size)) as read:
            pairs = zip(read, outcomes, strict=True)
            while len(done) < len(outcomes):
                with self._copies.together():
                    waiting = 0
                    for found, outcome in pairs:
                        done.append(self._store(found, outcome))
                        waiting += done[-1].messages
                        if waiting >= TOGETHER:
                            break
        return ImportReport(source.name, tuple(done))

    def _read(self, source: ConversationSource, before: int) -> Generator[IncomingConversation, None, None]:
        with closing(source.conversations()) as found:
            for each in found:
                if self._tell:
                    self._tell(before + each.position, 2 * source.size)
                yield each

    def _outcome(self, found: IncomingConversation, items: Iterable[StoredItem]) -> Outcome:
        stored = self._copies.find(found.conversation.id)
        if not found.is_complete:
            if stored is None:
                return "added" if any(isinstance(item, Message) for item in items) else "empty"
            return "extended" if self._missing(stored.id, items) else "unchanged"
        if stored is not None:
            given, here = content_hash(found.conversation, items), content_hash(stored, self._copies.read(stored.id))
            return "unchanged" if given == here else "different"
        if taken := self._copies.taken([item.id for item in items if not isinstance(item, StoredBytes)]):
            why = f"{taken} is in the store, in another conversation; nothing was imported"
            raise Invalid(f"{found.place}: {why}", id=found.conversation.id)
        return "added"

    def _missing(self, home: str, items: Iterable[StoredItem]) -> list[StoredItem]:
        """The messages that the store lacks, and the blobs; nothing if it has all messages."""
        items = list(items)
        ids = [item.id for item in items if isinstance(item, Message)]
        known = self._copies.known(home, ids)
        if known.issuperset(ids):
            return []
        return [item for item in items if not (isinstance(item, Message) and item.id in known)]

    def _store(self, found: IncomingConversation, outcome: Outcome) -> ImportedConversation:
        count = 0
        home, items = found.conversation, found.items
        if not found.is_complete:  # an export may hold a conversation twice
            items = list(items)
            outcome = self._outcome(found, items)
        if outcome == "extended":
            here = self._copies.find(home.id)
            # if the conversation continued here, its head stays
            known = {None, *(item.id for item in items if isinstance(item, Message))}
            head = home.head if here is None or here.head in known else None
            count = self._copies.extend(home.id, self._missing(home.id, items), head, home.updated)
        elif outcome == "added":
            count = self._copies.write(home, items)
        notes = found.notes if count or outcome == "added" else ()
        return ImportedConversation(home.id, home.title, outcome, count, notes)


def content_hash(conversation: Conversation, items: Iterable[StoredItem]) -> str:
    digest = hashlib.sha256()
    for line in conversation_lines(conversation, items):
        digest.update(line)
    return digest.hexdigest()
