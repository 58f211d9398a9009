"""AsyncDeskReports: the statistics of a desk, over all conversations: sources, documents, tokens, costs."""

import asyncio
from typing import Unpack

from recto.arguments import checked_door
from recto.errors import Invalid
from recto.reports.document_stats import DocumentTally, Grouping
from recto.reports.source_report import SourceReport
from recto.search.hybrid_index import Progress
from recto.store.spending import Spent, SpentBy
from recto.store.token_use import TokenUse
from recto.store.use_over_time import Period, SourcePeriod, Together
from recto.store_reader import SpentWithin, StoreReader
from recto.vault.graph import Graph, used_graph
from recto.vault.vault import NO_VAULT, Vault


@checked_door
class AsyncDeskReports:
    vault: Vault | None
    _reader: StoreReader

    async def source_report(self, agent: str | None = None, since: str | None = None) -> SourceReport:
        """How replies used their sources, and what that suggests."""
        return await asyncio.to_thread(self._reader.source_report, agent, since)

    async def source_periods(
        self, by: Period = "month", agent: str | None = None, since: str | None = None
    ) -> list[SourcePeriod]:
        """How many sources were chosen for replies, how many of them used, and their scores, by month or day."""
        return await asyncio.to_thread(self._reader.source_periods, by, agent, since)

    async def spending(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[Spent]:
        """What requests cost, with summaries: in total, or by day, model, conversation or purpose."""
        return await asyncio.to_thread(lambda: self._reader.spending(by, progress, **within))

    async def token_use(
        self, by: SpentBy = "day", progress: Progress | None = None, **within: Unpack[SpentWithin]
    ) -> list[TokenUse]:
        """Tokens that requests read and wrote, and what they cost, summed as `spending` sums costs."""
        return await asyncio.to_thread(lambda: self._reader.token_use(by, progress, **within))

    async def document_stats(self, by: Grouping = "document") -> list[DocumentTally]:
        """Which documents of the vault conversations use."""
        return await asyncio.to_thread(self._reader.document_stats, self._vault().root, by)

    async def used_graph(self, by: Together = "turn") -> Graph:
        """The documents of the vault that were used, and how often two were in one turn or conversation."""
        return await asyncio.to_thread(self._used_graph, self._vault(), by)

    def _used_graph(self, vault: Vault, by: Together) -> Graph:
        found = self._reader.used_together(vault.root, by)
        return used_graph({note.path: note.title for note in vault.documents()}, found.uses, found.pairs)

    async def unnamed_documents(self) -> list[DocumentTally]:
        """Documents of the vault that nobody named: first those that tools came upon, then those never used."""
        vault = self._vault()
        notes = await asyncio.to_thread(lambda: [note.path for note in vault.documents()])
        return await asyncio.to_thread(self._reader.unnamed_documents, vault.root, notes)

    def _vault(self) -> Vault:
        if self.vault is None:
            raise Invalid(NO_VAULT)
        return self.vault
