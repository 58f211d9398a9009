"""`recto vault graph`: notes and the links between them, as a page, or as data for other programs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.vault.graph import Graph
    from recto.vault_reader import VaultReader

FORMATS = ("html", "dot", "json")
ENDINGS = {".html": "html", ".dot": "dot", ".gv": "dot", ".json": "json"}
NO_SVG = "Recto writes no SVG: write a .dot file and run Graphviz on it (dot -Tsvg), or write .html."


class _Format(click.Choice[str]):
    """A former version wrote SVG: a user who asks for it learns what to do instead."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if str(value).lower() == "svg":
            raise click.UsageError(NO_SVG, ctx)
        return super().convert(value, param, ctx)


@click.command("graph")
@click.option("--format", "kind", type=_Format(FORMATS), help="Default: by the file's ending, else html.")
@click.option("--output", "-o", metavar="FILE", help="Where to write; - for stdout (default: vault-graph.html).")
@click.option("--from", "source", metavar="DOC", help="Only notes that are linked with this document.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="At most so many links from it.")
@click.option("--tag", metavar="TAG", help="Only notes with this tag.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@options.vault_options
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
    with options.open_vault(folder) as reader:
        options.read_notes(reader)
        drawn = reader.graph(tag=tag, source=source, depth=depth)
        text = _written(drawn, kind, reader.vault.root)
    shown = _shown(drawn, kind)
    if output == "-":
        click.echo(text, nl=False)
        _tell_left_out(drawn, shown)
        return
    file = Path(output).expanduser() if output else _default(reader, kind)
    _write(file, text)
    if as_json:
        show.emit({"file": str(file.resolve()), "format": kind, **_counts(drawn, shown)})
    else:
        _tell(drawn, shown, file)
    if opens:
        click.launch(file.resolve().as_uri())


def _kind_of(output: str) -> str:
    ending = Path(output).suffix.lower()
    if ending == ".svg":
        raise click.UsageError(NO_SVG)
    if output != "-" and ending not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise click.UsageError(f"{show.shortened(output, 80)} ends in none of {known}: give --format.")
    return ENDINGS.get(ending, "html")


def _check(output: str) -> None:
    """A note that is named after `-o` by mistake must not be overwritten."""
    from recto.vault.folder import is_note

    if is_note(output) or is_note(os.path.realpath(os.path.expanduser(output))):
        raise click.UsageError(f"{show.shortened(output, 80)}: a graph is not written to a note.")


def _default(reader: "VaultReader", kind: str) -> Path:
    """In the current folder, unless that is in the vault: nobody asked for a new file among the notes."""
    is_within = Path.cwd().resolve().is_relative_to(reader.vault.root)
    return (reader.cache if is_within else Path()) / f"vault-graph.{kind}"


def _written(graph: "Graph", kind: str, root: Path) -> str:
    from recto.vault import graph as plain

    if kind == "json":
        return plain.to_json(graph) + "\n"
    if kind == "dot":
        return plain.to_dot(graph)
    from recto.vault.graph_page import to_html

    return to_html(graph, root.name, f"{root.as_uri()}/")


def _shown(graph: "Graph", kind: str) -> "Graph":
    """The part of the graph that is drawn; data for other programs is always complete."""
    from recto.vault import graph_page

    return graph.best_linked(graph_page.MAX_NODES) if kind == "html" else graph


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


def _counts(graph: "Graph", shown: "Graph") -> dict[str, Any]:
    left_out = graph.kinds - shown.kinds
    return {"nodes": len(shown.nodes), "links": _links(shown), "kinds": dict(shown.kinds), "left_out": dict(left_out)}


def _tell(graph: "Graph", shown: "Graph", file: Path) -> None:
    from recto.vault.graph import describe_kinds

    show.say(f"{file}: {', '.join([*describe_kinds(shown.kinds), show.counted(_links(shown), 'link')])}")
    _tell_left_out(graph, shown)


def _tell_left_out(graph: "Graph", shown: "Graph") -> None:
    from recto.vault.graph import describe_kinds

    if left_out := graph.kinds - shown.kinds:
        drawn = f"the best-linked {len(shown.nodes):,} of {len(graph.nodes):,} are drawn"
        show.note(f"{drawn}; left out: {', '.join(describe_kinds(left_out))}")


def _links(graph: "Graph") -> int:
    return sum(count for *_, count in graph.edges)
