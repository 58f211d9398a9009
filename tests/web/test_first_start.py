"""The first start in the browser: notes, key and model are chosen on the page; no command is needed."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.web.conftest import OpenPage, Serve, say

from recto.settings.settings import load

KEY = "sk-test-0123456789abcdef"


@pytest.mark.slow
def test_a_folder_of_notes_is_chosen_on_the_page(serve: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    notes = tmp_path / "my notes"
    notes.mkdir()
    (notes / "Pump.md").write_text("# Pump\n\n## Which fuse does the pump have?\n\nA fuse of 5 A.\n")
    (notes / "Mast.md").write_text("# Mast\n")
    page = open_page(serve({"text": "5 A"}, vault=None))
    field, use = page.get_by_label("Folder"), page.get_by_role("button", name="Use these notes")
    expect(use).to_be_disabled()
    field.fill(str(tmp_path / "nowhere"))
    expect(page.locator(".step .warn")).to_be_visible()
    field.fill(str(tmp_path / "my"))
    page.get_by_role("button", name=str(notes)).click()
    expect(page.locator(".step .right")).to_contain_text("2 notes")
    use.click()
    expect(page.locator(".empty .right")).to_contain_text(f"Recto reads 2 notes in {notes} from now on.")
    page.get_by_role("button", name="Which fuse does the pump have?").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("Which fuse does the pump have?")
    say(page, "What does [[Pump]] say?")
    expect(page.locator("article.user .documents")).to_contain_text("Pump")
    assert load(tmp_path / "home").vault == str(notes)


@pytest.mark.slow
def test_a_key_is_stored_and_never_shown(serve: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(serve())
    page.get_by_text("Set a key of a provider").click()
    page.get_by_label("Provider").select_option("anthropic")
    page.get_by_label("Key", exact=True).fill("two words")
    page.get_by_role("button", name="Store the key").click()
    expect(page.locator(".empty .failure")).to_contain_text("a key is one line")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Store the key").click()
    expect(page.locator(".empty .right")).to_contain_text("The key of anthropic is in")
    assert json.loads((tmp_path / "home" / "keys.json").read_text()) == {"ANTHROPIC_API_KEY": KEY}
    assert KEY not in page.content()
    page.locator("select[name=model]").select_option("anthropic:claude-sonnet-4-5")
    page.get_by_role("button", name="Use this model").click()
    expect(page.locator(".chat-head .model")).to_have_text("anthropic:claude-sonnet-4-5")
    assert load(tmp_path / "home").model == "anthropic:claude-sonnet-4-5"
    for file in (tmp_path / "home").rglob("*.log"):
        assert KEY not in file.read_text()
