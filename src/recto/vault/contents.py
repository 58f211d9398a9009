"""Contents: which notes of a vault say what, as hashes, as long as they stay the same the same value."""

from collections.abc import Mapping

from recto.vault.names import Names
from recto.vault.vault import Vault


class Contents:
    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._stamp: object = None
        self._hashes: Mapping[str, bytes] = {}

    def now(self) -> Mapping[str, bytes]:
        """Readable notes and the hashes of what they say, after the vault has taken over what it heard of."""
        return self._vault._asked(self._look)

    def _look(self, _: Names) -> Mapping[str, bytes]:
        tables = self._vault._catalog._tables
        # what others wrote into the catalogue, what we did, and whether it is still the same one
        stamp = tables.version, tables.read("SELECT total_changes()")[0][0], tables._db
        if stamp != self._stamp:
            self._hashes = dict(tables.read("SELECT path, sha FROM notes WHERE sha IS NOT NULL"))
            self._stamp = stamp
        return self._hashes
