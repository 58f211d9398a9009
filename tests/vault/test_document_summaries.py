"""DocumentSummaries: stored by the hash of a note."""

from pathlib import Path

from recto.vault.document_summary import MAX_WRITTEN_CHARS, DocumentSummaries


def test_a_summary_is_stored_by_the_hash_of_its_note(tmp_path: Path) -> None:
    gists = DocumentSummaries(tmp_path / "deep" / "gists.db")
    assert gists.get(b"one") is None
    gists.put(b"one", " A boat\n of wood. ")
    gists.close()
    again = DocumentSummaries(tmp_path / "deep" / "gists.db")
    assert again.get(b"one") == "A boat of wood."
    assert again.get(b"two") is None


def test_a_long_summary_is_cut_and_an_empty_one_is_ignored(tmp_path: Path) -> None:
    gists = DocumentSummaries(tmp_path / "gists.db")
    gists.put(b"one", "word " * 200)
    gists.put(b"two", " \n")
    assert len(gists.get(b"one") or "") <= MAX_WRITTEN_CHARS
    assert gists.get(b"two") is None


def test_a_damaged_file_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "gists.db"
    path.write_bytes(b"no database at all" * 100)
    gists = DocumentSummaries(path)
    assert gists.get(b"one") is None
    gists.put(b"one", "kept")
    gists.close()
    assert DocumentSummaries(path).get(b"one") == "kept"


def test_summaries_are_in_memory_if_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    for gists in (DocumentSummaries(tmp_path / "taken" / "gists.db"), DocumentSummaries()):
        gists.put(b"one", "kept")
        assert gists.get(b"one") == "kept"
    assert (tmp_path / "taken").read_text() == "a file"
