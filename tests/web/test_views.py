"""The pages besides the chat, in a real browser: statistics, graph, memory, settings."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.conftest import Script
from tests.web.conftest import OpenPage, Serve, Served, shot
from tests.web.test_looks import AXE, serious_findings

from recto.api.blocking import open_desk
from recto.web.menu import menu

pytestmark = [pytest.mark.slow, pytest.mark.untraced]

REPLY: dict[str, Any] = {"text": "There are 14 boats in the harbour, and Anna Berg counted them."}
SUMMARY: dict[str, Any] = {"text": "Task: count the boats. Facts: 14 boats.", "when": "summary"}
PRICES = {"input": 3, "output": 15, "cache_read": 0.3}
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "boat").mkdir(parents=True)
    (folder / "Budget.md").write_text(f"---\ntags: [money]\n---\n# Budget\nThe [[Mast]] cost £900. {HOSTILE}\n")
    (folder / "boat" / "Mast.md").write_text("# Mast\nOf spruce. See [[Budget]].\n")
    (folder / "Odd.md").write_text(f"# {HOSTILE}\nNothing.\n")
    return folder


@pytest.fixture
def served(serve: Serve, vault: Path, tmp_path: Path, script: Script) -> Served:
    """The page over a conversation of a dozen turns with a compaction, notes and a rule."""
    rules = tmp_path / "home" / "agents" / "default" / "rules"
    rules.mkdir(parents=True)
    (rules / "style.md").write_text("---\ninclude: always\ndescription: how to write\n---\nWrite short.\n")
    model = script(REPLY, SUMMARY, limit=1500, prices=PRICES, tools=False)
    small = {"context.reserved_response_tokens": 100, "context.prepare_at": 0.0, "search.embedder": "none"}
    with open_desk(home=tmp_path / "home", model=model, vault=vault, settings=small) as desk:
        talk = desk.conversation()
        for number in range(14):
            talk.ask(
                f"Message {number}: the mast of boat {number} is {number + 5} m long. What of [[Budget]] and [[Mast]]?"
            )
        desk.rename(talk.id or "", f"Boats {HOSTILE}")
        desk.facts.learn(f"The engine is a Bukh. {HOSTILE}")
    return serve(REPLY, SUMMARY, vault=vault, script={"limit": 1500, "prices": PRICES, "tools": False})


def settled(page: Page) -> None:
    """Plots are drawn when their canvas is there."""
    page.locator(".plot canvas").first.wait_for()


def test_every_view_is_in_the_menu_and_fits_a_narrow_screen(served: Served, open_page: OpenPage) -> None:
    for address, title in menu(is_whole=True).items():
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = open_page(served, path=address, width=width, color_scheme=scheme)
            expect(page.locator("main h1")).to_have_text(title)
            expect(page.get_by_role("navigation").get_by_role("link", name=title)).to_be_visible()
            page.wait_for_timeout(500)
            too_wide = "document.querySelector('.full').scrollWidth > document.querySelector('.full').clientWidth"
            assert not page.evaluate(too_wide), (address, width)
            assert page.locator("img[src=x]").count() == 0
            if AXE.is_file():
                assert serious_findings(page) == [], (address, width)
            shot(page, f"view{address.replace('/', '-')}-{width}-{scheme}")
            page.context.close()


def test_statistics_show_plots_and_tables(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, path="/stats")
    settled(page)
    expect(page.get_by_role("img", name="replies; ")).to_be_visible()
    expect(page.get_by_role("rowheader", name="rule:style")).to_be_visible()
    expect(page.get_by_role("rowheader", name="Budget.md")).to_be_visible()


def test_the_graph_is_searched_filtered_and_opens_notes(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, path="/graph")
    settled(page)
    expect(page.get_by_text("3 of 3 notes")).to_be_visible()
    page.get_by_label("Folder").select_option("boat")
    expect(page.get_by_text("1 of 3 notes")).to_be_visible()
    page.get_by_label("Folder").select_option("")
    page.get_by_label("Tag").select_option("money")
    expect(page.get_by_text("1 of 1 notes")).to_be_visible()
    page.get_by_label("Tag").select_option("")
    page.get_by_label("Search").fill("mast")
    expect(page.get_by_text("1 found")).to_be_visible()
    page.get_by_text("The same as a list").click()
    page.get_by_role("link", name="Budget", exact=True).click()
    expect(page.locator(".beside")).to_contain_text("cost £900")
    page.get_by_role("button", name="Close the note").click()
    expect(page.locator(".beside")).to_be_empty()


def test_a_click_on_a_note_in_the_graph_opens_it(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, path="/graph", reduced_motion="reduce")
    page.get_by_label("Folder").select_option("boat")
    expect(page.get_by_text("1 of 3 notes")).to_be_visible()
    settled(page)
    box = page.locator(".plot").bounding_box()
    assert box
    page.wait_for_timeout(1500)
    places = [(x, y) for x in range(0, int(box["width"]), 20) for y in range(60, int(box["height"]), 20)]
    middle = (box["width"] / 2, box["height"] / 2)
    for x, y in sorted(places, key=lambda place: abs(place[0] - middle[0]) + abs(place[1] - middle[1])):
        page.mouse.click(box["x"] + x, box["y"] + y)
        if page.locator(".beside").inner_text():
            break
    expect(page.locator(".beside")).to_contain_text("Of spruce")


def test_facts_are_remembered_found_edited_and_forgotten(served: Served, open_page: OpenPage) -> None:
    page = open_page(served, path="/memory")
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    page.get_by_label("Remember").fill("The anchor weighs 15 kg.")
    page.get_by_role("button", name="Remember it").click()
    expect(page.get_by_text("Remembered as fact 2.")).to_be_visible()
    fact = page.get_by_role("article", name="Fact 2")
    fact.get_by_role("button", name="Edit").click()
    page.get_by_label("Fact 2", exact=True).last.fill("The anchor weighs 16 kg.")
    page.get_by_role("button", name="Save").click()
    expect(fact).to_contain_text("16 kg")
    page.get_by_label("Search").fill("anchor")
    expect(page.get_by_role("article")).to_have_count(1)
    fact.get_by_text("Forget", exact=True).click()
    fact.get_by_role("button", name="Yes, forget it").click()
    expect(page.get_by_text("none of its words is kept")).to_be_visible()


def test_a_setting_is_checked_as_one_types_and_saved_where_one_says(
    served: Served, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(served, path="/settings")
    page.get_by_label("Search", exact=True).fill("threshold")
    field = page.get_by_label("context.threshold")
    field.fill("7")
    expect(page.get_by_text("it takes a number from 0.1 to 1")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    field.fill("0.6")
    expect(page.get_by_text("allowed", exact=True)).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("context.threshold is set for you")).to_be_visible()
    assert "threshold = 0.6" in (tmp_path / "home/config.toml").read_text()
    page.locator("[data-name=level]").select_option("conversation")
    page.get_by_label("context.threshold").fill("0.5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("context.threshold is set for a conversation")).to_be_visible()
    expect(page.get_by_text("from conversation #1", exact=True)).to_be_visible()
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("context.threshold is no longer set for a conversation")).to_be_visible()
