"""`recto vault`: a folder of notes: catalogue and index, search, links, graph, and use of documents."""

import os
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import bar, to_file

if TYPE_CHECKING:
    from recto.api.vault_queries import VaultContents, VaultQueries
    from recto.chat.conversation import Conversation
    from recto.store.document_uses import DocumentTally, Grouping
    from recto.vault.graph import Graph
    from recto.vault.vault import ResolvedLink, Vault, VaultChanges
    from recto.vault.vault_search import Excerpt, FoundDocument, VaultIndexStatus

# Longer lists are cut to this, with the number of the rest.
MOST_NAMED = 10
# Up to FEW vectors take seconds, and are made without asking. Fewer notes than MANY are indexed without a note.
FEW, MANY = 500, 100
# Wait of the first search in a small vault for its vectors.
FIRST_WAIT_S = 6.0
# Suggesting a document takes a moment for each link.
MOST_SUGGESTED = 20
# A context with this many characters on one side of its link was cut there.
NEARLY_ALL = 40
MAKE_VECTORS = "`recto vault index --vectors` makes them"
MAKE_VECTORS_ALL = "each search prepares some more of them, and `recto vault index --vectors` all"
NOT_INDEXED = "the notes are not indexed yet (the first search or `recto vault index` does it)"
GROUPINGS = ("document", "conversation")
BAR_WIDTH = 20
LEFT_OUT = {"document": "documents", "conversation": "conversations"}
"""Counts that make no sense for one document or conversation."""
GRAPH_FORMATS = ("html", "json")
ENDINGS = {".html": "html", ".json": "json"}


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
    began = time.monotonic()
    with options.open_vault(flags) as reader:
        changes = options.read_notes(reader)
        with bar("indexing") as tell:
            reader.search.fill(tell)
        if vectors or (vectors is None and reader.search.status.waiting <= FEW):
            with bar("making vectors") as tell:
                reader.search.fill(tell, vectors=True)
        contents, filled = reader.contents(), _index_to_json(reader.search.status)
        seconds = round(time.monotonic() - began, 2)
        if as_json:
            changed = {name: list(getattr(changes, name)) for name in ("added", "changed", "removed", "unreadable")}
            show.emit({**changed, **contents.to_json(), **filled, "seconds": seconds})
        else:
            counts = ((changes.added, "new"), (changes.changed, "changed"), (changes.removed, "gone"))
            told = ", ".join(f"{len(paths):,} {what}" for paths, what in counts if paths) or "none"
            show.facts({"changes": told, **_facts(contents, filled), "seconds": f"{seconds:g}"}.items())
            _tell_problems(contents, changes)
        for text in reader.vault.warnings:
            show.note(text)
    if vectors and (filled["waiting"] or filled["embedder"] is None):
        sys.exit(1)


@command.command("status")
@options.vault_options
def status(flags: dict[str, str], as_json: bool) -> None:
    """Show what a vault holds, how complete its index is, and where the index is.

    Example: recto vault status
    """
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        contents, filled, root = reader.contents(), _index_to_json(reader.search.status), str(reader.vault.root)
        size = reader.cache_size
        if as_json:
            show.emit({"vault": root, "index": str(reader.cache), "size": size, **contents.to_json(), **filled})
        else:
            index = f"{reader.cache} ({size / 1e6:.1f} MB)"
            show.facts({"vault": root, **_facts(contents, filled), "index": index}.items())
            _tell_problems(contents)
        for text in reader.vault.warnings:
            show.note(text)


def _index_to_json(found: "VaultIndexStatus") -> dict[str, Any]:
    names = {"indexed": "indexed", "sections": "passages", "vectors": "vectors", "waiting": "waiting"}
    told = {name: getattr(found, own) for name, own in names.items()}
    return told | {"embedder": found.embedder, "why": found.why or None}


def _facts(contents: "VaultContents", filled: dict[str, Any]) -> dict[str, str]:
    embedder, why = filled["embedder"] or "none", filled["why"]
    broken = " (`recto vault broken`)" if contents.broken else ""
    hint = f" ({MAKE_VECTORS})" if filled["waiting"] and not why else ""
    sections = f"{filled['sections']:,} in {show.counted(filled['indexed'], 'indexed note')}"
    return {
        "notes": f"{contents.notes:,}",
        "attachments": f"{contents.attachments:,}",
        "links": f"{contents.links:,}; {contents.broken:,} broken{broken}",
        "sections": sections if filled["indexed"] or not contents.notes else f"none: {NOT_INDEXED}",
        "vectors": f"{filled['vectors']:,}; {filled['waiting']:,} waiting{hint}",
        "embedder": f"{embedder}: {why}" if why else embedder,
    }


def _tell_problems(contents: "VaultContents", changes: "VaultChanges | None" = None) -> None:
    known = {note.path: note.problem or "" for note in contents.problems}
    lines = [said if said.startswith(path) else f"{path}: {said}" for path, said in known.items()]
    lines += [f"{path} cannot be read" for path in (changes.unreadable if changes else ()) if path not in known]
    for line in lines[:MOST_NAMED]:
        show.say(f"⚠ {line}", fg="yellow")
    if (rest := len(lines) - MOST_NAMED) > 0:
        show.say(f"⚠ and {rest:,} more; --json names them all", fg="yellow")


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
            excerpts_told = [_excerpt_to_json(part) for part in parts]
            show.emit(
                {"documents": [_hit_to_json(hit) for hit in hits], "excerpts": excerpts_told, "note": note or None}
            )
        else:
            _tell_documents(reader.vault, hits)
            _tell_excerpts(reader.vault, parts, wanted, is_apart=bool(hits))
        lacking = _lacking(reader.search.status)
        for text in filter(None, (note, lacking, "" if hits or parts else "nothing was found")):
            show.note(text)


def _fill(reader: "VaultQueries") -> None:
    """Update the index, with a note if that takes a while, and wait a moment for vectors."""
    options.read_notes(reader)
    left = reader.search.status.left
    lacking = f"the search index lacks {show.counted(left, 'note')}" if left > MANY else ""
    if why := reader.search.rebuild_reason or lacking:
        show.note(why)
    with bar("indexing") as tell:
        reader.search.fill(tell)
    with bar("reading the notes for their meaning") as tell:
        reader.search.settle(max(FIRST_WAIT_S, reader.settings.search.timeout_s), tell)


def _lacking(status: "VaultIndexStatus") -> str:
    if status.embedder is None or status.why or not status.waiting:
        return ""
    if status.waiting < status.passages:
        return f"{status.waiting:,} of {status.passages:,} passages are found by words only for now: {MAKE_VECTORS_ALL}"
    return f"only words were searched, not meaning: {MAKE_VECTORS_ALL}"


def _hit_to_json(hit: "FoundDocument") -> dict[str, Any]:
    return {name: getattr(hit, name) for name in ("path", "title", "score", "because")}


def _excerpt_to_json(part: "Excerpt") -> dict[str, Any]:
    names = ("path", "title", "heading", "line", "start", "end", "text", "score", "because")
    return {name: getattr(part, name) for name in names}


def _tell_documents(vault: "Vault", hits: "Sequence[FoundDocument]") -> None:
    for hit in hits:
        title = click.style(show.shortened(hit.title, 60), bold=True)
        show.say_styled(f"{to_file(hit.path, vault.root / hit.path)}  {title}  {_why(hit)}")


def _tell_excerpts(vault: "Vault", parts: "Sequence[Excerpt]", wanted: str, *, is_apart: bool) -> None:
    from recto.cli.drawing.references import bold, snippet_around  # text folding: the other commands do without

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
                show.emit({"conversation": talk.id, **_hit_to_json(hit)})
        elif found.hits:
            show.say(f"For {talk.name}{title}", dim=True)
            _tell_documents(talk.vault, found.hits)
        nothing = "" if found.hits else f"no other document of the vault bears on {talk.name}{title}"
        for text in filter(None, (found.warning, nothing)):
            show.note(text)


# -- use


@command.command("stats")
@click.option("--by", type=click.Choice(GROUPINGS), default="document", show_default=True, help="What is counted.")
@click.option("--unused", is_flag=True, help="Documents that only tools found, then those never used.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.vault_options
def stats(by: "Grouping", unused: bool, limit: int, flags: dict[str, str], as_json: bool) -> None:
    """Show which documents of a vault conversations use most, and which never.

    Example: recto vault stats --unused
    """
    if unused and by != "document":
        raise click.UsageError("--unused is about documents: leave out --by.")
    with options.open_vault(flags) as vault_queries, options.open_queries() as reader:
        root = vault_queries.vault.root
        notes = [note.path for note in vault_queries.vault.documents()] if unused else []
        tallies = reader.unnamed_documents(root, notes) if unused else reader.document_stats(root, by)
        homes = reader.conversations(limit=sys.maxsize) if by == "conversation" else []
    known = {each.id: each for each in homes}
    if as_json:
        for tally in tallies[:limit]:
            show.emit(_tally_to_json(tally, by, known))
    else:
        _tell_tallies(tallies[:limit], by, root, known)
    if rest := len(tallies[limit:]):
        show.note(f"and {rest:,} more: --limit shows them")
    if not tallies:
        show.note("every document was used" if unused else "no document of this vault was used in a conversation yet")


def _tally_to_json(tally: "DocumentTally", by: str, homes: "dict[str, Conversation]") -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in ("uses", "direct", "search", "documents", "conversations", "last")}
    home = homes.get(tally.name)
    title = {"title": (home.title if home else None) or None} if by == "conversation" else {}
    kept = {name: count for name, count in counts.items() if name != LEFT_OUT[by]}
    return {"path" if by == "document" else by: tally.name, **title, **kept}


def _tell_tallies(tallies: "Sequence[DocumentTally]", by: str, root: Path, homes: "dict[str, Conversation]") -> None:
    most = max((tally.uses for tally in tallies), default=0) or 1
    width = max((len(f"{tally.uses:,}") for tally in tallies), default=1)
    for tally in tallies:
        drawn = "█" * max(round(BAR_WIDTH * tally.uses / most), bool(tally.uses))
        home, shown = homes.get(tally.name), tally.name
        if by == "document":
            shown = to_file(tally.name, root / tally.name)
        elif home:
            shown = f"#{home.number}" + (f" ({show.shortened(home.title, 50)})" if home.title else "")
        bar = click.style(f"{drawn:<{BAR_WIDTH}}", fg="cyan")
        show.say_styled(f"{tally.uses:>{width},} {bar} {shown}  {click.style(_beside(tally, by), dim=True)}")


def _beside(tally: "DocumentTally", by: str) -> str:
    if not tally.uses:
        return "never used"
    kinds = ((tally.direct, "named"), (tally.search, "by tools"))
    parts = [f"{count:,} {kind}" for count, kind in kinds if count]
    if by != "document":
        parts.append(show.counted(tally.documents, "document"))
    if by != "conversation":
        parts.append(f"in {show.counted(tally.conversations, 'conversation')}")
    if tally.last:
        parts.append(f"last {show.when(tally.last)}")
    return ", ".join(parts)


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
        nothing = f"no link of {path} is broken" if path else "no link is broken: all lead somewhere"
        _tell_links(reader, reader.vault.broken_links(path), as_json, nothing)


def _tell_links(reader: "VaultQueries", found: "Iterable[ResolvedLink]", as_json: bool, nothing: str) -> None:
    from recto.vault.links import link_to_json  # the vault: most commands need none

    number = 0
    for number, each in enumerate(found, 1):
        if as_json:
            where: dict[str, Any] = {"source": each.source, "line": each.line, **link_to_json(each.link, each.path)}
            show.emit(where | {"kind": each.link.kind, "context": each.context})
        else:
            _tell_link(reader, each, suggests=number <= MOST_SUGGESTED)
    if not number:
        show.note(nothing)


def _tell_link(reader: "VaultQueries", found: "ResolvedLink", *, suggests: bool) -> None:
    where = to_file(f"{found.source}:{found.line}", reader.vault.root / found.source)
    written = show.visible(("!" if found.link.embed else "") + found.link.wikilink)
    if found.path is None:
        near = reader.did_you_mean(found.link.target) if suggests else ""
        target = click.style(show.visible(f"⚠ not found{near}"), fg="yellow")
    else:
        target = to_file(found.path, reader.vault.root / found.path)
    show.say_styled(f"{where}  {click.style(written, bold=True)} → {target}")
    # without partial words at its ends
    before, link, after = found.context.partition(found.link.wikilink)
    before = f"…{before.partition(' ')[2]}" if len(before) > NEARLY_ALL else before
    after = f"{after.rpartition(' ')[0]}…" if len(after) > NEARLY_ALL else after
    show.say(f"  {before}{link}{after}", dim=True)


# -- the graph


@command.command("graph")
@click.option("--format", "kind", type=click.Choice(GRAPH_FORMATS), help="Default: by the file's ending, else html.")
@click.option("--output", "-o", metavar="FILE", help="Where to write; - for stdout (default: vault-graph.html).")
@click.option("--from", "source", metavar="DOC", help="Only notes that are linked with this document.")
@click.option("--depth", type=click.IntRange(1), default=2, show_default=True, help="Maximum distance in links.")
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
    flags: dict[str, str],
    as_json: bool,
) -> None:
    """Draw the notes of a vault and the links between them.

    Example: recto vault graph --from Welcome --depth 1 --open
    """
    from recto.vault.graph import MAX_NODES, describe_kinds

    if opens and output == "-":
        raise click.UsageError("--open needs a file: leave out -o -.")
    if output:
        _check_output(output)
    kind = kind or _kind_of(output or "-")
    with options.open_vault(flags) as reader:
        options.read_notes(reader)
        drawn = reader.graph(tag=tag, source=source, depth=depth)
        text = _written(drawn, kind, reader.vault.root)
    shown = drawn.best_linked(MAX_NODES) if kind == "html" else drawn  # data for programs is always complete
    left_out = drawn.kinds - shown.kinds
    if output == "-":
        show.hand_over(text)
    else:
        # in the current folder, unless that is in the vault
        is_within = Path.cwd().resolve().is_relative_to(reader.vault.root)
        default = (reader.cache if is_within else Path()) / f"vault-graph.{kind}"
        file = Path(output).expanduser() if output else default
        show.write(str(file), text)
        count = sum(count for *_, count in shown.edges)
        if as_json:
            counts = {"nodes": len(shown.nodes), "links": count, "kinds": dict(shown.kinds), "left_out": dict(left_out)}
            show.emit({"file": str(file.resolve()), "format": kind, **counts})
        else:
            show.say(f"{file}: {', '.join([*describe_kinds(shown.kinds), show.counted(count, 'link')])}")
        if opens:
            click.launch(file.resolve().as_uri())
    if left_out and (output == "-" or not as_json):
        best = f"the best-linked {len(shown.nodes):,} of {len(drawn.nodes):,} are drawn"
        show.note(f"{best}; left out: {', '.join(describe_kinds(left_out))}")


def _kind_of(output: str) -> str:
    ending = Path(output).suffix.lower()
    if output != "-" and ending not in ENDINGS:
        raise click.UsageError(f"{show.shortened(output, 80)} ends in none of {', '.join(ENDINGS)}: give --format.")
    return ENDINGS.get(ending, "html")


def _check_output(output: str) -> None:
    """Refuse to overwrite a note that is named after `-o` by mistake."""
    from recto.vault.folder import is_note

    if is_note(output) or is_note(os.path.realpath(os.path.expanduser(output))):
        raise click.UsageError(f"{show.shortened(output, 80)}: a graph is not written to a note.")


def _written(graph: "Graph", kind: str, root: Path) -> str:
    from recto.vault.graph import to_html, to_json

    if kind == "json":
        return to_json(graph) + "\n"
    return to_html(graph, root.name, f"{root.as_uri()}/")
