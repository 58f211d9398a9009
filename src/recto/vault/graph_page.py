"""A graph as one page that works offline: pan, zoom, search, and open a note. The page itself is `graph.html`."""

import html
import json
import re
from pathlib import Path
from typing import Any

from recto.text import clean
from recto.vault.drawing import GREY, TOP_FOLDER, folder_colours
from recto.vault.graph import Graph, in_words

MOST_SHOWN = 10_000
"""A browser moves so many; beyond this only the best-linked are shown."""
_PAGE = Path(__file__).with_name("graph.html")


def to_html(graph: Graph, title: str = "Notes and links", base: str = "") -> str:
    """`base` is what a note's path is put behind to open it, a folder's address; without it paths are as seen from the
    page's own place."""
    fields = {"title": html.escape(clean(title)[0]), "data": _embedded(_data(graph, base))}
    # one pass: what is put in is never looked through for places to put something in
    return re.sub(r"\{\{(\w+)\}\}", lambda place: fields[place[1]], _PAGE.read_text("utf-8"))


def _data(graph: Graph, base: str) -> dict[str, Any]:
    shown = graph.best(MOST_SHOWN)
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
        "told": ", ".join(in_words(shown.kinds, but="missing")),
        "left_out": "" if shown is graph else ", ".join(in_words(graph.kinds - shown.kinds)),
    }


def _embedded(data: dict[str, Any]) -> str:
    """JSON that no reader of HTML takes for the end of the script it stands in."""
    said = clean(json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")))[0]
    return said.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
