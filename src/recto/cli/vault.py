"""`recto vault`: a folder of notes: catalogue and index, search, links, graph, and use of documents."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import to_builtins

from recto.cli import options, show
from recto.cli.terminal import bar, to_file

if TYPE_CHECKING:
    from recto.api.vault_queries import VaultQueries
    from recto.store.document_uses import DocumentTally, Grouping
    from recto.vault.vault import ResolvedLink, Vault
    from recto.vault.vault_search import Excerpt, FoundDocument

# Up to FEW vectors take seconds, and are made without asking.
FEW = 500
# Wait of the first search in a small vault for its vectors.
FIRST_WAIT_S = 6.0
# Problems named. Suggesting a document for a broken link takes a moment each.
MOST_NAMED, MOST_SUGGESTED = 10, 20
# A context with this many characters on one side of its link was cut there.
NEARLY_ALL = 40
GRAPH_FORMATS = ("html", "json")


@click.group()
def command() -> None:
    """Search a folder of notes, follow its links, see what is used.

    Example: recto vault search "who owns the boat"
    """


# -- the index


@command.command("index")
@click.option("--vectors/--no-vectors", default=None, help="Make all vectors now, or none.")
@options.vault_options
def index(vectors: bool | None, flags: dict[str, str], as_json: bool) -> None:
    """Bring the catalogue of a vault and its search index up to date, and show what changed.

    Example: recto vault index --vectors
    """
    with options.open_vault(flags) as reader:
        changes = options.read_notes(reader)
        with bar("indexing") as tell:
            reader.search.fill(tell)
        if vectors or (vectors is None and reader.search.status.waiting <= FEW):
            with bar("making vectors") as tell:
                reader.search.fill(tell, vectors=True)
        changed = {name: list(getattr(changes, name)) for name in ("added", "changed", "removed", "unreadable")}
        _tell_status(reader, as_json, changed)
        filled = reader.search.status
    if vectors and (filled.waiting or filled.embedder is None):
        sys.exit(1)


@command.command("status")
@options.vault_options
def status(flags: dict[str, str], as_json: bool) -> None:
    """Show what a vault holds, how complete its index is, and where the index is.

    Example: recto vault status
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        _tell_status(reader, as_json, {})


def _tell_status(reader: "VaultQueries", as_json: bool, changed: dict[str, list[str]]) -> None:
    contents, filled = reader.contents(), reader.search.status
    if as_json:
        told = {"sections" if name == "passages" else name: getattr(filled, name) for name in filled.__struct_fields__}
        place = {"vault": str(reader.vault.root), "index": str(reader.cache), "size": reader.cache_size}
        show.emit(place | changed | contents.to_json() | told | {"why": filled.why or None})
    else:
        broken = " (`recto vault broken`)" if contents.broken else ""
        hint = " (`recto vault index --vectors` makes them)" if filled.waiting and not filled.why else ""
        facts = {
            "vault": str(reader.vault.root),
            "changes": ", ".join(f"{len(paths):,} {what}" for what, paths in changed.items() if paths),
            "notes": f"{contents.notes:,}, {filled.indexed:,} of them indexed in {filled.passages:,} passages",
            "attachments": f"{contents.attachments:,}",
            "links": f"{contents.links:,}; {contents.broken:,} broken{broken}",
            "vectors": f"{filled.vectors:,}; {filled.waiting:,} waiting{hint}",
            "embedder": ": ".join(filter(None, (filled.embedder or "none", filled.why))),
            "index": f"{reader.cache} ({reader.cache_size / 1e6:.1f} MB)",
        }
        show.facts((name, value) for name, value in facts.items() if value)
        known = {note.path: note.problem or "" for note in contents.problems}
        lines = [said if said.startswith(path) else f"{path}: {said}" for path, said in known.items()]
        lines += [f"{path} cannot be read" for path in changed.get("unreadable", ()) if path not in known]
        for line in lines[:MOST_NAMED]:
            show.say(f"⚠ {line}", fg="yellow")
        if len(lines) > MOST_NAMED:
            show.say(f"⚠ and {len(lines) - MOST_NAMED:,} more; --json names them all", fg="yellow")
    for text in reader.vault.warnings:
        show.note(text)


# -- search


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--documents", "-n", type=click.IntRange(0), default=3, show_default=True, help="At most N documents.")
@click.option("--excerpts", type=click.IntRange(0), default=8, show_default=True, help="At most N passages.")
@options.vault_options
def search(words: tuple[str, ...], documents: int, excerpts: int, flags: dict[str, str], as_json: bool) -> None:
    """Find documents and passages by words and meaning, the best first.

    Example: recto vault search "which engine did we choose"
    """
    wanted = " ".join(words)
    with options.open_vault(flags) as reader:
        _fill(reader)
        hits, note = reader.search.find_documents(wanted, limit=documents)
        parts, _ = reader.search.find_excerpts(wanted, limit=excerpts)
        if as_json:
            show.emit({"documents": to_builtins(hits), "excerpts": to_builtins(parts), "note": note or None})
        else:
            _tell_documents(reader.vault, hits)
            _tell_excerpts(reader.vault, parts, wanted, is_apart=bool(hits))
        status, lacking = reader.search.status, ""
        if status.waiting and not status.why:
            lacking = "some passages are found by words only: `recto vault index --vectors` makes their vectors"
        for text in filter(None, (note, lacking, "" if hits or parts else "nothing was found")):
            show.note(text)


def _fill(reader: "VaultQueries") -> None:
    """Update the index, and wait a moment for vectors."""
    options.read_notes(reader)
    with bar("indexing") as tell:
        reader.search.fill(tell)
    if why := reader.search.rebuild_reason:
        show.note(why)
    with bar("reading the notes for their meaning") as tell:
        reader.search.settle(max(FIRST_WAIT_S, reader.settings.search.timeout_s), tell)


def _tell_documents(vault: "Vault", hits: "Sequence[FoundDocument]") -> None:
    for hit in hits:
        title = click.style(show.shortened(hit.title, 60), bold=True)
        show.say_styled(f"{to_file(hit.path, vault.root / hit.path)}  {title}  {_why(hit)}")


def _tell_excerpts(vault: "Vault", parts: "Sequence[Excerpt]", wanted: str, *, is_apart: bool) -> None:
    from recto.cli.drawing.transcripts import bold, snippet_around  # text folding: the other commands do without

    if parts and is_apart:
        show.say("")
    for part in parts:
        where = to_file(f"{part.path}:{part.line}", vault.root / part.path)
        heading = show.shortened(part.heading or part.title, 60)
        heading = click.style(f"  {heading}", bold=True) if heading else ""
        show.say_styled(f"{where}{heading}  {_why(part)}")
        show.say_styled(f"  {bold(*snippet_around(part.text, wanted))}")


def _why(found: "FoundDocument | Excerpt") -> str:
    return click.style(show.visible(f"{found.score:.2f} {found.because}"), dim=True)


@command.command("suggest")
@options.conversation_argument
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, help="Show at most N.")
@options.vault_options
def suggest(id: str | None, limit: int, flags: dict[str, str], as_json: bool) -> None:
    """Suggest documents for a conversation (by default the latest) that it has not used yet.

    Example: recto vault suggest
    """
    with options.open_desk(flags) as desk:
        talk = options.find_talk(desk, id)
        with bar("indexing") as tell:
            found = talk.suggest_documents(limit, tell)
        assert talk.vault is not None
        title = f" ({show.shortened(talk.title, 50)})" if talk.title else ""
        if as_json:
            for hit in found.hits:
                show.emit({"conversation": talk.id, **to_builtins(hit)})
        elif found.hits:
            show.say(f"For {talk.name}{title}", dim=True)
            _tell_documents(talk.vault, found.hits)
        nothing = "" if found.hits else f"no other document of the vault bears on {talk.name}{title}"
        for text in filter(None, (found.warning, nothing)):
            show.note(text)


# -- use


@command.command("stats")
@click.option(
    "--by", type=click.Choice(["document", "conversation"]), default="document", show_default=True, help="What counts."
)
@click.option("--unused", is_flag=True, help="Documents that only tools found, then those never used.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.vault_options
def stats(by: "Grouping", unused: bool, limit: int, flags: dict[str, str], as_json: bool) -> None:
    """Show which documents of a vault conversations use most, and which never.

    Example: recto vault stats --by conversation
    """
    if unused and by != "document":
        raise click.UsageError("--unused is about documents: leave out --by.")
    with options.open_vault(flags) as vault_queries, options.open_queries() as reader:
        root = vault_queries.vault.root
        notes = [note.path for note in vault_queries.vault.documents()] if unused else []
        tallies = reader.unnamed_documents(root, notes) if unused else reader.document_stats(root, by)
        homes = reader.conversations(limit=sys.maxsize) if by == "conversation" else []
    titles = {each.id: (each.number, each.title) for each in homes}
    for tally in tallies[:limit]:
        number, title = titles.get(tally.name, (0, ""))
        if as_json:
            show.emit(to_builtins(tally) | ({"title": title or None} if number else {}))
            continue
        name = to_file(tally.name, root / tally.name) if by == "document" else tally.name
        name = f"#{number} {show.shortened(title, 50)}".rstrip() if number else name
        show.say_styled(f"{tally.uses:>6,}  {name}  {click.style(_beside(tally, by), dim=True)}")
    if rest := len(tallies[limit:]):
        show.note(f"and {rest:,} more: --limit shows them")
    if not tallies:
        show.note("every document was used" if unused else "no document of this vault was used in a conversation yet")


def _beside(tally: "DocumentTally", by: str) -> str:
    if not tally.uses:
        return "never used"
    parts = [f"{count:,} {kind}" for count, kind in ((tally.direct, "named"), (tally.search, "by tools")) if count]
    where = show.counted(tally.conversations, "conversation")
    parts.append(f"in {where}" if by == "document" else show.counted(tally.documents, "document"))
    return ", ".join([*parts, *([f"last {show.when(tally.last)}"] if tally.last else [])])


# -- links


@command.command("links")
@click.argument("document", metavar="DOC")
@options.vault_options
def links(document: str, flags: dict[str, str], as_json: bool) -> None:
    """List the links of a document in their order, with line and context; broken ones are marked.

    Example: recto vault links Welcome
    """
    with options.open_vault(flags) as reader:
        path = reader.find_document(document)
        _tell_links(reader, reader.vault.outgoing_links(path), as_json, f"{path} has no links")


@command.command("backlinks")
@click.argument("document", metavar="DOC")
@options.vault_options
def backlinks(document: str, flags: dict[str, str], as_json: bool) -> None:
    """List the links that lead to a document, with line and context.

    Example: recto vault backlinks Budget
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        path = reader.find_document(document)
        _tell_links(reader, reader.vault.backlinks(path), as_json, f"no link leads to {path}")


@command.command("broken")
@click.argument("document", metavar="[DOC]", required=False)
@options.vault_options
def broken(document: str | None, flags: dict[str, str], as_json: bool) -> None:
    """List links that lead nowhere, of a document or of the whole vault.

    Example: recto vault broken
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        path = reader.find_document(document) if document else None
        _tell_links(reader, reader.vault.broken_links(path), as_json, "no link is broken: all lead somewhere")


def _tell_links(reader: "VaultQueries", found: "Iterable[ResolvedLink]", as_json: bool, nothing: str) -> None:
    from recto.vault.links import link_to_json  # the vault: most commands need none

    number = 0
    for number, each in enumerate(found, 1):
        if as_json:
            where: dict[str, Any] = {"source": each.source, "line": each.line, **link_to_json(each.link, each.path)}
            show.emit(where | {"kind": each.link.kind, "context": each.context})
            continue
        place = to_file(f"{each.source}:{each.line}", reader.vault.root / each.source)
        written = show.visible(("!" if each.link.embed else "") + each.link.wikilink)
        if each.path is None:
            near = reader.did_you_mean(each.link.target) if number <= MOST_SUGGESTED else ""
            target = click.style(show.visible(f"⚠ not found{near}"), fg="yellow")
        else:
            target = to_file(each.path, reader.vault.root / each.path)
        show.say_styled(f"{place}  {click.style(written, bold=True)} → {target}")
        # without partial words at its ends
        before, link, after = each.context.partition(each.link.wikilink)
        before = f"…{before.partition(' ')[2]}" if len(before) > NEARLY_ALL else before
        after = f"{after.rpartition(' ')[0]}…" if len(after) > NEARLY_ALL else after
        show.say(f"  {before}{link}{after}", dim=True)
    if not number:
        show.note(nothing)


# -- the graph


@command.command("graph")
@click.option("--format", "kind", type=click.Choice(GRAPH_FORMATS), help="Default: by the file's ending, else html.")
@click.option("--output", "-o", metavar="FILE", help="Where to write; - for stdout (default: vault-graph.html).")
@click.option("--from", "source", metavar="DOC", help="Only notes that are linked with this document.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="Maximum distance in links.")
@options.vault_options
def graph(
    kind: str | None, output: str | None, source: str | None, depth: int, flags: dict[str, str], as_json: bool
) -> None:
    """Draw the notes of a vault and the links between them, as a page or as JSON.

    Example: recto vault graph --from Welcome --depth 1
    """
    from recto.vault.folder import is_note
    from recto.vault.graph import MAX_NODES, describe_kinds, to_html, to_json

    if output and (is_note(output) or is_note(os.path.realpath(os.path.expanduser(output)))):
        raise click.UsageError(f"{show.shortened(output, 80)}: a graph is not written to a note.")
    ending = Path(output).suffix.lower().removeprefix(".") if output and output != "-" else "html"
    if not kind and ending not in GRAPH_FORMATS:
        raise click.UsageError(f"{show.shortened(output or '', 80)} ends in neither .html nor .json: give --format.")
    kind = kind or ending
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        drawn, root = reader.graph(source=source, depth=depth), reader.vault.root
        # in the current folder, unless that is in the vault
        folder = reader.cache if Path.cwd().resolve().is_relative_to(root) else Path()
    text = to_json(drawn) + "\n" if kind == "json" else to_html(drawn, root.name, f"{root.as_uri()}/")
    if output == "-":
        show.hand_over(text)
        return
    file = Path(output).expanduser() if output else folder / f"vault-graph.{kind}"
    show.write(str(file), text)
    shown = drawn if kind == "json" else drawn.best_linked(MAX_NODES)
    count = sum(count for *_, count in shown.edges)
    if as_json:
        counts = {"nodes": len(shown.nodes), "links": count, "kinds": dict(shown.kinds)}
        show.emit({"file": str(file.resolve()), "format": kind, **counts})
    else:
        show.say(f"{file}: {', '.join([*describe_kinds(shown.kinds), show.counted(count, 'link')])}")
    if len(shown.nodes) < len(drawn.nodes):
        show.note(f"the best-linked {len(shown.nodes):,} of {len(drawn.nodes):,} are drawn; json has all")
