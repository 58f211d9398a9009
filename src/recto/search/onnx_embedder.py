"""The local embedders, run by onnxruntime: MiniLM for English, and the multilingual sentence encoder, which finds
texts in one language for questions in another.

OnnxEmbedder is their base: it opens a model once per process, gives way to turns, and exits cleanly with the process.
"""

import ctypes
import logging
import re
import sys
import threading
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from recto.base.background import FOREGROUND, is_background
from recto.base.concurrency import ExitGuard
from recto.errors import Invalid, NoVectors
from recto.search.embedder import MINILM, MULTILINGUAL, normalize_vectors
from recto.search.terms import is_not_english
from recto.weights import named

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.embedder import Vectors

    Vector = NDArray[np.float32]

log = logging.getLogger(__name__)

EXIT_GUARD = ExitGuard()
# A model unused for this long is unloaded. Loading it again takes half a second.
IDLE_S = 300.0


class OnnxModel(Protocol):
    def vector(self, text: str, options: Any = None) -> "Vector":
        """All zeros for a text without words. `options` are onnxruntime's for one run."""
        ...


class _Loaded:
    def __init__(self, model: OnnxModel) -> None:
        self.model, self.used = model, time.monotonic()


_loaded: dict[Path, _Loaded] = {}
"""Loaded models by their weights, shared by all desks of the process."""
_loading = threading.Lock()
_timer: threading.Timer | None = None


def release_idle(idle_s: float = IDLE_S) -> None:
    """Unload models that were idle for this long, and check again when the next one may be."""
    with EXIT_GUARD.passed() as is_open:
        if not is_open:
            return
        with _loading:
            idle = [folder for folder, each in _loaded.items() if time.monotonic() - each.used >= idle_s]
            for folder in idle:
                del _loaded[folder]
            _release_later(idle_s)
        if idle:
            with suppress(OSError, AttributeError):  # otherwise glibc keeps freed memory
                ctypes.CDLL(None).malloc_trim(0)


def _release_later(idle_s: float) -> None:
    """Set the only timer, for the model that will be idle first; none if no model is loaded. Needs the lock."""
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
    """Loads the model with the first text. Texts run one by one: in a batch, int8 vectors depend on each other."""

    name: str
    key: str
    width: int
    packages: tuple[str, ...]

    def __init__(self) -> None:
        self._generation = 0
        self._folder: Path | None = None
        """The folder of the weights, cached because every passage found asks for the model."""

    @classmethod
    def missing(cls) -> str | None:
        """A sentence that names what is not installed; None if everything is."""
        weights = named(cls.name)
        absent = [each for each in cls.packages if find_spec(each) is None]
        try:
            absent += [f"the weights of {weights.title} ({weights.megabytes})"] * (weights.find() is None)
        except Invalid as why:
            return why.message
        return f"Searching by meaning needs {', '.join(absent)}; run {_install(cls.name)}." if absent else None

    @abstractmethod
    def _load(self, folder: Path) -> OnnxModel: ...

    def embed(self, texts: Sequence[str]) -> "Vectors":
        import numpy as np  # slow import

        generation, vectors = self._generation, []
        for text in texts:
            vector = self._background_vector(text, generation) if is_background() else None
            vectors.append(self._vector(text, generation) if vector is None else vector)
        return normalize_vectors(vectors or np.zeros((0, self.width)), texts)

    def _background_vector(self, text: str, generation: int) -> "Vector | None":
        """Return None if a turn began meanwhile. The second try always finishes, since turns may follow each other."""
        FOREGROUND.wait(is_stopped=lambda: generation != self._generation)
        vector = self._vector(text, generation, can_stop=True)
        if vector is None:
            FOREGROUND.wait(is_stopped=lambda: generation != self._generation)
        return vector

    def _vector(self, text: str, generation: int, *, can_stop: bool = False) -> "Vector | None":
        with EXIT_GUARD.passed() as is_open:
            if generation != self._generation or not is_open:
                raise NoVectors(f"The embedder {self.name} was closed.")
            model = self._open_model()
            return _vector_before_turn(model, text) if can_stop else model.vector(text)

    def close(self) -> None:
        """Stop a running batch after its current text. The next call loads the model again."""
        self._generation += 1
        FOREGROUND.recheck()

    def _open_model(self) -> OnnxModel:
        if self._folder is None:
            if missing := self.missing():
                raise NoVectors(missing)
            weights = named(self.name)
            self._folder = weights.path(weights.files[0]).parent
        with _loading:
            if loaded := _loaded.get(self._folder):
                loaded.used = time.monotonic()
                return loaded.model
            loaded = _loaded[self._folder] = _Loaded(self._load_from(self._folder))
            if not _timer:
                _release_later(IDLE_S)
            return loaded.model

    def _load_from(self, folder: Path) -> OnnxModel:
        try:
            return self._load(folder)
        except Exception as why:  # onnxruntime and damaged files raise anything
            title = named(self.name).title
            log.exception("%s cannot be loaded", title)
            raise NoVectors(
                f"{title} cannot be loaded ({type(why).__name__}: {why}). Try {_install(self.name)}."
            ) from why


def _install(name: str) -> str:
    return f"`pip install 'recto-context[meaning]'` and `recto models pull {name}`"


def _vector_before_turn(model: OnnxModel, text: str) -> "Vector | None":
    """Return None if stopped because a turn began: a long text would take its processor for 30 ms."""
    import onnxruntime  # only needed to embed

    options = onnxruntime.RunOptions()
    try:
        with FOREGROUND.stopping(lambda: setattr(options, "terminate", True)):
            return model.vector(text, options)
    except Exception:  # which exception a stopped run raises is undocumented
        if not options.terminate:
            raise
        return None


def _open_session(graph: bytes | str, *, custom_operators: str = "", optimizes: bool = False) -> Any:
    import onnxruntime  # only needed to embed

    options = onnxruntime.SessionOptions()
    # two threads are no faster for a question, take a quarter more work, and slow down a running turn
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimizes:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if custom_operators:
        options.register_custom_ops_library(custom_operators)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


# MiniLM was trained on inputs of this length; later tokens are ignored.
MAX_TOKENS = 256
# The characters used to detect the language of a text.
MAX_SPLIT_CHARS = 4096
# Pieces per word of a text that MiniLM knows, and of one that it does not. Half of all English questions have up to 1.1
# and nine in ten up to 1.4; half of the Spanish ones 1.9, of the German ones 2.2, and of the Russian ones 5.
KNOWN_PIECES, UNKNOWN_PIECES = 1.3, 1.7
# Whole words added to the count, since a name among a few words says little about their language.
FEW_WORDS = 1
_WORD = re.compile(r"\w+")


class MiniLM(OnnxEmbedder):
    """all-MiniLM-L6-v2 with int8 weights."""

    name = MINILM
    key = "all-MiniLM-L6-v2/int8/1"
    width = 384
    packages = ("onnxruntime",)

    def familiarity(self, text: str) -> float:
        """The model was trained on English: words of other languages fall into many pieces."""
        model = self._open_model()
        assert isinstance(model, _MiniLMModel)
        words, pieces = model.split_words(text)
        known = (UNKNOWN_PIECES - (pieces + FEW_WORDS) / (len(words) + FEW_WORDS)) / (UNKNOWN_PIECES - KNOWN_PIECES)
        return 0.0 if is_not_english(words) else min(1.0, max(0.0, known))

    def _load(self, folder: Path) -> OnnxModel:
        return _MiniLMModel(folder)


class _MiniLMModel:
    """Looks up token embeddings outside the graph, so that half of the weights stay on disk until used."""

    def __init__(self, folder: Path) -> None:
        from recto.search.minilm import INPUT, WordPiece, open_graph, read_weights  # imports numpy

        weights = read_weights(folder / "model.safetensors")
        self._tokenizer = WordPiece(folder / "vocab.txt")
        self._words = weights["embeddings.word_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self._positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS] + kinds[0]
        self._zeros: Vector = self._positions[0] * 0
        self._input, self._session = INPUT, _open_session(open_graph(weights, folder))

    def split_words(self, text: str) -> tuple[list[str], int]:
        """The words, and the number of pieces, including those for accents and letters of other scripts, which the
        model does not see."""
        letters = unicodedata.normalize("NFD", text[:MAX_SPLIT_CHARS])
        words = letters if letters.isascii() else "".join(each for each in letters if not unicodedata.combining(each))
        found = _WORD.findall(words.lower())
        ids = self._tokenizer.ids(" ".join(found), len(letters) + 2)[1:-1]
        pieces = len(ids) + len(letters) - len(words) + 2 * sum(len(word) for word in found if not word.isascii())
        return found, pieces

    def vector(self, text: str, options: Any = None) -> "Vector":
        ids = self._tokenizer.ids(text, MAX_TOKENS)
        if not ids:
            return self._zeros
        tokens = self._words[ids] + self._positions[: len(ids)]
        vector: Vector = self._session.run(None, {self._input: tokens[None]}, options)[0][0]
        return vector


# Attention grows with the square of the length; passages have about 900 characters.
MAX_CHARACTERS = 2_000


class MultilingualEncoder(OnnxEmbedder):
    """The multilingual Universal Sentence Encoder. Its tokenizer is in the graph, run by onnxruntime-extensions."""

    name = MULTILINGUAL
    key = "universal-sentence-encoder-multilingual-3/int8/1"
    width = 512
    packages = ("onnxruntime", "onnxruntime_extensions")

    @classmethod
    def missing(cls) -> str | None:
        # the extra excludes it there (see pyproject.toml), so installing the extra would not help
        if sys.version_info >= (3, 14) and find_spec("onnxruntime_extensions") is None:
            return (
                "The multilingual embedder needs onnxruntime-extensions, which is not published for Python 3.14: use "
                "Python 3.13, or set `search.embedder = minilm`."
            )
        return super().missing()

    def _load(self, folder: Path) -> OnnxModel:
        return _EncoderModel(folder / "embedding_model_quantized.onnx")


class _EncoderModel:
    def __init__(self, graph: Path) -> None:
        import numpy as np
        from onnxruntime_extensions import get_library_path  # only needed to embed

        self._session = _open_session(str(graph), custom_operators=get_library_path(), optimizes=True)
        self._zeros: Vector = np.zeros(MultilingualEncoder.width, np.float32)

    def vector(self, text: str, options: Any = None) -> "Vector":
        head = text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate cannot be encoded
        if not any(map(str.isalnum, head)):
            return self._zeros
        vector: Vector = self._session.run(None, {"inputs": [head]}, options)[0][0]
        return vector
