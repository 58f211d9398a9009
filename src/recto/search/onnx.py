"""The few messages of the ONNX format that a graph of ours is written with, as bytes.

The package that is made for this is larger than the model; the numbers are those of onnx.proto, which never change.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from recto.varint import varint

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLOAT = 1
TENSORS = {"float32": FLOAT, "uint8": 2, "int8": 3, "int64": 7}
IR_VERSION = 8
OPSET = 18
MICROSOFT = "com.microsoft"


@dataclass(slots=True)
class Graph:
    """Nodes and constants in the order they are added; each gives the names of what it makes."""

    nodes: list[bytes] = field(default_factory=list)
    constants: list[bytes] = field(default_factory=list)

    def constant(self, value: "NDArray[Any]") -> str:
        name = f"c{len(self.constants)}"
        dims = [(1, int(size)) for size in value.shape]
        self.constants.append(_message(*dims, (2, TENSORS[value.dtype.name]), (8, name), (9, value.tobytes())))
        return name

    def node(self, kind: str, inputs: Iterable[str], outputs: int = 1, domain: str = "", **options: float) -> list[str]:
        """The names of its outputs; an input that is left out is an empty name."""
        names = [f"n{len(self.nodes)}.{number}" for number in range(outputs)]
        ends = [*((1, name) for name in inputs), *((2, name) for name in names)]
        about = [(5, _option(key, value)) for key, value in options.items()]
        self.nodes.append(_message(*ends, (4, kind), *about, (7, domain)))
        return names

    def model(self, inputs: dict[str, tuple[int | str, ...]], outputs: dict[str, tuple[int | str, ...]]) -> bytes:
        """The whole file; a dimension that is a text may have any size."""
        content: list[tuple[int, bytes]] = [(1, node) for node in self.nodes]
        content += [(5, constant) for constant in self.constants]
        content += [(11, _float(name, dims)) for name, dims in inputs.items()]
        content += [(12, _float(name, dims)) for name, dims in outputs.items()]
        opsets = [(8, _message((1, domain), (2, version))) for domain, version in (("", OPSET), (MICROSOFT, 1))]
        return _message((1, IR_VERSION), (7, _message((2, "recto"), *content)), *opsets)


def _float(name: str, dims: tuple[int | str, ...]) -> bytes:
    shape = _message(*((1, _message((2 if isinstance(size, str) else 1, size))) for size in dims))
    return _message((1, name), (2, _message((1, _message((1, FLOAT), (2, shape))))))


def _option(name: str, value: float) -> bytes:
    kind, place = (1, 2) if isinstance(value, float) else (2, 3)
    return _message((1, name), (place, value), (20, kind))


def _message(*fields: tuple[int, int | float | str | bytes]) -> bytes:
    return b"".join(part for number, value in fields for part in _field(number, value))


def _field(number: int, value: int | float | str | bytes) -> tuple[bytes, ...]:
    """In parts, so that large values are copied once for each message they are in."""
    if isinstance(value, int):
        return varint(number << 3), varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5), struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2), varint(len(content)), content
