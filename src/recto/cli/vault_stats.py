"""`recto vault stats`: which documents conversations use, how often and when; and which they do not."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.hyperlink import to_file
from recto.cli.vault_place import open_place, placed

if TYPE_CHECKING:
    from recto.store.references import Use

BAR_WIDTH = 20


@dataclass(frozen=True, slots=True)
class Tally:
    """Uses that belong together: of a document, in a conversation, in a month."""

    name: str
    uses: int = 0
    direct: int = 0
    search: int = 0
    documents: int = 0
    conversations: int = 0
    last: str | None = None

    @classmethod
    def of(cls, name: str, uses: Sequence["Use"]) -> "Tally":
        direct = sum(use.reference_type == "direct" for use in uses)
        documents = len({use.path for use in uses})
        conversations = len({use.conversation for use in uses})
        return cls(
            name, len(uses), direct, len(uses) - direct, documents, conversations, max(use.created for use in uses)
        )


KEYS: dict[str, Callable[["Use"], str]] = {
    "document": lambda use: use.path or use.wikilink,
    "conversation": lambda use: use.conversation,
    "month": lambda use: show.when(use.created)[:7],
}
LEFT_OUT = {"document": ("documents",), "conversation": ("conversations",), "month": ("last",)}
"""What says nothing about one document, one conversation, one month."""


@click.command("stats")
@click.option("--by", type=click.Choice(list(KEYS)), default="document", show_default=True, help="What is counted.")
@click.option("--unused", is_flag=True, help="Documents that only tools came upon, then those never used.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@placed
def stats(by: str, unused: bool, limit: int, folder: str | None, as_json: bool) -> None:
    """Show which documents of a vault conversations use most, and which never.

    Example: recto vault stats --by month
    """
    if unused and by != "document":
        raise click.UsageError("--unused is about documents: leave out --by.")
    with open_place(folder) as place, options.open_store() as store:
        root = place.vault.root
        uses = [use for use in store.references.uses(str(root)) if use.path is not None]
        notes = [note.path for note in place.vault.documents()] if unused else []
        titles = (
            {each.id: each.title for each in store.tree.conversations(limit=10_000)} if by == "conversation" else {}
        )
    tallies = left_alone(uses, notes) if unused else tallied(uses, by)
    for tally in tallies[:limit] if as_json else ():
        show.emit(_to_json(tally, by, titles))
    if not as_json:
        _tell(tallies[:limit], by, root, titles)
    if rest := len(tallies[limit:]):
        show.note(f"and {rest:,} more: --limit shows them")
    if not tallies:
        show.note("every document was used" if unused else "no document of this vault was used in a conversation yet")


def tallied(uses: Iterable["Use"], by: str) -> list[Tally]:
    """The most used first; months in their order, the latest first."""
    groups: dict[str, list[Use]] = {}
    for use in uses:
        groups.setdefault(KEYS[by](use), []).append(use)
    tallies = [Tally.of(name, group) for name, group in groups.items()]
    if by == "month":
        return sorted(tallies, key=lambda tally: tally.name, reverse=True)
    return sorted(sorted(tallies, key=lambda tally: tally.last or "", reverse=True), key=lambda tally: -tally.uses)


def left_alone(uses: Sequence["Use"], notes: Iterable[str]) -> list[Tally]:
    """Documents that tools found or read and nobody named, the most often first; then those without any use."""
    found = [tally for tally in tallied(uses, "document") if not tally.direct]
    used = {use.path for use in uses}
    return [*found, *(Tally(path) for path in notes if path not in used)]


def _to_json(tally: Tally, by: str, titles: dict[str, str]) -> dict[str, Any]:
    counts = {name: getattr(tally, name) for name in ("uses", "direct", "search", "documents", "conversations", "last")}
    title = {"title": titles.get(tally.name) or None} if by == "conversation" else {}
    kept = {name: count for name, count in counts.items() if name not in LEFT_OUT[by]}
    return {"path" if by == "document" else by: tally.name, **title, **kept}


def _tell(tallies: Sequence[Tally], by: str, root: Path, titles: dict[str, str]) -> None:
    most = max((tally.uses for tally in tallies), default=0) or 1
    width = max((len(f"{tally.uses:,}") for tally in tallies), default=1)
    for tally in tallies:
        bar = click.style(
            f"{'█' * max(round(BAR_WIDTH * tally.uses / most), bool(tally.uses)):<{BAR_WIDTH}}", fg="cyan"
        )
        shown = to_file(tally.name, root / tally.name) if by == "document" else tally.name
        title = f" ({show.shortened(titles[tally.name], 50)})" if titles.get(tally.name) else ""
        click.echo(f"{tally.uses:>{width},} {bar} {shown}{title}  {click.style(_beside(tally, by), dim=True)}")


def _beside(tally: Tally, by: str) -> str:
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
