"""Imports files into the store. A file is read twice: first all of it is checked and nothing is stored, then whole
conversations are stored, a few in a transaction."""

import hashlib
from collections.abc import Generator, Iterable
from contextlib import closing

from msgspec.structs import replace

from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.errors import Invalid
from recto.store.conversation_copy import ConversationCopies, StoredBytes, StoredItem
from recto.transfer.incoming import ConversationSource, IncomingConversation, count_of
from recto.transfer.new_ids import with_new_ids
from recto.transfer.recto_json import ended
from recto.transfer.report import ImportedConversation, ImportReport, Outcome, Tell

# So many messages are stored in one transaction, or one conversation.
TOGETHER = 1_000


class Importer:
    def __init__(self, copies: ConversationCopies, *, as_new: bool = False, tell: Tell | None = None) -> None:
        self._copies, self._as_new, self._tell = copies, as_new, tell

    def run(self, source: ConversationSource) -> ImportReport:
        """Stores everything or, where anything of the file is wrong, nothing."""
        # closed at once, also where an error ends the reading: it has the file open
        with closing(self._read(source, 0)) as read:
            outcomes = [self._outcome(each) for each in read]
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

    # -- deciding

    def _outcome(self, found: IncomingConversation) -> Outcome:
        stored = self._copies.find(found.conversation.id)
        if not found.is_complete:
            return self._outcome_of_messages(found, is_stored=stored is not None)
        if stored is None:
            ids = [item.id for item in found.items if not isinstance(item, StoredBytes)]
            taken = self._copies.taken(ids)
            if taken is None:
                return "added"
            why = f"{taken} is in the store, in another conversation"
        else:
            same = content_hash(found.conversation, found.items) == content_hash(stored, self._copies.read(stored.id))
            if same:
                return "unchanged"
            why = f"conversation #{stored.number} of the store has the same id and other content"
        if self._as_new:
            return "kept apart"
        raise Invalid(f"{found.place}: {why}; --as-new keeps both. Nothing was imported", id=found.conversation.id)

    def _outcome_of_messages(self, found: IncomingConversation, *, is_stored: bool) -> Outcome:
        if not is_stored:
            return "added" if count_of(found.items) else "empty"
        return "extended" if self._missing(found) else "unchanged"

    def _missing(self, found: IncomingConversation) -> list[StoredItem]:
        """The messages that the store does not have, and the blobs."""
        items = list(found.items)
        known = self._copies.known(found.conversation.id, [item.id for item in items if isinstance(item, Message)])
        missing = [item for item in items if not (isinstance(item, Message) and item.id in known)]
        return missing if count_of(missing) else []

    # -- storing

    def _store(self, found: IncomingConversation, outcome: Outcome) -> ImportedConversation:
        count = 0
        if not found.is_complete:  # an export may hold a conversation twice
            outcome = self._outcome(found)
        if outcome == "extended":
            count = self._extend(found)
        elif outcome in ("added", "kept apart"):
            found = with_new_ids(found) if outcome == "kept apart" else found
            count = self._copies.write(found.conversation, found.items)
        home = found.conversation
        notes = found.notes if count or outcome == "added" else ()
        return ImportedConversation(home.id, home.title, outcome, count, notes)

    def _extend(self, found: IncomingConversation) -> int:
        """Where the conversation went on here, its head stays."""
        home = found.conversation
        items = list(found.items)
        stored = self._copies.find(home.id)
        here = stored.head if stored else None
        is_theirs = here is None or any(isinstance(item, Message) and item.id == here for item in items)
        missing = self._missing(replace(found, items=items))
        return self._copies.extend(home.id, missing, home.head if is_theirs else None, home.updated)


def content_hash(conversation: Conversation, items: Iterable[StoredItem]) -> str:
    digest = hashlib.sha256()
    for line in ended(conversation, items):
        digest.update(line)
    return digest.hexdigest()
