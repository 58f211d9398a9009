"""Which vault a command means, and what is opened for it: the notes, their search."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from recto.cli import show
from recto.cli.options import as_json_option
from recto.cli.progress import bar
from recto.errors import Invalid, NotFound
from recto.places import CATALOG_FILE, SEARCH_FILE, find_home, find_project, vault_folder
from recto.text import clean

if TYPE_CHECKING:
    from recto.search.embedder import Embedder
    from recto.settings import Settings
    from recto.vault.library import Library
    from recto.vault.vault import Changes, Vault

R = TypeVar("R")
NO_VAULT = "no vault is named: give --vault DIR, or set one with `recto config set vault DIR`"

vault_option = click.option("--vault", "folder", metavar="DIR", help="Folder of notes (default: the setting `vault`).")
document_argument = click.argument("document", metavar="DOC")


@dataclass(frozen=True, slots=True)
class Place:
    """A vault with where its catalogue and its index lie."""

    vault: "Vault"
    settings: "Settings"
    home: Path
    cache: Path

    @contextmanager
    def library(self) -> Iterator["Library"]:
        """What the vault says, as it is searched."""
        from recto.vault.library import Library  # the index: most commands do without

        timeout_s = self.settings.search.timeout_s
        library = Library(self.vault, self.cache / SEARCH_FILE, self._embedder, timeout_s=timeout_s)
        try:
            yield library
        finally:
            library.close()

    def _embedder(self) -> "Embedder | None":
        from recto.providers.registry import embedding_address  # only who makes vectors
        from recto.search.embedders import open_embedder

        name = self.settings.search.embedder
        address = embedding_address(name, os.environ) if ":" in name else None
        return open_embedder(name, home=self.home, address=address)


@contextmanager
def open_place(folder: str | None) -> Iterator[Place]:
    """The vault that was named, or the one of the settings."""
    from recto.settings import load
    from recto.vault.vault import Vault  # with its links and names, a twentieth of a second

    home = find_home()
    settings = load(home, find_project(Path.cwd()), flags={"vault": folder})
    if not settings.vault:
        raise Invalid(NO_VAULT)
    root = Path(settings.vault).expanduser()
    cache = vault_folder(home, root)
    vault = Vault(root, cache / CATALOG_FILE)
    try:
        yield Place(vault, settings, home, cache)
    finally:
        vault.close()


def read_notes(place: Place) -> "Changes":
    """Takes over what has changed in the notes; the first time in a large vault one can watch."""
    with bar("reading notes") as tell:
        return place.vault.refresh(tell)


def find_document(vault: "Vault", name: str) -> str:
    """The path of a file of the vault that is given by path, by name, by alias or by its place on the disk."""
    from recto.vault.links import Link, split

    inside = clean(name)[0].strip().removeprefix("[[").removesuffix("]]")
    # a shell completes paths from where one stands, not from where the vault begins
    from_here = os.path.join(os.getcwd(), os.path.expanduser(name))
    link = Link(f"[[{inside}]]", *split(inside))
    if found := _at(vault, inside) or (link.target and vault.resolve(link)) or _at(vault, from_here):
        return found
    near = did_you_mean(vault, link.target)
    raise NotFound(f"there is no document {show.shortened(inside, 80)} in the vault{near}", path=name)


def _at(vault: "Vault", path: str) -> str | None:
    try:
        place = vault.folder.inside(path)
    except (Invalid, NotFound):
        return None
    return vault.folder.relative(place) if os.path.isfile(place) else None


def did_you_mean(vault: "Vault", target: str) -> str:
    near = vault.closest(target)
    return f"; did you mean {_listed(near)}?" if near else ""


def _listed(paths: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(paths[:-1]), paths[-1])))


def placed(command: Callable[..., R]) -> Callable[..., R]:
    """The options that every command over a vault has."""
    return vault_option(as_json_option(command))
