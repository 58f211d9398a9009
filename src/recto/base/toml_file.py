"""Edits a TOML file without losing its comments: sets or removes a value, and writes the file atomically."""

import errno
import os
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from recto.errors import Invalid

MAX_BYTES = 2_000_000


def file_text(path: Path) -> str:
    """The file's text; empty if there is no file. Raises Invalid if it cannot be read."""
    try:
        return read_ordinary_file(path).decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except NotADirectoryError as why:
        raise Invalid(f"{path.parent} is not a folder; set RECTO_HOME to one", file=str(path)) from why
    except UnicodeDecodeError as why:
        raise Invalid(f"{path} is not valid TOML: {why}", file=str(path)) from why
    except OSError as why:
        raise Invalid(f"cannot read {path}: {why.strerror}", file=str(path)) from why


def read_ordinary_file(path: Path) -> bytes:
    """The bytes of a regular file. Raises OSError for others: a pipe may block for ever, and a device never ends."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 2 MB", str(path))
    return raw


def with_value(text: str, path: Path, names: Sequence[str], value: Any) -> str:
    """The text with the value set at the path `names`."""
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
    found: Any = None
    with suppress(tomllib.TOMLDecodeError):  # verify with another parser, so that an unusual layout is never damaged
        found = tomllib.loads(changed)
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    if found != value:
        raise Invalid(f"{path} is written in a way that cannot be edited from here; edit it by hand", file=str(path))
    return changed


def without(text: str, path: Path, names: Sequence[str]) -> str | None:
    """The text without this value; None if it does not have it."""
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
    """Write the file atomically. Links and permissions are kept; a new file is as private as its folder."""
    import tempfile  # only to write a file

    place = path.resolve()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=place.parent, prefix=".", suffix=".toml")
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(beside, place.stat().st_mode if place.exists() else 0o644 & place.parent.stat().st_mode)
            os.replace(beside, place)
        except OSError:
            os.unlink(beside)
            raise
    except OSError as why:
        raise Invalid(f"cannot write {path}: {why.strerror}; nothing was changed", file=str(path)) from why
