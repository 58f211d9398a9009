"""EmbeddedProvider: small offline models inside this process. The server of a model starts once, on first use.

The provider uses its server over loopback like any llama.cpp server. ReplyEnd decides where the reply of a tiny model
ends: such a model goes on where a larger one would stop, and repeats itself in cycles of any length.
"""

import asyncio
import atexit
import os
import re
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from recto.base.locations import folder_of
from recto.errors import Invalid, NotFound
from recto.providers.http import RetryPolicy, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.model import Done, Model, ReplyPart, TextPart
from recto.providers.openai import OpenAIFormat
from recto.providers.remote import ModelLookup
from recto.weights import Weights, chat_models
from recto.window.count import Count, TokenCounter
from recto.window.request import Format, Piece, Purpose
from recto.wire import loads

ENGINE = "xllamacpp"
NAME = "embedded"
TINY = "smollm2"
"""A model that does not know when to stop: its replies end where they repeat themselves."""
MIN_WINDOW = 256
CACHE_MIB = 256
# a slow machine reads a full window for minutes, and sends nothing until done
RETRY_POLICY = RetryPolicy(read_s=1200)
MAX_THREADS = 8
# A server that takes longer to start is left to its first request.
AT_WORK_WITHIN_S = 60
IDLE_S = 600.0
# (multiplier, allowed length) Measured on questions about notes: without it one answer in seven repeated itself
# endlessly. A penalty on single words, or a longer lookback, makes so small a model invent figures that it should
# quote.
DRY = 0.8, 3


class Running(Struct, eq=False):
    address: str
    key: str
    server: object
    """Stops when it is garbage-collected."""
    users: int = 0
    last_used: float = 0.0


_running: dict[tuple[Path, int], Running] = {}
_lock = threading.Lock()


class EmbeddedProvider:
    name = NAME

    def __init__(self, catalog: ModelLookup, window: int | None = None) -> None:
        self.format: Format = OpenAIFormat()
        self._catalog = catalog
        self._window = window
        self._opened: dict[str, tuple[Running, LlamaProvider]] = {}

    async def model(self, name: str) -> Model:
        return self._facts(_weights(name.removeprefix(f"{NAME}:")).name)

    async def counter(self, model: Model) -> TokenCounter:
        async with self._in_use(model.id) as provider:
            return _EmbeddedCounter(self, model, await provider.counter(model))

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        model = loads(body)["model"]
        async with self._in_use(model) as provider:
            parts = provider.stream(body, purpose)
            async with aclosing(_ended(parts, ReplyEnd()) if model == TINY else parts) as ended:
                async for part in ended:
                    yield part

    async def close(self) -> None:
        """Closes the connections; the servers run until they are idle or the process ends."""
        for _, provider in self._opened.values():
            await provider.close()

    @asynccontextmanager
    async def _in_use(self, id: str) -> AsyncGenerator[LlamaProvider]:
        """The provider of a running server, which is not stopped meanwhile."""
        window = self._facts(id).window
        assert window is not None
        running = await asyncio.to_thread(take, _weights(id), window)
        try:
            opened, provider = self._opened.get(id, (None, None))
            if provider is None or opened is not running:
                if provider:
                    await provider.close()
                address, transport = f"{running.address}/v1", Transport(RETRY_POLICY)
                provider = LlamaProvider(NAME, address, running.key, self._catalog, transport=transport)
                self._opened[id] = running, provider
            yield provider
        finally:
            give_back(running)

    def _facts(self, id: str) -> Model:
        model, most = self._catalog.find(NAME, id), _weights(id).max_window
        window = model.window if self._window is None else self._window
        if type(window) is not int or not MIN_WINDOW <= window <= most:
            sizes = f"a whole number from {MIN_WINDOW} to {most}, not {window}"
            raise Invalid(f"The window of {NAME}:{id} must be {sizes}.")
        return model if self._window is None else replace(model, window=window, window_from="settings")


class _EmbeddedCounter:
    """Counts with the server, restarting it if necessary."""

    is_quick = False

    def __init__(self, provider: EmbeddedProvider, model: Model, learned: TokenCounter) -> None:
        self._provider, self._model = provider, model
        self.key, self.note = learned.key, learned.note
        self.priming, self.without_system = learned.priming, learned.without_system

    async def count(self, pieces: Sequence[Piece]) -> list[Count]:
        async with self._provider._in_use(self._model.id) as provider:
            counter = await provider.counter(self._model)
            self.note = counter.note
            return await counter.count(pieces)


async def _ended(parts: AsyncGenerator[ReplyPart], end: "ReplyEnd") -> AsyncGenerator[ReplyPart]:
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextPart):
                if text := end.take(part.text):
                    yield TextPart(text)
                if end.is_over:
                    yield Done("stop")
                    return
            else:
                if isinstance(part, Done) and (rest := end.rest()):
                    yield TextPart(rest)
                yield part


def _weights(id: str) -> Weights:
    known = {each.name: each for each in chat_models()}
    if id not in known:
        names = ", ".join(f"{NAME}:{name}" for name in known)
        raise NotFound(f"There is no embedded model {NAME}:{id}. Known are {names}.", model=f"{NAME}:{id}")
    return known[id]


def take(weights: Weights, window: int) -> Running:
    """This process's server for a model and a window size; must be given back. The first call loads the weights."""
    with _lock:
        if missing := missing_parts(weights.name):
            raise NotFound(missing)
        (path,) = weights.find() or []
        if (path, window) not in _running:
            _running[path, window] = _launch(weights, path, window)
        _running[path, window].users += 1
        return _running[path, window]


def give_back(running: Running) -> None:
    """Stops the server after a while without use: a model takes up to two gigabytes."""
    with _lock:
        running.users -= 1
        running.last_used = time.monotonic()
        if running.users == 0:
            timer = threading.Timer(IDLE_S, _stop_idle, [running])
            timer.daemon = True
            timer.start()


def _stop_idle(running: Running) -> None:
    with _lock:
        if running.users == 0 and time.monotonic() - running.last_used >= IDLE_S * 0.9:
            for key in [key for key, each in _running.items() if each is running]:
                del _running[key]
            running.server = None  # ends it


def missing_parts(id: str) -> str | None:
    """One sentence with everything that an embedded model lacks here and the smallest fix; None if nothing."""
    weights = _weights(id)
    lacks, steps = [], []
    if folder_of(ENGINE) is None:
        lacks.append(ENGINE)
        steps.append("pip install 'recto-context[embedded]'")
    if weights.find() is None:
        lacks.append(f"its weights ({weights.megabytes})")
        steps.append(f"recto models pull {weights.name}")
    if not lacks:
        return None
    from recto.search.onnx_embedder import MiniLM, MultilingualEncoder  # only if something is missing

    # a user who installs one part needs the others too
    more = MultilingualEncoder.missing() if MiniLM.missing() else None
    also = f". {more.rstrip('.')}, or set `search.embedder = none`" if more else ""
    return (
        f"{NAME}:{weights.name} needs {' and '.join(lacks)}; run `{' && '.join(steps)}`, or use a model that needs "
        "no weights: `-m openai:gpt-4o-mini` with OPENAI_API_KEY set, or your own server: `-m ollama:NAME`"
        f"{also}."
    )


def _launch(weights: Weights, path: Path, window: int) -> Running:
    try:
        import xllamacpp  # a hundred megabytes, optional
    except ImportError as why:
        advice = "run `pip install 'recto-context[embedded]'`"
        raise NotFound(f"The embedded model needs xllamacpp, which is not installed ({why}); {advice}.") from why
    key = secrets.token_urlsafe()
    parameters = xllamacpp.CommonParams()
    parameters.model.path, parameters.model_alias = str(path), {weights.name}
    parameters.n_ctx, parameters.n_parallel, parameters.cache_ram_mib = window, 1, CACHE_MIB
    for processors in (parameters.cpuparams, parameters.cpuparams_batch):
        processors.n_threads = _threads()
        processors.poll = 0  # waiting threads sleep: just as fast, and other processes can run
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    # without a key, any page in the user's browser could use the server
    parameters.api_keys = [key]
    parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = -1
    # the first request warms up the model too, and there is no other device to fit it to
    parameters.warmup = parameters.fit_params = False
    if weights.name == TINY:
        parameters.sampling.dry_multiplier, parameters.sampling.dry_allowed_length = DRY
    try:
        server = xllamacpp.Server(parameters)
    except RuntimeError as why:
        advice = f"Run `recto models pull {weights.name}` to fetch them again."
        raise Invalid(f"The weights {path} cannot be loaded. {advice}") from why
    _wait_until_at_work(server.listening_address, key)
    atexit.register(_stop_all)
    return Running(server.listening_address, key, server)


def _wait_until_at_work(address: str, key: str) -> None:
    """A server that is stopped before it takes requests from its queue hangs (seen in xllamacpp 2026.10). This request
    passes through the queue without using the model, so its answer shows that the server works."""
    from http.client import HTTPConnection, HTTPException  # only to start a server

    connection = HTTPConnection(address.removeprefix("http://"), timeout=AT_WORK_WITHIN_S)
    with suppress(OSError, HTTPException), closing(connection):
        connection.request("GET", "/lora-adapters", headers={"authorization": f"Bearer {key}"})
        connection.getresponse().read()


def _stop_all() -> None:
    """Called before the process ends: a model that still generates, as after a cut reply, would crash when its memory
    is freed."""
    with _lock:
        for running in _running.values():
            running.server = None
        _running.clear()


def _threads() -> int:
    """One thread per physical core that we may use. More, as llama.cpp itself chooses, do not speed up this model, and
    slow it down badly on a busy machine."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    cores = set[str]()
    for number in allowed:
        try:
            siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list").read_text()
        except OSError:  # the system does not report which processors share a core
            siblings = str(number)
        cores.add(siblings.strip())
    return min(len(cores), MAX_THREADS)


# -- where the reply of a tiny model ends

# Texts that Recto's requests put around documents; no reply needs them.
FENCES = ("BEGIN DOCUMENT", "END DOCUMENT", "[Summary of the", "[End of the summary", "[The notes of the user")
# The end of a sentence or line.
_UNIT = re.compile(r"[^\n]*?(?:(?<![.!?…])[.!?…]++[\"'”’)*]*+(?=\s)|\n++)")
# A shorter unit may be repeated: "Yes.", "1."
_FEWEST_WORDS = 3


class ReplyEnd:
    """Passes on whole sentences and lines; ends the reply at one that was said before, or at a fence."""

    def __init__(self) -> None:
        self._held, self._line_ends = "", ""
        self._said = set[str]()
        self.is_over = False

    def take(self, text: str) -> str:
        """What may be shown of the reply so far; nothing after its end."""
        self._held += text
        shown = ""
        while not self.is_over and (unit := _UNIT.match(self._held)):
            self._held = self._held[unit.end() :]
            shown += self._judged(unit[0])
        return shown

    def rest(self) -> str:
        """What was still held back when the model stopped."""
        return "" if self.is_over else self._judged(self._held)

    def _judged(self, unit: str) -> str:
        """As much of the unit as belongs to the reply. Line ends wait for what follows them."""
        fence = min((at for each in FENCES if (at := unit.find(each)) >= 0), default=None)
        words = re.findall(r"\w+", unit.lower())
        is_said = " ".join(words) in self._said
        if fence is not None or is_said:
            self.is_over = True
            unit = "" if is_said else unit[:fence]
        elif len(words) >= _FEWEST_WORDS:
            self._said.add(" ".join(words))
        whole = self._line_ends + unit
        shown = whole.rstrip()
        self._line_ends = whole[len(shown) :]
        return shown
