"""`recto vault resolve`, `links`, `backlinks`, `broken`: which links lead where, and which nowhere.

`recto vault graph`: notes and the links between them, as a page, or as data for other programs.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import SUMMING, bar, to_file
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.api.vault_reader import VaultReader
    from recto.store.document_uses import Together
    from recto.vault.graph import Graph
    from recto.vault.vault import ResolvedLink


# Looking for the document that may be meant takes a moment for each link.
MOST_SUGGESTED = 20
# A context with so many characters on one side of its link was cut there.
NEARLY_ALL = 40


@click.command("resolve")
@click.argument("text", metavar="LINK")
@click.option("--from", "source", metavar="DOC", help="The note that holds the link.")
@options.vault_options
def resolve(text: str, source: str | None, flags: dict[str, str], as_json: bool) -> None:
    """Say which file a link means.

    Example: recto vault resolve "[[Budget#Table]]" --from Welcome
    """
    from recto.vault.links import link_to_json  # the vault: most commands need none

    with options.open_vault(flags) as reader:
        found = reader.resolve(text, source)
        if as_json:
            show.emit(link_to_json(found.link, found.path))
        else:
            show.say_styled(to_file(found.path, reader.vault.root / found.path))
    if found.lacking:
        show.note(found.lacking)


@click.command("links")
@click.argument("document", metavar="DOC")
@options.vault_options
def links(document: str, flags: dict[str, str], as_json: bool) -> None:
    """List the links of a document in their order, with line and context; broken ones are marked.

    Example: recto vault links Welcome
    """
    with options.open_vault(flags) as reader:
        path = reader.find_document(document)
        _tell(reader, reader.vault.outgoing_links(path), as_json, nothing=f"{path} has no links")


@click.command("backlinks")
@click.argument("document", metavar="DOC")
@options.vault_options
def backlinks(document: str, flags: dict[str, str], as_json: bool) -> None:
    """List the links that lead to a document, with line and context.

    Example: recto vault backlinks Budget
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        path = reader.find_document(document)
        _tell(reader, reader.vault.backlinks(path), as_json, nothing=f"no link leads to {path}")


@click.command("broken")
@click.argument("document", metavar="[DOC]", required=False)
@options.vault_options
def broken(document: str | None, flags: dict[str, str], as_json: bool) -> None:
    """List links that lead nowhere, of a document or of the whole vault.

    Example: recto vault broken
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        path = reader.find_document(document) if document else None
        nothing = f"no link of {path} is broken" if path else "no link is broken: all lead somewhere"
        _tell(reader, reader.vault.broken_links(path), as_json, nothing)


def found_to_json(found: "ResolvedLink") -> dict[str, Any]:
    from recto.vault.links import link_to_json  # the vault: most commands need none

    said: dict[str, Any] = dict(link_to_json(found.link, found.path))
    return {"source": found.source, "line": found.line, **said, "kind": found.link.kind, "context": found.context}


def _tell(reader: "VaultReader", found: Iterable["ResolvedLink"], as_json: bool, nothing: str) -> None:
    all_of_them = list(found)
    for number, each in enumerate(all_of_them):
        if as_json:
            show.emit(found_to_json(each))
        else:
            _tell_found(reader, each, suggests=number < MOST_SUGGESTED)
    if not all_of_them:
        show.note(nothing)


def _tell_found(reader: "VaultReader", found: "ResolvedLink", *, suggests: bool) -> None:
    where = to_file(f"{found.source}:{found.line}", reader.vault.root / found.source)
    written = show.visible(("!" if found.link.embed else "") + found.link.wikilink)
    if found.path is None:
        near = reader.did_you_mean(found.link.target) if suggests else ""
        target = click.style(show.visible(f"⚠ not found{near}"), fg="yellow")
    else:
        target = to_file(found.path, reader.vault.root / found.path)
    show.say_styled(f"{where}  {click.style(written, bold=True)} → {target}")
    show.say(f"  {_whole_words(found)}", dim=True)


def _whole_words(found: "ResolvedLink") -> str:
    """The context without the halves of words at its ends."""
    before, link, after = found.context.partition(found.link.wikilink)
    if len(before) > NEARLY_ALL:
        before = f"…{before.partition(' ')[2]}"
    if len(after) > NEARLY_ALL:
        after = f"{after.rpartition(' ')[0]}…"
    return before + link + after


FORMATS = ("html", "dot", "json")
MOST_USED = 20
ENDINGS = {".html": "html", ".dot": "dot", ".gv": "dot", ".json": "json"}


@click.command("graph")
@click.option("--format", "kind", type=click.Choice(FORMATS), help="Default: by the file's ending, else html.")
@click.option("--output", "-o", metavar="FILE", help="Where to write; - for stdout (default: vault-graph.html).")
@click.option("--from", "source", metavar="DOC", help="Only notes that are linked with this document.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="At most so many links from it.")
@click.option("--tag", metavar="TAG", help="Only notes with this tag.")
@click.option("--used", "together", is_flag=True, help="Notes that conversations used, and which were used together.")
@click.option(
    "--by",
    type=click.Choice(["turn", "conversation"]),
    default="turn",
    show_default=True,
    help="With --used: together in what.",
)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@options.vault_options
def graph(
    kind: str | None,
    output: str | None,
    source: str | None,
    depth: int,
    tag: str | None,
    together: bool,
    by: "Together",
    opens: bool,
    flags: dict[str, str],
    as_json: bool,
) -> None:
    """Draw the notes of a vault and the links between them.

    With --used the lines are not links: they tell how often two notes were used in one turn or conversation. It is
    printed as text, or with --json as data, unless -o or --format asks for a file.

    Example: recto vault graph --from Welcome --depth 1 --open
    """
    if opens and output == "-":
        raise click.UsageError("--open needs a file: leave out -o -.")
    if together and (tag or source):
        raise click.UsageError("--used is about all notes: leave out --tag and --from.")
    if output:
        _check(output)
    is_told = together and not (output or kind or opens)
    kind = kind or _kind_of(output or "-")
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        drawn = _used(reader, by) if together else reader.graph(tag=tag, source=source, depth=depth)
        text = _written(drawn, "json" if is_told else kind, reader.vault.root)
    if is_told:
        show.hand_over(text) if as_json else _tell_used(drawn, by)
        return
    shown = _shown(drawn, kind)
    if output == "-":
        show.hand_over(text)
        _tell_left_out(drawn, shown)
        return
    file = Path(output).expanduser() if output else _default(reader, kind)
    _write(file, text)
    if as_json:
        show.emit({"file": str(file.resolve()), "format": kind, **_counts(drawn, shown)})
    else:
        _tell_graph(drawn, shown, file)
    if opens:
        click.launch(file.resolve().as_uri())


def _used(reader: "VaultReader", by: "Together") -> "Graph":
    from recto.vault.graph import used_graph

    with options.open_reader() as store, bar(SUMMING) as tell:
        found = store.used_together(reader.vault.root, by, tell)
    titles = {note.path: note.title for note in reader.vault.documents()}
    return used_graph(titles, found.uses, found.pairs)


def _tell_used(graph: "Graph", by: "Together") -> None:
    if not graph.nodes:
        show.note("no document of this vault was used in a conversation yet")
        return
    gone = {node.path for node in graph.nodes if node.is_broken}
    for node in graph.nodes[:MOST_USED]:
        mark = "  no longer there" if node.path in gone else ""
        show.say(f"{node.weight:>6,.0f}  {node.path}{mark}")
    show.say("")
    for one, other, count in graph.edges[:MOST_USED]:
        show.say(f"{count:>6,}  {one} + {other}")
    if not graph.edges:
        show.say(f"no two of them were used in one {by}", dim=True)
    rest = max(0, len(graph.nodes) - MOST_USED), max(0, len(graph.edges) - MOST_USED)
    if any(rest):
        show.note(f"and {show.counted(rest[0], 'note')} and {show.counted(rest[1], 'pair')} more: --json has them all")


def _kind_of(output: str) -> str:
    ending = Path(output).suffix.lower()
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
    from recto.vault.graph import to_dot, to_json

    if kind == "json":
        return to_json(graph) + "\n"
    if kind == "dot":
        return to_dot(graph)
    from recto.vault.graph import to_html

    return to_html(graph, root.name, f"{root.as_uri()}/")


def _shown(graph: "Graph", kind: str) -> "Graph":
    """The part of the graph that is drawn; data for other programs is always complete."""
    from recto.vault.graph import MAX_NODES

    return graph.best_linked(MAX_NODES) if kind == "html" else graph


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


def _counts(graph: "Graph", shown: "Graph") -> dict[str, Any]:
    left_out = graph.kinds - shown.kinds
    return {"nodes": len(shown.nodes), "links": _links(shown), "kinds": dict(shown.kinds), "left_out": dict(left_out)}


def _tell_graph(graph: "Graph", shown: "Graph", file: Path) -> None:
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
