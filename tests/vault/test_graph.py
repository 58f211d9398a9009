import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from recto.vault.graph import Graph, Node, build_graph, to_html, to_json

HOSTILE = "</script><script>alert(\"1\")</script> 'q' <b>&amp; \\ {{data}} ]]> \0\x07\ud800 \u2028 -->"


def small() -> Graph:
    titles = {"Plan.md": "Plan", "people/Ada.md": "Ada", "people/Ned.md": "Ned", "log.md": "Log"}
    links = [
        ("Plan.md", "people/Ada.md", False),
        ("Plan.md", "people/Ada.md", False),
        ("people/Ada.md", "Plan.md", False),
        ("Plan.md", "Nobody", True),
        ("people/Ned.md", "people/Ned.md", False),
    ]
    return build_graph(titles, links)


def hostile() -> Graph:
    nodes = (Node(f"a/{HOSTILE}.md", HOSTILE, 2, False, HOSTILE), Node(HOSTILE, HOSTILE, 1, True))
    return Graph(nodes, ((nodes[0].path, nodes[1].path, 1),))


# -- the value


def test_a_graph_counts_links_and_knows_what_is_broken() -> None:
    graph = small()
    assert graph.nodes[-1] == Node("Nobody", "Nobody", 1.0, True, "")
    assert [node.folder for node in graph.nodes[:3]] == ["", "people", "people"]
    assert ("Plan.md", "people/Ada.md", 2) in graph.edges
    assert graph.lines == ((0, 1, 3), (0, 4, 1))
    assert graph.degrees == (2, 1, 0, 0, 1)


def test_the_best_linked_nodes_stay_with_the_edges_between_them() -> None:
    best = small().best_linked(2)
    assert [node.path for node in best.nodes] == ["Plan.md", "people/Ada.md"]
    assert {edge[:2] for edge in best.edges} == {("Plan.md", "people/Ada.md"), ("people/Ada.md", "Plan.md")}
    assert small().best_linked(99).nodes == small().nodes


# -- as text


def test_json_holds_the_whole_graph() -> None:
    said = json.loads(to_json(small()))
    assert said["nodes"][4] == {"path": "Nobody", "title": "Nobody", "weight": 1.0, "is_broken": True, "folder": ""}
    assert {"source": "Plan.md", "target": "people/Ada.md", "count": 2} in said["edges"]
    assert json.loads(to_json(hostile()))["nodes"][0]["title"].startswith("</script>")


# -- as a page


def data_of(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    said = json.loads(found[1])
    assert isinstance(said, dict)
    return said


def test_a_page_contains_its_graph_and_loads_nothing() -> None:
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
def test_the_script_of_a_page_is_valid(tmp_path: Path) -> None:
    script = re.search(r"<script>\n(.*?)</script>", to_html(small()), re.DOTALL)
    assert script
    (tmp_path / "page.js").write_text(script[1])
    subprocess.run(["node", "--check", tmp_path / "page.js"], check=True, timeout=60)
