from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.errors import Invalid, NotFound, RectoError
from recto.vault import vault as module
from recto.vault.folder import Folder
from recto.vault.links import find_all_links, find_links
from recto.vault.vault import Document, Vault


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    root = tmp_path / "vault"
    for path in ("Plan.md", "people/Ned.md", "boats/Ned.md", "a/b/Deep.md", ".obsidian/Plan.md"):
        write(root, path, f"text of {path}")
    (tmp_path / "secret.md").write_text("secret")
    (root / "door.md").symlink_to(tmp_path / "secret.md")
    return Vault(root)


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Vault]:
    root = tmp_path / "linked"
    write(root, "Plan.md", "---\naliases: [The Plan]\ntags: [work/now]\n---\n# Plan\n[[Ned]], [[nobody]], ![[pic.png]]")
    write(root, "people/Ned.md", "long before " * 9 + "[[plan#Goals|it]] " + "long after " * 9 + "\n[p](../Plan.md)")
    write(root, "people/Zoe.md", "# Zoe #work\n`[[Plan]]` [[the plan]] [[#Zoe]] [[Zoe]]")
    (root / "pic.png").write_bytes(b"\x89PNG\r\n\0\0")
    vault = Vault(root, tmp_path / "cache.db")
    yield vault
    vault.close()


def test_a_document_is_read_by_path_or_by_name(vault: Vault) -> None:
    assert vault.read("people/Ned.md").text == "text of people/Ned.md"
    assert vault.read("deep").path == "a/b/Deep.md"
    assert vault.read("[[Plan]]").path == "Plan.md"
    assert vault.read("[[Plan#Goals|x]]") == Document("Plan.md", "text of Plan.md")


def test_documents_are_listed_by_folder_and_by_tag(linked: Vault) -> None:
    assert [each.title for each in linked.documents()] == ["Plan", "Ned", "Zoe #work"]
    assert [each.path for each in linked.documents("people/")] == ["people/Ned.md", "people/Zoe.md"]
    assert [each.path for each in linked.documents(tag="#Work")] == ["Plan.md", "people/Zoe.md"]
    assert [each.path for each in linked.documents(tag="work/now")] == ["Plan.md"]
    assert linked.documents(tag="wor") == []


def test_links_of_a_document_come_in_order_with_what_they_lead_to(linked: Vault) -> None:
    found = linked.outgoing_links("plan")
    assert [(each.link.target, each.path) for each in found] == [
        ("Ned", "people/Ned.md"),
        ("nobody", None),
        ("pic.png", "pic.png"),
    ]
    assert {(each.source, each.line) for each in found} == {("Plan.md", 6)}


def test_backlinks_come_with_line_and_context(linked: Vault) -> None:
    found = linked.backlinks("Plan")
    assert [(each.source, each.line, each.link.wikilink) for each in found] == [
        ("people/Ned.md", 1, "[[plan#Goals|it]]"),
        ("people/Ned.md", 2, "[p](../Plan.md)"),
        ("people/Zoe.md", 2, "[[the plan]]"),
    ]
    before, after = found[0].context.split("[[plan#Goals|it]]")
    assert 45 <= len(before) <= 50
    assert 45 <= len(after) <= 50
    assert [each.source for each in linked.backlinks("pic.png")] == ["Plan.md"]
    assert [each.source for each in linked.backlinks("people/Zoe.md")] == ["people/Zoe.md"]


def test_broken_links_are_listed_with_similar_names(linked: Vault) -> None:
    write(linked.root, "people/Ann.md", "[[Nedd]]")
    linked.refresh()
    assert [(each.source, each.link.target) for each in linked.broken_links()] == [
        ("Plan.md", "nobody"),
        ("people/Ann.md", "Nedd"),
    ]
    assert [each.link.target for each in linked.broken_links("Plan.md")] == ["nobody"]
    assert linked.closest("Nedd", 1) == ["people/Ned.md"]
    assert len(linked.all_links()) == 8


def test_a_note_written_through_the_vault_is_known_at_once(linked: Vault) -> None:
    assert linked.resolve(find_links("[[nobody]]")[0]) is None
    assert linked.write("./people/Nobody.md", "# Nobody\n[[plan]]").title == "Nobody"
    assert linked.resolve(find_links("[[nobody]]")[0]) == "people/Nobody.md"
    assert "people/Nobody.md" in [each.source for each in linked.backlinks("Plan.md")]
    linked.write("people/Nobody.md", "no link")
    assert "people/Nobody.md" not in [each.source for each in linked.backlinks("Plan.md")]


def test_a_deleted_note_is_in_the_trash(linked: Vault) -> None:
    assert len(linked.backlinks("Plan.md")) == 3
    assert linked.delete("Plan") == ".trash/Plan.md"
    assert linked.resolve(find_links("[[plan]]")[0]) is None
    assert len(linked.broken_links()) == 3
    with pytest.raises(NotFound):
        linked.read("Plan.md")


def test_renaming_a_note_updates_its_links(linked: Vault) -> None:
    renamed = linked.rename("Plan", "work/The Scheme.md")
    assert renamed.path == "work/The Scheme.md"
    assert renamed.links == {"people/Ned.md": 2}
    assert "[[The Scheme#Goals|it]]" in linked.read("people/Ned.md").text
    assert "(../work/The%20Scheme.md)" in linked.read("people/Ned.md").text
    assert {each.source for each in linked.backlinks("work/The Scheme.md")} == {"people/Ned.md", "people/Zoe.md"}
    assert [each.link.target for each in linked.broken_links()] == ["nobody"]


def test_a_note_too_large_to_be_read_can_be_renamed(linked: Vault) -> None:
    with (linked.root / "Huge.md").open("wb") as file:
        file.truncate(100_000_000)
    write(linked.root, "from.md", "[[huge]]")
    assert linked.rename("Huge.md", "Vast.md").links == {"from.md": 1}
    with pytest.raises(Invalid, match=r"100\.0 MB"):
        linked.read("Vast.md")


@pytest.mark.parametrize(
    ("old", "new"), [("nothing.md", "x.md"), ("Plan.md", "people/Ned.md"), ("Plan.md", "../x.md"), ("Plan.md", ".x.md")]
)
def test_a_rename_that_fails_changes_nothing(linked: Vault, old: str, new: str) -> None:
    before = {path: path.read_bytes() for path in linked.root.rglob("*.md")}
    with pytest.raises(RectoError):
        linked.rename(old, new)
    assert {path: path.read_bytes() for path in linked.root.rglob("*.md")} == before


def test_a_rename_that_fails_halfway_names_the_notes_left(linked: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    write(linked.root, "people/Ann.md", "[[Plan]]")
    write_file = Folder.write

    def full_disk(self: Folder, path: str, content: str | bytes) -> object:
        if path == "people/Ned.md":
            raise Invalid("cannot write people/Ned.md: No space left on device")
        return write_file(self, path, content)

    monkeypatch.setattr(Folder, "write", full_disk)
    with pytest.raises(
        Invalid, match=r"but 1 of 2 notes .* still use the old name, people/Ned.md first: .* No space"
    ) as why:
        linked.rename("Plan.md", "Scheme.md")
    assert why.value.data["done"] == ("people/Ann.md",)
    assert why.value.data["left"] == ("people/Ned.md",)
    assert linked.read("people/Ann.md").text == "[[Scheme]]"
    assert linked.resolve(find_links("[[Scheme]]")[0]) == "Scheme.md"


def test_a_vault_that_goes_away_keeps_its_names_with_a_warning(linked: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    link = find_links("[[Ned]]")[0]
    assert linked.resolve(link) == "people/Ned.md"
    away = linked.root.rename(linked.root.with_name("away"))
    assert linked.resolve(link) == "people/Ned.md"
    assert "there is no folder" in linked.warnings[0]
    with pytest.raises(NotFound):
        linked.read("people/Ned.md")
    away.rename(linked.root)
    assert linked.resolve(link) == "people/Ned.md"
    assert linked.warnings == []


NAMES = st.sampled_from(["a", "b", "sub/a", "sub/b", "c# d", "sub/c", "x|y", "é"])
TEXTS = st.lists(
    st.sampled_from(
        ["[[a]]", "[[sub/b|B]]", "![[b#h]]", "[t](b.md)", "[t](sub/a.md)", "[[c# d]]", "[[x|y]]", "[[É^1]]"]
    ),
    max_size=5,
).map(" and ".join)


@settings(max_examples=examples(60, few=10))
@given(st.dictionaries(NAMES, TEXTS, min_size=1), st.data())
def test_after_a_rename_every_link_leads_where_it_led(
    tmp_path_factory: pytest.TempPathFactory, notes: dict[str, str], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("vault")
    for name, text in notes.items():
        write(root, f"{name}.md", text)
    old = data.draw(st.sampled_from(sorted(notes)))
    new = data.draw(NAMES.filter(lambda name: name not in notes))
    vault = Vault(root)
    before = {name: [each.path for each in vault.outgoing_links(f"{name}.md")] for name in notes}
    vault.rename(f"{old}.md", f"{new}.md")
    for name, paths in before.items():
        now = [each.path for each in vault.outgoing_links(f"{new if name == old else name}.md")]
        expected = [f"{new}.md" if path == f"{old}.md" else path for path in paths]
        # what was broken may by now have found a note
        assert [path for path, was in zip(now, expected, strict=True) if was] == [path for path in expected if path]
    assert len(find_all_links(" ".join(notes.values()))) == sum(
        len(vault.outgoing_links(each.path)) for each in vault.documents()
    )


def test_edits_during_a_rename_are_preserved(linked: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    move = Folder.move

    def type_meanwhile(self: Folder, old: str, new: str) -> object:
        moved = move(self, old, new)
        place = self.root / "people/Ned.md"
        place.write_text(place.read_text() + "\ntyped meanwhile")
        return moved

    monkeypatch.setattr(Folder, "move", type_meanwhile)
    linked.rename("Plan.md", "Scheme.md")
    text = linked.read("people/Ned.md").text
    assert "[[Scheme" in text
    assert text.endswith("typed meanwhile")


def test_a_note_in_another_encoding_is_read_but_a_rename_cannot_rewrite_it(linked: Vault) -> None:
    (linked.root / "wide.md").write_bytes("see [[Plan]]".encode("utf-16"))
    assert linked.read("wide.md").text == "see [[Plan]]"
    with pytest.raises(Invalid, match=r"wide.md first: wide.md is not in UTF-8"):
        linked.rename("Plan.md", "Scheme.md")
    assert "[[Scheme" in linked.read("people/Ned.md").text
