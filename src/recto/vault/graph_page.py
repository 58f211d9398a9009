"""A graph as one HTML page that works offline: pan, zoom, search, and open a note. The page itself is `graph.html`."""

import html
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from recto.text import clean
from recto.vault.graph import Graph, describe_kinds

MAX_NODES = 10_000
"""How many nodes a browser can move; beyond this only those with the most links are shown."""
TOP_FOLDER = "top folder"
# Mid-tones that can be told apart on white and on near-black.
COLOURS = ("#4e83c4", "#e8883a", "#4fa35a", "#d9534f", "#9b72c4", "#2fa5a5", "#c9a227", "#a0725a", "#d670a0", "#7f9a3d")
GREY = "#8b919b"
_PAGE = Path(__file__).with_name("graph.html")


def to_html(graph: Graph, title: str = "Notes and links", base: str = "") -> str:
    """`base` is a folder's address that a note's path is appended to; without it, paths are relative to the page."""
    fields = {"title": html.escape(clean(title)[0]), "data": _embed_json(_data(graph, base))}
    # one pass: inserted text is never searched for more fields
    return re.sub(r"\{\{(\w+)\}\}", lambda field: fields[field[1]], _PAGE.read_text("utf-8"))


def folder_colours(graph: Graph) -> dict[str, str]:
    """A colour for each of the folders with the most nodes, the same for the same graph; grey for the others."""
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
