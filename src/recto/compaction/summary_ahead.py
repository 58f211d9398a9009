"""SummaryAhead: a summary that was written in the background before its compaction is due.

Its answer and the end of its range are stored with its request, not as a block: a compaction may use it or not.
`SummariesAhead` runs the requests, one per conversation at a time."""

import asyncio
import logging
from collections.abc import Coroutine
from importlib import import_module
from typing import Any

from msgspec import Struct

from recto.base.concurrency import entered
from recto.chat.blocks import Made
from recto.errors import RectoError
from recto.store.database import Database
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest
from recto.turn.side_call import SideAnswer
from recto.window.compaction_block import is_held

log = logging.getLogger(__name__)


def summary_lease(conversation: str) -> str:
    """Held while a process summarises a conversation: others wait for it, or take over when it is gone."""
    return f"summary {conversation}"


class SummaryAhead(Struct, frozen=True):
    last: str
    answer: SideAnswer | None
    """None if it failed."""


def is_due_soon(planned: PlannedRequest) -> bool:
    """True if a model should write the next compaction's summary now."""
    size, context = planned.window.total, planned.context
    is_near = 0 < context.settings.prepare_at * planned.window.limit <= size
    has_writer = context.has_summary_writer
    return context.compacts and has_writer and is_near and not is_held(planned.loaded.view.compaction, size)


def find_ahead(store: Store, conversation: str, compaction: int | None) -> SummaryAhead | None:
    """The newest one; None if it does not follow the Compaction in force, or was stopped."""
    request = store.records.latest(conversation, "ahead")
    record = store.records.record(request) if request else None
    if record is None or record.account.ahead is None or record.account.compaction != compaction:
        return None
    outcome, last, model = record.outcome, record.account.ahead, record.account.model or ""
    text, finish = outcome.get("text"), outcome.get("finish")
    if finish in (None, "stopped"):
        return None
    if not text:
        return SummaryAhead(last, None)
    made = Made(model.partition(":")[0], model, outcome.get("duration_s") or 0.0)
    return SummaryAhead(last, SideAnswer(str(text), str(finish), bool(outcome.get("called")), made))


class SummariesAhead:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, conversation: str, work: Coroutine[Any, Any, None]) -> None:
        """Does nothing if one is still running for this conversation."""
        if conversation in self._tasks:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(self._run(conversation, work))
        self._tasks[conversation] = task
        task.add_done_callback(lambda _: self._tasks.pop(conversation, None))

    async def _run(self, conversation: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with entered(self._database.hold(summary_lease(conversation))) as is_ours:
                if is_ours:
                    await asyncio.to_thread(import_module, "recto.compaction.compaction_work")  # many patterns
                    await work
        except RectoError as why:
            log.info("no summary was written ahead: %s", why.message)
        except Exception:  # a compaction writes its own
            log.exception("writing a summary ahead failed")
        finally:
            work.close()

    async def stop(self, conversation: str) -> None:
        task = self._tasks.get(conversation)
        # a task of another loop cannot be awaited, and ends with its loop
        if task and task.get_loop() is asyncio.get_running_loop():
            task.cancel()
            await asyncio.wait([task])

    async def close(self) -> None:
        for conversation in list(self._tasks):
            await self.stop(conversation)
