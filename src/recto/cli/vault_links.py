"""`recto vault resolve`, `links`, `backlinks`, `broken`: which links lead where, and which nowhere."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import to_file

if TYPE_CHECKING:
    from recto.vault.vault import ResolvedLink
    from recto.vault_reader import VaultReader

# Looking for the document that may be meant takes a moment for each link.
MOST_SUGGESTED = 20
# A context with so many characters on one side of its link was cut there.
NEARLY_ALL = 40


@click.command("resolve")
@click.argument("text", metavar="LINK")
@click.option("--from", "source", metavar="DOC", help="The note that holds the link.")
@options.vault_options
def resolve(text: str, source: str | None, folder: str | None, as_json: bool) -> None:
    """Say which file a link means.

    Example: recto vault resolve "[[Budget#Table]]" --from Welcome
    """
    from recto.vault.links import link_to_json  # the vault: most commands need none

    with options.open_vault(folder) as reader:
        found = reader.resolve(text, source)
        if as_json:
            show.emit(link_to_json(found.link, found.path))
        else:
            click.echo(to_file(found.path, reader.vault.root / found.path))
    if found.lacking:
        show.note(found.lacking)


@click.command("links")
@click.argument("document", metavar="DOC")
@options.vault_options
def links(document: str, folder: str | None, as_json: bool) -> None:
    """List the links of a document in their order, with line and context; broken ones are marked.

    Example: recto vault links Welcome
    """
    with options.open_vault(folder) as reader:
        path = reader.find_document(document)
        _tell(reader, reader.vault.outgoing_links(path), as_json, nothing=f"{path} has no links")


@click.command("backlinks")
@click.argument("document", metavar="DOC")
@options.vault_options
def backlinks(document: str, folder: str | None, as_json: bool) -> None:
    """List the links that lead to a document, with line and context.

    Example: recto vault backlinks Budget
    """
    with options.open_vault(folder) as reader:
        options.read_notes(reader)
        path = reader.find_document(document)
        _tell(reader, reader.vault.backlinks(path), as_json, nothing=f"no link leads to {path}")


@click.command("broken")
@click.argument("document", metavar="[DOC]", required=False)
@options.vault_options
def broken(document: str | None, folder: str | None, as_json: bool) -> None:
    """List links that lead nowhere, of a document or of the whole vault.

    Example: recto vault broken
    """
    with options.open_vault(folder) as reader:
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
    click.echo(f"{where}  {click.style(written, bold=True)} → {target}")
    click.echo(click.style(f"  {show.visible(_whole_words(found))}", dim=True))


def _whole_words(found: "ResolvedLink") -> str:
    """The context without the halves of words at its ends."""
    before, link, after = found.context.partition(found.link.wikilink)
    if len(before) > NEARLY_ALL:
        before = f"…{before.partition(' ')[2]}"
    if len(after) > NEARLY_ALL:
        after = f"{after.rpartition(' ')[0]}…"
    return before + link + after
