import os
import sqlite3
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recto.vault.catalog import Catalog, Changes
from recto.vault.folder import Folder
from recto.vault.names import link_key
from recto.vault.tables import Emptied


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    write(root, "Plan.md", "---\naliases: [The Plan]\ntags: [work/now]\n---\n# A plan\nsee [[Ned]] and ![p](a/pic.png)")
    write(root, "people/Ned.md", "back to [[plan#Goals|it]]\nand [[the plan]]")
    (root / "a").mkdir()
    (root / "a" / "pic.png").write_bytes(b"\x89PNG\0")
    return root


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def at(root: Path, path: str, second: int) -> None:
    """A time of its own, so that no test depends on the disk's clock."""
    os.utime(root / path, (second, second))


def linking(catalog: Catalog, key: str) -> list[tuple[str, int, str]]:
    return [(found.source, found.line, found.link.wikilink) for found in catalog.links([key])]


@pytest.fixture(params=["memory", "file"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return Catalog(None if request.param == "memory" else tmp_path / "cache" / "catalog.db")


def test_what_is_in_the_folder_is_taken_over(catalog: Catalog, root: Path) -> None:
    steps: list[tuple[int, int]] = []
    was_filled = catalog.is_filled
    changes = catalog.refresh(Folder(root), lambda done, total: steps.append((done, total)))
    assert changes == Changes(added=("Plan.md", "a/pic.png", "people/Ned.md"))
    assert steps == [(3, 3)]
    assert (was_filled, catalog.is_filled) == (False, True)
    plan, ned = catalog.listed()
    assert (plan.path, plan.title, plan.tags, plan.size) == ("Plan.md", "A plan", ("work/now",), 85)
    assert (ned.path, ned.title, ned.problem) == ("people/Ned.md", "Ned", None)
    assert [each.path for each in catalog.listed("people/")] == ["people/Ned.md"]
    assert catalog.names.resolve("the plan") == "Plan.md"
    assert linking(catalog, "plan") == [("people/Ned.md", 1, "[[plan#Goals|it]]")]
    (found,) = catalog.links(["pic.png"])
    assert (found.link.kind, found.link.embed, found.link.caption, found.line) == ("markdown", True, "p", 6)
    assert found.context == "# A plan see [[Ned]] and ![p](a/pic.png)"
    assert len(list(catalog.all_links())) == 4


def test_a_second_look_finds_nothing_new(catalog: Catalog, root: Path) -> None:
    catalog.refresh(Folder(root))
    assert catalog.refresh(Folder(root)) == Changes()


def test_changes_are_told_apart(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    write(root, "Plan.md", "now to [[people/Ned]]")
    at(root, "people/Ned.md", 1000)
    (root / "a" / "pic.png").unlink()
    write(root, "New.md", "[[Ned]]")
    assert catalog.refresh(folder) == Changes(("New.md",), ("Plan.md",), ("a/pic.png",))
    assert linking(catalog, "pic.png") == []
    assert [source for source, _, _ in linking(catalog, "ned")] == ["New.md", "Plan.md"]
    assert catalog.names.resolve("the plan") is None


def test_a_file_that_was_only_touched_is_no_change(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    at(root, "Plan.md", 1000)
    assert catalog.refresh(folder) == Changes()
    assert catalog.listed()[0].modified.timestamp() == 1000


def test_a_second_writing_within_the_same_tick_is_seen(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    # a time to come: however slow the machine, the file was written just now
    soon = int(time.time()) + 1000
    write(root, "Tick.md", "[[one]]")
    at(root, "Tick.md", soon)
    catalog.refresh(folder)
    write(root, "Tick.md", "[[two]]")
    at(root, "Tick.md", soon)
    assert catalog.refresh(folder).changed == ("Tick.md",)
    assert len(linking(catalog, "two")) == 1


def test_a_renamed_file_is_removed_and_added(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    (root / "Plan.md").rename(root / "people" / "Plan B.md")
    assert catalog.refresh(folder) == Changes(added=("people/Plan B.md",), removed=("Plan.md",))


def test_some_files_alone_can_be_looked_at(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    write(root, "Plan.md", "changed")
    write(root, "people/Ned.md", "changed too")
    assert catalog.refresh(folder, only=["Plan.md"]) == Changes(changed=("Plan.md",))
    (root / "people" / "Ned.md").unlink()
    assert catalog.refresh(folder, only=["people/Ned.md"]) == Changes(removed=("people/Ned.md",))


def test_what_is_new_is_taken_only_when_it_is_not_ignored(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    write(root, ".gitignore", "build/\n")
    write(root, "build/x.md", "")
    write(root, "deep/down/y.md", "")
    assert catalog.refresh(folder, only=["build/x.md", "deep", "gone.md"]).added == ("deep/down/y.md",)


def test_a_note_that_is_too_large_is_listed_with_its_problem(catalog: Catalog, root: Path) -> None:
    with (root / "Huge.md").open("wb") as file:
        file.truncate(100_000_000)
    folder = Folder(root)
    assert catalog.refresh(folder).unreadable == ("Huge.md",)
    assert "100.0 MB" in str(catalog.listed()[0].problem)
    assert catalog.names.resolve("huge") == "Huge.md"
    again = catalog.refresh(folder)
    assert (again.changed, again.unreadable) == ((), ("Huge.md",))
    write(root, "Huge.md", "small now")
    assert catalog.refresh(folder).changed == ("Huge.md",)
    assert catalog.listed()[0].problem is None


@pytest.mark.parametrize("content", [b"", b"caf\xe9 [[x]]", b"\0\0", "\ufeff# Title\r\n".encode(), b"---\na: [\n---\n"])
def test_no_note_is_too_odd_to_be_listed(catalog: Catalog, root: Path, content: bytes) -> None:
    (root / "Odd.md").write_bytes(content)
    assert catalog.refresh(Folder(root)).unreadable == ()
    assert catalog.listed()[0].path == "Odd.md"


def test_a_note_that_is_no_text_has_a_problem_and_no_links(catalog: Catalog, root: Path) -> None:
    (root / "Picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0 [[Plan]] #tag\n# Heading\n")
    folder = Folder(root)
    catalog.refresh(folder)
    (listed,) = [each for each in catalog.listed() if each.path == "Picture.md"]
    assert (listed.problem or "").startswith("Picture.md is no text: ")
    assert (listed.title, listed.tags) == ("Picture", ())
    assert not [each for each in catalog.all_links() if each.source == "Picture.md"]
    assert catalog.refresh(folder) == Changes(), "it is not read again and again"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_the_links_of_a_note_are_found_in_every_encoding(catalog: Catalog, root: Path, encoding: str) -> None:
    (root / "Wide.md").write_bytes("# Überfahrt\n\n[[Plan]]\n".encode(encoding))
    catalog.refresh(Folder(root))
    assert [each.title for each in catalog.listed() if each.path == "Wide.md"] == ["Überfahrt"]
    assert [each.link.target for each in catalog.all_links() if each.source == "Wide.md"] == ["Plan"]


def test_a_kept_catalogue_is_opened_again(root: Path, tmp_path: Path) -> None:
    folder, kept = Folder(root), tmp_path / "catalog.db"
    first = Catalog(kept)
    first.refresh(folder)
    first.close()
    write(root, "New.md", "[[Ned]]")
    second = Catalog(kept)
    assert second.refresh(folder).added == ("New.md",)
    assert second.names.resolve("the plan") == "Plan.md"
    assert second.note == ""


def test_what_another_process_has_taken_over_is_known_here_too(root: Path, tmp_path: Path) -> None:
    folder, kept = Folder(root), tmp_path / "catalog.db"
    ours, theirs = Catalog(kept), Catalog(kept)
    ours.refresh(folder)
    write(root, "New.md", "---\naliases: [Fresh]\n---\n")
    assert theirs.refresh(folder).added == ("New.md",)
    assert ours.refresh(folder) == Changes()
    assert ours.names.resolve("fresh") == "New.md"


def test_a_catalogue_of_another_folder_is_begun_anew(root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "catalog.db"
    Catalog(kept).refresh(Folder(root))
    write(tmp_path / "other", "Plan.md", "another plan")
    catalog = Catalog(kept)
    assert catalog.refresh(Folder(tmp_path / "other")).added == ("Plan.md",)
    assert catalog.names.resolve("ned") is None


@pytest.mark.parametrize("damage", ["text", "cut", "version", "columns"])
def test_a_damaged_catalogue_is_begun_anew(root: Path, tmp_path: Path, damage: str) -> None:
    folder, kept = Folder(root), tmp_path / "catalog.db"
    first = Catalog(kept)
    first.refresh(folder)
    first.close()
    if damage == "text":
        kept.write_text("no database at all" * 100)
    elif damage == "cut":
        kept.write_bytes(kept.read_bytes()[:5000])
    else:
        with sqlite3.connect(kept) as db:
            statement = "UPDATE marks SET value = '0'" if damage == "version" else "ALTER TABLE notes DROP COLUMN tags"
            db.execute(statement + (" WHERE name = 'version'" if damage == "version" else ""))
        db.close()
    catalog = Catalog(kept)
    catalog.refresh(folder)
    with pytest.raises(Emptied) if damage == "columns" else nullcontext():
        catalog.listed()
    catalog.refresh(folder)
    assert len(catalog.listed()) == 2
    assert ("damaged" in catalog.note) == (damage != "version")


def test_damage_that_shows_while_asking_is_told_once(root: Path, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog.db")
    catalog.refresh(Folder(root))
    with sqlite3.connect(tmp_path / "catalog.db") as db:
        db.execute("DROP TABLE links")
    db.close()
    with pytest.raises(Emptied, match="made anew"):
        catalog.links(["ned"])
    assert catalog.refresh(Folder(root)).added
    assert linking(catalog, "ned")


def test_where_nothing_can_be_kept_it_lives_in_memory(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.db").mkdir()
    for kept in (tmp_path / "file" / "catalog.db", tmp_path / "folder.db"):
        catalog = Catalog(kept)
        assert len(catalog.refresh(Folder(root)).added) == 3
        assert "made anew every time" in catalog.note


def test_a_catalogue_that_another_process_holds_for_too_long_is_made_in_memory(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recto.vault.tables.BUSY_S", 0.01)
    kept = tmp_path / "catalog.db"
    Catalog(kept).refresh(Folder(root))
    holder = sqlite3.connect(kept, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    write(root, "New.md", "")
    catalog = Catalog(kept)
    assert "New.md" in catalog.refresh(Folder(root)).added
    assert "locked" in catalog.note
    holder.close()


def test_a_note_of_ten_thousand_links_is_filed(catalog: Catalog, root: Path) -> None:
    write(root, "Hub.md", "\n".join(f"[[note {number}]]" for number in range(10_000)))
    catalog.refresh(Folder(root))
    assert linking(catalog, "note 9999") == [("Hub.md", 10_000, "[[note 9999]]")]


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "[[a]]", "[[b]] [[c]]", None])), max_size=12)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sets(st.integers(0, 11)))
def test_a_catalogue_kept_up_equals_one_made_anew(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]], looks: set[int]
) -> None:
    root = tmp_path_factory.mktemp("notes")
    folder, catalog = Folder(root), Catalog()
    for number, (name, text) in enumerate(steps):
        if text is None:
            (root / f"{name}.md").unlink(missing_ok=True)
        else:
            write(root, f"{name}.md", text)
        if number in looks:
            catalog.refresh(folder, only=[f"{name}.md"] if number % 2 else None)
    catalog.refresh(folder)
    anew = Catalog()
    anew.refresh(folder)
    keys = [link_key(name) for name in "abc"]
    assert catalog.links(keys) == anew.links(keys)
    assert catalog.listed() == anew.listed()
    assert [catalog.names.resolve(name) for name in "abc"] == [anew.names.resolve(name) for name in "abc"]
