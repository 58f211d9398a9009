"""How the page looks and whom it serves: narrow and wide, light and dark, by keyboard, with a screen reader."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import OpenPage, Serve, say, shot

AXE = Path(__file__).parents[2] / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"
REPLY = "The pump has a **5 A fuse**.\n\n```python\nprint('fuse')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quoted\n"
SERIOUS = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
    .filter((each) => ["serious", "critical"].includes(each.impact))
    .map((each) => `${each.id}: ${each.help}: ` + each.nodes.map((node) => node.html.slice(0, 160)).join(" | "))"""


FADED = """() => Promise.allSettled(
    document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished))"""


def serious_findings(page: Page) -> list[str]:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make test-all does it")
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text())
    # colours are judged when nothing fades in any more
    page.evaluate(FADED)
    found: list[str] = page.evaluate(SERIOUS)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_serves_everybody(serve: Serve, open_page: OpenPage, tmp_path: Path, scheme: str, width: int) -> None:
    shutil.copytree(Path(__file__).parents[2] / "examples" / "agents", tmp_path / "home" / "agents")
    page = open_page(serve({"text": REPLY}, script={"limit": 8000}), width=width, height=800, color_scheme=scheme)
    expect(page.locator(".meter-button")).to_be_visible()
    name = f"{width}-{scheme}"
    shot(page, f"empty-{name}")
    assert serious_findings(page) == []
    say(page, "Which fuse protects the pump in [[Electrics]], and is [[Nowhere]] right?")
    expect(page.locator("article.assistant")).to_have_count(1)
    page.wait_for_selector(".turn.running", state="detached")
    shot(page, f"chat-{name}")
    assert serious_findings(page) == []
    for deed in ("context", "documents", "window"):
        page.locator(f'[data-do="{deed}"]:visible').last.click()
        expect(page.get_by_role("tabpanel")).to_be_visible()
        shot(page, f"{deed}-{name}")
        assert serious_findings(page) == []
        if width < 500:
            page.get_by_label("Close the panel").click()
            expect(page.get_by_role("tabpanel")).to_have_count(0)
