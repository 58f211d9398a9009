"""KeyStore: stored keys of providers: in the system's keyring if there is one, else in a file that only the user can
read. Environment variables win over both.
"""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from recto.base.home_files import KEYS_FILE, private_home, write_json
from recto.errors import Invalid, RectoError

log = logging.getLogger(__name__)

KeyPlace = Literal["environment", "keyring", "file"]
SERVICE = "recto"
"""Our service name in the keyring; each key has the name of its variable."""
ENDING = "_API_KEY"
# The keyring package's backends for systems without a keyring.
NO_BACKENDS = ("keyring.backends.fail", "keyring.backends.null")
READ: set[str] = set()
"""The keys that this process has read, to redact them in logs."""


class KeyStore:
    def __init__(self, home: Path) -> None:
        self._home, self._path = home, home / KEYS_FILE

    def places(self) -> dict[str, KeyPlace]:
        """The place of each stored key, by variable. Reads no key from the keyring."""
        return {name: "keyring" if key is None else "file" for name, key in self._read().items()}

    def get(self, variable: str) -> str | None:
        known = self._read()
        if variable not in known:
            return None
        key = known[variable] if known[variable] is not None else _from_keyring(variable)
        if key:
            READ.add(key)
        return key

    def put(self, variable: str, key: str) -> KeyPlace:
        """Store a key, replacing an earlier one, and return its place. Raises Invalid for an impossible key."""
        key = key.strip()
        if not key or not (key.isascii() and key.isprintable()) or " " in key:
            raise Invalid("a key is one line of letters, digits and signs, without spaces; copy it again")
        is_in_keyring = _to_keyring(variable, key)
        self._write(self._read() | {variable: None if is_in_keyring else key})
        return "keyring" if is_in_keyring else "file"

    def remove(self, variable: str) -> bool:
        """Remove a key. False if it is not stored."""
        known = self._read()
        if variable not in known:
            return False
        if known.pop(variable) is None:
            _forget(variable)
        self._write(known)
        return True

    def _read(self) -> dict[str, str | None]:
        """Keys by variable; None for those in the keyring."""
        try:
            data: Any = json.loads(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as why:
            raise Invalid(f"cannot read {self._path}: {why.strerror}", path=str(self._path)) from why
        except (ValueError, RecursionError) as why:
            raise Invalid(f"{self._path} is not valid JSON. Fix or delete it.", path=str(self._path)) from why
        if not isinstance(data, dict) or not all(key is None or isinstance(key, str) for key in data.values()):
            raise Invalid(f"{self._path} does not hold keys. Fix or delete it.", path=str(self._path))
        return data

    def _write(self, keys: dict[str, str | None]) -> None:
        try:
            with private_home(self._home):
                write_json(self._path, keys)
        except OSError as why:
            raise RectoError(f"cannot write {self._path}: {why.strerror or why}", path=str(self._path)) from why


class KeyedEnvironment(Mapping[str, str]):
    """The environment, with stored keys for variables that it does not set. Iteration lists only the variables."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self._store, self._environment = KeyStore(home), environment
        self._keys: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        if not name.endswith(ENDING) or self._environment.get(name, "").strip():
            return self._environment[name]
        if name not in self._keys:  # cached: a list asks once per model
            self._keys[name] = self._store.get(name)
        return self._keys[name] or self._environment[name]

    def is_stored(self, name: str) -> bool:
        """True for a key that comes from the store, not from the environment."""
        return bool(self.get(name, "").strip()) and not self._environment.get(name, "").strip()

    def __iter__(self) -> Iterator[str]:
        return iter(self._environment)

    def __len__(self) -> int:
        return len(self._environment)


def _keyring() -> Any:
    """The keyring package, if it is installed and has a backend."""
    try:
        found = import_module("keyring")
        backend = found.get_keyring()
    except ImportError:
        return None
    except Exception:  # a half-configured desktop
        log.exception("the keyring cannot be opened")
        return None
    return None if type(backend).__module__.startswith(NO_BACKENDS) else found


@contextmanager
def _tolerated(problem: str) -> Iterator[None]:
    """Log failures of the keyring, which may be locked, refuse, or be gone."""
    try:
        yield
    except Exception:
        log.exception(problem)


def _from_keyring(variable: str) -> str | None:
    key: str | None = None
    if keyring := _keyring():
        with _tolerated("the keyring cannot be read"):
            key = keyring.get_password(SERVICE, variable)
    return key


def _to_keyring(variable: str, key: str) -> bool:
    """Store it in the keyring. False if it was not kept: some accept a key and drop it."""
    is_kept = False
    if keyring := _keyring():
        with _tolerated("the keyring takes no key"):
            keyring.set_password(SERVICE, variable, key)
            is_kept = bool(keyring.get_password(SERVICE, variable) == key)
    return is_kept


def _forget(variable: str) -> None:
    if (keyring := _keyring()) is None:
        raise RectoError(
            f"the key of {variable} is in the system's keyring, which cannot be opened; remove it there "
            f"(service {SERVICE}), and from {os.path.join('RECTO_HOME', KEYS_FILE)}"
        )
    with _tolerated("the keyring has not deleted a key"):
        keyring.delete_password(SERVICE, variable)
