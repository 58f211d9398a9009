"""EmbeddedProvider: a small offline model inside this process. Its server starts once, on first use.

weights.py finds the weights; the provider uses its server over loopback like any llama.cpp server.
"""

import asyncio
import os
import secrets
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recto.errors import Invalid, NotFound
from recto.providers.http import RetryPolicy, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.llama_server import LlamaServer
from recto.providers.model import Model
from recto.providers.openai import OpenAIFormat, OpenAIProvider
from recto.providers.provider import ReplyPart
from recto.providers.remote import ModelLookup
from recto.providers.weights import find_weights
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose

NAME = "embedded"
ID = "smollm2"
MIN_WINDOW = 256
MAX_WINDOW = 8192
CACHE_MIB = 512
# a slow machine reads a full window for minutes, and sends nothing before it is done
RETRY_POLICY = RetryPolicy(read_s=1200)
MAX_THREADS = 8
# Measured on questions about notes: without it one answer in seven repeated itself endlessly. A penalty on single
# words, or with a longer lookback, makes so small a model invent figures that it should quote.
DRY_MULTIPLIER = 0.8
DRY_ALLOWED = 3


@dataclass(frozen=True, slots=True)
class Running:
    address: str
    key: str
    server: object
    """Stops when it is garbage-collected."""


_running: dict[tuple[Path, int], Running] = {}
_starting = threading.Lock()


class EmbeddedProvider:
    name = NAME

    def __init__(self, home: Path, catalog: ModelLookup, window: int | None = None) -> None:
        """`window` overrides the window of the catalog."""
        self.format: Format = OpenAIFormat()
        self._home, self._catalog = home, catalog
        self._window = window
        self._provider: LlamaProvider | None = None

    async def model(self, name: str) -> Model:
        if name.removeprefix(f"{NAME}:") != ID:
            raise NotFound(f"There is no embedded model {name}; use {NAME}:{ID}.", model=name)
        return self._facts()

    async def counter(self, model: Model) -> TokenCounter:
        return await (await self._started()).counter(model)

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        provider = await self._started()
        async with aclosing(provider.stream(body, purpose)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        """Closes the connections; the server itself runs until the process ends."""
        if self._provider:
            await self._provider.close()

    def _facts(self) -> Model:
        model = self._catalog.find(NAME, ID)
        window = model.window if self._window is None else self._window
        if type(window) is not int or not MIN_WINDOW <= window <= MAX_WINDOW:
            raise Invalid(
                f"The embedded model's window must be a whole number from {MIN_WINDOW} to {MAX_WINDOW}, not {window}."
            )
        return model if self._window is None else replace(model, window=window, window_from="settings")

    async def _started(self) -> LlamaProvider:
        if self._provider is None:
            window = self._facts().window
            assert window is not None
            running = await asyncio.to_thread(start, self._home, window)
            talk = OpenAIProvider(
                NAME, f"{running.address}/v1", running.key, self._catalog, transport=Transport(RETRY_POLICY)
            )
            self._provider = LlamaProvider(talk, LlamaServer(running.address, running.key))
        return self._provider


def start(home: Path, window: int) -> Running:
    """The server of this process for a window size; the first call loads the weights."""
    with _starting:
        weights = find_weights(home)
        if weights is None:
            raise NotFound("The embedded model's weights are not on this machine; run `recto models pull`.")
        if (weights, window) not in _running:
            _running[weights, window] = _launch(weights, window)
        return _running[weights, window]


def _launch(weights: Path, window: int) -> Running:
    try:
        import xllamacpp  # a hundred megabytes, optional
    except ImportError as why:
        raise NotFound(
            f"The embedded model needs xllamacpp, which is not installed ({why}); "
            "run `pip install 'recto-context[embedded]'`."
        ) from why
    key = secrets.token_urlsafe()
    parameters = xllamacpp.CommonParams()
    _set(parameters, weights, window, key)
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as why:
        raise Invalid(f"The weights {weights} cannot be loaded; run `recto models pull` to fetch them again.") from why
    return Running(server.listening_address, key, server)


def _set(parameters: Any, weights: Path, window: int, key: str) -> None:
    parameters.model.path = str(weights)
    parameters.model_alias = {ID}
    parameters.n_ctx = window
    parameters.n_parallel = 1
    for processors in (parameters.cpuparams, parameters.cpuparams_batch):
        processors.n_threads = _threads()
        processors.poll = 0  # waiting threads sleep: just as fast, and other processes can run
    parameters.sampling.dry_multiplier = DRY_MULTIPLIER
    parameters.sampling.dry_allowed_length = DRY_ALLOWED
    parameters.cache_ram_mib = CACHE_MIB
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    # without a key, any page in the user's browser could use the server
    parameters.api_keys = [key]
    parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = -1
    # the first request warms up the model too, and there is no other device to fit it to
    parameters.warmup = parameters.fit_params = False


def _threads() -> int:
    """One thread per physical core that we may use. More threads, as llama.cpp itself chooses, do not make this model
    faster, and make it far slower on a busy machine."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return min(len({_core(number) for number in allowed}), MAX_THREADS)


def _core(number: int) -> str:
    """The processors that share a core with this one, or its own number where the system does not report them."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(number)
