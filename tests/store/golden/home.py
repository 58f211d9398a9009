"""Copies of the golden home, in a folder or in a database of PostgreSQL."""

import lzma
import tarfile
from pathlib import Path

HERE = Path(__file__).parent
WORLD, DUMP = HERE / "world.tar.xz", HERE / "postgresql.sql.xz"


def unpack_world(folder: Path) -> Path:
    """`home`, `notes` and `project` in this folder; gives the home."""
    with tarfile.open(WORLD) as archive:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on; 3.12 wants it
            archive.extractall(folder, filter="data")
        else:
            archive.extractall(folder)
    return folder / "home"


def restore_dump(url: str) -> None:
    """The same store in an empty database."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(lzma.decompress(DUMP.read_bytes()))
