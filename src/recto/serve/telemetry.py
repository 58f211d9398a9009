"""The server's reports on its work: metrics for Prometheus, and spans for an OpenTelemetry collector.

Spans follow the conventions for generative AI and are sent as OTLP over HTTP, in JSON. Our own code, because the
OpenTelemetry packages take 0.2 s to import and bring protobuf along. Texts of messages are never
included.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from msgspec import Struct, field

from recto import __version__
from recto.chat.message import Message
from recto.store.records import Record
from recto.store.store import Store
from recto.wire import Json, dumpb

log = logging.getLogger(__name__)

# -- metrics

BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Histogram(Struct):
    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS_S))
    total: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts = [count + (seconds <= bound) for bound, count in zip(BUCKETS_S, self.counts, strict=True)]
        self.total += 1
        self.seconds += seconds

    def lines(self) -> Iterator[str]:
        for bound, count in zip(BUCKETS_S, self.counts, strict=True):
            yield f'_bucket{{le="{bound:g}"}} {count}'
        yield f'_bucket{{le="+Inf"}} {self.total}'
        yield f"_sum {self.seconds:.6f}"
        yield f"_count {self.total}"


class Metrics(Struct):
    requests: dict[str, int] = field(default_factory=Counter)
    """By label: route, mode and status."""
    tokens: dict[str, int] = field(default_factory=Counter)
    compactions: int = 0
    first_byte: Histogram = field(default_factory=Histogram)
    whole: Histogram = field(default_factory=Histogram)

    def count(self, route: str, mode: str, status: int) -> None:
        self.requests[f'route="{route}",mode="{mode}",status="{status}"'] += 1

    def text(self, running: int) -> str:
        requests = [f"{{{labels}}} {count}" for labels, count in sorted(self.requests.items())]
        tokens = [f'{{kind="{kind}"}} {count}' for kind, count in sorted(self.tokens.items())]
        families: list[tuple[str, str, str, Iterable[str]]] = [
            ("requests_total", "counter", "Requests by route, mode and status.", requests),
            ("tokens_total", "counter", "Tokens that providers reported.", tokens),
            ("compactions_total", "counter", "Compactions that requests needed.", [f" {self.compactions}"]),
            ("replies_running", "gauge", "Replies that are on their way.", [f" {running}"]),
            ("first_byte_seconds", "histogram", "Time to the first byte of a reply.", self.first_byte.lines()),
            ("reply_seconds", "histogram", "Time to the end of a reply.", self.whole.lines()),
        ]
        lines: list[str] = []
        for name, kind, help, values in families:
            lines += [f"# HELP recto_{name} {help}", f"# TYPE recto_{name} {kind}"]
            lines += [f"recto_{name}{value}" for value in values]
        return "\n".join((*lines, ""))


# -- spans

CLIENT, FAILED = 3, 2
"""The kind of a span for an outgoing call, and the status of a failed one."""
# Providers with another name in the conventions.
PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}
PARAMETERS = ("temperature", "top_p", "max_tokens")


class ReplyTrace:
    """Data missing from a record: how the reply was requested, and when its first part arrived."""

    def __init__(self, mode: str, traceparent: str | None, *, is_stream: bool) -> None:
        """`traceparent`: the client's own span, as in the header of W3C's trace context."""
        self.mode, self.is_stream = mode, is_stream
        given = (traceparent or "").split("-")[:4]
        is_valid = [len(part) for part in given] == [2, 32, 16, 2] and set("".join(given)) <= set("0123456789abcdef")
        self.parent = (given[1], given[2]) if is_valid else None
        self._began_ns, self._first_ns = time.time_ns(), 0

    def note_part(self) -> None:
        self._first_ns = self._first_ns or time.time_ns()

    @property
    def first_s(self) -> float | None:
        return (self._first_ns - self._began_ns) / 1e9 if self._first_ns else None


def span_of(record: Record, reply: Message | None, trace: ReplyTrace, error: str) -> Json:
    """The span of a recorded request. `error`: the kind of error that it ended with."""
    trace_id, parent = trace.parent or (secrets.token_hex(16), "")
    span = {
        "traceId": trace_id,
        "spanId": secrets.token_hex(8),
        "name": f"chat {(record.account.model or '').partition(':')[2]}",
        "kind": CLIENT,
        "startTimeUnixNano": str(int(datetime.fromisoformat(record.created).timestamp() * 1e9)),
        "endTimeUnixNano": str(time.time_ns()),
        "attributes": _attributes(_facts(record, reply, trace, error)),
    }
    if parent:
        span["parentSpanId"] = parent
    if error:
        span["status"] = {"code": FAILED, "message": str(record.outcome.get("error", ""))}
    return span


def _facts(record: Record, reply: Message | None, trace: ReplyTrace, error: str) -> dict[str, Any]:
    provider, _, model = (record.account.model or "").partition(":")
    given, finish = record.account.parameters or {}, record.outcome.get("finish")
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model,
        "gen_ai.response.model": (reply.model or "").partition(":")[2] if reply else None,
        "gen_ai.conversation.id": record.conversation,
        "gen_ai.response.id": record.id,
        "gen_ai.response.finish_reasons": [str(finish)] if finish and not error else None,
        "gen_ai.response.time_to_first_chunk": trace.first_s if trace.is_stream else None,
        "gen_ai.request.stream": True if trace.is_stream else None,
        "error.type": error or None,
        "recto.mode": trace.mode,
        "recto.window.tokens": record.account.total,
        "recto.compaction": record.account.compaction,
        "recto.cost_usd": record.cost_usd,
    }
    facts |= {f"gen_ai.request.{name}": given.get(name) for name in PARAMETERS}
    if reply and (usage := reply.usage) and usage.reported:
        facts |= {
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read or None,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write or None,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning or None,
        }
    return facts


def _attributes(values: Mapping[str, Any]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in values.items() if value is not None]


def _value(value: Any) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # OTLP's JSON writes 64-bit numbers as strings
        case float():
            return {"doubleValue": value}
        case list() | tuple():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": str(value)}


# -- the collector

MOST_WAITING, MOST_AT_ONCE = 2048, 256
EVERY_S, TIMEOUT_S = 1.0, 10.0


class Collector(Struct, frozen=True):
    """Gets the spans; configured by OpenTelemetry's own variables."""

    url: str
    headers: Mapping[str, str]
    resource: Mapping[str, str]


def find_collector(environment: Mapping[str, str]) -> Collector | None:
    """None if no endpoint is configured, or everything is switched off."""

    def get(name: str) -> str:
        return environment.get(f"OTEL_{name}", "").strip()

    if get("SDK_DISABLED").lower() == "true":
        return None
    base = get("EXPORTER_OTLP_ENDPOINT").rstrip("/")
    url = get("EXPORTER_OTLP_TRACES_ENDPOINT") or (f"{base}/v1/traces" if base else "")
    if not url:
        return None
    headers = _pairs(get("EXPORTER_OTLP_HEADERS")) | _pairs(get("EXPORTER_OTLP_TRACES_HEADERS"))
    resource = {"service.name": "recto", "service.version": __version__} | _pairs(get("RESOURCE_ATTRIBUTES"))
    resource |= {"service.name": name} if (name := get("SERVICE_NAME")) else {}
    return Collector(url, headers, resource)


def _pairs(text: str) -> dict[str, str]:
    """`name=value,name=value`, with URL-encoded values."""
    pairs = [each.partition("=") for each in text.split(",") if "=" in each]
    return {name.strip(): unquote(value.strip()) for name, _, value in pairs if name.strip()}


class SpanExporter:
    """Sends spans to a collector. If it does not answer, only its spans are lost."""

    def __init__(self, collector: Collector, store: Store) -> None:
        self._collector, self._store = collector, store
        self._waiting: deque[Json] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._has_failed = False

    def read(self, request: str, reply: Message | None, trace: ReplyTrace, error: str) -> None:
        """The span of a finished request, from its record. Runs in the store's thread; a failure costs a span."""
        try:
            span = span_of(self._store.records.record(request), reply, trace, error)
        except Exception:
            log.exception("a request could not be made a span")
            return
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(span)

    def wake(self) -> None:
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send(EVERY_S))

    async def _send(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        while self._waiting:
            await self._post([self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))])

    async def _post(self, spans: list[Json]) -> None:
        import httpx2  # slow, and only if a collector is configured

        scope = {"name": "recto", "version": __version__}
        resource = {"attributes": _attributes(self._collector.resource)}
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]}
        headers = {"content-type": "application/json", "user-agent": f"recto/{__version__}", **self._collector.headers}
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_S) as client:
                answer = await client.post(self._collector.url, content=dumpb(body), headers=headers)
            problem = "" if answer.is_success else f"it answered with status {answer.status_code}"
        except (httpx2.HTTPError, httpx2.InvalidURL) as why:
            problem = str(why) or type(why).__name__
        if problem and not self._has_failed:
            log.warning("spans do not reach the collector at %s: %s", self._collector.url, problem)
        self._has_failed = bool(problem)

    async def close(self) -> None:
        if self._sending:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S):
                await self._send(0)
