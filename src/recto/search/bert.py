"""A small BERT as a graph of int8 weights, made from its float32 ones. Knows neither texts nor who runs the graph.

The operators are onnxruntime's fused ones, so that a session opens without any optimising of its own.
"""

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from recto.search.onnx import MICROSOFT, Graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Weights = Mapping[str, NDArray[np.float32]]

LAYERS, HEADS, WIDTH = 6, 12, 384
EPSILON = 1e-12
# Seven bits: on x86 without VNNI a sum of two products of eight bits saturates. It costs 0.001 of cosine.
TOP = 64
INPUT = "tokens"


def read_weights(path: Path) -> "Weights":
    """The float32 tensors of a safetensors file by name; they are read from the disk when they are used."""
    import numpy as np  # a tenth of a second

    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begin = 8 + int.from_bytes(content[:8], "little")
    about = json.loads(content[8:begin])
    tensors = {}
    for name, known in about.items():
        if known.get("dtype") == "F32":
            first, last = known["data_offsets"]
            flat = np.frombuffer(content, np.float32, (last - first) // 4, begin + first)
            tensors[name] = flat.reshape(known["shape"])
    return tensors


def make_graph(weights: "Weights") -> bytes:
    """One text at a time: (1, tokens, WIDTH) of summed embeddings in, the mean over its tokens, (1, WIDTH), out."""
    import numpy as np  # a tenth of a second

    graph = Graph()
    state = _norm(graph, weights, "embeddings.LayerNorm", INPUT)
    for number in range(LAYERS):
        state = _layer(graph, weights, f"encoder.layer.{number}", state)
    (mean,) = graph.node("ReduceMean", [state, graph.constant(np.array([1], np.int64))], keepdims=0)
    return graph.model({INPUT: (1, "length", WIDTH)}, {mean: (1, WIDTH)})


def _layer(graph: Graph, weights: "Weights", at: str, state: str) -> str:
    seen = _dense(graph, weights, f"{at}.attention.output.dense", _attention(graph, weights, at, state))
    state = _norm(graph, weights, f"{at}.attention.output.LayerNorm", state, seen)
    (wide,) = graph.node("Gelu", [_dense(graph, weights, f"{at}.intermediate.dense", state)], domain=MICROSOFT)
    return _norm(graph, weights, f"{at}.output.LayerNorm", state, _dense(graph, weights, f"{at}.output.dense", wide))


def _attention(graph: Graph, weights: "Weights", at: str, state: str) -> str:
    import numpy as np  # a tenth of a second

    names = [f"{at}.attention.self.{name}" for name in ("query", "key", "value")]
    matrix, scale = _int8(np.concatenate([weights[f"{name}.weight"] for name in names]))
    bias = np.concatenate([weights[f"{name}.bias"] for name in names])
    small, small_scale, zero = graph.node("DynamicQuantizeLinear", [state], 3)
    inputs = [small, graph.constant(matrix), graph.constant(bias), small_scale, graph.constant(scale), "", zero]
    return graph.node("QAttention", inputs, domain=MICROSOFT, num_heads=HEADS)[0]


def _dense(graph: Graph, weights: "Weights", name: str, state: str) -> str:
    matrix, scale = _int8(weights[f"{name}.weight"])
    bias = graph.constant(weights[f"{name}.bias"])
    inputs = [state, graph.constant(matrix), graph.constant(scale), "", bias]
    return graph.node("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)[0]


def _norm(graph: Graph, weights: "Weights", name: str, *states: str) -> str:
    """Of one state, or of the sum of two."""
    constants = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
    if len(states) == 1:
        return graph.node("LayerNormalization", [*states, *constants], epsilon=EPSILON)[0]
    return graph.node("SkipLayerNormalization", [*states, *constants], domain=MICROSOFT, epsilon=EPSILON)[0]


def _int8(matrix: "NDArray[np.float32]") -> "tuple[NDArray[np.int8], NDArray[np.float32]]":
    """Turned over as a product wants it, with the scale of each of its columns."""
    import numpy as np  # a tenth of a second

    scale = np.maximum(matrix.max(1), -matrix.min(1)) / TOP
    return np.rint(matrix / scale[:, None]).astype(np.int8).T, scale
