"""Edits a TOML file without losing its comments: sets or removes a value, and writes the file atomically.

Knows no settings: the caller checks the values.
"""

import os
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recto.errors import Invalid


def with_value(text: str, path: Path, names: Sequence[str], value: Any) -> str:
    """The text with the value set at the path `names`, and everything else unchanged."""
    import tomlkit  # only to write a file

    document = _parsed(text, path)
    *groups, name = names
    table: Any = document
    for group in groups:
        table = table.setdefault(group, tomlkit.table())
        if not isinstance(table, dict):
            raise Invalid(f"{path}: {group} must be a table; fix it first", file=str(path))
    table[name] = value
    changed = str(tomlkit.dumps(document))
    if not _holds(changed, names, value):
        raise Invalid(f"{path} is written in a way that cannot be edited from here; edit it by hand", file=str(path))
    return changed


def _holds(text: str, names: Sequence[str], value: Any) -> bool:
    """Reads the text back with another parser, so that an unusual layout is never damaged."""
    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return bool(found == value)


def without(text: str, path: Path, names: Sequence[str]) -> str | None:
    """The text without this value; None when it has no such value."""
    import tomlkit  # only to write a file

    document = _parsed(text, path)
    *groups, name = names
    table: Any = document
    for group in groups:
        table = table.get(group) if isinstance(table, dict) else None
    if not isinstance(table, dict) or name not in table:
        return None
    del table[name]
    return str(tomlkit.dumps(document))


def _parsed(text: str, path: Path) -> Any:
    import tomlkit  # only to write a file
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as why:
        raise Invalid(f"{path} is not valid TOML: {why}; fix it first", file=str(path)) from why


def write(path: Path, text: str) -> None:
    """Writes the file atomically; a link stays a link, and permissions are kept."""
    place = path.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=".toml")
        try:
            _write(handle, text)
            os.chmod(beside, place.stat().st_mode if place.exists() else 0o644)
            os.replace(beside, place)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as why:
        raise Invalid(f"cannot write {path}: {why.strerror}; nothing was changed", file=str(path)) from why


def _write(handle: int, text: str) -> None:
    with open(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
