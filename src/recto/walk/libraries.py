"""Libraries: the vaults that are open, each with its search index, both kept outside the notes."""

import threading
from collections.abc import Callable
from pathlib import Path

from recto.places import CATALOG_FILE, GISTS_FILE, SEARCH_FILE, vault_folder
from recto.search.embedder import Embedder
from recto.vault.gists import Gists
from recto.vault.library import Library
from recto.vault.vault import Vault


class Libraries:
    def __init__(self, home: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        self._home, self._embedder, self._timeout_s = home, embedder, timeout_s
        self._vaults: dict[Path, Vault] = {}
        self._libraries: dict[Path, Library] = {}
        self._gists: dict[Path, Gists] = {}
        self._lock = threading.Lock()

    def open(self, folder: Path) -> Vault:
        """The vault of a folder. NotFound or Invalid when it is none."""
        with self._lock:
            root = folder.expanduser()
            if root not in self._vaults:
                self._vaults[root] = Vault(root, vault_folder(self._home, root) / CATALOG_FILE)
            return self._vaults[root]

    def of(self, vault: Vault) -> Library:
        """A vault as it is searched; nothing is read before it is asked."""
        with self._lock:
            if vault.root not in self._libraries:
                place = vault_folder(self._home, vault.root) / SEARCH_FILE
                self._libraries[vault.root] = Library(vault, place, self._embedder, timeout_s=self._timeout_s)
            return self._libraries[vault.root]

    def gists(self, vault: Vault) -> Gists:
        """What was written about its notes."""
        with self._lock:
            if vault.root not in self._gists:
                self._gists[vault.root] = Gists(vault_folder(self._home, vault.root) / GISTS_FILE)
            return self._gists[vault.root]

    def close(self) -> None:
        for gists in self._gists.values():
            gists.close()
        for library in self._libraries.values():
            library.close()
        for vault in self._vaults.values():
            vault.close()
