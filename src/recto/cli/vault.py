"""`recto vault`: a folder of notes, its links and its search; here what there is in it, and the index of it."""

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from recto.cli import show, vault_graph, vault_links, vault_search, vault_stats
from recto.cli.progress import bar
from recto.cli.vault_place import Place, open_place, placed, read_notes

if TYPE_CHECKING:
    from recto.vault.library import Library
    from recto.vault.vault import Changes, Listed, Vault

# Of a longer list the first are named, and how many there are.
MOST_NAMED = 10
# So many vectors take a few seconds: they are made without being asked for.
FEW = 500


@click.group()
def command() -> None:
    """Search a folder of notes, follow its links, see what is used.

    Example: recto vault search "who owns the boat"
    """


@dataclass(frozen=True, slots=True)
class Held:
    """What a vault holds, counted."""

    notes: int
    attachments: int
    links: int
    broken: int
    problems: tuple["Listed", ...]
    """Notes whose front matter cannot be read, or that cannot be read at all."""

    @classmethod
    def by(cls, vault: "Vault") -> "Held":
        from recto.vault.folder import is_note

        notes, links = vault.documents(), vault.links()
        attachments = sum(not is_note(entry.path) for entry in vault.folder.walk())
        broken = sum(found.path is None for found in links)
        return cls(len(notes), attachments, len(links), broken, tuple(note for note in notes if note.problem))

    def to_json(self) -> dict[str, Any]:
        problems = [{"path": note.path, "problem": note.problem} for note in self.problems]
        counts = {"notes": self.notes, "attachments": self.attachments, "links": self.links, "broken": self.broken}
        return {**counts, "problems": problems}


@command.command("index")
@click.option("--vectors/--no-vectors", default=None, help="Make all vectors now, however long it takes; or none.")
@placed
def index(vectors: bool | None, folder: str | None, as_json: bool) -> None:
    """Bring the catalogue of a vault and its search index up to date, and say what changed.

    Example: recto vault index --vectors
    """
    began = time.monotonic()
    with open_place(folder) as place, place.library() as library:
        changes = read_notes(place)
        with bar("indexing") as tell:
            library.fill(tell)
        if vectors or (vectors is None and library.status.waiting <= FEW):
            with bar("making vectors") as tell:
                library.fill(tell, vectors=True)
        held, filled = Held.by(place.vault), library_to_json(library)
        seconds = round(time.monotonic() - began, 2)
        if as_json:
            show.emit({**changes_to_json(changes), **held.to_json(), **filled, "seconds": seconds})
        else:
            _tell_facts({**_changed(changes), **_counts(held), **_filled(filled), "seconds": f"{seconds:g}"})
            _tell_problems(held, changes)
        _tell_notes(place)
    if vectors and (filled["waiting"] or filled["embedder"] is None):
        sys.exit(1)


@command.command("status")
@placed
def status(folder: str | None, as_json: bool) -> None:
    """Show what a vault holds, how far its index has come, and where that lies.

    Example: recto vault status
    """
    with open_place(folder) as place, place.library() as library:
        read_notes(place)
        held, filled = Held.by(place.vault), library_to_json(library)
        size = sum(file.stat().st_size for file in place.cache.glob("*") if file.is_file())
        where = {"vault": str(place.vault.root), "index": str(place.cache), "size": size}
        if as_json:
            show.emit({**where, **held.to_json(), **filled})
        else:
            told = {"vault": str(place.vault.root), **_counts(held), **_filled(filled)}
            _tell_facts({**told, "index": f"{place.cache} ({size / 1e6:.1f} MB)"})
            _tell_problems(held)
        _tell_notes(place)


def library_to_json(library: "Library") -> dict[str, Any]:
    found = library.status
    return {
        "indexed": found.indexed,
        "sections": found.passages,
        "vectors": found.vectors,
        "waiting": found.waiting,
        "embedder": found.embedder,
        "why": found.why or None,
    }


def changes_to_json(changes: "Changes") -> dict[str, Any]:
    names = ("added", "changed", "removed", "unreadable")
    return {name: list(getattr(changes, name)) for name in names}


def _changed(changes: "Changes") -> dict[str, str]:
    counts = ((len(changes.added), "new"), (len(changes.changed), "changed"), (len(changes.removed), "gone"))
    return {"changes": ", ".join(f"{count:,} {what}" for count, what in counts if count) or "none"}


def _counts(held: Held) -> dict[str, str]:
    return {
        "notes": f"{held.notes:,}",
        "attachments": f"{held.attachments:,}",
        "links": f"{held.links:,}; {held.broken:,} broken" + (" (`recto vault broken`)" if held.broken else ""),
    }


def _filled(filled: dict[str, Any]) -> dict[str, str]:
    embedder = filled["embedder"] or "none"
    hint = f" ({vault_search.MAKE_VECTORS})" if filled["waiting"] and not filled["why"] else ""
    return {
        "sections": f"{filled['sections']:,} of {show.counted(filled['indexed'], 'note')} indexed",
        "vectors": f"{filled['vectors']:,}; {filled['waiting']:,} waiting{hint}",
        "embedder": f"{embedder}: {filled['why']}" if filled["why"] else embedder,
    }


def _tell_facts(facts: dict[str, str]) -> None:
    for name, value in facts.items():
        show.say(f"{name:<12}{value}")


def _tell_problems(held: Held, changes: "Changes | None" = None) -> None:
    lines = [_problem(note) for note in held.problems]
    known = {note.path for note in held.problems}
    lines += [f"{path} cannot be read" for path in (changes.unreadable if changes else ()) if path not in known]
    for line in lines[:MOST_NAMED]:
        show.say(f"⚠ {line}", fg="yellow")
    if (rest := len(lines) - MOST_NAMED) > 0:
        show.say(f"⚠ and {rest:,} more; --json names them all", fg="yellow")


def _problem(note: "Listed") -> str:
    said = note.problem or ""
    return said if said.startswith(note.path) else f"{note.path}: {said}"


def _tell_notes(place: Place) -> None:
    for text in place.vault.notes:
        show.note(text)


for each in (
    vault_search.search,
    vault_links.resolve,
    vault_links.links,
    vault_links.backlinks,
    vault_links.broken,
    vault_graph.graph,
    vault_stats.stats,
    vault_search.suggest,
):
    command.add_command(each)
