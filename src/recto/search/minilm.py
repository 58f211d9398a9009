"""MiniLM's tokenizer, and its encoder as an ONNX graph with int8 weights, made from its float32 weights."""

import json
import mmap
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from recto.base.ids import varint

Weights = Mapping[str, NDArray[np.float32]]

FLOAT = 1
TENSORS = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": 7}
IR_VERSION = 8
OPSET = 18
MICROSOFT = "com.microsoft"


class OnnxGraph(Struct):
    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        dims = [(1, int(size)) for size in value.shape]
        self.constants.append(_message(*dims, (2, TENSORS[value.dtype.name]), (8, name), (9, value.tobytes())))
        return name

    def node(self, kind: str, inputs: Iterable[str], outputs: int = 1, domain: str = "", **options: float) -> list[str]:
        """Add a node and return the names of its outputs. An empty input name omits that input."""
        names = [f"n{len(self.nodes)}.{number}" for number in range(outputs)]
        ends = [*((1, name) for name in inputs), *((2, name) for name in names)]
        attributes = [(5, _attribute(key, value)) for key, value in options.items()]
        self.nodes.append(_message(*ends, (4, kind), *attributes, (7, domain)))
        return names

    def model(self, inputs: dict[str, tuple[int | str, ...]], outputs: dict[str, tuple[int | str, ...]]) -> bytes:
        """The bytes of the file. A dimension given as text may have any size."""
        content: list[tuple[int, bytes]] = [(1, node) for node in self.nodes]
        content += [(5, constant) for constant in self.constants]
        content += [(11, _float_value(name, dims)) for name, dims in inputs.items()]
        content += [(12, _float_value(name, dims)) for name, dims in outputs.items()]
        opsets = [(8, _message((1, domain), (2, version))) for domain, version in (("", OPSET), (MICROSOFT, 1))]
        return _message((1, IR_VERSION), (7, _message((2, "recto"), *content)), *opsets)


def _float_value(name: str, dims: tuple[int | str, ...]) -> bytes:
    shape = _message(*((1, _message((2 if isinstance(size, str) else 1, size))) for size in dims))
    return _message((1, name), (2, _message((1, _message((1, FLOAT), (2, shape))))))


def _attribute(name: str, value: float) -> bytes:
    kind, number = (1, 2) if isinstance(value, float) else (2, 3)
    return _message((1, name), (number, value), (20, kind))


def _message(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    return b"".join(part for number, value in fields for part in _field(number, value))


def _field(number: int, value: int | float | str | bytes) -> tuple[bytes, ...]:
    """In parts, so that large values are copied only once per message."""
    if isinstance(value, int):
        return varint(number << 3), varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5), struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2), varint(len(content)), content


LAYERS, HEADS, WIDTH = 6, 12, 384
EPSILON = 1e-12
# Seven bits: on x86 without VNNI the sum of two 8-bit products saturates. Costs 0.001 of cosine.
MAX_INT8 = 64
INPUT = "tokens"


def read_weights(path: Path) -> Weights:
    """The float32 tensors of a safetensors file by name, memory-mapped."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begin = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, tensor in json.loads(content[8:begin]).items():
        if tensor.get("dtype") == "F32":
            first, last = tensor["data_offsets"]
            flat = np.frombuffer(content, np.float32, (last - first) // 4, begin + first)
            tensors[name] = flat.reshape(tensor["shape"])
    return tensors


def make_graph(weights: Weights) -> bytes:
    """The graph for one text: summed embeddings (1, tokens, WIDTH) in, the mean of the output (1, WIDTH) out. Takes a
    tenth of a second."""
    graph = OnnxGraph()
    state = _norm(graph, weights, "embeddings.LayerNorm", INPUT)
    for number in range(LAYERS):
        state = _layer(graph, weights, f"encoder.layer.{number}", state)
    (mean,) = graph.node("ReduceMean", [state, graph.constant(np.array([1], np.int64))], keepdims=0)
    return graph.model({INPUT: (1, "length", WIDTH)}, {mean: (1, WIDTH)})


def _layer(graph: OnnxGraph, weights: Weights, at: str, state: str) -> str:
    attended = _dense(graph, weights, f"{at}.attention.output.dense", _attention(graph, weights, at, state))
    state = _norm(graph, weights, f"{at}.attention.output.LayerNorm", state, attended)
    (wide,) = graph.node("Gelu", [_dense(graph, weights, f"{at}.intermediate.dense", state)], domain=MICROSOFT)
    return _norm(graph, weights, f"{at}.output.LayerNorm", state, _dense(graph, weights, f"{at}.output.dense", wide))


def _attention(graph: OnnxGraph, weights: Weights, at: str, state: str) -> str:
    names = [f"{at}.attention.self.{name}" for name in ("query", "key", "value")]
    matrix, scale = _int8(np.concatenate([weights[f"{name}.weight"] for name in names]))
    bias = np.concatenate([weights[f"{name}.bias"] for name in names])
    quantized, scale_in, zero = graph.node("DynamicQuantizeLinear", [state], 3)
    inputs = [quantized, graph.constant(matrix), graph.constant(bias), scale_in, graph.constant(scale), "", zero]
    return graph.node("QAttention", inputs, domain=MICROSOFT, num_heads=HEADS)[0]


def _dense(graph: OnnxGraph, weights: Weights, name: str, state: str) -> str:
    matrix, scale = _int8(weights[f"{name}.weight"])
    bias = graph.constant(weights[f"{name}.bias"])
    inputs = [state, graph.constant(matrix), graph.constant(scale), "", bias]
    return graph.node("DynamicQuantizeMatMul", inputs, domain=MICROSOFT)[0]


def _norm(graph: OnnxGraph, weights: Weights, name: str, *states: str) -> str:
    constants = [graph.constant(weights[f"{name}.{part}"]) for part in ("weight", "bias")]
    if len(states) == 1:
        return graph.node("LayerNormalization", [*states, *constants], epsilon=EPSILON)[0]
    return graph.node("SkipLayerNormalization", [*states, *constants], domain=MICROSOFT, epsilon=EPSILON)[0]


def _int8(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The transposed matrix as int8, with the scale of each column."""
    scale = np.maximum(matrix.max(1), -matrix.min(1)) / MAX_INT8
    return np.rint(matrix / scale[:, None]).astype(np.int8).T, scale


# A token averages four characters; sixteen allow for long names without reading a megabyte.
MAX_CHARS_PER_TOKEN = 16


class WordPiece:
    """Tokenizes text with BERT's uncased vocabulary. Thread-safe."""

    def __init__(self, vocabulary: Path) -> None:
        from splintr import WordPieceTokenizer  # only needed to embed

        pieces = vocabulary.read_text("utf-8").removesuffix("\n").split("\n")
        self._first, self._last = pieces.index("[CLS]"), pieces.index("[SEP]")
        # other methods of splintr would read [SEP] in a text as a control token
        self._encode = WordPieceTokenizer(pieces, pieces.index("[UNK]"), do_lower_case=True).encode_ordinary

    def ids(self, text: str, limit: int) -> list[int]:
        """At most `limit` ids, including [CLS] and [SEP]; none if the text has no words."""
        # splintr does not accept lone surrogates
        head = text[: limit * MAX_CHARS_PER_TOKEN].encode("utf-8", "ignore").decode("utf-8")
        found = self._encode(head)[: limit - 2]
        return [self._first, *found, self._last] if found else []
