"""Where the nodes of a graph stand: near to what they are linked with, apart from the rest. Numbers in, numbers out.

Each connected part is spread out by the distances from a few of its nodes, then settled by forces; the parts are put
round the largest. The same graph is always laid out the same.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from recto.vault.forces import Point, Points, settle

# Enough to tell the arms of a graph from one another; each costs one walk over it.
_PIVOTS = 16
_GAP = 0.8


@dataclass(frozen=True, slots=True)
class _Part:
    """Nodes that hang together, with their neighbours, by their numbers within the part."""

    members: tuple[int, ...]
    neighbours: tuple[tuple[int, ...], ...]


def lay_out(count: int, lines: Sequence[tuple[int, int, int]]) -> list[Point]:
    """A point for each node, the middle at 0, 0 and a link about 1 long."""
    parts = _parts(count, lines)
    placed: list[Point] = [(0.0, 0.0)] * count
    laid = [_centred(_roomy(_settled(part))) for part in parts]
    for part, points, (x, y) in zip(parts, laid, _around([_radius(points) for points in laid]), strict=True):
        for member, point in zip(part.members, points, strict=True):
            placed[member] = (point[0] + x, point[1] + y)
    return placed


def _parts(count: int, lines: Sequence[tuple[int, int, int]]) -> list[_Part]:
    """The largest first."""
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b, _ in lines:
        near[a].append(b)
        near[b].append(a)
    seen: set[int] = set()
    parts = []
    for start in range(count):
        if start not in seen:
            members = sorted(_hops(near, start))
            seen.update(members)
            number = {member: n for n, member in enumerate(members)}
            parts.append(_Part(tuple(members), tuple(tuple(number[each] for each in near[m]) for m in members)))
    return sorted(parts, key=lambda part: -len(part.members))


def _hops(near: Sequence[Sequence[int]], start: int) -> dict[int, int]:
    """How far away each node is that can be reached."""
    hops, waiting = {start: 0}, deque([start])
    while waiting:
        at = waiting.popleft()
        for each in near[at]:
            if each not in hops:
                hops[each] = hops[at] + 1
                waiting.append(each)
    return hops


# -- one part


def _settled(part: _Part) -> Points:
    size = len(part.members)
    if size == 1:
        return [[0.0, 0.0]]
    points = _spread(part)
    rounds = _rounds(part)
    warmth = 0.3 + 0.05 * math.sqrt(size)
    for turn in range(rounds):
        settle(part.neighbours, points, turn, warmth * (1 - turn / rounds) ** 1.5 + 0.02)
    return points


def _rounds(part: _Part) -> int:
    """Fewer for the large, whose rounds take long, and for the very small, which are soon at rest."""
    size = len(part.members)
    work = size + sum(len(near) for near in part.neighbours) // 2
    return max(12, min(120, 10 * size, 170_000 // work))


def _spread(part: _Part) -> Points:
    """Pivot MDS: the two directions in which the distances from some nodes differ most."""
    table = _distances(part)
    first = _direction(table, None)
    second = _direction(table, first)
    random = Random(len(part.members))
    # nodes with the same neighbours would stand in one place
    blur = 0.15 * math.sqrt(len(part.members)) ** 0.5
    across = [_dot(row, first) for row in table], [_dot(row, second) for row in table]
    scale = _scale(part, *across)
    xs, ys = (_without_strays([value * scale for value in values]) for values in across)
    return [[x + random.gauss(0, blur), y + random.gauss(0, blur)] for x, y in zip(xs, ys, strict=True)]


def _without_strays(values: Sequence[float]) -> list[float]:
    """What lies far out is drawn near: a pivot among equals stands alone only because it was measured from."""
    most = 3 * math.sqrt(_dot(values, values) / len(values))
    return [max(-most, min(most, value)) for value in values]


def _distances(part: _Part) -> list[list[float]]:
    """Hops to the pivots, each as far as possible from those before; centred both ways.

    Squares would keep long ways straight; so they bend, and a chain of days takes no more room than it must.
    """
    size = len(part.members)
    pivot = max(range(size), key=lambda each: len(part.neighbours[each]))
    nearest = [size] * size
    columns = []
    for _ in range(min(_PIVOTS, size)):
        hops = _hops(part.neighbours, pivot)
        columns.append([float(hops[each]) for each in range(size)])
        nearest = [min(known, hops[each]) for each, known in enumerate(nearest)]
        pivot = max(range(size), key=nearest.__getitem__)
    means = [sum(column) / size for column in columns]
    whole = sum(means) / len(means)
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [
        [value - mean - sum(row) / len(row) + whole for value, mean in zip(row, means, strict=True)] for row in rows
    ]


def _direction(table: list[list[float]], apart_from: list[float] | None) -> list[float]:
    """The strongest direction of the table, at right angles to another one."""
    width = len(table[0])
    squares = [[sum(row[i] * row[j] for row in table) for j in range(width)] for i in range(width)]
    vector = [1.0 + 0.1 * math.sin(7 * i + 1) for i in range(width)]
    for _ in range(40):
        if apart_from:
            share = _dot(vector, apart_from)
            vector = [value - share * other for value, other in zip(vector, apart_from, strict=True)]
        vector = [_dot(row, vector) for row in squares]
        length = math.sqrt(_dot(vector, vector)) or 1.0
        vector = [value / length for value in vector]
    return vector


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _scale(part: _Part, xs: Sequence[float], ys: Sequence[float]) -> float:
    """What makes links about 1 long in the middle."""
    lengths = [
        math.hypot(xs[a] - xs[b], ys[a] - ys[b]) for a, near in enumerate(part.neighbours) for b in near if a < b
    ]
    mean = sum(lengths) / len(lengths)
    return 1 / mean if mean > 1e-9 else 1.0


# -- all parts


def _roomy(points: Points) -> Points:
    """A part that is crowded is drawn larger, so that its nodes are about as far apart as those of others."""
    spread = math.sqrt(sum(x * x + y * y for x, y in _centred(points)) / len(points))
    scale = max(1.0, 0.6 * math.sqrt(len(points) - 1) / spread) if spread else 1.0
    return [[x * scale, y * scale] for x, y in points]


def _centred(points: Points) -> Points:
    x = (min(point[0] for point in points) + max(point[0] for point in points)) / 2
    y = (min(point[1] for point in points) + max(point[1] for point in points)) / 2
    return [[point[0] - x, point[1] - y] for point in points]


def _radius(points: Points) -> float:
    return max(math.hypot(*point) for point in points) + _GAP / 2


def _around(radii: Sequence[float]) -> list[Point]:
    """Middles of circles, the largest first: one in the middle, the others on rings round it."""
    if not radii:
        return []
    middles: list[Point] = [(0.0, 0.0)]
    inner, at = radii[0], 1
    while at < len(radii):
        ring = _ring(radii, at, inner)
        free = (2 * math.pi - sum(ring)) / len(ring)
        angle = -math.pi / 2
        for radius, width in zip(radii[at : at + len(ring)], ring, strict=True):
            angle += (width + free) / 2
            middles.append(((inner + radius) * math.cos(angle), (inner + radius) * math.sin(angle)))
            angle += (width + free) / 2
        inner, at = inner + 2 * radii[at], at + len(ring)
    return middles


def _ring(radii: Sequence[float], start: int, inner: float) -> list[float]:
    """The angles that the next circles take, as many as have room."""
    ring: list[float] = []
    taken = 0.0
    for radius in radii[start:]:
        width = 2 * math.asin(radius / (inner + radius))
        taken += width
        if ring and taken > 2 * math.pi:
            break
        ring.append(width)
    return ring
