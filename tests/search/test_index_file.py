"""Connections to an index belong to uses, not to threads."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from recto.errors import StoreError
from recto.search.index_file import IndexFile


def open_count(path: Path) -> int:
    """How often this process has the file open."""
    links = Path("/proc/self/fd")
    if not links.exists():
        pytest.skip("needs /proc")
    return sum(os.path.realpath(link) == str(path.resolve()) for link in links.iterdir())


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_connectionin_use_survives_a_close_and_is_not_kept(tmp_path: Path) -> None:
    file = IndexFile(tmp_path / "search.db")
    with file.in_use() as db:
        in_a_thread(file.close)
        assert db.execute("SELECT count(*) FROM marks").fetchone() == (3,)
    assert open_count(file.path) == 0


def test_a_file_that_cannot_be_opened_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    path = tmp_path / "taken" / "search.db"
    with pytest.raises(StoreError, match=r"search\.db cannot be written"):
        IndexFile(path).read("SELECT 1")
    assert open_count(path) == 0


def test_an_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    file = IndexFile(tmp_path / "search.db")
    with file.in_use() as db:
        db.execute("INSERT INTO embedders VALUES (1, 'letters', 7)")
        db.execute("UPDATE marks SET value = '2' WHERE name = 'version'")
        db.execute("DROP TABLE texts")
    file.close()
    file = IndexFile(tmp_path / "search.db")
    assert file.read("SELECT done FROM embedders") == []
    assert "another version" in file.rebuild_reason
    file.close()
