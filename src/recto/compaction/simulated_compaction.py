"""SimulatedCompaction: a cut as it would be carried out, in memory: no model is asked and nothing is stored.

Where a model would write the summary, chosen sentences of the originals stand in.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from recto.chat.blocks import Compaction
from recto.compaction.run import CompactionRun
from recto.errors import RectoError
from recto.events import CompactionProposed, Event
from recto.turn.context import TurnContext


@dataclass(slots=True)
class SimulatedCompaction(CompactionRun):
    aside: tuple[str, ...] = ()
    """What the Compactions before it set aside."""
    writer: TurnContext | None = None
    """The model that would write the summary; None where none was needed, or no model could."""

    async def carry_out(self) -> None:
        """As `run`, for a user who agrees to every compaction."""

        async def agree(event: Event) -> None:
            if isinstance(event, CompactionProposed):
                event.accept()

        await self.run(agree)

    @property
    def kept(self) -> Compaction | None:
        """The Compaction that would be stored; None where what does not fit is left out of this request alone."""
        return self.block if self._is_kept else None

    def _store_block(self, block: Compaction, before: Compaction | None) -> bool:
        return True

    async def _writers(self) -> tuple[list[TurnContext], list[str]]:
        try:
            writers, notes = await CompactionRun._writers(self)
        except RectoError:
            return [], []
        self.writer = writers[0] if writers else None
        return [], notes

    async def _set_aside(self, head: str, before: Compaction | None) -> tuple[str, ...]:
        return self.aside if before else ()

    async def _plan_again(self) -> None:
        """Old tool results shrink first; what was written ahead in the stored conversation belongs to other cuts."""
        if self._needs_summary:
            self.planned = replace(self.planned, plan=self._plan(None))
