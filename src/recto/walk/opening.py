"""Opening: what every window of a turn starts with, as bytes and weighed: tools, instructions."""

from collections.abc import Sequence
from dataclasses import dataclass

from recto.sources.source import Tool
from recto.walk.scale import Scale
from recto.window.count import Count
from recto.window.request import Parameters, Piece


@dataclass(frozen=True, slots=True)
class Opening:
    pieces: tuple[Piece, ...]
    system: Count
    """Instructions, with what every request costs besides its pieces."""
    tools: tuple[tuple[Tool, Count], ...]
    is_open: bool
    """The list of messages already holds one: the next needs a comma."""

    @property
    def for_tools(self) -> int:
        return sum(count.tokens for _, count in self.tools)

    @property
    def count(self) -> Count:
        return sum((count for _, count in self.tools), self.system)


async def open_window(scale: Scale, parameters: Parameters, system: str, tools: Sequence[Tool]) -> Opening:
    system = scale.defused(system)
    pieces = scale.format.opening(scale.model.id, parameters, system, tools)
    costly = [piece for piece in pieces if piece.kind in ("system", "tool")]
    counts = list(zip(costly, await scale.weigh_pieces(costly), strict=True))
    for_system = sum((count for piece, count in counts if piece.kind == "system"), scale.meter.priming)
    if not system:
        for_system += scale.meter.without_system
    for_tools = [count for piece, count in counts if piece.kind == "tool"]
    return Opening(tuple(pieces), for_system, tuple(zip(tools, for_tools, strict=True)), scale.format.opened(system))


def listed(wires: Sequence[tuple[bytes, ...]], is_open: bool) -> list[Piece]:
    """Wire messages as pieces of a JSON list: a comma before each but the first."""
    flat = [data for wire in wires for data in wire]
    return [Piece("message", b"," + data if place or is_open else data) for place, data in enumerate(flat)]
