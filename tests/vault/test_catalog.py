import os
import sqlite3
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.vault.catalog import CacheEmptied, Catalog, VaultChanges
from recto.vault.folder import Folder
from recto.vault.link_resolver import link_key


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


def linked(catalog: Catalog, key: str) -> list[tuple[str, int, str]]:
    return [(found.source, found.line, found.link.wikilink) for found in catalog.links([key])]


@pytest.fixture(params=["memory", "file"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return Catalog(None if request.param == "memory" else tmp_path / "cache" / "catalog.db")


def test_a_refresh_adds_the_files_of_the_folder(catalog: Catalog, root: Path) -> None:
    steps: list[tuple[int, int]] = []
    was_filled = catalog.is_filled
    changes = catalog.refresh(Folder(root), lambda done, total: steps.append((done, total)))
    assert changes == VaultChanges(added=("Plan.md", "a/pic.png", "people/Ned.md"))
    assert steps == [(3, 3)]
    assert (was_filled, catalog.is_filled) == (False, True)
    plan, ned = catalog.documents()
    assert (plan.path, plan.title, plan.tags, plan.size) == ("Plan.md", "A plan", ("work/now",), 85)
    assert (ned.path, ned.title, ned.problem) == ("people/Ned.md", "Ned", None)
    assert [each.path for each in catalog.documents("people/")] == ["people/Ned.md"]
    assert catalog.names.resolve("the plan") == "Plan.md"
    assert linked(catalog, "plan") == [("people/Ned.md", 1, "[[plan#Goals|it]]")]
    (found,) = catalog.links(["pic.png"])
    assert (found.link.kind, found.link.embed, found.link.caption, found.line) == ("markdown", True, "p", 6)
    assert found.context == "# A plan see [[Ned]] and ![p](a/pic.png)"
    assert len(list(catalog.all_links())) == 4


def test_added_changed_and_removed_files_are_distinguished(catalog: Catalog, root: Path) -> None:
    folder = Folder(root)
    catalog.refresh(folder)
    write(root, "Plan.md", "now to [[people/Ned]]")
    at(root, "people/Ned.md", 1000)
    (root / "a" / "pic.png").unlink()
    write(root, "New.md", "[[Ned]]")
    assert catalog.refresh(folder) == VaultChanges(("New.md",), ("Plan.md",), ("a/pic.png",))
    assert linked(catalog, "pic.png") == []
    assert [source for source, _, _ in linked(catalog, "ned")] == ["New.md", "Plan.md"]
    assert catalog.names.resolve("the plan") is None


def test_a_new_file_is_added_only_if_it_is_not_ignored(catalog: Catalog, root: Path) -> None:
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
    assert "100.0 MB" in str(catalog.documents()[0].problem)
    assert catalog.names.resolve("huge") == "Huge.md"
    again = catalog.refresh(folder)
    assert (again.changed, again.unreadable) == ((), ("Huge.md",))
    write(root, "Huge.md", "small now")
    assert catalog.refresh(folder).changed == ("Huge.md",)
    assert catalog.documents()[0].problem is None


@pytest.mark.parametrize("damage", ["text", "cut", "version", "columns"])
def test_a_damaged_catalog_is_rebuilt(root: Path, tmp_path: Path, damage: str) -> None:
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
    with pytest.raises(CacheEmptied) if damage == "columns" else nullcontext():
        catalog.documents()
    catalog.refresh(folder)
    assert len(catalog.documents()) == 2
    assert ("damaged" in catalog.warning) == (damage != "version")


def test_a_catalog_that_cannot_be_written_is_in_memory(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    catalog = Catalog(tmp_path / "file" / "catalog.db")
    assert len(catalog.refresh(Folder(root)).added) == 3
    assert "kept in memory" in catalog.warning


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "[[a]]", "[[b]] [[c]]", None])), max_size=12)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.sets(st.integers(0, 11)))
def test_an_updated_catalog_equals_a_new_one(
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
    assert catalog.documents() == anew.documents()
    assert [catalog.names.resolve(name) for name in "abc"] == [anew.names.resolve(name) for name in "abc"]
