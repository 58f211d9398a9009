"""Store: everything that is kept, in one file. Synchronous; the engine reaches it through one thread."""

from pathlib import Path
from types import TracebackType
from typing import Self

from recto.store.counts import Counts
from recto.store.database import BUSY_TIMEOUT_S, Database
from recto.store.kept import Kept
from recto.store.records import Records
from recto.store.references import Uses
from recto.store.sourced import SourceUses
from recto.store.tree import Tree


class Store:
    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.database = Database(path, busy_timeout_s=busy_timeout_s)
        self.tree = Tree(self.database)
        self.records = Records(self.database)
        self.counts = Counts(self.database)
        self.references = Uses(self.database)
        self.kept = Kept(self.database)
        self.sourced = SourceUses(self.database)

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
