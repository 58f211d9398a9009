"""Links from the command line: what leads where, what leads nowhere, and the picture of it."""

from pathlib import Path

import pytest
from tests.cli.conftest import Run, failure, one, rows
from tests.cli.test_vault import at, boat

__all__ = ["boat"]


# -- links, backlinks, broken


def test_a_document_may_be_named_as_a_shell_completes_it(run: Run, boat: Path) -> None:
    for name in ("boat/parts/Engine.md", str(boat / "parts" / "Engine.md"), "parts/Engine", "[[Engine]]", "ENGINE"):
        assert rows(run("vault", "links", name, *at(boat), "--json"))[0]["source"] == "parts/Engine.md", name
    (boat / ".obsidian").mkdir()
    (boat / ".obsidian" / "x.md").write_text("hidden")
    hidden = "is refused: hidden files and folders of a vault are not read"
    assert hidden in failure(run("vault", "links", ".obsidian/x.md", *at(boat)))
    assert "is refused: it is outside the vault" in failure(run("vault", "links", "../home/config.toml", *at(boat)))
    assert "is not text" in failure(run("vault", "links", "raw.bin", *at(with_bytes(boat))))


def with_bytes(root: Path) -> Path:
    (root / "raw.bin").write_bytes(bytes(range(256)))
    return root


def test_odd_names_of_documents_are_told_in_a_sentence(run: Run, boat: Path) -> None:
    for name in ("", " ", "n" * 5000, "~nobody/x", "a/../../b", "\x00", "/", ".", "#", "🐟", "\udcff"):
        for command in ("links", "backlinks", "broken" if name else "links"):
            told = failure(run("vault", command, "--vault", str(boat), "--", name))
            assert (told.startswith("recto: "), len(told) < 300) == (True, True)


def test_names_of_files_may_hold_anything(run: Run, boat: Path) -> None:
    for name in ('we "ird" 🐟', "new\nline", "C# [x] ^y", "'; DROP TABLE notes; --"):
        (boat / f"{name}.md").write_text("[[Budget]]\n")
        assert rows(run("vault", "links", f"{name}.md", *at(boat), "--json"))[0]["source"] == f"{name}.md"
        lines = run("vault", "links", f"{name}.md", *at(boat)).stdout.splitlines()
        assert len(lines) == 2, name
    assert len(rows(run("vault", "backlinks", "Budget", *at(boat), "--json"))) == 6


# -- graph


def test_the_graph_does_not_land_among_the_notes_unless_asked_to(
    run: Run, boat: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(boat)
    told = one(run("vault", "graph", *at(boat), "--json"))
    assert Path(told["file"]).is_relative_to(home)
    assert not (boat / "vault-graph.html").exists()
    run("vault", "graph", *at(boat), "-o", "mine.html")
    assert (boat / "mine.html").read_text().startswith("<!doctype html>")


def test_the_ending_says_what_is_written(run: Run, boat: Path, tmp_path: Path) -> None:
    for name, begins in (("a.html", "<!doctype html>"), ("a.JSON", '{"nodes"')):
        assert run("vault", "graph", *at(boat), "-o", str(tmp_path / name)).exit_code == 0
        assert (tmp_path / name).read_text().startswith(begins)
    file = tmp_path / "b.png"
    assert "neither .html nor .json" in failure(run("vault", "graph", *at(boat), "-o", str(file)), 2)
    assert not file.exists()
    assert run("vault", "graph", *at(boat), "-o", str(file), "--format", "json").exit_code == 0
    failure(run("vault", "graph", *at(boat), "-o", str(tmp_path / "no" / "folder.html")))


@pytest.mark.parametrize("args", [[], ["--format", "json"]])
@pytest.mark.parametrize("name", ["Budget.md", "New.markdown", "link.html"])
def test_a_graph_is_never_written_over_a_note(run: Run, boat: Path, args: list[str], name: str) -> None:
    (boat / "link.html").symlink_to("Budget.md")
    before = (boat / "Budget.md").read_text()
    said = failure(run("vault", "graph", *at(boat), "-o", str(boat / name), *args), 2)
    assert "a graph is not written to a note" in " ".join(said.split())
    assert (boat / "Budget.md").read_text() == before
    assert not (boat / "New.markdown").exists()


def test_a_graph_that_is_too_large_for_a_page_says_so(
    run: Run, boat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.vault.graph.MAX_NODES", 4)
    done = run("vault", "graph", *at(boat), "-o", str(tmp_path / "few.html"), "--json")
    assert (one(done)["nodes"], one(done)["kinds"]) == (4, {"note": 3, "attachment": 1})
    assert "the best-linked 4 of 8 are drawn" in done.stderr
