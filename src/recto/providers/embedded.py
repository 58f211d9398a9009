"""EmbeddedProvider: small offline models inside this process. The server of a model starts once, on first use.

The provider uses its server over loopback like any llama.cpp server. ReplyEnd decides where the reply of a tiny model
ends: such a model goes on where a larger one would stop, repeats itself in cycles of any length, and writes a document
of its own under a new heading, or our fences.
"""

import asyncio
import atexit
import os
import re
import secrets
import string
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from recto.base.locations import folder_of
from recto.errors import Invalid, NotFound
from recto.providers.http import RetryPolicy, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.model import Done, Model, ReplyPart, TextPart
from recto.providers.openai import Dialect, OpenAIFormat
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
# A model unused for this long is unloaded.
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
        self.format: Format = OpenAIFormat(Dialect(asks_timings=True))  # a reply that is cut off has usage too
        self._catalog = catalog
        self._window = window
        self._opened: dict[str, tuple[Running, LlamaProvider]] = {}

    async def model(self, name: str) -> Model:
        return self._facts(_weights(name.removeprefix(f"{NAME}:")).name)

    async def counter(self, model: Model) -> TokenCounter:
        async with self._in_use(model.id) as provider:
            return _EmbeddedCounter(self, model, await provider.counter(model))

    async def stream(self, body: bytes, purpose: Purpose) -> AsyncGenerator[ReplyPart]:
        asked = loads(body)
        async with self._in_use(asked["model"]) as provider:
            parts = provider.stream(body, purpose)
            if asked["model"] == TINY:
                parts = _ended(parts, ReplyEnd(asked.get("max_tokens")))
            async with aclosing(parts):
                async for part in parts:
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
            counts = await counter.count(pieces)
            self.note = counter.note
            return counts


async def _ended(parts: AsyncGenerator[ReplyPart], end: "ReplyEnd") -> AsyncGenerator[ReplyPart]:
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, TextPart):
                if text := end.take(part.text):
                    yield TextPart(text)
                if end.is_over:
                    yield Done("stop", part.usage)
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
        running = _running[path, window]
        running.users += 1
        return running


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
_WORDS = re.compile(r"\w+")
_HEADING = re.compile(r"#{1,6} |\*\*[^*\n]{1,80}\*\*:?\s*$|[A-Z][\w'-]*(?: [\w'-]+)?:\s*$|(?:-{3,}|={3,})\s*$")
# A shorter unit may be repeated: "Yes.", "1."
_FEWEST_WORDS = 3
# The most sentences that may begin with the same three words, or the same two.
_MOST_ALIKE, _MOST_PAIRS = 2, 4
# This many words in a row with hardly a new pair are a loop, and so are this many clauses that begin alike.
_LOOKED_AT, _LEAST_NEW = 36, 0.35
_ALIKE_CLAUSES = 4
# From this share of the longest reply on, the next end of a sentence is the end.
_NEARLY_ALL = 0.75
_LONG, _LONGEST_HEADING = 200, 80


class ReplyEnd:
    """Streams text; holds back only what may turn out to be a repetition or a fence, until that is decided."""

    def __init__(self, max_tokens: int | None) -> None:
        self._room = int(max_tokens * _NEARLY_ALL) if max_tokens else None
        self._parts, self._held, self._ending = 0, "", ""
        self._line_ends = ""
        self._units = set[str]()
        self._starts, self._pairs = Counter[str](), Counter[str]()
        self._said: list[str] = []
        self._passed = ""
        """The released part of the incomplete unit."""
        self.is_over = False

    def take(self, text: str) -> str:
        """What may be shown of the reply so far; nothing after its end."""
        if self.is_over:
            return ""
        self._parts += 1
        self._held += text
        shown = ""
        while not self.is_over and (unit := _UNIT.match(self._passed + self._held)):
            shown += self._judge(unit[0])
        return self._without_end(shown if self.is_over else shown + self._release())

    def rest(self) -> str:
        """What was still held back when the model stopped."""
        if self.is_over:
            return ""
        whole = self._passed + self._held
        is_end = self._ends_at(whole) is not None or self._is_said(whole)
        return "" if is_end else self._without_end(self._held)

    def _without_end(self, shown: str) -> str:
        """Line ends wait for what follows them."""
        whole = self._line_ends + shown
        kept = whole.rstrip("\n")
        self._line_ends = whole[len(kept) :]
        return kept

    def _judge(self, whole: str) -> str:
        """Releases a complete sentence or line, or ends the reply."""
        new, at = whole[len(self._passed) :], self._ends_at(whole)
        if at == 0 and not self._said:  # a reply that begins with a fence may still say something after it
            self._held = self._held[len(whole) :]
            return ""
        if at is not None or self._is_said(whole):
            self.is_over = True
            return new[: max(0, (at or 0) - len(self._passed))].rstrip() if at else ""
        self._remember(whole)
        self._held, self._passed = (self._passed + self._held)[len(whole) :], ""
        self._ending = (self._ending + whole)[-40:]
        if self._is_full or _goes_round(self._said):
            self.is_over = True
            return new.rstrip()
        return new

    def _release(self) -> str:
        """As much of the incomplete unit as can be neither a repetition nor a fence."""
        whole = self._passed + self._held
        at = self._ends_at(whole)
        if at == 0 and not self._said:
            return ""
        if at is not None or (len(_words(whole)) > _FEWEST_WORDS and self._is_said(whole)):
            self.is_over = True
            return ""
        if self._may_end(whole):
            return ""
        is_endless = self._is_full and len(whole) > _LONG
        if is_endless or _clauses_alike(whole) or _goes_round([*self._said, *_words(whole)]):
            self.is_over = True
            return self._held.rstrip(string.whitespace + ",;:(\"'*-") + "…"
        out, self._held, self._passed = self._held, "", whole
        return out

    @property
    def _is_full(self) -> bool:
        return self._room is not None and self._parts >= self._room

    @property
    def _is_after_gap(self) -> bool:
        lines = self._ending.rsplit("\n", 2)
        return bool(self._said) and len(lines) == 3 and not "".join(lines[1:]).strip(" \t")

    def _remember(self, whole: str) -> None:
        words = _words(whole)
        self._said += words
        if len(words) >= _FEWEST_WORDS:
            self._units.add(" ".join(words))
            self._starts[" ".join(words[:_FEWEST_WORDS])] += 1
            self._pairs[" ".join(words[:2])] += 1

    def _is_said(self, whole: str) -> bool:
        """True if it repeats a unit, or begins as two before it did: "The plan was …", again and again."""
        words = _words(whole)
        if self._pairs[" ".join(words[:2])] >= _MOST_PAIRS:
            return True
        return " ".join(words) in self._units or self._starts[" ".join(words[:_FEWEST_WORDS])] >= _MOST_ALIKE

    def _ends_at(self, whole: str) -> int | None:
        """The start of a fence or an invented heading; None if there is none."""
        places = [at for fence in FENCES if (at := whole.find(fence)) >= 0]
        if self._is_after_gap and _HEADING.match(whole):
            places.append(0)
        return min(places, default=None)

    def _may_end(self, whole: str) -> bool:
        """True if more text could make it a repetition, a fence or a heading."""
        words = " ".join(_words(whole))
        if not words or (self._is_after_gap and _may_be_heading(whole)):
            return True
        worn = [start for start, count in self._starts.items() if count >= _MOST_ALIKE]
        if any(known.startswith(words) for known in (*self._units, *worn)):
            return True
        tail = whole[-max(map(len, FENCES)) :]
        return any(fence.startswith(tail[at:]) for fence in FENCES for at in range(len(tail)) if tail[at] in "BE[")


def _goes_round(said: Sequence[str]) -> bool:
    """True if the latest words repeat earlier ones, in any order."""
    if len(said) < 2 * _LOOKED_AT:
        return False
    pairs = list(pairwise(said))
    earlier = set(pairs[:-_LOOKED_AT])
    return sum(pair not in earlier for pair in pairs[-_LOOKED_AT:]) < _LEAST_NEW * _LOOKED_AT


def _may_be_heading(text: str) -> bool:
    if len(text) > _LONGEST_HEADING:
        return False
    return text.startswith(("#", "*", "-", "=")) or re.fullmatch(r"[A-Z][\w' -]{0,40}:?\s*", text) is not None


def _clauses_alike(whole: str) -> bool:
    """True for an endless sentence: "the boat's budget, the boat's rules, the boat's …"."""
    starts = [" ".join(_words(clause)[:2]) for clause in whole.split(",") if clause.strip()]
    latest = starts[-_ALIKE_CLAUSES:]
    return len(latest) == _ALIKE_CLAUSES and len(set(latest)) == 1 and " " in latest[0]


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())
