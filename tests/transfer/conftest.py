"""Stores and files to move conversations between."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recto.store.store import Store
from recto.transfer.formats import open_source
from recto.transfer.importer import Importer
from recto.transfer.recto_json import json_lines
from recto.transfer.report import ImportFormat, ImportReport

Import = Callable[..., ImportReport]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "recto.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    """A store elsewhere."""
    with Store(tmp_path / "other.db") as opened:
        yield opened


def export(store: Store, *ids: str) -> bytes:
    return b"".join(json_lines(store.copies, ids or store.copies.ids()))


def bring(store: Store, file: Path, format: ImportFormat | None = None, *, as_new: bool = False) -> ImportReport:
    """Imports a file."""
    with open_source(file, format) as source:
        return Importer(store.copies, as_new=as_new).run(source)
