import errno
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.errors import Invalid, NotFound
from recto.vault.folder import MAX_NOTE_BYTES, Folder, is_note


def fill(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = fill(tmp_path / "vault", "Plan.md", "people/Ned.md", "people/old/Ada.markdown", "map.png", "a b/Log.MD")
    fill(tmp_path, "secret.md", "elsewhere/other.md")
    return Folder(root)


def walked(folder: Folder) -> list[str]:
    return [entry.path for entry in folder.walk()]


# -- the root


def test_a_missing_vault_or_a_file_is_one_sentence(tmp_path: Path) -> None:
    fill(tmp_path, "file")
    with pytest.raises(NotFound, match="there is no folder"):
        Folder(tmp_path / "nowhere")
    with pytest.raises(Invalid, match="is a file; a vault is a folder"):
        Folder(tmp_path / "file")
    with pytest.raises(Invalid, match="cannot be used as a vault"):
        Folder(tmp_path / "file" / "below")
    with pytest.raises(Invalid, match="cannot be used as a vault"):
        Folder(Path("a\0b"))


def test_an_unreadable_vault_is_one_sentence(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(Invalid, match="cannot be read"):
        Folder(folder.root)


# -- walking


def test_a_walk_gives_notes_and_attachments_by_folder_and_name(folder: Folder) -> None:
    fill(folder.root, ".obsidian/app.md", ".trash/Old.md", ".git/x.md", "people/.hidden.md")
    assert walked(folder) == ["Plan.md", "map.png", "a b/Log.MD", "people/Ned.md", "people/old/Ada.markdown"]
    assert [path for path in walked(folder) if not is_note(path)] == ["map.png"]


def test_symlinks_to_files_inside_count_and_symlinked_folders_are_not_entered(folder: Folder, tmp_path: Path) -> None:
    before = walked(folder)
    (folder.root / "alias.md").symlink_to("people/Ned.md")
    (folder.root / "door.md").symlink_to(tmp_path / "secret.md")
    (folder.root / "broken.md").symlink_to("nothing.md")
    (folder.root / "self.md").symlink_to("self.md")
    (folder.root / "outside").symlink_to(tmp_path / "elsewhere")
    (folder.root / "loop").symlink_to(".")
    assert sorted(walked(folder)) == sorted([*before, "alias.md"])


def test_only_regular_files_are_entries(folder: Folder) -> None:
    before = walked(folder)
    os.mkfifo(folder.root / "pipe.md")
    os.mkfifo(folder.root / "people" / ".gitignore")
    assert walked(folder) == before
    with pytest.raises(NotFound):
        folder.read("pipe.md")


def test_an_unreadable_folder_is_skipped_and_reported(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(place: Path) -> object:
        if place.name == "old":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    skipped: list[str] = []
    assert "people/Ned.md" in [entry.path for entry in folder.walk(skipped.append)]
    assert skipped == ["people/old"]


# -- .gitignore


def test_gitignore_files_count_with_nesting_and_negation(folder: Folder) -> None:
    fill(
        folder.root,
        "node_modules/a.md",
        "x.log",
        "keep.log",
        "deep/x.log",
        "deep/in.md",
        "deep/drafts/d.md",
        "drafts/e.md",
    )
    (folder.root / ".gitignore").write_text("# c\nnode_modules/\n*.log\n!keep.log\n/drafts\n")
    (folder.root / "deep" / ".gitignore").write_text("!x.log\nin.md\n")
    found = set(walked(folder))
    assert {"keep.log", "deep/x.log", "deep/drafts/d.md"} <= found
    assert found.isdisjoint({"node_modules/a.md", "x.log", "deep/in.md", "drafts/e.md"})


PATTERNS = st.one_of(
    st.sampled_from(
        ["*.md", "!*.md", "b/", "!c/", "/a.md", "**/c.md", "b/**", "!b/c.md", "a/**/c.md", "[!a].md", "\\!a", "/*"]
    ),
    st.text(alphabet="abc*?/!.[]-\\ ", max_size=5),
)
FILES = ["a.md", "b/a.md", "b/c.md", "a/b/c.md", "a/a.md", "c/b/a.md", "c/c.md", "ab.md"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge here")
@settings(max_examples=examples(30, few=8))
@given(outer=st.lists(PATTERNS, max_size=4), inner=st.lists(PATTERNS, max_size=3))
def test_a_walk_excludes_the_files_that_git_excludes(
    tmp_path_factory: pytest.TempPathFactory, outer: list[str], inner: list[str]
) -> None:
    root = fill(tmp_path_factory.mktemp("ignored"), *FILES)
    (root / ".gitignore").write_text("\n".join(outer))
    (root / "a" / ".gitignore").write_text("\n".join(inner))
    subprocess.run(["git", "init", "-q", root], check=True, timeout=20)
    listing = ["git", "-C", str(root), "ls-files", "-o", "--exclude-per-directory=.gitignore", "*.md"]
    said = subprocess.run(listing, check=True, capture_output=True, text=True, timeout=20).stdout.split()
    folder = Folder(root)
    assert sorted(walked(folder)) == sorted(said)
    assert {path for path in FILES if _is_entry(folder, path)} == set(said)


def _is_entry(folder: Folder, path: str) -> bool:
    try:
        return folder.entry(path).path == path
    except NotFound:
        return False


def test_files_that_git_ignores_cannot_be_changed(folder: Folder) -> None:
    (folder.root / "drafts").mkdir()
    (folder.root / "drafts/x.md").write_text("mine")
    (folder.root / ".gitignore").write_text("drafts/\n")
    with pytest.raises(NotFound):
        folder.entry("drafts/x.md")
    folder.write("Plan.md", "x")
    for act in (
        lambda: folder.write("drafts/x.md", "yours"),
        lambda: folder.write("drafts/new.md", "yours"),
        lambda: folder.delete("drafts/x.md"),
        lambda: folder.move("drafts/x.md", "x.md"),
        lambda: folder.move("Plan.md", "drafts/Plan.md"),
    ):
        with pytest.raises(Invalid, match=r"excluded by a \.gitignore"):
            act()
    assert (folder.root / "drafts/x.md").read_text() == "mine"


def test_neither_a_symlink_nor_its_target_is_moved_or_deleted(folder: Folder) -> None:
    folder.write("Real.md", "mine")
    (folder.root / "alias.md").symlink_to(folder.root / "Real.md")
    for act in (lambda: folder.delete("alias.md"), lambda: folder.move("alias.md", "other.md")):
        with pytest.raises(Invalid, match=r"alias.md is a link to Real.md"):
            act()
    assert (folder.root / "Real.md").read_text() == "mine"
    assert (folder.root / "alias.md").is_symlink()


# -- naming and reading


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "people/../../secret.md", "door.md", "out/other.md"])
def test_nothing_leads_outside(folder: Folder, tmp_path: Path, path: str) -> None:
    (folder.root / "door.md").symlink_to(tmp_path / "secret.md")
    (folder.root / "out").symlink_to(tmp_path / "elsewhere")
    for act in (folder.locate, folder.read, folder.entry, folder.delete, lambda to: folder.write(to, "x")):
        with pytest.raises(Invalid, match="outside the vault"):
            act(path)
    for old, new in ((path, "new.md"), ("Plan.md", path)):
        with pytest.raises(Invalid, match="outside the vault"):
            folder.move(old, new)
    assert (tmp_path / "secret.md").read_text() == "text of secret.md"


@pytest.mark.parametrize("path", ["nothing.md", "people", "", ".", ".obsidian/app.md", "Plan.md/x.md", "\ud800.md"])
def test_a_hidden_or_missing_file_or_a_folder_is_not_found(folder: Folder, path: str) -> None:
    fill(folder.root, ".obsidian/app.md")
    with pytest.raises(NotFound, match="there is no document"):
        folder.read(path)
    with pytest.raises(NotFound):
        folder.delete(path)


def test_a_nul_and_a_name_too_long_are_one_sentence(folder: Folder) -> None:
    with pytest.raises(Invalid, match="NUL"):
        folder.read("a\0b")
    with pytest.raises(Invalid, match="cannot read xxx"):
        folder.read("x" * 5000)


def test_a_huge_note_is_refused_without_being_read(folder: Folder) -> None:
    with (folder.root / "huge.md").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(Invalid, match=r"huge\.md has 100\.0 MB; at most 2 MB can be read"):
        folder.read("huge.md")
    (folder.root / "large.md").write_bytes(b"x" * MAX_NOTE_BYTES)
    assert len(folder.read("large.md")) == MAX_NOTE_BYTES
    with pytest.raises(Invalid):
        folder.read("large.md", limit=10)


# -- writing


def test_a_note_is_written_with_its_folders(folder: Folder) -> None:
    entry = folder.write("new/deep/Note.md", "héllo\r\n\ud83d")
    assert entry == folder.entry("new/deep/Note.md")
    assert folder.read("new/deep/Note.md") == "héllo\r\n\N{REPLACEMENT CHARACTER}".encode()
    assert folder.write("new/deep/Note.md", b"\xff").size == 1
    assert [path.name for path in (folder.root / "new" / "deep").iterdir()] == ["Note.md"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".obsidian/x.md", "hidden"),
        ("people/.x.md", "hidden"),
        ("x.txt", "not a note"),
        ("people", "not a note"),
        ("", "not a note"),
        ("folder.md", "is a folder"),
        ("Plan.md/x.md", "cannot write"),
        ("x" * 300 + ".md", "cannot write"),
    ],
)
def test_only_visible_notes_are_written(folder: Folder, path: str, said: str) -> None:
    (folder.root / "folder.md").mkdir()
    with pytest.raises(Invalid, match=said):
        folder.write(path, "x")
    assert folder.read("Plan.md") == b"text of Plan.md"


@pytest.mark.parametrize("edge", ["replace", "fsync"])
def test_a_write_that_fails_leaves_the_old_note_and_nothing_else(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, edge: str
) -> None:
    def fail(*given: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = sorted(folder.root.rglob("*"))
    monkeypatch.setattr(os, edge, fail)
    with pytest.raises(Invalid, match=r"cannot write Plan\.md: Read-only file system"):
        folder.write("Plan.md", "anew")
    assert folder.read("Plan.md") == b"text of Plan.md"
    assert sorted(folder.root.rglob("*")) == before


def test_a_reader_never_sees_half_a_note(folder: Folder) -> None:
    texts = {b"a" * 50_000, b"b" * 60_000}
    folder.write("Plan.md", b"a" * 50_000)
    seen: set[bytes] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(folder.read("Plan.md"))

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(30):
        for text in texts:
            folder.write("Plan.md", text)
    stop.set()
    reader.join()
    assert seen <= texts


# -- moving and deleting


def test_a_file_moves_with_its_content(folder: Folder) -> None:
    assert folder.move("people/Ned.md", "new/Nedward.md").path == "new/Nedward.md"
    assert folder.read("new/Nedward.md") == b"text of people/Ned.md"
    assert folder.move("map.png", "pics/map.png").path == "pics/map.png"
    with pytest.raises(NotFound):
        folder.read("people/Ned.md")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Plan.md", "people/Ned.md", "already exists"),
        ("Plan.md", "people", "a note stays a note"),
        ("Plan.md", "Plan.txt", "a note stays a note"),
        ("map.png", "map.md", "a note stays a note"),
        ("Plan.md", ".x/Plan.md", "hidden"),
        ("Plan.md", "map.png/Plan.md", "cannot move"),
        ("Plan.md", "x" * 300 + ".md", "cannot move"),
        ("x" * 300 + ".md", "x.md", "cannot read"),
        ("nothing.md", "x.md", "there is no document"),
        ("people", "folk.md", "there is no document"),
    ],
)
def test_nothing_is_moved_onto_another_file(folder: Folder, old: str, new: str, said: str) -> None:
    before = walked(folder)
    with pytest.raises((Invalid, NotFound), match=said):
        folder.move(old, new)
    assert walked(folder) == before


def test_a_deleted_note_is_in_the_trash_and_replaces_no_other(folder: Folder) -> None:
    assert folder.delete("people/Ned.md") == ".trash/Ned.md"
    fill(folder.root, "Ned.md")
    assert folder.delete("Ned.md") == ".trash/Ned 2.md"
    fill(folder.root, "boats/Ned.md")
    assert folder.delete("boats/Ned.md") == ".trash/Ned 3.md"
    assert (folder.root / ".trash" / "Ned.md").read_text() == "text of people/Ned.md"
    assert (folder.root / ".trash" / "Ned 2.md").read_text() == "text of Ned.md"
    assert not [path for path in walked(folder) if "Ned" in path]


def test_a_trash_that_leads_outside_is_not_used(folder: Folder, tmp_path: Path) -> None:
    (folder.root / ".trash").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Invalid, match="outside the vault"):
        folder.delete("Plan.md")
    assert folder.read("Plan.md") == b"text of Plan.md"
