"""OnnxEmbedder: what embedders that run here share. Opens a model once for the process, steps back while a turn runs,
and ends in order with the process.
"""

import ctypes
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from recto.base.background import FOREGROUND, is_background
from recto.base.concurrency import ExitGuard
from recto.errors import Invalid, NoVectors
from recto.search.embedder import INSTALL_EXTRA, load_numpy, normalize_vectors
from recto.weights import named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.embedder import Vectors

log = logging.getLogger(__name__)

EXIT_GUARD = ExitGuard()


class OnnxModel(Protocol):
    def vector(self, text: str, options: Any = None) -> "NDArray[np.float32]":
        """`options` are those of onnxruntime for one run."""
        ...


# A model that was not used for so long is let go. Loading it again takes half a second.
IDLE_S = 300.0


class _Loaded:
    def __init__(self, model: OnnxModel) -> None:
        self.model, self.used = model, time.monotonic()


_loaded: dict[Path, _Loaded] = {}
"""One for the process, by its weights: several desks share it."""
_loading = threading.Lock()
_timer: threading.Timer | None = None


def release_idle(idle_s: float = IDLE_S) -> None:
    """Lets go of the models that were not used for so long, and looks again when the next one may be idle."""
    with EXIT_GUARD.passed() as is_open:
        if not is_open:
            return
        with _loading:
            idle = [folder for folder, each in _loaded.items() if time.monotonic() - each.used >= idle_s]
            for folder in idle:
                del _loaded[folder]
            _release_later(idle_s)
        if idle:
            with suppress(OSError, AttributeError):  # glibc keeps what is freed, unless it is told not to
                ctypes.CDLL(None).malloc_trim(0)


def _release_later(idle_s: float) -> None:
    """Sets the only timer for the model that will be idle first; none if no model is loaded. Needs the lock."""
    global _timer
    if _timer:
        _timer.cancel()
    _timer = None
    if _loaded:
        first_used = min(each.used for each in _loaded.values())
        _timer = threading.Timer(first_used + idle_s - time.monotonic(), release_idle, [idle_s])
        _timer.daemon = True
        _timer.start()


class OnnxEmbedder(ABC):
    """Loads the model with the first text."""

    name: str
    key: str
    width: int

    def __init__(self) -> None:
        self._generation = 0
        self._folder: Path | None = None
        """Where the weights are, once they were found: each passage that is found asks for the model."""

    @staticmethod
    @abstractmethod
    def missing() -> str | None:
        """One sentence naming what is not installed; None if everything is."""

    @abstractmethod
    def _load(self, folder: Path) -> OnnxModel: ...

    def embed(self, texts: Sequence[str]) -> "Vectors":
        generation, vectors = self._generation, []
        for text in texts:
            vector = self._background_vector(text, generation) if is_background() else None
            vectors.append(self._vector(text, generation) if vector is None else vector)
        return normalize_vectors(vectors or load_numpy().zeros((0, self.width)), texts)

    def _background_vector(self, text: str, generation: int) -> "NDArray[np.float32] | None":
        """None if a turn began meanwhile. The second try goes to its end: there may be turn after turn."""
        FOREGROUND.wait(is_stopped=lambda: generation != self._generation)
        vector = self._vector(text, generation, can_stop=True)
        if vector is None:
            FOREGROUND.wait(is_stopped=lambda: generation != self._generation)
        return vector

    def _vector(self, text: str, generation: int, *, can_stop: bool = False) -> "NDArray[np.float32] | None":
        with EXIT_GUARD.passed() as is_open:
            if generation != self._generation or not is_open:
                raise NoVectors(f"The embedder {self.name} was closed.")
            model = self._open_model()
            return _vector_before_turn(model, text) if can_stop else model.vector(text)

    def close(self) -> None:
        """Stops a running batch after its current text. The next call loads the model again."""
        self._generation += 1
        FOREGROUND.recheck()

    def _open_model(self) -> OnnxModel:
        folder = self._folder = self._folder or self._find_folder()
        with _loading:
            if loaded := _loaded.get(folder):
                loaded.used = time.monotonic()
                return loaded.model
            loaded = _loaded[folder] = _Loaded(self._load_from(folder))
            if not _timer:
                _release_later(IDLE_S)
            return loaded.model

    def _find_folder(self) -> Path:
        if missing := self.missing():
            raise NoVectors(missing)
        weights = named(self.name)
        return weights.path(weights.files[0]).parent

    def _load_from(self, folder: Path) -> OnnxModel:
        try:
            return self._load(folder)
        except Exception as why:  # onnxruntime and damaged files raise anything
            title = named(self.name).title
            log.exception("%s cannot be loaded", title)
            raise NoVectors(
                f"{title} cannot be loaded ({type(why).__name__}: {why}). Try {_install(self.name)}."
            ) from why


def what_is_missing(name: str, packages: Sequence[str]) -> str | None:
    """One sentence with the packages and weights that an embedder lacks; None if nothing."""
    weights = named(name)
    absent = [each for each in packages if find_spec(each) is None]
    try:
        absent += [f"the weights of {weights.title} ({weights.megabytes})"] * (weights.find() is None)
    except Invalid as why:
        return why.message
    return f"Searching by meaning needs {', '.join(absent)}; run {_install(name)}." if absent else None


def _install(name: str) -> str:
    return f"{INSTALL_EXTRA} and `recto models pull {name}`"


def _vector_before_turn(model: OnnxModel, text: str) -> "NDArray[np.float32] | None":
    """None if it was stopped because a turn began: a long text would take its processor for 30 ms."""
    import onnxruntime  # only needed to embed

    options = onnxruntime.RunOptions()
    try:
        with FOREGROUND.stopping(lambda: setattr(options, "terminate", True)):
            return model.vector(text, options)
    except Exception:  # onnxruntime does not tell which one a stopped run raises
        if not options.terminate:
            raise
        return None


def open_session(graph: bytes | str, *, custom_operators: str = "", optimizes: bool = False) -> Any:
    """A session of onnxruntime on one thread."""
    import onnxruntime  # only needed to embed

    options = onnxruntime.SessionOptions()
    # two threads are no faster for a question, take a quarter more work, and slow down the turn that is running
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimizes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if custom_operators:
        options.register_custom_ops_library(custom_operators)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
