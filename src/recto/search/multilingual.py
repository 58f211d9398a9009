"""MultilingualEncoder: the multilingual Universal Sentence Encoder. A question in one language finds texts in another.

It takes texts as they are: its tokenizer is a part of the graph, run by onnxruntime-extensions.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recto.search.embedder import MULTILINGUAL, load_numpy
from recto.search.onnx_embedder import OnnxEmbedder, open_session, what_is_missing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH = 512
# Attention takes memory and time that grow with the square of the length; passages have about 900 characters.
MAX_CHARACTERS = 2_000


class MultilingualEncoder(OnnxEmbedder):
    name = MULTILINGUAL
    key = "universal-sentence-encoder-multilingual-3/int8/1"
    width = WIDTH

    @staticmethod
    def missing() -> str | None:
        """One sentence naming what is not installed; None if everything is."""
        # as in pyproject.toml: there the extra leaves it out, so installing the extra would not help
        if sys.version_info >= (3, 14) and find_spec("onnxruntime_extensions") is None:
            return (
                "The multilingual embedder needs onnxruntime-extensions, which is not published for Python 3.14: use "
                "Python 3.13, or set `search.embedder = minilm`."
            )
        return what_is_missing(MULTILINGUAL, ("numpy", "onnxruntime", "onnxruntime_extensions"))

    def _load(self, folder: Path) -> "_EncoderModel":
        return _EncoderModel(folder / "embedding_model_quantized.onnx")


class _EncoderModel:
    def __init__(self, graph: Path) -> None:
        from onnxruntime_extensions import get_library_path  # only needed to embed

        self._session = open_session(str(graph), custom_operators=get_library_path(), optimizes=True)
        self._zeros: NDArray[np.float32] = load_numpy().zeros(WIDTH, "float32")

    def vector(self, text: str, options: Any = None) -> "NDArray[np.float32]":
        """All zeros for a text without words."""
        head = text[:MAX_CHARACTERS].encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate cannot be encoded
        if not any(map(str.isalnum, head)):
            return self._zeros
        vector: NDArray[np.float32] = self._session.run(None, {"inputs": [head]}, options)[0][0]
        return vector
