"""`recto vault graph`: notes and the links between them, as a page, a picture, or data for other programs."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.cli import show
from recto.cli.vault_place import Place, find_document, open_place, placed, read_notes
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.vault.graph import Graph
    from recto.vault.vault import Found, Vault

FORMATS = ("html", "svg", "dot", "json")


@click.command("graph")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's ending, else html.")
@click.option("--output", "-o", metavar="FILE", help="Where to write; - for stdout (default: vault-graph.html).")
@click.option("--from", "source", metavar="DOC", help="Only what is linked with this document.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="So many links from it.")
@click.option("--tag", metavar="TAG", help="Only notes with this tag.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@placed
def graph(
    kind: str | None,
    output: str | None,
    source: str | None,
    depth: int,
    tag: str | None,
    opens: bool,
    folder: str | None,
    as_json: bool,
) -> None:
    """Draw the notes of a vault and the links between them.

    Example: recto vault graph --from Welcome --depth 1 --open
    """
    kind = kind or _kind_of(output)
    if opens and output == "-":
        raise click.UsageError("--open needs a file: leave out -o -.")
    with open_place(folder) as place:
        read_notes(place)
        drawn = _graph(place.vault, tag)
        if source:
            drawn = around(drawn, find_document(place.vault, source), depth)
        text = _written(drawn, kind, place.vault.root)
    if output == "-":
        click.echo(text, nl=False)
        return
    file = Path(output).expanduser() if output else _default(place, kind)
    _write(file, text)
    _tell(drawn, file, kind, as_json)
    if opens:
        click.launch(file.resolve().as_uri())


def _kind_of(output: str | None) -> str:
    ending = Path(output or "").suffix.lstrip(".").lower()
    return ending if ending in FORMATS else "html"


def _graph(vault: "Vault", tag: str | None) -> "Graph":
    from recto.vault.graph import graph_of

    titles = {note.path: note.title for note in vault.documents(tag=tag)}
    if tag and not titles:
        raise Invalid(f"no note has the tag {tag}")
    return graph_of(titles, _ends(vault.links(), titles if tag else None))


def _ends(links: Iterable["Found"], only: Iterable[str] | None) -> Iterator[tuple[str, str, bool]]:
    """From where to where each link leads, both ends among `only` these."""
    known = None if only is None else set(only)
    for found in links:
        target = found.path or found.link.target
        if known is None or (found.source in known and target in known):
            yield found.source, target, found.path is None


def around(graph: "Graph", path: str, depth: int) -> "Graph":
    """What can be reached from a note within so many links, whichever way they lead."""
    from recto.vault.graph import Graph

    beside: dict[str, set[str]] = {}
    for source, target, _ in graph.edges:
        beside.setdefault(source, set()).add(target)
        beside.setdefault(target, set()).add(source)
    reached = edge = {path}
    for _ in range(depth):
        edge = {other for each in edge for other in beside.get(each, ())} - reached
        reached = reached | edge
    nodes = tuple(node for node in graph.nodes if node.path in reached)
    return Graph(nodes, tuple(each for each in graph.edges if each[0] in reached and each[1] in reached))


def _default(place: Place, kind: str) -> Path:
    """In the folder one stands in; but who stands in the vault has not asked for a new file among the notes."""
    is_within = Path.cwd().resolve().is_relative_to(place.vault.root)
    return (place.cache if is_within else Path()) / f"vault-graph.{kind}"


def _written(graph: "Graph", kind: str, root: Path) -> str:
    from recto.vault import graph as plain

    if kind == "json":
        return plain.to_json(graph) + "\n"
    if kind == "dot":
        return plain.to_dot(graph)
    if kind == "svg":
        from recto.vault.drawing import to_svg

        return to_svg(graph, root.name)
    from recto.vault.graph_page import to_html

    return to_html(graph, root.name, f"{root.as_uri()}/")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


def _tell(graph: "Graph", file: Path, kind: str, as_json: bool) -> None:
    links = sum(count for *_, count in graph.edges)
    if as_json:
        counts = {"nodes": len(graph.nodes), "links": links}
        show.emit({"file": str(file.resolve()), "format": kind, **counts})
    else:
        show.say(f"{file}: {show.counted(len(graph.nodes), 'node')}, {show.counted(links, 'link')}")
