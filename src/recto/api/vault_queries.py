"""VaultQueries: reads a vault: notes, links, search, graph. Needs no store; blocking.

A desk has the same as `desk.vault` and `desk.vault_search`."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from recto import wire
from recto.base import locations
from recto.base.home_files import private_home
from recto.base.text import clean
from recto.errors import Invalid, NotFound
from recto.settings.settings import Settings, load
from recto.vault.folder import is_note
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, DocumentInfo, Vault, VaultChanges

if TYPE_CHECKING:
    from recto.search.embedder import Embedder
    from recto.vault.catalog import Progress
    from recto.vault.graph import Graph
    from recto.vault.vault_search import VaultSearch

LONGEST_SHOWN = 80


class VaultContents(Struct, frozen=True):
    """Counts of a vault's contents."""

    notes: int
    attachments: int
    links: int
    broken: int
    problems: tuple[DocumentInfo, ...]
    """Notes whose front matter, or whose whole text, cannot be read."""

    def to_json(self) -> dict[str, Any]:
        problems = [wire.fields_to_json(note, "path", "problem") for note in self.problems]
        return wire.fields_to_json(self, "notes", "attachments", "links", "broken") | {"problems": problems}


class VaultQueries:
    def __init__(self, vault: Vault, settings: Settings, home: Path) -> None:
        self.vault, self.settings = vault, settings
        self.cache = locations.vault_folder(home, vault.root)
        """The folder of the vault's catalogue and index."""
        self._home = home
        self._search: VaultSearch | None = None

    @property
    def search(self) -> "VaultSearch":
        """The search over the notes, opened on first use."""
        if self._search is None:
            from recto.vault.vault_search import VaultSearch  # the index: most queries do without

            index, timeout_s = self.cache / locations.SEARCH_FILE, self.settings.search.timeout_s
            self._search = VaultSearch(self.vault, index, self._embedder, timeout_s=timeout_s)
        return self._search

    def _embedder(self) -> "Embedder | None":
        from recto.providers.registry import embedding_address  # only to make vectors
        from recto.search.embedder import open_embedder

        name = self.settings.search.embedder
        address = embedding_address(name, os.environ, self._home) if ":" in name else None
        return open_embedder(name, home=self._home, address=address)

    def refresh(self, progress: "Progress | None" = None) -> VaultChanges:
        """Reads changed notes into the catalogue."""
        return self.vault.refresh(progress)

    def contents(self) -> VaultContents:
        notes, links = self.vault.documents(), self.vault.all_links()
        attachments = sum(not is_note(entry.path) for entry in self.vault.folder.walk())
        broken, problems = sum(found.path is None for found in links), tuple(note for note in notes if note.problem)
        return VaultContents(len(notes), attachments, len(links), broken, problems)

    @property
    def cache_size(self) -> int:
        """Bytes of catalogue and index."""
        return sum(file.stat().st_size for file in self.cache.glob("*") if file.is_file())

    # -- documents and links

    def find_document(self, name: str) -> str:
        """The path in the vault of a file, given by path, name or alias, or by its path on disk."""
        inside = clean(name)[0].strip().removeprefix("[[").removesuffix("]]")
        # a shell completes paths from the current folder, not from the vault's
        from_here = os.path.join(os.getcwd(), os.path.expanduser(name))
        link = Link(f"[[{inside}]]", *split_link(inside))
        if found := self._at(inside) or (link.target and self.vault.resolve(link)) or self._at(from_here):
            return found
        if refused := self.vault.folder.refusal(inside):
            raise Invalid(f"{_shortened(inside)} is refused: {refused}", path=name)
        near = self.did_you_mean(link.target)
        raise NotFound(f"there is no document {_shortened(inside)} in the vault{near}", path=name)

    def _at(self, path: str) -> str | None:
        try:
            place = self.vault.folder.locate(path)
        except (Invalid, NotFound):
            return None
        return self.vault.folder.relative(place) if os.path.isfile(place) else None

    def did_you_mean(self, target: str) -> str:
        """The end of a sentence: suggestions for a name; empty if none is similar."""
        near = self.vault.closest(target)
        return f"; did you mean {_listed(near)}?" if near else ""

    def graph(self, *, tag: str | None = None, source: str | None = None, depth: int = 2) -> "Graph":
        """Notes and their links: of all notes, of those with a tag, or of those within `depth` links from `source`."""
        from recto.vault.graph import neighbourhood, vault_graph  # only what is drawn

        graph = vault_graph(self.vault, tag)
        return neighbourhood(graph, self.find_document(source), depth) if source else graph

    # -- the end

    def close(self) -> None:
        if self._search is not None:
            self._search.close()
        self.vault.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_vault_queries(folder: str | None = None, settings: Mapping[str, Any] | None = None) -> VaultQueries:
    """A reader of this folder of notes, or of the settings' vault; `settings` apply to this reader only."""
    home = locations.find_home()
    flags = {**(settings or {}), **({"vault": folder} if folder else {})}
    loaded = load(home, locations.find_project(Path.cwd()), flags=flags)
    if not loaded.vault:
        raise Invalid(loaded.notes.get("vault", NO_VAULT))
    root = Path(loaded.vault).expanduser()
    with private_home(home):
        vault = Vault(root, locations.vault_folder(home, root) / locations.CATALOG_FILE)
    return VaultQueries(vault, loaded, home)


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 1].rstrip()}…"


def _listed(paths: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(paths[:-1]), paths[-1])))
