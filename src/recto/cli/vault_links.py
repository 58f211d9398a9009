"""`recto vault resolve`, `links`, `backlinks`, `broken`: what leads where, and what leads nowhere."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from recto.cli import show
from recto.cli.hyperlink import to_file
from recto.cli.vault_place import did_you_mean, document_argument, find_document, open_place, placed, read_notes
from recto.errors import Invalid, NotFound
from recto.text import clean

if TYPE_CHECKING:
    from recto.vault.links import Link
    from recto.vault.vault import Found, Vault

# Looking for what may have been meant takes a moment for each.
MOST_SUGGESTED = 20
# Where so much of a context stands on one side of its link, it was cut there.
NEARLY_ALL = 40


@click.command("resolve")
@click.argument("text", metavar="LINK")
@click.option("--from", "source", metavar="DOC", help="The note in which the link stands.")
@placed
def resolve(text: str, source: str | None, folder: str | None, as_json: bool) -> None:
    """Say which file a link means.

    Example: recto vault resolve "[[Budget#Table]]" --from Welcome
    """
    from recto.vault.links import link_to_json  # the vault: most commands need none

    with open_place(folder) as place:
        vault = place.vault
        here = find_document(vault, source) if source else None
        link = _read(text)
        if not link.target and here is None:
            raise Invalid(f"{link.wikilink} leads within the note in which it stands: name that with --from DOC")
        path = vault.resolve(link, here)
        if path is None:
            near = did_you_mean(vault, link.target)
            raise NotFound(f"{link.wikilink} leads to no document of the vault{near}", link=link.wikilink)
        link = vault.settle(link, here)
        show.emit(link_to_json(link, path)) if as_json else click.echo(to_file(path, vault.root / path))
        if lacking := _lacking(vault, link, path):
            show.note(lacking)


def _read(text: str) -> "Link":
    """The one link of a text; a text without brackets is what stands between them."""
    from recto.vault.links import Link, find_all_links, split

    said = clean(text)[0].strip()
    found = find_all_links(said)
    if not found and said and "[[" not in said and "\n" not in said:
        found = [Link(f"[[{said}]]", *split(said))]
    if len(found) != 1 or not (found[0].target or found[0].heading or found[0].block):
        raise Invalid(f"{show.shortened(text, 80)!r} is not one link; write it as [[name]] or [[name#heading]]")
    return found[0]


def _lacking(vault: "Vault", link: "Link", path: str) -> str:
    """The file is there, but the place in it is not."""
    from recto.vault.document import block_text, section_text
    from recto.vault.folder import is_note

    if not (link.heading or link.block) or not is_note(path):
        return ""
    document = vault.read(path)
    if link.heading and section_text(document, link.heading) is None:
        return f"{path} has no heading {link.heading}"
    return f"{path} has no block {link.block}" if link.block and block_text(document, link.block) is None else ""


@click.command("links")
@document_argument
@placed
def links(document: str, folder: str | None, as_json: bool) -> None:
    """List the links of a document in their order, with line and context; broken ones are marked.

    Example: recto vault links Welcome
    """
    with open_place(folder) as place:
        path = find_document(place.vault, document)
        _tell(place.vault, place.vault.forward(path), as_json, nothing=f"{path} has no links")


@click.command("backlinks")
@document_argument
@placed
def backlinks(document: str, folder: str | None, as_json: bool) -> None:
    """List the links that lead to a document, with line and context.

    Example: recto vault backlinks Budget
    """
    with open_place(folder) as place:
        read_notes(place)
        path = find_document(place.vault, document)
        _tell(place.vault, place.vault.backlinks(path), as_json, nothing=f"no link leads to {path}")


@click.command("broken")
@click.argument("document", metavar="[DOC]", required=False)
@placed
def broken(document: str | None, folder: str | None, as_json: bool) -> None:
    """List links that lead nowhere, of a document or of the whole vault.

    Example: recto vault broken
    """
    with open_place(folder) as place:
        read_notes(place)
        path = find_document(place.vault, document) if document else None
        nothing = f"no link of {path} is broken" if path else "no link is broken: all lead somewhere"
        _tell(place.vault, place.vault.broken(path), as_json, nothing)


def found_to_json(found: "Found") -> dict[str, Any]:
    from recto.vault.links import link_to_json  # the vault: most commands need none

    said: dict[str, Any] = dict(link_to_json(found.link, found.path))
    return {"source": found.source, "line": found.line, **said, "kind": found.link.kind, "context": found.context}


def _tell(vault: "Vault", found: Iterable["Found"], as_json: bool, nothing: str) -> None:
    all_of_them = list(found)
    for number, each in enumerate(all_of_them):
        if as_json:
            show.emit(found_to_json(each))
        else:
            _tell_found(vault, each, suggests=number < MOST_SUGGESTED)
    if not all_of_them:
        show.note(nothing)


def _tell_found(vault: "Vault", found: "Found", *, suggests: bool) -> None:
    where = to_file(f"{found.source}:{found.line}", vault.root / found.source)
    written = show.visible(("!" if found.link.embed else "") + found.link.wikilink)
    if found.path is None:
        near = did_you_mean(vault, found.link.target) if suggests else ""
        target = click.style(show.visible(f"⚠ not found{near}"), fg="yellow")
    else:
        target = to_file(found.path, vault.root / found.path)
    click.echo(f"{where}  {click.style(written, bold=True)} → {target}")
    click.echo(click.style(f"  {show.visible(_whole_words(found))}", dim=True))


def _whole_words(found: "Found") -> str:
    """The context without the halves of words at its ends."""
    before, link, after = found.context.partition(found.link.wikilink)
    if len(before) > NEARLY_ALL:
        before = f"…{before.partition(' ')[2]}"
    if len(after) > NEARLY_ALL:
        after = f"{after.rpartition(' ')[0]}…"
    return before + link + after
