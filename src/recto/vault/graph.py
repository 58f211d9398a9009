"""Graph: a vault's notes and what leads from one to another, as a value; written as DOT and as JSON.

How it is drawn stands elsewhere: `layout`, `drawing`, `graph_page`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from recto.text import clean
from recto.vault.folder import is_note

Kind = Literal["note", "attachment", "missing"]
_NOUNS: dict[Kind, str] = {"note": "note", "attachment": "attachment", "missing": "missing note"}


@dataclass(frozen=True, slots=True)
class Node:
    path: str
    """Of a broken link what it names."""
    title: str
    weight: float = 0.0
    """How large it is drawn: its links, its uses."""
    is_broken: bool = False
    folder: str = ""

    @property
    def kind(self) -> Kind:
        if self.is_broken:
            return "missing"
        return "note" if is_note(self.path) else "attachment"


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[str, str, int], ...] = ()
    """From path, to path, how many links."""

    @cached_property
    def lines(self) -> tuple[tuple[int, int, int], ...]:
        """The edges between nodes that are there, by their numbers; both directions are one, and none leads back."""
        numbers = {node.path: number for number, node in enumerate(self.nodes)}
        counts: dict[tuple[int, int], int] = {}
        for source, target, count in self.edges:
            ends = (numbers.get(source, -1), numbers.get(target, -1))
            if min(ends) >= 0 and ends[0] != ends[1]:
                pair = (min(ends), max(ends))
                counts[pair] = counts.get(pair, 0) + count
        return tuple((a, b, count) for (a, b), count in counts.items())

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        """How many others each node is linked with."""
        degrees = [0] * len(self.nodes)
        for a, b, _ in self.lines:
            degrees[a] += 1
            degrees[b] += 1
        return tuple(degrees)

    @cached_property
    def kinds(self) -> Counter[Kind]:
        return Counter(node.kind for node in self.nodes)

    def best(self, most: int) -> "Graph":
        """The best-linked nodes and what lies between them; the order stays. What is there comes before what is not."""
        if len(self.nodes) <= most:
            return self

        def rank(each: int) -> tuple[bool, int, float, int]:
            node = self.nodes[each]
            return node.is_broken, -self.degrees[each], -node.weight, each

        ranking = sorted(range(len(self.nodes)), key=rank)
        kept = tuple(self.nodes[each] for each in sorted(ranking[:most]))
        paths = {node.path for node in kept}
        return Graph(kept, tuple(edge for edge in self.edges if edge[0] in paths and edge[1] in paths))


def graph_of(titles: Mapping[str, str], links: Iterable[tuple[str, str, bool]]) -> Graph:
    """From notes with their titles and links `(source, target, is_broken)`; what is no note gets a node too."""
    edges: dict[tuple[str, str], int] = {}
    broken: dict[str, None] = {}
    weights = dict.fromkeys(titles, 0.0)
    for source, target, is_broken in links:
        edges[source, target] = edges.get((source, target), 0) + 1
        if is_broken:
            broken.setdefault(target)
        for path in (source, target):
            weights[path] = weights.get(path, 0.0) + 1
    missing = [path for path in weights if path not in titles]
    nodes = [Node(path, title, weights[path], False, _folder(path)) for path, title in titles.items()]
    nodes += [Node(path, path, weights[path], path in broken, _folder(path)) for path in missing]
    return Graph(tuple(nodes), tuple((source, target, count) for (source, target), count in edges.items()))


def in_words(kinds: Mapping[Kind, int], but: Kind | None = None) -> list[str]:
    """`2 notes`, `1 attachment`: of what there is any, but of one kind."""
    told = {noun: kinds.get(kind, 0) for kind, noun in _NOUNS.items() if kind != but}
    return [counted(count, noun) for noun, count in told.items() if count] or [counted(0, "note")]


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _folder(path: str) -> str:
    return path.split("/")[0] if "/" in path else ""


def to_json(graph: Graph) -> str:
    nodes = [asdict(node) for node in graph.nodes]
    edges = [{"source": source, "target": target, "count": count} for source, target, count in graph.edges]
    return clean(json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False, allow_nan=False))[0]


def to_dot(graph: Graph) -> str:
    """For Graphviz; broken ones are dashed."""
    lines = ["digraph vault {", "  node [shape=box, style=rounded];"]
    for node in graph.nodes:
        style = ", style=dashed" if node.is_broken else ""
        lines.append(f"  {_quoted(node.path)} [label={_quoted(node.title)}{style}];")
    for source, target, count in graph.edges:
        weight = f" [weight={count}]" if count > 1 else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(target)}{weight};")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    plain = " ".join(clean(text)[0].split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
