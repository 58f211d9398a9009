"""Graph: a vault's notes and the links between them, as a value; written as DOT and as JSON.

`to_html` returns one page that works offline: pan, zoom, search, open a note. Its template is `graph.html`.
"""

import html
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from recto.base.text import clean, counted
from recto.errors import Invalid
from recto.vault.folder import is_note

if TYPE_CHECKING:
    from recto.vault.vault import Vault


NodeKind = Literal["note", "attachment", "missing"]
_NOUNS: dict[NodeKind, str] = {"note": "note", "attachment": "attachment", "missing": "missing note"}


class Node(Struct, frozen=True):
    path: str
    """For a broken link, its name."""
    title: str
    weight: float = 0.0
    """Its size when drawn: links or uses."""
    is_broken: bool = False
    folder: str = ""

    @property
    def kind(self) -> NodeKind:
        if self.is_broken:
            return "missing"
        return "note" if is_note(self.path) else "attachment"


class Graph(Struct, frozen=True, dict=True):
    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[str, str, int], ...] = ()
    """From path, to path, number of links."""

    @cached_property
    def lines(self) -> tuple[tuple[int, int, int], ...]:
        """The edges by node number, both directions merged; without self-links and edges to missing nodes."""
        numbers = {node.path: number for number, node in enumerate(self.nodes)}
        counts = Counter[tuple[int, int]]()
        for source, target, count in self.edges:
            if source != target and source in numbers and target in numbers:
                a, b = sorted((numbers[source], numbers[target]))
                counts[a, b] += count
        return tuple((a, b, count) for (a, b), count in counts.items())

    @cached_property
    def degrees(self) -> tuple[int, ...]:
        degrees = Counter(end for line in self.lines for end in line[:2])
        return tuple(degrees[number] for number in range(len(self.nodes)))

    @cached_property
    def kinds(self) -> Counter[NodeKind]:
        return Counter(node.kind for node in self.nodes)

    def best_linked(self, limit: int) -> "Graph":
        """The nodes with the most links and the edges between them, in the same order; existing files come before
        missing ones."""
        if len(self.nodes) <= limit:
            return self

        def rank(at: int) -> tuple[bool, int, float, int]:
            node = self.nodes[at]
            return node.is_broken, -self.degrees[at], -node.weight, at

        best = nsmallest(limit, range(len(self.nodes)), key=rank)
        return self.part({self.nodes[at].path for at in best})

    def part(self, paths: Set[str]) -> "Graph":
        nodes = tuple(node for node in self.nodes if node.path in paths)
        return Graph(nodes, tuple(edge for edge in self.edges if edge[0] in paths and edge[1] in paths))


def vault_graph(vault: "Vault", tag: str | None = None) -> Graph:
    """The notes of a vault and their links; with a tag, only the notes that have it."""
    titles = {note.path: note.title for note in vault.documents(tag=tag)}
    if tag and not titles:
        raise Invalid(f"no note has the tag {tag}")
    links = ((each.source, each.path or each.link.target, each.path is None) for each in vault.all_links())
    return build_graph(titles, (each for each in links if not tag or (each[0] in titles and each[1] in titles)))


def neighbourhood(graph: Graph, path: str, depth: int) -> Graph:
    """The part within `depth` links of a note, in either direction."""
    beside = defaultdict[str, set[str]](set)
    for source, target, _ in graph.edges:
        beside[source].add(target)
        beside[target].add(source)
    reached = edge = {path}
    for _ in range(depth):
        edge = {other for each in edge for other in beside[each]} - reached
        reached = reached | edge
    return graph.part(reached)


def build_graph(titles: Mapping[str, str], links: Iterable[tuple[str, str, bool]]) -> Graph:
    """Builds a graph from notes with their titles and links `(source, target, is_broken)`. Targets that are not notes
    become nodes too."""
    edges, weights = Counter[tuple[str, str]](), Counter(dict.fromkeys(titles, 0))
    broken = set[str]()
    for source, target, is_broken in links:
        edges[source, target] += 1
        weights.update((source, target))
        if is_broken:
            broken.add(target)
    nodes = tuple(
        Node(path, titles.get(path, path), float(weight), path not in titles and path in broken, _folder(path))
        for path, weight in weights.items()
    )
    return Graph(nodes, tuple((source, target, count) for (source, target), count in edges.items()))


def used_graph(titles: Mapping[str, str], uses: Mapping[str, int], pairs: Mapping[tuple[str, str], int]) -> Graph:
    """Notes weighted by uses, with edges for how often two were used together. Notes without a title are gone from the
    vault."""
    nodes = [
        Node(path, titles.get(path, path), count, path not in titles, _folder(path)) for path, count in uses.items()
    ]
    nodes.sort(key=lambda node: (-node.weight, node.path))
    edges = [(one, other, count) for (one, other), count in pairs.items()]
    return Graph(tuple(nodes), tuple(sorted(edges, key=lambda edge: (-edge[2], edge[:2]))))


def describe_kinds(kinds: Mapping[NodeKind, int], excluding: NodeKind | None = None) -> list[str]:
    """The kinds that occur, without `excluding`: `2 notes`, `1 attachment`."""
    counts = ((kinds.get(kind, 0), noun) for kind, noun in _NOUNS.items() if kind != excluding)
    return [counted(count, noun) for count, noun in counts if count] or [counted(0, "note")]


def _folder(path: str) -> str:
    return path.split("/")[0] if "/" in path else ""


def to_json(graph: Graph) -> str:
    nodes = [asdict(node) for node in graph.nodes]
    edges = [{"source": source, "target": target, "count": count} for source, target, count in graph.edges]
    return clean(json.dumps({"nodes": nodes, "edges": edges}, ensure_ascii=False, allow_nan=False))[0]


MAX_NODES = 10_000
"""The most nodes that a browser can move; beyond this only those with the most links are shown."""
TOP_FOLDER = "top folder"
# Mid-tones, distinguishable on white and on near-black.
COLOURS = ("#4e83c4", "#e8883a", "#4fa35a", "#d9534f", "#9b72c4", "#2fa5a5", "#c9a227", "#a0725a", "#d670a0", "#7f9a3d")
GREY = "#8b919b"
_PAGE = Path(__file__).with_name("graph.html")


def to_html(graph: Graph, title: str = "Notes and links", base: str = "") -> str:
    """`base` is a folder address to which a note's path is appended; without it, paths are relative to the page."""
    fields = {"title": html.escape(clean(title)[0]), "data": _embed_json(_data(graph, base))}
    # one pass: inserted text is never searched for fields
    first, *others = _PAGE.read_text("utf-8").split("{{")
    return first + "".join(fields[name] + rest for name, _, rest in (part.partition("}}") for part in others))


def folder_colours(graph: Graph) -> dict[str, str]:
    """Colours for the folders with the most nodes, deterministic; grey for the others."""
    counts = Counter(node.folder for node in graph.nodes if not node.is_broken)
    ranking = sorted(counts, key=lambda folder: (-counts[folder], folder))
    return {folder: COLOURS[n] if n < len(COLOURS) else GREY for n, folder in enumerate(ranking)}


def _data(graph: Graph, base: str) -> dict[str, Any]:
    shown = graph.best_linked(MAX_NODES)
    colours = folder_colours(shown)
    numbers = {folder: number for number, folder in enumerate(colours)}
    return {
        "base": base,
        "folders": [[folder or TOP_FOLDER, colour] for folder, colour in colours.items()],
        "grey": GREY,
        "nodes": [
            [node.title, node.path, node.weight, -1 if node.is_broken else numbers[node.folder]] for node in shown.nodes
        ],
        "lines": [[a, b, count] for a, b, count in shown.lines],
        "told": ", ".join(describe_kinds(shown.kinds, excluding="missing")),
        "left_out": "" if shown is graph else ", ".join(describe_kinds(graph.kinds - shown.kinds)),
    }


def _embed_json(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it is placed in."""
    text = clean(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))[0]
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
