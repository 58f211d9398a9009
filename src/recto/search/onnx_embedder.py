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
# Models unused for this long are unloaded. Loading one again takes half a second.
IDLE_S = 300.0


class OnnxModel(Protocol):
    def vector(self, text: str) -> "Vector":
        """All zeros for a text without words."""
        ...


_loaded: dict[Path, OnnxModel] = {}
"""Loaded models by their weights, shared by all desks of the process."""
_loading = threading.Lock()
_used = 0.0
"""When a model was used last."""


def _release_later(seconds: float) -> None:
    timer = threading.Timer(seconds, _release_idle)
    timer.daemon = True
    timer.start()


def _release_idle() -> None:
    """Unloads all models if none was used for a while; else waits on."""
    with EXIT_GUARD.passed() as is_open:
        if not is_open:
            return
        with _loading:
            left = _used + IDLE_S - time.monotonic()
            if left > 0:
                _release_later(left)
                return
            _loaded.clear()
        with suppress(OSError, AttributeError):  # otherwise glibc keeps freed memory
            ctypes.CDLL(None).malloc_trim(0)


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

        generation = self._generation
        vectors: list[Vector] = []
        for text in texts:
            if is_background():
                FOREGROUND.wait(is_stopped=lambda: generation != self._generation)
            with EXIT_GUARD.passed() as is_open:
                if generation != self._generation or not is_open:
                    raise NoVectors(f"The embedder {self.name} was closed.")
                vectors.append(self._open_model().vector(text))
        return normalize_vectors(vectors or np.zeros((0, self.width)), texts)

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
            global _used
            _used = time.monotonic()
            if self._folder not in _loaded:
                if not _loaded:
                    _release_later(IDLE_S)
                _loaded[self._folder] = self._load_from(self._folder)
            return _loaded[self._folder]

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
        from recto.search.minilm import INPUT, WordPiece, make_graph, read_weights  # imports numpy

        weights = read_weights(folder / "model.safetensors")
        self._tokenizer = WordPiece(folder / "vocab.txt")
        self._words = weights["embeddings.word_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self._positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS] + kinds[0]
        self._zeros: Vector = self._positions[0] * 0
        self._input, self._session = INPUT, _open_session(make_graph(weights))

    def split_words(self, text: str) -> tuple[list[str], int]:
        """The words, and the number of pieces, including those for accents and letters of other scripts, which the
        model does not see."""
        letters = unicodedata.normalize("NFD", text[:MAX_SPLIT_CHARS])
        words = letters if letters.isascii() else "".join(each for each in letters if not unicodedata.combining(each))
        found = _WORD.findall(words.lower())
        ids = self._tokenizer.ids(" ".join(found), len(letters) + 2)[1:-1]
        pieces = len(ids) + len(letters) - len(words) + 2 * sum(len(word) for word in found if not word.isascii())
        return found, pieces

    def vector(self, text: str) -> "Vector":
        ids = self._tokenizer.ids(text, MAX_TOKENS)
        if not ids:
            return self._zeros
        tokens = self._words[ids] + self._positions[: len(ids)]
        vector: Vector = self._session.run(None, {self._input: tokens[None]})[0][0]
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

    def vector(self, text: str) -> "Vector":
        head = text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate cannot be encoded
        if not any(map(str.isalnum, head)):
            return self._zeros
        vector: Vector = self._session.run(None, {"inputs": [head]})[0][0]
        return vector
