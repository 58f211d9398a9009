"""ModelList: the models that a server offers, with the windows that it tells: `/v1/models` and its relatives.

Knows the answers of vLLM, LM Studio, LiteLLM, llama.cpp, OpenRouter, Groq, Mistral, Together and Anthropic. Knows
nothing of keys.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Unreachable
from recto.providers.model import Model, reported_count
from recto.wire import Json, loads

if TYPE_CHECKING:
    from httpx2 import AsyncClient

PROBE_S = 2.0
MAX_LIST_BYTES = 16 * 1024 * 1024
SMALLEST_WINDOW, LARGEST_WINDOW = 256, 100_000_000
# The first that a server tells counts: how much it reads now, before how much the model could read.
WINDOW_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "n_ctx",
    "context_window",
    "context_length",
    "max_input_tokens",
    "max_context_length",
    "max_context_window_tokens",
    "n_ctx_train",
)
OUTPUT_FIELDS = ("max_output_tokens", "max_completion_tokens", "max_output_length")
INNER = ("meta", "model_info", "top_provider", "limits", "capabilities")
NAMES = ("id", "model_name", "key", "name")
FREE_FAILURES, LONGEST_PAUSE_S = 3, 60.0

Ask = Callable[[str], Awaitable[tuple[int, Json]]]
"""Asks a path; the status and the JSON of the answer."""


class ListedModel(Struct, frozen=True):
    id: str
    window: int | None = None
    max_output: int | None = None
    is_loaded: bool = True
    """False for a model that its server loads on demand, perhaps with a smaller window."""

    def applied(self, model: Model) -> Model:
        """The model with the numbers of its server."""
        if self.window:
            model = replace(model, window=self.window, window_from="the server")
        if self.max_output and not model.max_output:
            model = replace(model, max_output=self.max_output, max_output_from="the server")
        return model


class ProbeSchedule:
    """When to ask again a server that did not answer: at once the first times, then after growing pauses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures, self._next = 0, float("-inf")

    @property
    def is_due(self) -> bool:
        return self._clock() >= self._next

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FREE_FAILURES:
            self._next = self._clock() + min(2.0**self._failures, LONGEST_PAUSE_S)


class ModelList:
    def __init__(self, ask: Ask, paths: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        """The later paths are asked only for windows that the earlier ones do not tell."""
        self._ask, self._paths = ask, paths
        self._known: dict[str, list[ListedModel]] = {}
        self._unsettled: set[str] = set()
        """Paths that are asked again, because they told of a model that was not loaded."""
        self._schedule = ProbeSchedule(clock)

    async def about(self, id: str) -> ListedModel | None:
        """What the server tells about a model; None where it tells nothing or does not answer."""
        found = None
        for path in self._paths:
            if (models := await self._models(path)) is None:
                break
            found = _named(id, models) or found
            if found and found.window:
                if not found.is_loaded:
                    self._unsettled.add(path)
                break
        return found

    async def all(self) -> list[ListedModel]:
        """Every model that the server lists. Raises Unreachable."""
        offered: dict[str, ListedModel] = {}
        for path in self._paths:
            for model in await self._read(path):
                known = offered.get(model.id)
                offered[model.id] = model if known is None or not known.window else known
            if offered and all(model.window for model in offered.values()):
                break
        return list(offered.values())

    async def _models(self, path: str) -> list[ListedModel] | None:
        """What the path tells, kept once it was told; None where the server does not answer now."""
        is_asked = path not in self._known or path in self._unsettled
        if is_asked and self._schedule.is_due:
            try:
                self._known[path] = await self._read(path)
            except Unreachable:
                self._schedule.failed()
            if path in self._unsettled:
                self._schedule.failed()
                self._unsettled.discard(path)
        return self._known.get(path)

    async def _read(self, path: str) -> list[ListedModel]:
        status, answer = await self._ask(path)
        if status >= 500 or status in (408, 429):
            raise Unreachable(f"The server answers with status {status}.")
        return read_model_list(answer) if 200 <= status < 300 else []


async def ask_json(
    client: "AsyncClient", url: str, headers: Mapping[str, str], content: bytes | None = None, wait_s: float = PROBE_S
) -> tuple[int, Json]:
    """The status and the answer, which is None where it is not JSON, or is far too long. `content` is posted. Raises
    Unreachable."""
    import httpx2  # slow, and only to ask

    body, method = bytearray(), "GET" if content is None else "POST"
    try:
        async with asyncio.timeout(wait_s), client.stream(method, url, headers=headers, content=content) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_LIST_BYTES:
                    return response.status_code, None
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as why:
        raise Unreachable("The server cannot be reached; check that it runs.") from why
    try:
        return response.status_code, loads(bytes(body))
    except (ValueError, RecursionError):
        return response.status_code, None


def read_model_list(answer: Json) -> list[ListedModel]:
    """The models of a list, each once; of several entries with one name the smallest window counts."""
    if isinstance(answer, dict):
        answer = next((answer[name] for name in ("data", "models") if isinstance(answer.get(name), list)), None)
    found: dict[str, ListedModel] = {}
    for item in answer if isinstance(answer, list) else ():
        id = next((item[name] for name in NAMES if item.get(name)), None) if isinstance(item, dict) else None
        if isinstance(id, str):
            window, most = _number(item, WINDOW_FIELDS), _number(item, OUTPUT_FIELDS)
            if (known := found.get(id)) and known.window and window:
                window = min(known.window, window)
            found[id] = ListedModel(id, window, most, item.get("state") != "not-loaded")
    return list(found.values())


def _number(item: Mapping[str, Any], names: Sequence[str]) -> int | None:
    tables = list(_tables(item))
    for name in names:
        for table in tables:
            count = reported_count(table.get(name))
            if count and SMALLEST_WINDOW <= count <= LARGEST_WINDOW:
                return count
    return None


def _tables(item: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The entry and the tables in it that hold facts."""
    yield item
    for name in INNER:
        if isinstance(inner := item.get(name), dict):
            yield from _tables(inner)


def _named(id: str, models: Sequence[ListedModel]) -> ListedModel | None:
    """The entry of a model: by its id, or by the last part of it."""
    wanted = id.lower()
    for match in (str.lower, lambda each: each.lower().rsplit("/", 1)[-1]):
        if found := [model for model in models if match(model.id) == match(wanted)]:
            return found[0]
    return None
