"""Gists: kept by the hash of a note, and never a trouble."""

from pathlib import Path

from recto.vault.gists import LONGEST, Gists


def test_a_gist_is_kept_by_the_hash_of_what_the_note_says(tmp_path: Path) -> None:
    gists = Gists(tmp_path / "deep" / "gists.db")
    assert gists.get(b"one") is None
    gists.put(b"one", " A boat\n of wood. ")
    gists.close()
    again = Gists(tmp_path / "deep" / "gists.db")
    assert again.get(b"one") == "A boat of wood."
    assert again.get(b"two") is None


def test_a_long_one_is_cut_and_an_empty_one_is_not_kept(tmp_path: Path) -> None:
    gists = Gists(tmp_path / "gists.db")
    gists.put(b"one", "word " * 200)
    gists.put(b"two", " \n")
    assert len(gists.get(b"one") or "") <= LONGEST
    assert gists.get(b"two") is None


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "gists.db"
    path.write_bytes(b"no database at all" * 100)
    gists = Gists(path)
    assert gists.get(b"one") is None
    gists.put(b"one", "kept")
    gists.close()
    assert Gists(path).get(b"one") == "kept"


def test_where_no_file_can_be_they_live_in_memory(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for gists in (Gists(tmp_path / "taken" / "gists.db"), Gists(tmp_path), Gists()):
        gists.put(b"one", "kept")
        assert gists.get(b"one") == "kept"
    assert (tmp_path / "taken").read_text() == "a file"
