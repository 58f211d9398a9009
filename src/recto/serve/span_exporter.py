"""SpanExporter: sends spans to a collector as OTLP over HTTP, in JSON. Configured by OpenTelemetry's own variables.

Our own, because the packages of OpenTelemetry take 0.2 s to import and bring protobuf along. A collector that does not
answer costs nothing but its spans.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import unquote

from msgspec import Struct

from recto import __version__
from recto.chat.message import Message
from recto.serve.spans import ReplyTrace, TracedRequest, attributes, span_of
from recto.store.store import Store
from recto.wire import Json, dumpb

log = logging.getLogger(__name__)
ENDPOINT, TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
MOST_WAITING, MOST_AT_ONCE = 2048, 256
EVERY_S, TIMEOUT_S = 1.0, 10.0


class Collector(Struct, frozen=True):
    url: str
    headers: Mapping[str, str]
    resource: Mapping[str, str]
    """What is said about this process."""
    takes_content: bool


def find_collector(environment: Mapping[str, str]) -> Collector | None:
    """None where no endpoint is configured, or everything is switched off."""
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or environment.get("OTEL_TRACES_EXPORTER", "").lower() == "none":
        return None
    base = environment.get(ENDPOINT, "").strip().rstrip("/")
    url = environment.get(TRACES_ENDPOINT, "").strip() or (f"{base}/v1/traces" if base else "")
    if not url:
        return None
    headers = _pairs(environment.get("OTEL_EXPORTER_OTLP_HEADERS", ""))
    headers |= _pairs(environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS", ""))
    resource = {"service.name": "recto", "service.version": __version__}
    resource |= _pairs(environment.get("OTEL_RESOURCE_ATTRIBUTES", ""))
    resource |= {"service.name": name} if (name := environment.get("OTEL_SERVICE_NAME")) else {}
    takes = environment.get(CAPTURE, "").strip().lower() in ("true", "span_only", "span_and_event")
    return Collector(url, headers, resource, takes)


def _pairs(text: str) -> dict[str, str]:
    """`name=value,name=value`, with values as in addresses."""
    pairs = [each.partition("=") for each in text.split(",") if "=" in each]
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


class SpanExporter:
    def __init__(self, collector: Collector, store: Store) -> None:
        self._collector, self._store = collector, store
        self._waiting: deque[Json] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._has_failed = False

    def read(self, request: str, reply: Message | None, trace: ReplyTrace, error: str) -> None:
        """The span of a request that has ended, from its record. In the store's thread; a failure costs a span."""
        try:
            records = self._store.records
            body = records.rebuild(request) if self._collector.takes_content else b""
            span = span_of(TracedRequest(records.record(request), reply, trace, error, body))
        except Exception:
            log.exception("a request could not be told as a span")
            return
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(span)

    def wake(self) -> None:
        """Spans are sent soon, several at once."""
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_soon())

    async def _send_soon(self) -> None:
        await asyncio.sleep(EVERY_S)
        await self._send()

    async def _send(self) -> None:
        while self._waiting:
            await self._post([self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))])

    async def _post(self, spans: list[Json]) -> None:
        import httpx2  # slow, and only where a collector is configured

        scope = {"name": "recto", "version": __version__}
        told = {"attributes": attributes(self._collector.resource)}
        body = {"resourceSpans": [{"resource": told, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
        headers = {"content-type": "application/json", "user-agent": f"recto/{__version__}", **self._collector.headers}
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:
                answer = await client.post(self._collector.url, content=dumpb(body), headers=headers)
            problem = "" if answer.is_success else f"it answered with status {answer.status_code}"
        except (httpx2.HTTPError, httpx2.InvalidURL) as why:
            problem = str(why) or type(why).__name__
        if problem and not self._has_failed:
            log.warning("spans do not get to the collector at %s: %s", self._collector.url, problem)
        self._has_failed = bool(problem)

    async def close(self) -> None:
        """Sends what waits, in the time of one request."""
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await self._send()
