"""ProviderCounts: asks providers that count tokens for their own count of a request.

In the background while our estimates for a model are not calibrated yet, and before sending a request that comes close
to the window. Such a count is treated like the usage report of a reply. A provider that does not answer is not asked
again."""

import logging
import time
from collections.abc import Callable

from recto.base.concurrency import TaskSet
from recto.errors import Overflow, ProviderError, RectoError
from recto.providers.remote import ProbeSchedule, RemoteProvider
from recto.store.store import Store
from recto.turn.planned_request import PlannedRequest, reply_request
from recto.turn.turn import Turn
from recto.window.calibration import ENOUGH, LARGEST_REPORT

log = logging.getLogger(__name__)

NEAR, NEAR_UNCALIBRATED = 0.9, 0.7
"""Shares of the room from which on a request is counted before it is sent. The first estimates are the worst."""
WAIT_S, WAIT_IN_BACKGROUND_S = 2.0, 20.0


class ProviderCounts:
    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._tasks = TaskSet()
        self._schedules: dict[str, ProbeSchedule] = {}

    async def overflow(self, planned: PlannedRequest, turn: Turn) -> Overflow | None:
        """Why the provider would reject the request as too long, by its own count; None if it would not, or if that is
        unknown. Waits for the count only close to the window."""
        provider, model = planned.context.provider, planned.context.model
        if not isinstance(provider, RemoteProvider) or not model.window or planned.window.exact:
            return None
        schedule = self._schedules.get(provider.name)
        if not planned.context.settings.count_at_provider or not (schedule is None or schedule.is_due):
            return None
        is_new = planned.window.calibration.replies < ENOUGH
        room = model.window - planned.window.reserve
        is_near = planned.window.total >= room * (NEAR_UNCALIBRATED if is_new else NEAR)
        if not is_near and not is_new:
            return None
        body = reply_request(planned, turn.session.conversation, turn.message).body
        if not is_near:
            self._tasks.begin(self._calibrate(planned, provider, body))
            return None
        count = await self._count(planned, provider, body, WAIT_S)
        # without the reserve, which is our own choice: the provider adds only the longest reply that the request asks
        # for
        most = model.window - (planned.context.parameters.max_tokens or 0)
        if count is None or count <= most:
            return None
        return Overflow(f"{provider.name} counts {count:,} tokens, and {model.name} has room for {most:,}.")

    async def close(self) -> None:
        await self._tasks.close()

    async def _calibrate(self, planned: PlannedRequest, provider: RemoteProvider, body: bytes) -> None:
        try:
            await self._count(planned, provider, body, WAIT_IN_BACKGROUND_S)
        except RectoError:
            log.exception("a count of the provider could not be kept")

    async def _count(self, planned: PlannedRequest, provider: RemoteProvider, body: bytes, wait_s: float) -> int | None:
        try:
            count = await provider.count_tokens(body, wait_s)
        except ProviderError as why:
            log.info("%s", why.message)
            self._schedules.setdefault(provider.name, ProbeSchedule(self._clock)).failed()
            return None
        if count is None or count > LARGEST_REPORT:
            return None
        report = planned.window.report(count, planned.token_cache.counter.key)
        await self._store.do(self._store.usage_reports.add, planned.context.model.name, report)
        return count
