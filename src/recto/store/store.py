"""Store: one database of conversations, records, counts and blobs.

Its parts are synchronous. Asynchronous code runs them in a thread: `await store.do(store.tree.message, id)`.
"""

from pathlib import Path
from types import TracebackType
from typing import Self

from recto.base.concurrency import StoreThread
from recto.store.blobs import Blobs, TokenCounts, UsageReports
from recto.store.changes import StoreChanges
from recto.store.clients import AccessKeys, ClientMessages
from recto.store.conversation_copy import ConversationCopies
from recto.store.database import BUSY_TIMEOUT_S, Database
from recto.store.document_uses import DocumentUses
from recto.store.facts import Facts
from recto.store.records import Records
from recto.store.replies import AwaitedReplies
from recto.store.source_uses import SourceUses
from recto.store.spending import Charges, Spending
from recto.store.trash import Retention, Trash
from recto.store.tree import Tree
from recto.store.waiting import WaitingMessages


class Store(StoreThread):
    def __init__(self, location: Path | str, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        """`location` is the path of a SQLite file or the URL of a database."""
        self.database = Database(location, busy_timeout_s=busy_timeout_s)
        super().__init__(self.database.lanes)
        self.tree = Tree(self.database)
        self.changes = StoreChanges(self.database, self.tree)
        self.records = Records(self.database)
        self.token_counts = TokenCounts(self.database)
        self.usage_reports = UsageReports(self.database)
        self.document_uses = DocumentUses(self.database)
        self.blobs = Blobs(self.database)
        self.spending = Spending(self.database)
        self.source_uses = SourceUses(self.database)
        self.facts = Facts(self.database)
        self.waiting = WaitingMessages(self.database)
        self.access_keys = AccessKeys(self.database)
        self.client_messages = ClientMessages(self.database)
        self.awaited_replies = AwaitedReplies(self.database)
        self.charges = Charges(self.database)
        self.copies = ConversationCopies(self.database, self.blobs, self.source_uses)
        self.trash = Trash(self.database)
        self.retention = Retention(self.database, self.trash)

    def close(self) -> None:
        super().close()
        self.changes.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
