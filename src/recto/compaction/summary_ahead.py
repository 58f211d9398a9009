"""SummaryAhead: a summary that was written in the background before its compaction is due.

Its answer and the end of its range are stored with its request, not as a block: a compaction may use it or not.
`SummariesAhead` runs the requests, one per conversation at a time."""

import asyncio
import logging
import sys
from collections.abc import Coroutine
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from msgspec import Struct

from recto.base.background import FOREGROUND
from recto.base.concurrency import entered
from recto.chat.blocks import Compaction, Made
from recto.errors import RectoError
from recto.store.database import Database
from recto.store.records import Record
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest
from recto.turn.side_call import SideAnswer
from recto.window.compaction_block import is_held

log = logging.getLogger(__name__)
AHEAD = "written ahead"
WRITER = "recto.compaction.compaction_work"
UNUSED = f"a summary that was {AHEAD} is not used"
STOPPED = f"a summary that was being {AHEAD} was stopped: waiting for it would have freed too little"


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


def _newest(store: Store, conversation: str) -> Record | None:
    request = store.records.latest(conversation, "ahead")
    return store.records.record(request) if request else None


def find_ahead(store: Store, conversation: str, compaction: int | None) -> SummaryAhead | None:
    """The newest one; None if it does not follow the Compaction in force, or was stopped."""
    record = _newest(store, conversation)
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


def find_running(store: Store, conversation: str, compaction: int | None) -> str | None:
    """The last message covered by a summary ahead in progress."""
    record = _newest(store, conversation)
    is_running = record and record.account.compaction == compaction and not record.outcome.get("finish")
    return record.account.ahead if record and is_running else None


def ahead_problem(store: Store, conversation: str, head: str | None) -> str:
    """Why the newest summary ahead cannot serve; empty if there is none, if it was stopped, or if a Compaction since
    has used it or explained why not."""
    record = _newest(store, conversation)
    if record is None or head is None or record.outcome.get("finish") in (None, "stopped"):
        return ""
    before, newest = record.account.compaction or 0, store.tree.compaction(head)
    number = newest.compaction.compaction_number if newest and newest.compaction else 0
    later = store.tree.compactions(head, limit=number - before) if number > before else []
    blocks = [message.compaction for message in later if message.compaction]
    if number < before or any(map(_settles, blocks)):
        return ""
    if blocks:
        actions = ", ".join(dict.fromkeys(block.action for block in reversed(blocks)))
        return f"{UNUSED}: the beginning of the window has changed since ({actions})"
    if not record.outcome.get("text"):
        return f"no summary was written ahead: {record.outcome.get('error') or 'the answer was empty'}"
    return ""


def _settles(block: Compaction) -> bool:
    """True if this block has used, reported or outdated all earlier summaries ahead."""
    return bool(block.checks.get("ahead")) or block.action == "clear" or any(AHEAD in note for note in block.notes)


async def _load_writer() -> None:
    """Piece by piece between turns: the patterns take a fifth of a second to compile, which would block the loop."""

    def load() -> None:
        pieces = iter_modules(import_module("recto.summary").__path__, "recto.summary.")
        for name in (*(piece.name for piece in pieces), WRITER):
            FOREGROUND.wait()
            import_module(name)

    if WRITER not in sys.modules:
        await asyncio.to_thread(load)


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
                    await _load_writer()
                    await work
        except RectoError as why:
            log.info("no summary was written ahead: %s", why.message)
        except Exception:  # a compaction writes its own
            log.exception("writing a summary ahead failed")
        finally:
            work.close()

    def is_running(self, conversation: str) -> bool:
        return self._task(conversation) is not None

    async def is_done(self, conversation: str, within_s: float) -> bool:
        """Waits for the running one, for at most this long."""
        task = self._task(conversation)
        return task is None or bool((await asyncio.wait([task], timeout=within_s))[0])

    async def stop(self, conversation: str) -> None:
        if task := self._task(conversation):
            task.cancel()
            await asyncio.wait([task])

    def _task(self, conversation: str) -> asyncio.Task[None] | None:
        """The running task; None if it belongs to another loop: such a task cannot be awaited, and ends with its
        loop."""
        task = self._tasks.get(conversation)
        return task if task and task.get_loop() is asyncio.get_running_loop() else None

    async def close(self) -> None:
        for conversation in list(self._tasks):
            await self.stop(conversation)
