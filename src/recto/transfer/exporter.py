"""Exports conversations: in which form, and into which file."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recto.base.ids import new_id
from recto.base.text import REPLACEMENT
from recto.errors import Invalid
from recto.store.store import Store
from recto.transfer.html_page import html_chunks
from recto.transfer.reading import markdown_chunks
from recto.transfer.recto_json import json_lines
from recto.transfer.report import ExportFormat

# What steers a terminal or turns a line around: a file to read may be shown by any program. JSON writes it as numbers.
_STEERING = dict.fromkeys(
    (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), REPLACEMENT
)


def export_chunks(store: Store, ids: Sequence[str], format: ExportFormat) -> Iterator[bytes]:
    """These conversations in their order, in parts."""
    if format == "json":
        return json_lines(store.copies, ids)
    chunks = markdown_chunks(store, ids) if format == "markdown" else html_chunks(store, ids)
    return (chunk.translate(_STEERING).encode() for chunk in chunks)


def write_chunks(file: Path, chunks: Iterable[bytes]) -> None:
    """Writes a file that the user alone can read, whole or not at all."""
    try:
        with _replaced(file) as target:
            target.writelines(chunks)
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


@contextmanager
def _replaced(file: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of the former at the end. A pipe or device is written to directly."""
    if file.exists() and not stat.S_ISREG(file.stat().st_mode):
        with file.open("wb") as target:
            yield target
        return
    place = file.resolve()
    partial = place.with_name(f".{new_id()}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            yield target
        partial.replace(place)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
