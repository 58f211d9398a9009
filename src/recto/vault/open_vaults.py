"""OpenVaults: the vaults in use, each with its search index and summaries, which are stored outside the notes."""

import threading
from collections.abc import Callable
from pathlib import Path

from recto.base.locations import CATALOG_FILE, GISTS_FILE, SEARCH_FILE, vault_folder
from recto.search.embedder import Embedder
from recto.vault.document_summary import DocumentSummaries
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch


class OpenVaults:
    def __init__(self, home: Path, embedder: Callable[[], Embedder | None], *, timeout_s: float) -> None:
        self._home, self._embedder, self._timeout_s = home, embedder, timeout_s
        self._vaults: dict[Path, Vault] = {}
        self._searches: dict[Path, VaultSearch] = {}
        self._summaries: dict[Path, DocumentSummaries] = {}
        self._lock = threading.Lock()

    def open(self, folder: Path) -> Vault:
        """The vault of a folder. Raises NotFound or Invalid if it cannot be used."""
        with self._lock:
            root = folder.expanduser()
            if root not in self._vaults:
                known = next((vault for vault in self._vaults.values() if vault.root == root), None)
                self._vaults[root] = known or Vault(root, vault_folder(self._home, root) / CATALOG_FILE)
            return self._vaults[root]

    def search(self, vault: Vault) -> VaultSearch:
        """The search of a vault; reads nothing before it is used."""
        with self._lock:
            if vault.root not in self._searches:
                path = vault_folder(self._home, vault.root) / SEARCH_FILE
                self._searches[vault.root] = VaultSearch(vault, path, self._embedder, timeout_s=self._timeout_s)
            return self._searches[vault.root]

    def summaries(self, vault: Vault) -> DocumentSummaries:
        """The summaries that a model wrote about its notes."""
        with self._lock:
            if vault.root not in self._summaries:
                self._summaries[vault.root] = DocumentSummaries(vault_folder(self._home, vault.root) / GISTS_FILE)
            return self._summaries[vault.root]

    def close(self) -> None:
        for summaries in self._summaries.values():
            summaries.close()
        for search in self._searches.values():
            search.close()
        for vault in self._vaults.values():
            vault.close()
