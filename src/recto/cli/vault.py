"""`recto vault`: a folder of notes: its catalogue and index, what it holds, which documents are used."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show, vault_links, vault_search
from recto.cli.terminal import SUMMING, bar, to_file

if TYPE_CHECKING:
    from recto.api.vault_reader import VaultContents, VaultReader
    from recto.chat.conversation import Conversation
    from recto.reports.document_stats import DocumentTally, Grouping
    from recto.vault.vault import DocumentInfo, VaultChanges
    from recto.vault.vault_search import VaultIndexStatus

# Of a longer list the first are named, and how many there are.
MOST_NAMED = 10
# So many vectors take a few seconds: they are made without asking.
FEW = 500
NOT_INDEXED = "the notes are not indexed yet (the first search or `recto vault index` does it)"
GROUPINGS = ("document", "conversation", "month")
BAR_WIDTH = 20
LEFT_OUT = {"document": ("documents",), "conversation": ("conversations",), "month": ("last",)}
"""Counts that say nothing about one document, one conversation, one month."""


@click.group()
def command() -> None:
    """Search a folder of notes, follow its links, see what is used.

    Example: recto vault search "who owns the boat"
    """


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
            show.emit({**_changes_to_json(changes), **contents.to_json(), **filled, "seconds": seconds})
        else:
            _tell_facts(
                {**_changed(changes), **_counts(contents), **_filled(filled, contents.notes), "seconds": f"{seconds:g}"}
            )
            _tell_problems(contents, changes)
        _tell_notes(reader)
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
            where = {"vault": root, "index": str(reader.cache), "size": size}
            show.emit({**where, **contents.to_json(), **filled})
        else:
            index = {"index": f"{reader.cache} ({size / 1e6:.1f} MB)"}
            _tell_facts({"vault": root, **_counts(contents), **_filled(filled, contents.notes), **index})
            _tell_problems(contents)
        _tell_notes(reader)


def _index_to_json(found: "VaultIndexStatus") -> dict[str, Any]:
    return {
        "indexed": found.indexed,
        "sections": found.passages,
        "vectors": found.vectors,
        "waiting": found.waiting,
        "embedder": found.embedder,
        "why": found.why or None,
    }


def _changes_to_json(changes: "VaultChanges") -> dict[str, Any]:
    names = ("added", "changed", "removed", "unreadable")
    return {name: list(getattr(changes, name)) for name in names}


def _changed(changes: "VaultChanges") -> dict[str, str]:
    counts = ((len(changes.added), "new"), (len(changes.changed), "changed"), (len(changes.removed), "gone"))
    return {"changes": ", ".join(f"{count:,} {what}" for count, what in counts if count) or "none"}


def _counts(contents: "VaultContents") -> dict[str, str]:
    hint = " (`recto vault broken`)" if contents.broken else ""
    return {
        "notes": f"{contents.notes:,}",
        "attachments": f"{contents.attachments:,}",
        "links": f"{contents.links:,}; {contents.broken:,} broken{hint}",
    }


def _filled(filled: dict[str, Any], notes: int) -> dict[str, str]:
    embedder = filled["embedder"] or "none"
    hint = f" ({vault_search.MAKE_VECTORS})" if filled["waiting"] and not filled["why"] else ""
    sections = f"{filled['sections']:,} in {show.counted(filled['indexed'], 'indexed note')}"
    return {
        "sections": sections if filled["indexed"] or not notes else f"none: {NOT_INDEXED}",
        "vectors": f"{filled['vectors']:,}; {filled['waiting']:,} waiting{hint}",
        "embedder": f"{embedder}: {filled['why']}" if filled["why"] else embedder,
    }


def _tell_facts(facts: dict[str, str]) -> None:
    for name, value in facts.items():
        show.say(f"{name:<12}{value}")


def _tell_problems(contents: "VaultContents", changes: "VaultChanges | None" = None) -> None:
    lines = [_problem(note) for note in contents.problems]
    known = {note.path for note in contents.problems}
    lines += [f"{path} cannot be read" for path in (changes.unreadable if changes else ()) if path not in known]
    for line in lines[:MOST_NAMED]:
        show.say(f"⚠ {line}", fg="yellow")
    if (rest := len(lines) - MOST_NAMED) > 0:
        show.say(f"⚠ and {rest:,} more; --json names them all", fg="yellow")


def _problem(note: "DocumentInfo") -> str:
    said = note.problem or ""
    return said if said.startswith(note.path) else f"{note.path}: {said}"


def _tell_notes(reader: "VaultReader") -> None:
    for text in reader.vault.warnings:
        show.note(text)


@command.command("stats")
@click.option("--by", type=click.Choice(GROUPINGS), default="document", show_default=True, help="What is counted.")
@click.option("--unused", is_flag=True, help="Documents that only tools came upon, then those never used.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.vault_options
def stats(by: "Grouping", unused: bool, limit: int, flags: dict[str, str], as_json: bool) -> None:
    """Show which documents of a vault conversations use most, and which never.

    Example: recto vault stats --by month
    """
    if unused and by != "document":
        raise click.UsageError("--unused is about documents: leave out --by.")
    with options.open_vault(flags) as vault_reader, options.open_reader() as reader:
        root = vault_reader.vault.root
        notes = [note.path for note in vault_reader.vault.documents()] if unused else []
        with bar(SUMMING) as tell:
            tallies = reader.unnamed_documents(root, notes, tell) if unused else reader.document_stats(root, by, tell)
        homes = reader.conversations(limit=sys.maxsize) if by == "conversation" else []
    titles = {each.id: each.title for each in homes}
    for tally in tallies[:limit] if as_json else ():
        show.emit(_tally_to_json(tally, by, titles))
    if not as_json:
        _tell_tallies(tallies[:limit], by, root, homes)
    if rest := len(tallies[limit:]):
        show.note(f"and {rest:,} more: --limit shows them")
    if not tallies:
        show.note("every document was used" if unused else "no document of this vault was used in a conversation yet")


def _tally_to_json(tally: "DocumentTally", by: str, titles: dict[str, str]) -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in ("uses", "direct", "search", "documents", "conversations", "last")}
    title = {"title": titles.get(tally.name) or None} if by == "conversation" else {}
    kept = {name: count for name, count in counts.items() if name not in LEFT_OUT[by]}
    return {"path" if by == "document" else by: tally.name, **title, **kept}


def _tell_tallies(tallies: Sequence["DocumentTally"], by: str, root: Path, homes: Sequence["Conversation"]) -> None:
    names = {each.id: f"#{each.number}" for each in homes}
    titles = {each.id: each.title for each in homes}
    most = max((tally.uses for tally in tallies), default=0) or 1
    width = max((len(f"{tally.uses:,}") for tally in tallies), default=1)
    for tally in tallies:
        bar = click.style(
            f"{'█' * max(round(BAR_WIDTH * tally.uses / most), bool(tally.uses)):<{BAR_WIDTH}}", fg="cyan"
        )
        shown = to_file(tally.name, root / tally.name) if by == "document" else names.get(tally.name, tally.name)
        title = f" ({show.shortened(titles[tally.name], 50)})" if titles.get(tally.name) else ""
        show.say_styled(f"{tally.uses:>{width},} {bar} {shown}{title}  {click.style(_beside(tally, by), dim=True)}")


def _beside(tally: "DocumentTally", by: str) -> str:
    if not tally.uses:
        return "never used"
    kinds = ((tally.direct, "named"), (tally.search, "by tools"))
    parts = [f"{count:,} {kind}" for count, kind in kinds if count]
    if by != "document":
        parts.append(show.counted(tally.documents, "document"))
    if by != "conversation":
        parts.append(f"in {show.counted(tally.conversations, 'conversation')}")
    if by != "month" and tally.last:
        parts.append(f"last {show.when(tally.last)}")
    return ", ".join(parts)


for each in (
    vault_search.search,
    vault_links.resolve,
    vault_links.links,
    vault_links.backlinks,
    vault_links.broken,
    vault_links.graph,
    vault_search.suggest,
):
    command.add_command(each)
