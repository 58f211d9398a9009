"""What the page shows beside the chat: the next window, the context of a reply, documents, notes, compactions."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.web.conftest import OpenPage, Serve, say, shot

AGENTS = Path(__file__).parents[2] / "examples" / "agents"


@pytest.mark.slow
def test_the_meter_counts_what_is_typed_and_opens_the_next_window(
    serve: Serve, open_page: OpenPage, tmp_path: Path
) -> None:
    shutil.copytree(AGENTS, tmp_path / "home" / "agents")
    page = open_page(serve({"text": "Yes."}, script={"limit": 4000}))
    say(page, "@yard Hello")
    expect(page.locator("article.assistant")).to_have_count(1)
    meter = page.locator(".meter-button")
    before = meter.get_attribute("aria-label")
    page.get_by_label("Message", exact=True).fill("Is the sling checked before each lift with the crane? " * 5)
    expect(meter).not_to_have_attribute("aria-label", before or "")
    meter.click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("What the next message would send")
    lifting = panel.locator("li", has_text="Lifting")
    expect(lifting.locator(".badge.agent")).to_be_visible()
    lifting.get_by_role("button", name="Keep").click()
    expect(panel.locator("li", has_text="Lifting").locator(".badge.manual")).to_be_visible()
    panel.locator("li", has_text="Lifting").get_by_role("button", name="Remove").click()
    expect(panel.locator("li", has_text="Lifting").locator(".badge.agent")).to_be_visible()
    panel.locator("li", has_text="Lifting").get_by_role("button", name="Exclude").click()
    expect(panel.locator(".section:not([data-key='next-passed']) li", has_text="Lifting")).to_have_count(0)
    shot(page, "window")


@pytest.mark.slow
def test_a_reply_shows_what_was_sent_for_it(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"text": "First."}, {"text": "Second."}))
    for text in ("Hello", "And again"):
        say(page, text)
        expect(page.locator(".message.assistant")).to_have_count(1 if text == "Hello" else 2)
        page.wait_for_selector(".turn.running", state="detached")
    page.locator(".item", has_text="Second.").get_by_role("button", name="Context").click()
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("What was sent for #4")
    expect(panel).to_contain_text("rebuilds byte for byte")
    panel.get_by_role("button", name="Text as sent").first.click()
    expect(panel.locator("pre").first).not_to_be_empty()
    panel.get_by_role("button", name="Raw").click()
    expect(panel.locator("pre", has_text='"messages"')).to_be_visible()
    panel.get_by_role("button", name="Copy", exact=True).click()
    assert '"And again"' in page.evaluate("navigator.clipboard.readText()")
    shot(page, "reply")


@pytest.mark.slow
def test_documents_open_beside_the_chat_and_broken_links_are_marked(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve())
    say(page, "How long is she in [[Sorrel#Measurements]], and [[Nowhere]]?")
    expect(page.locator("article.assistant")).to_have_count(1)
    expect(page.locator("article.user .broken")).to_contain_text("not found")
    page.get_by_role("button", name="Documents").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.locator(".broken")).to_contain_text("Nowhere")
    panel.get_by_role("link", name="boat/Sorrel.md").click()
    expect(panel.locator(".prose h1")).to_have_text("Sorrel")
    expect(panel).to_contain_text("Linked from")
    panel.get_by_role("link", name="Maren Tolley").first.click()
    expect(panel.locator(".prose h1")).to_have_text("Maren Tolley")
    page.locator("article.user .prose").get_by_role("link", name="Nowhere").click()
    expect(page.locator(".notices .failure")).to_contain_text("there is no document Nowhere")
    shot(page, "note")


@pytest.mark.slow
def test_a_compaction_is_a_marker_that_opens_and_can_be_undone(serve: Serve, open_page: OpenPage) -> None:
    summary = {"when": "summary", "text": "They spoke about the mast and about 77 apples."}
    page = open_page(serve({"text": "Noted."}, summary, script={"limit": 4000}, vault=None))
    for number in range(8):
        say(page, f"The mast costs {1200 + number} euros, says number {number}.")
        expect(page.locator("article.user").last).to_contain_text(f"number {number}")
        page.wait_for_selector(".turn.running", state="detached")
    say(page, "/compact")
    marker = page.locator(".marker").last
    expect(marker).to_contain_text("Context compacted #1 — ")
    marker.locator("summary").click()
    expect(marker.locator(".summary mark")).to_have_text("[unverified]")
    expect(marker.locator(".ledger a").first).to_be_visible()
    expect(page.locator(".message.archived").first).to_be_visible()
    shot(page, "compaction")
    marker.get_by_role("button", name="Edit the summary").click()
    page.get_by_label("Message", exact=True).fill("The mast costs 1,200 euros.")
    page.keyboard.press("Enter")
    expect(page.locator(".marker").last).to_contain_text("summary by you")
    page.locator(".marker").last.locator("summary").click()
    page.get_by_role("button", name="Undo this compaction").last.click()
    expect(page.locator(".message.archived")).to_have_count(0)
