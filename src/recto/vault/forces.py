"""Forces on the nodes of a graph: neighbours pull, all others push. Moves points by one round, in place.

Whoever is far away pushes together with those around him, so a round takes time in proportion to the nodes.
"""

import math
from collections.abc import Sequence

Point = tuple[float, float]
Points = list[list[float]]
Cell = tuple[int, int]
Heap = tuple[float, float, float]
"""Some nodes as one: x, y of their middle, and how many they are."""

_CELL = 2.0
_BLOCK = tuple((column, row) for column in (-1, 0, 1) for row in (-1, 0, 1))
# So many of a crowded cell stand for all of it, others in each round.
_CROWD = 5


def settle(neighbours: Sequence[Sequence[int]], points: Points, turn: int, most: float) -> None:
    """One round: nobody moves further than `most`."""
    forces = _pushes(points, turn)
    for a, near in enumerate(neighbours):
        ax, ay = points[a]
        for b in near:
            if a < b:
                dx, dy = points[b][0] - ax, points[b][1] - ay
                # a link of a hub pulls less, else hubs are heaps
                pull = math.sqrt((dx * dx + dy * dy) / min(len(near), len(neighbours[b])))
                forces[a][0] += dx * pull
                forces[a][1] += dy * pull
                forces[b][0] -= dx * pull
                forces[b][1] -= dy * pull
    for point, (fx, fy) in zip(points, forces, strict=True):
        length = math.sqrt(fx * fx + fy * fy)
        if length > 1e-9:
            share = min(1.0, most / length)
            point[0] += fx * share
            point[1] += fy * share


def _pushes(points: Points, turn: int) -> Points:
    """Near ones push one by one, far ones together, the further the more of them: grids within coarser grids."""
    cells: dict[Cell, list[int]] = {}
    for number, (x, y) in enumerate(points):
        cells.setdefault((int(x // _CELL), int(y // _CELL)), []).append(number)
    far = _far_pushes({cell: _heap([_alone(points[each], 1.0) for each in members]) for cell, members in cells.items()})
    forces = [[0.0, 0.0] for _ in points]
    for cell, members in cells.items():
        around: list[Heap] = []
        for there in (cells[each] for each in _block(cell) if each in cells):
            step = max(1, len(there) // _CROWD)
            around += [_alone(points[each], float(step)) for each in there[turn % step :: step]]
        for each in members:
            forces[each] = _push(points[each], around, far[cell])
    return forces


def _far_pushes(heaps: dict[Cell, Heap]) -> dict[Cell, Point]:
    """What pushes each cell from beyond its neighbours."""
    # the four round the middle are neighbours of one another, however coarse the grid
    if all(-1 <= column <= 0 and -1 <= row <= 0 for column, row in heaps):
        return dict.fromkeys(heaps, (0.0, 0.0))
    children: dict[Cell, list[Cell]] = {}
    for column, row in heaps:
        children.setdefault((column // 2, row // 2), []).append((column, row))
    coarse = {cell: _heap([heaps[child] for child in inner]) for cell, inner in children.items()}
    above = _far_pushes(coarse)
    far: dict[Cell, Point] = {}
    for parent, inner in children.items():
        near = [child for each in _block(parent) for child in children.get(each, ())]
        for cell in inner:
            beyond = [heaps[each] for each in near if abs(each[0] - cell[0]) > 1 or abs(each[1] - cell[1]) > 1]
            x, y, _ = heaps[cell]
            force = _push([x, y], beyond, above[parent])
            far[cell] = (force[0], force[1])
    return far


def _block(cell: Cell) -> list[Cell]:
    x, y = cell
    return [(x + column, y + row) for column, row in _BLOCK]


def _alone(point: list[float], weight: float) -> Heap:
    return point[0], point[1], weight


def _heap(members: Sequence[Heap]) -> Heap:
    if len(members) == 1:
        return members[0]
    weight = sum(each[2] for each in members)
    return sum(x * w for x, _, w in members) / weight, sum(y * w for _, y, w in members) / weight, weight


def _push(point: list[float], around: Sequence[Heap], so_far: Point) -> list[float]:
    x, y = point
    fx, fy = so_far
    for ox, oy, weight in around:
        dx, dy = x - ox, y - oy
        square = dx * dx + dy * dy
        if square > 1e-12:
            share = weight / square
            fx += dx * share
            fy += dy * share
    return [fx, fy]
