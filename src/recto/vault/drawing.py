"""A graph as a picture: SVG that stands alone, readable on light and dark. Draws what `layout` has placed."""

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recto.text import REPLACEMENT, clean
from recto.vault.forces import Point
from recto.vault.graph import Graph, Node, counted, in_words
from recto.vault.layout import lay_out

MOST_DRAWN = 2000
"""Beyond this only the best-linked are drawn: more would be neither readable nor quick."""
TOP_FOLDER = "top folder"
OTHERS = "other folders"

# Middle tones, told apart on white and on near-black.
COLOURS = ("#4e83c4", "#e8883a", "#4fa35a", "#d9534f", "#9b72c4", "#2fa5a5", "#c9a227", "#a0725a", "#d670a0", "#7f9a3d")
GREY = "#8b919b"
_WIDTH, _HEIGHT, _MARGIN, _LEGEND = 1200.0, 800.0, 36.0, 220.0
_EDGE, _SMALL = 16.0, 11.5
_LONGEST_LABEL = 32
_MOST_LABELS, _MOST_AVOIDED = 60, 400
# In sizes of the font, of a wide one (DejaVu Sans): a name is rather cut too early than by the edge.
_NARROW, _WIDE, _BOLD = frozenset(" fijlrtI.,:;'!|()[]/-"), frozenset("mwMW@%…—"), 1.12

_STYLE = """
.line { fill: none; stroke-opacity: 0.4 }
.paper { fill: #ffffff } .ink { fill: #20252e } .faint { fill: #6a7280 }
text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif }
.halo { stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; stroke-opacity: 0.75 }
@media (prefers-color-scheme: dark) {
  .paper { fill: #14171c } .ink { fill: #e6e9ee } .faint { fill: #9aa3b0 }
  .halo { stroke: #14171c }
}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def to_svg(graph: Graph, title: str = "Notes and links") -> str:
    """Folders by colour, broken links hollow, names where there is room for them."""
    shown = graph.best(MOST_DRAWN)
    colours = folder_colours(shown)
    points, scale = _fitted(lay_out(len(shown.nodes), shown.lines))
    radii = _radii(shown, scale)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img">',
        f"<title>{escaped(title)}</title><style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>',
        *_edges(shown, points, colours),
        *_circles(shown, points, radii, colours),
        *_names(shown, points, radii),
        *_legend(graph, shown, colours, title),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """For XML, which knows no control characters, not even escaped ones."""
    plain = "".join(REPLACEMENT if ord(sign) < 32 and sign not in "\t\n" else sign for sign in clean(text)[0])
    plain = plain.replace("\ufffe", REPLACEMENT).replace("\uffff", REPLACEMENT)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def folder_colours(graph: Graph) -> dict[str, str]:
    """The folders with the most notes get a colour of their own, the same for the same graph."""
    counts = Counter(node.folder for node in graph.nodes if not node.is_broken)
    ranking = sorted(counts, key=lambda folder: (-counts[folder], folder))
    return {folder: COLOURS[n] if n < len(COLOURS) else GREY for n, folder in enumerate(ranking)}


# -- places and sizes


def _fitted(points: Sequence[Point]) -> tuple[list[Point], float]:
    """Within the paper, beside the legend; and how long a link is there."""
    if not points:
        return [], 1.0
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top, bottom = min(y for _, y in points), max(y for _, y in points)
    width, height = _WIDTH - _LEGEND - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    scale = min(width / max(right - left, 1e-6), height / max(bottom - top, 1e-6), 110.0)
    x0, y0 = _MARGIN + width / 2, _MARGIN + height / 2
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    return [(x0 + (x - middle_x) * scale, y0 + (y - middle_y) * scale) for x, y in points], scale


def _radii(graph: Graph, scale: float) -> list[float]:
    most = max((node.weight for node in graph.nodes), default=0.0) or 1.0
    least = max(1.6, min(6.0, 0.2 * scale, 66 / math.sqrt(len(graph.nodes) or 1)))
    return [least + 2 * least * math.sqrt(max(0.0, node.weight) / most) for node in graph.nodes]


# -- what is drawn


def _edges(graph: Graph, points: Sequence[Point], colours: Mapping[str, str]) -> list[str]:
    """Within a folder in its colour, else grey; links that occur often are drawn thicker."""
    groups: dict[tuple[str, float], list[str]] = {}
    for a, b, count in graph.lines:
        here, there = graph.nodes[a], graph.nodes[b]
        is_one = here.folder == there.folder and not here.is_broken and not there.is_broken
        colour = colours[here.folder] if is_one else GREY
        (x1, y1), (x2, y2) = points[a], points[b]
        groups.setdefault((colour, min(3.0, 1 + math.log2(count) / 2)), []).append(
            f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        )
    thin = max(0.45, min(1.4, 22 / math.sqrt(len(graph.lines) or 1)))
    return [
        f'<path d="{"".join(lines)}" stroke="{colour}" stroke-width="{thin * width:.2f}" class="line"/>'
        for (colour, width), lines in sorted(groups.items())
    ]


def _circles(graph: Graph, points: Sequence[Point], radii: Sequence[float], colours: Mapping[str, str]) -> list[str]:
    order = sorted(range(len(points)), key=lambda each: radii[each])
    return [_circle(graph.nodes[each], graph.degrees[each], points[each], radii[each], colours) for each in order]


def _circle(node: Node, degree: int, point: Point, radius: float, colours: Mapping[str, str]) -> str:
    paint = f'fill="{colours.get(node.folder, GREY)}" stroke-opacity="0.9" class="dot"'
    if node.is_broken:
        paint = f'class="paper" stroke="{GREY}" stroke-width="1.2" stroke-dasharray="2.5 2"'
    said = f"{node.title} · {'no such note' if node.is_broken else node.path} · linked with {degree}"
    place = f'cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="{radius:.1f}"'
    return f"<circle {place} {paint}><title>{escaped(said)}</title></circle>"


def _names(graph: Graph, points: Sequence[Point], radii: Sequence[float]) -> list[str]:
    """The larger a node, the sooner it gets its name; never over another name or a node as large."""
    order = sorted(range(len(points)), key=lambda each: (-radii[each], each))
    large = [(each, _around(points[each], radii[each])) for each in order[:_MOST_AVOIDED]]
    taken: list[_Box] = []
    parts: list[str] = []
    for each in order[: 3 * _MOST_LABELS]:
        if len(taken) == _MOST_LABELS:
            break
        label, size = _shortened(graph.nodes[each].title), min(15.0, 9.5 + radii[each] / 2.5)
        others = [box for other, box in large if other != each and radii[other] > 0.75 * radii[each]]
        free = (
            box for box in _boxes(points[each], radii[each], _width(label) * size, size) if _is_free(box, taken, others)
        )
        if label and (box := next(free, None)):
            taken.append(box)
            place = f'x="{box.left + 2:.1f}" y="{box.bottom - size * 0.3:.1f}" font-size="{size:.1f}"'
            # not every reader knows how to paint a border behind its letters
            parts += [f'<text class="{kind}" {place}>{escaped(label)}</text>' for kind in ("paper halo", "ink")]
    return parts


def _is_free(box: _Box, taken: Sequence[_Box], large: Sequence[_Box]) -> bool:
    is_on_paper = box.left > 0 and box.right < _WIDTH - _LEGEND and box.top > 0 and box.bottom < _HEIGHT
    return is_on_paper and not any(box.meets(other) for other in (*taken, *large))


def _around(point: Point, radius: float) -> _Box:
    x, y = point
    return _Box(x - radius * 0.8, y - radius * 0.8, x + radius * 0.8, y + radius * 0.8)


def _boxes(point: Point, radius: float, width: float, size: float) -> list[_Box]:
    """Right of a node, left, below, above."""
    (x, y), tall, wide = point, size * 1.25, width + 4
    corners = [
        (x + radius + 1, y - tall / 2),
        (x - radius - 1 - wide, y - tall / 2),
        (x - wide / 2, y + radius),
        (x - wide / 2, y - radius - tall),
    ]
    return [_Box(left, top, left + wide, top + tall) for left, top in corners]


def _shortened(title: str) -> str:
    plain = " ".join(title.split())
    return plain if len(plain) <= _LONGEST_LABEL else plain[: _LONGEST_LABEL - 1].rstrip() + "…"


def _width(label: str) -> float:
    """About, in sizes of the font; wide scripts take twice as much."""
    return sum(map(_sign_width, label))


def _sign_width(sign: str) -> float:
    if sign in _NARROW or sign in _WIDE:
        return 0.42 if sign in _NARROW else 1.0
    if unicodedata.combining(sign):
        return 0.0
    if unicodedata.east_asian_width(sign) in "WF":
        return 1.05 if sign < "\U0001f000" else 1.3
    is_small = sign.islower() or sign.isdigit()
    if sign.isascii():
        return 0.65 if is_small else 0.84
    return 0.8 if is_small else 1.0


def _fitting(text: str, size: float, room: float) -> str:
    """As much of a line as there is room for."""
    line = " ".join(text[:500].split())
    if _width(line) * size <= room:
        return line
    while line and _width(line + "…") * size > room:
        line = line[:-1]
    return f"{line.rstrip()}…"


def _lines(parts: Sequence[str], size: float, room: float) -> list[str]:
    """Put one behind the other with commas, as many as a line takes."""
    lines = list(parts[:1])
    for part in parts[1:]:
        if _width(f"{lines[-1]}, {part},") * size <= room:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(part)
    return lines


# -- what it means


def _legend(graph: Graph, shown: Graph, colours: Mapping[str, str], title: str) -> list[str]:
    x, y, room = _WIDTH - _LEGEND + 4, _MARGIN + 14, _LEGEND - 4 - _EDGE
    name = escaped(_fitting(title, 15 * _BOLD, room))
    parts = [f'<text class="ink" x="{x:g}" y="{y:g}" font-size="15" font-weight="600">{name}</text>']
    for line in _facts(graph, shown, room):
        y += 18
        parts.append(f'<text class="faint" x="{x:g}" y="{y:g}" font-size="{_SMALL:g}">{escaped(line)}</text>')
    y += 10
    for key in _keys(shown, colours):
        y += 20
        parts += _key(*key, x, y)
    return parts


def _key(name: str, colour: str | None, count: int, x: float, y: float) -> list[str]:
    hollow = f'class="paper" stroke="{GREY}" stroke-width="1.2" stroke-dasharray="2.5 2"'
    dot, number = f'fill="{colour}"' if colour else hollow, f"{count:,}"
    # beside its dot, and apart from its number
    said = _fitting(name, 12, _LEGEND - 4 - _EDGE - 18 - 8 - 12 * _width(number))
    return [
        f'<circle cx="{x + 6:g}" cy="{y - 4:g}" r="5" {dot}/>',
        f'<text class="ink" x="{x + 18:g}" y="{y:g}" font-size="12">{escaped(said)}</text>',
        f'<text class="faint" x="{_WIDTH - _EDGE:g}" y="{y:g}" font-size="12" text-anchor="end">{number}</text>',
    ]


def _facts(graph: Graph, shown: Graph, room: float) -> list[str]:
    links = counted(sum(count for *_, count in graph.edges), "link")
    # those that are missing have a key of their own
    lines = _lines([*in_words(graph.kinds, but="missing"), links], _SMALL, room)
    if shown is graph:
        return lines
    first, *rest = in_words(graph.kinds - shown.kinds)
    lines.append(f"the {len(shown.nodes):,} best-linked are drawn")
    return lines + _lines([f"left out: {first}", *rest], _SMALL, room)


def _keys(graph: Graph, colours: Mapping[str, str]) -> list[tuple[str, str | None, int]]:
    """What each colour stands for, and how often it is there."""
    counts = Counter(node.folder for node in graph.nodes if not node.is_broken)
    keys: list[tuple[str, str | None, int]] = [
        (folder or TOP_FOLDER, colour, counts[folder]) for folder, colour in colours.items() if colour != GREY
    ]
    if others := sum(counts[folder] for folder, colour in colours.items() if colour == GREY):
        keys.append((OTHERS, GREY, others))
    if broken := sum(node.is_broken for node in graph.nodes):
        keys.append(("no such note", None, broken))
    return keys
