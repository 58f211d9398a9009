from pathlib import Path

import pytest

from recto.errors import Invalid, NotFound
from recto.vault.links import find_links
from recto.vault.vault import Vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    root = tmp_path / "vault"
    for path in ("Plan.md", "people/Ned.md", "boats/Ned.md", "a/b/Deep.md", ".obsidian/Plan.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"text of {path}")
    (tmp_path / "secret.md").write_text("secret")
    (root / "door.md").symlink_to(tmp_path / "secret.md")
    return Vault(root)


@pytest.mark.parametrize(
    ("wikilink", "path"),
    [
        ("[[plan]]", "Plan.md"),
        ("[[PLAN.md]]", "Plan.md"),
        ("[[people/ned]]", "people/Ned.md"),
        ("[[Ned]]", "boats/Ned.md"),
        ("[[b/deep]]", "a/b/Deep.md"),
        ("[[missing]]", None),
        ("[[x/plan]]", None),
    ],
)
def test_a_link_resolves_without_case_and_by_suffix(vault: Vault, wikilink: str, path: str | None) -> None:
    assert vault.resolve(find_links(wikilink)[0]) == path


def test_a_document_is_read_by_path_or_by_name(vault: Vault) -> None:
    assert vault.read("people/Ned.md").text == "text of people/Ned.md"
    assert vault.read("deep").path == "a/b/Deep.md"
    assert vault.read("[[Plan]]").path == "Plan.md"


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd", "door.md", "people/../../secret.md"])
def test_nothing_leads_outside(vault: Vault, path: str) -> None:
    with pytest.raises(Invalid, match="outside the vault"):
        vault.read(path)


@pytest.mark.parametrize("path", ["nothing.md", ".obsidian/Plan.md", "people"])
def test_what_is_hidden_or_missing_is_not_found(vault: Vault, path: str) -> None:
    with pytest.raises(NotFound):
        vault.read(path)


def test_a_name_too_long_for_the_disk_is_one_sentence(vault: Vault) -> None:
    with pytest.raises(Invalid, match="cannot read xxx"):
        vault.read("x" * 5000)


def test_a_nul_in_a_path_is_refused(vault: Vault) -> None:
    with pytest.raises(Invalid, match="NUL"):
        vault.read("a\0b")


def test_a_note_that_is_not_utf8_is_read_with_replacements(vault: Vault) -> None:
    (vault.root / "latin.md").write_bytes(b"caf\xe9")
    assert vault.read("latin.md").text == "caf\N{REPLACEMENT CHARACTER}"


def test_a_vault_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotFound):
        Vault(tmp_path / "nowhere")
    with pytest.raises(Invalid, match="is a file"):
        Vault(tmp_path / "file")
