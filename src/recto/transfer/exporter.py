"""Exports conversations to a file or as a stream of chunks."""

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

# Characters that control a terminal or reverse a line: any program may show the file. JSON escapes them.
_STEERING = dict.fromkeys(
    (*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), REPLACEMENT
)


def export_chunks(store: Store, ids: Sequence[str], format: ExportFormat) -> Iterator[bytes]:
    if format == "json":
        return json_lines(store.copies, ids)
    chunks = markdown_chunks(store, ids) if format == "markdown" else html_chunks(store, ids)
    return (chunk.translate(_STEERING).encode() for chunk in chunks)


def write_chunks(file: Path, chunks: Iterable[bytes]) -> None:
    """Write a file, private to the user, completely or not at all."""
    try:
        with _replaced(file) as target:
            target.writelines(chunks)
    except OSError as why:
        raise Invalid(f"cannot write {file}: {why.strerror}", path=str(file)) from why


@contextmanager
def _replaced(file: Path) -> Iterator[BinaryIO]:
    """A new file that replaces the old one at the end. A pipe or device is written to directly."""
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
