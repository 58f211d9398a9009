"""`recto vault graph`: notes and the links between them, as a page, a picture, or data for other programs."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import show
from recto.cli.vault_place import Place, find_document, open_place, placed, read_notes
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.vault.graph import Graph
    from recto.vault.vault import Found, Vault

FORMATS = ("html", "svg", "dot", "json")
ENDINGS = {".html": "html", ".svg": "svg", ".dot": "dot", ".gv": "dot", ".json": "json"}


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
    if opens and output == "-":
        raise click.UsageError("--open needs a file: leave out -o -.")
    if output:
        _check(output)
    kind = kind or _kind_of(output or "-")
    with open_place(folder) as place:
        read_notes(place)
        drawn = _graph(place.vault, tag)
        if source:
            drawn = around(drawn, find_document(place.vault, source), depth)
        text = _written(drawn, kind, place.vault.root)
    shown = _shown(drawn, kind)
    if output == "-":
        click.echo(text, nl=False)
        _tell_left_out(drawn, shown)
        return
    file = Path(output).expanduser() if output else _default(place, kind)
    _write(file, text)
    if as_json:
        show.emit({"file": str(file.resolve()), "format": kind, **_counts(drawn, shown)})
    else:
        _tell(drawn, shown, file)
    if opens:
        click.launch(file.resolve().as_uri())


def _kind_of(output: str) -> str:
    ending = Path(output).suffix.lower()
    if output != "-" and ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise click.UsageError(f"{show.shortened(output, 80)} ends in none of {known}: say with --format what it is.")
    return ENDINGS.get(ending, "html")


def _check(output: str) -> None:
    """A slip of the hand, `-o` and a note's name behind it, must not cost the note."""
    from recto.vault.folder import is_note

    if is_note(output) or is_note(os.path.realpath(os.path.expanduser(output))):
        raise click.UsageError(f"{show.shortened(output, 80)}: a graph is not written to a note.")


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


def _shown(graph: "Graph", kind: str) -> "Graph":
    """What of it is drawn; data is for programs, which have no paper that could be full."""
    from recto.vault import drawing, graph_page

    most = {"svg": drawing.MOST_DRAWN, "html": graph_page.MOST_SHOWN}
    return graph.best(most[kind]) if kind in most else graph


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


def _counts(graph: "Graph", shown: "Graph") -> dict[str, Any]:
    left_out = graph.kinds - shown.kinds
    return {"nodes": len(shown.nodes), "links": _links(shown), "kinds": dict(shown.kinds), "left_out": dict(left_out)}


def _tell(graph: "Graph", shown: "Graph", file: Path) -> None:
    from recto.vault.graph import in_words

    show.say(f"{file}: {', '.join([*in_words(shown.kinds), show.counted(_links(shown), 'link')])}")
    _tell_left_out(graph, shown)


def _tell_left_out(graph: "Graph", shown: "Graph") -> None:
    from recto.vault.graph import in_words

    if left_out := graph.kinds - shown.kinds:
        drawn = f"the best-linked {len(shown.nodes):,} of {len(graph.nodes):,} are drawn"
        show.note(f"{drawn}; left out: {', '.join(in_words(left_out))}")


def _links(graph: "Graph") -> int:
    return sum(count for *_, count in graph.edges)
