import json
import math
import re
import shutil
import subprocess
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recto.vault.drawing import GREY, MOST_DRAWN, folder_colours, to_svg
from recto.vault.graph import Graph, Node, graph_of, in_words, to_dot, to_json
from recto.vault.graph_page import to_html
from recto.vault.layout import lay_out

HOSTILE = "</script><script>alert(\"1\")</script> 'q' <b>&amp; \\ {{data}} ]]> \0\x07\ud800 \u2028 -->"
SVG = "{http://www.w3.org/2000/svg}"


def small() -> Graph:
    titles = {"Plan.md": "Plan", "people/Ada.md": "Ada", "people/Ned.md": "Ned", "log.md": "Log"}
    links = [
        ("Plan.md", "people/Ada.md", False),
        ("Plan.md", "people/Ada.md", False),
        ("people/Ada.md", "Plan.md", False),
        ("Plan.md", "Nobody", True),
        ("people/Ned.md", "people/Ned.md", False),
    ]
    return graph_of(titles, links)


def hostile() -> Graph:
    nodes = (Node(f"a/{HOSTILE}.md", HOSTILE, 2, False, HOSTILE), Node(HOSTILE, HOSTILE, 1, True))
    return Graph(nodes, ((nodes[0].path, nodes[1].path, 1),))


def chain(count: int) -> Graph:
    nodes = tuple(Node(f"{n}.md", f"Day {n}", float(n)) for n in range(count))
    return Graph(nodes, tuple((f"{n}.md", f"{n + 1}.md", 1) for n in range(count - 1)))


# -- the value


def test_a_graph_counts_links_and_knows_what_is_broken() -> None:
    graph = small()
    assert graph.nodes[-1] == Node("Nobody", "Nobody", 1.0, True, "")
    assert [node.folder for node in graph.nodes[:3]] == ["", "people", "people"]
    assert ("Plan.md", "people/Ada.md", 2) in graph.edges
    assert graph.lines == ((0, 1, 3), (0, 4, 1))
    assert graph.degrees == (2, 1, 0, 0, 1)


def test_the_best_linked_stay_with_what_lies_between_them() -> None:
    best = small().best(2)
    assert [node.path for node in best.nodes] == ["Plan.md", "people/Ada.md"]
    assert {edge[:2] for edge in best.edges} == {("Plan.md", "people/Ada.md"), ("people/Ada.md", "Plan.md")}
    assert small().best(99).nodes == small().nodes


def test_what_there_is_comes_before_what_is_only_named() -> None:
    titles = {"a.md": "A", "b.md": "B"}
    graph = graph_of(titles, [("a.md", "Nobody", True), ("b.md", "Nobody", True), ("a.md", "pic.png", False)])
    assert [node.path for node in graph.best(3).nodes] == ["a.md", "b.md", "pic.png"]
    assert [node.path for node in graph.best(2).nodes] == ["a.md", "b.md"]


def test_nodes_are_notes_attachments_or_missing() -> None:
    graph = graph_of({"a.md": "A", "b.MARKDOWN": "B"}, [("a.md", "pic.png", False), ("a.md", "c.md", True)])
    assert [node.kind for node in graph.nodes] == ["note", "note", "attachment", "missing"]
    assert in_words(graph.kinds) == ["2 notes", "1 attachment", "1 missing note"]
    assert in_words(Graph().kinds) == ["0 notes"]


def test_edges_to_nowhere_are_passed_over() -> None:
    assert Graph((Node("a", "a"),), (("a", "gone", 1), ("gone", "a", 1))).lines == ()


# -- as text


def test_json_holds_the_whole_graph() -> None:
    said = json.loads(to_json(small()))
    assert said["nodes"][4] == {"path": "Nobody", "title": "Nobody", "weight": 1.0, "is_broken": True, "folder": ""}
    assert {"source": "Plan.md", "target": "people/Ada.md", "count": 2} in said["edges"]
    assert json.loads(to_json(hostile()))["nodes"][0]["title"].startswith("</script>")


def test_dot_names_nodes_by_path_and_quotes_them() -> None:
    said = to_dot(small())
    assert '"Plan.md" -> "people/Ada.md" [weight=2];' in said
    assert '"Nobody" [label="Nobody", style=dashed];' in said
    lines = to_dot(Graph((Node('a"b\\\n.md', 'say "no"\\'),))).splitlines()
    assert '  "a\\"b\\\\ .md" [label="say \\"no\\"\\\\"];' in lines


# -- where nodes stand


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_every_node_has_a_place_of_its_own_and_always_the_same(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 25))
    pairs = st.tuples(st.integers(0, max(0, count - 1)), st.integers(0, max(0, count - 1)))
    drawn = data.draw(st.lists(pairs, max_size=40)) if count else []
    lines = sorted({(min(pair), max(pair), 1) for pair in drawn if pair[0] != pair[1]})
    points = lay_out(count, lines)
    assert points == lay_out(count, lines)
    assert len(points) == count
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in points)
    assert all(math.dist(one, other) > 0.01 for one, other in combinations(points, 2))


def test_what_is_linked_stands_nearer_than_what_is_not() -> None:
    groups = [(a, b, 1) for start in (0, 10) for a, b in combinations(range(start, start + 10), 2)]
    points = lay_out(20, [*groups, (0, 10, 1)])
    within = [math.dist(points[a], points[b]) for a, b, _ in groups]
    across = [math.dist(points[a], points[b]) for a in range(1, 10) for b in range(11, 20)]
    assert max(within) < min(across)


def test_parts_that_do_not_hang_together_do_not_overlap() -> None:
    lines = [(n, n + 1, 1) for n in range(29) if n % 10 != 9]
    points = lay_out(40, lines)
    between = [math.dist(points[a], points[b]) for a in range(10) for b in range(10, 20)]
    assert min(between) > 0.3


# -- as a picture


def picture(graph: Graph) -> ElementTree.Element:
    return ElementTree.fromstring(to_svg(graph))


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_a_picture_has_a_circle_for_every_node(count: int) -> None:
    circles = [each for each in picture(chain(count)).iter(f"{SVG}circle") if each.find(f"{SVG}title") is not None]
    assert len(circles) == count
    assert all(0 <= float(each.attrib["cx"]) <= 1200 and 0 <= float(each.attrib["cy"]) <= 800 for each in circles)


def test_a_picture_tells_folders_broken_links_and_counts() -> None:
    root = picture(small())
    words = [each.text for each in root.iter(f"{SVG}text")]
    assert {"people", "top folder", "no such note", "4 notes, 5 links"} <= set(words)
    dashed = [each for each in root.iter(f"{SVG}circle") if "stroke-dasharray" in each.attrib]
    assert len(dashed) == 2  # the node and its key
    colours = folder_colours(small())
    assert len(set(colours.values())) == 2


def test_many_folders_share_the_last_colour() -> None:
    nodes = tuple(Node(f"{n}/a.md", "a", 1, False, str(n)) for n in range(30))
    assert list(folder_colours(Graph(nodes)).values()).count(GREY) == 20
    assert "other folders" in to_svg(Graph(nodes))


def test_a_picture_is_the_same_every_time() -> None:
    assert to_svg(chain(40)) == to_svg(chain(40))


def test_hostile_titles_stay_text_in_a_picture() -> None:
    svg = to_svg(hostile(), HOSTILE)
    assert "<script" not in svg
    titles = [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert all(title.startswith("</script><script>alert") for title in titles)


def test_names_do_not_lie_over_one_another() -> None:
    shown = [each for each in picture(chain(80)).iter(f"{SVG}text") if each.attrib.get("class") == "paper halo"]
    boxes = []
    for each in shown:
        x, y, size = (float(each.attrib[key]) for key in ("x", "y", "font-size"))
        boxes.append((x, x + 0.6 * size * len(each.text or ""), y - size, y))
    assert len(boxes) > 10
    for one, other in combinations(boxes, 2):
        assert one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]


def test_of_too_many_nodes_the_best_linked_are_drawn_and_that_is_told() -> None:
    svg = to_svg(Graph(tuple(Node(f"{n}.md", str(n)) for n in range(MOST_DRAWN + 50))))
    assert svg.count("<circle") == MOST_DRAWN + 1
    assert "the 2,000 best-linked are drawn" in svg
    assert "left out: 50 notes" in svg


def test_a_picture_counts_notes_and_attachments_apart() -> None:
    graph = graph_of({"a.md": "A"}, [("a.md", "x.png", False), ("a.md", "y.png", False)])
    assert ">1 note, 2 attachments, 2 links<" in to_svg(graph)


def test_nothing_in_a_picture_is_cut_at_its_edge() -> None:
    name = "W" * 60
    nodes = [Node(f"{name}/{n}.md", name, 1e9, False, f"{n}{name}") for n in range(1200)]
    root = ElementTree.fromstring(to_svg(Graph((*nodes, *(Node(f"{n}.png", "x") for n in range(1200)))), name))
    drawn = [each for each in root.iter(f"{SVG}text") if each.attrib.get("text-anchor") != "end"]
    assert any("W…" in (each.text or "") for each in drawn)
    for each in drawn:
        # the widest letter, in bold where it is; digits and small letters are narrower
        wide = (1.11 if "font-weight" in each.attrib else 0.99) if "W" in (each.text or "") else 0.6
        assert float(each.attrib["x"]) + wide * float(each.attrib["font-size"]) * len(each.text or "") <= 1200, (
            each.text
        )


# -- as a page


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    said = json.loads(found[1])
    assert isinstance(said, dict)
    return said


def test_a_page_holds_its_graph_and_asks_for_nothing_from_elsewhere() -> None:
    page = to_html(small(), "My notes", "file:///notes/")
    said = data_of(page)
    assert said["base"] == "file:///notes/"
    assert said["lines"] == [[0, 1, 3], [0, 4, 1]]
    assert said["nodes"] == [
        ["Plan", "Plan.md", 4.0, 0],
        ["Ada", "people/Ada.md", 3.0, 1],
        ["Ned", "people/Ned.md", 2.0, 1],
        ["Log", "log.md", 0.0, 0],
        ["Nobody", "Nobody", 1.0, -1],
    ]
    assert not re.search(r"\bsrc=|@import|url\(|https?://", page)
    assert "default-src 'none'" in page


def test_a_page_counts_notes_and_attachments_apart_and_tells_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    links = [("a.md", "b.md", False), ("b.md", "a.md", False), ("a.md", "x.png", False), ("a.md", "Nobody", True)]
    graph = graph_of({"a.md": "A", "b.md": "B"}, links)
    said = data_of(to_html(graph))
    assert (said["told"], said["left_out"]) == ("2 notes, 1 attachment", "")
    monkeypatch.setattr("recto.vault.graph_page.MOST_SHOWN", 2)
    said = data_of(to_html(graph))
    assert (said["told"], said["left_out"]) == ("2 notes", "1 attachment, 1 missing note")


def test_hostile_titles_stay_text_on_a_page() -> None:
    page = to_html(hostile(), HOSTILE)
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    nodes = data_of(page)["nodes"]
    assert isinstance(nodes, list)
    assert nodes[0][0].startswith("</script><script>alert")
    assert "{{data}}" in nodes[0][0]
    page.encode()


@pytest.mark.skipif(shutil.which("node") is None, reason="a reader of scripts is needed")
def test_the_script_of_a_page_can_be_read(tmp_path: Path) -> None:
    script = re.search(r"<script>\n(.*?)</script>", to_html(small()), re.DOTALL)
    assert script
    (tmp_path / "page.js").write_text(script[1])
    subprocess.run(["node", "--check", tmp_path / "page.js"], check=True, timeout=60)
