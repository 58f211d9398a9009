"""Writing on the page: branches, attachments, completions, waiting messages, keys, approvals, the list."""

import json
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.web.conftest import OpenPage, Serve, say, shot

PLAIN = Path(__file__).parents[1] / "mcp" / "parts" / "plain.py"


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.slow
def test_an_edited_message_starts_a_branch_that_one_can_switch(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"text": "one"}, {"text": "two"}, {"text": "three"}))
    say(page, "First question")
    expect(page.locator("article.assistant .body")).to_have_text("one")
    page.locator("article.user").hover()
    page.get_by_role("button", name="Edit").click()
    field = page.get_by_label("Message", exact=True)
    expect(field).to_have_value("First question")
    field.fill("Better question")
    field.press("Enter")
    expect(page.locator("article.assistant .body")).to_have_text("two")
    expect(page.locator("article.user .branches")).to_contain_text("2/2")
    page.get_by_role("button", name="The branch before").click()
    expect(page.locator("article.user .body")).to_have_text("First question")
    expect(page.locator("article.assistant .body")).to_have_text("one")
    shot(page, "branches")


DROP = """([kind, files]) => {
  const data = new DataTransfer();
  for (const [name, type, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name, {type}));
  const field = document.querySelector(".composer textarea");
  const bubbling = {bubbles: true, cancelable: true};
  if (kind === "paste") field.dispatchEvent(new ClipboardEvent(kind, {clipboardData: data, ...bubbling}));
  else document.querySelector(".messages").dispatchEvent(new DragEvent(kind, {dataTransfer: data, ...bubbling}));
}"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["pick", "drop", "paste"])
def test_files_and_pictures_go_along(serve: Serve, open_page: OpenPage, way: str) -> None:
    page = open_page(serve({"text": "seen"}, script={"attachments": True}))
    files = {
        "engine.log": ("text/plain", b"oil pressure low"),
        "dot.png": ("image/png", b64decode(PIXEL)),
        "odd.bin": ("", b"\x00\x01\x02\xff"),
    }
    if way == "pick":
        payloads = [{"name": name, "mimeType": type, "buffer": data} for name, (type, data) in files.items()]
        page.locator("input[type=file]").set_input_files(payloads)  # type: ignore[arg-type]
    else:
        page.evaluate(DROP, [way, [(name, type, list(data)) for name, (type, data) in files.items()]])
    expect(page.locator(".chip", has_text="odd.bin")).to_contain_text("neither text nor an image")
    page.get_by_role("button", name="Remove odd.bin").click()
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator(".chip[aria-busy=true]")).to_have_count(0)
    say(page, "What do they say?")
    expect(page.locator("article.user summary", has_text="engine.log")).to_be_visible()
    picture = page.locator("article.user img.attached")
    expect(picture).to_be_visible()
    assert picture.evaluate("each => each.naturalWidth") == 1


@pytest.mark.slow
def test_names_are_completed_while_one_types(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve())
    field = page.get_by_label("Message", exact=True)
    field.press_sequentially("What is in [[sorr")
    expect(page.locator(".offers li").first).to_contain_text("Sorrel")
    field.press("Tab")
    expect(field).to_have_value("What is in [[Sorrel]]")
    field.fill("")
    field.press_sequentially("/comp")
    expect(page.locator(".offers li").first).to_contain_text("/compact")
    field.press("Escape")
    expect(page.locator(".offers li")).to_have_count(0)
    field.fill("")
    field.press_sequentially("see @Budg")
    expect(page.locator(".offers li").first).to_contain_text("Budget")


@pytest.mark.slow
def test_a_message_that_is_sent_while_a_reply_comes_waits_visibly(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"text": "slow " * 60, "delay_s": 0.05}, {"text": "done"}))
    say(page, "First")
    page.get_by_label("Message", exact=True).fill("half")
    expect(page.locator(".turn .part.text")).to_contain_text("slow")
    expect(page.get_by_label("Message", exact=True)).to_have_value("half")
    say(page, "Second")
    expect(page.locator(".waits")).to_contain_text("Second")
    expect(page.locator("article.user .body")).to_have_text(["First", "Second"])
    expect(page.locator("article.assistant .body").last).to_have_text("done")
    expect(page.locator(".waits")).to_have_count(0)


@pytest.mark.slow
def test_conversations_are_searched_renamed_hidden_and_thrown_away(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"text": "The capstan is blue."}))
    say(page, "Tell me about it")
    expect(page.locator("article.assistant")).to_have_count(1)
    entry = page.locator(".conversations li").first
    entry.locator("summary").click()
    entry.get_by_role("button", name="Rename").click()
    page.get_by_label("Title").fill("Deck gear")
    page.keyboard.press("Enter")
    expect(page.locator(".conversations .title").first).to_have_text("Deck gear")
    page.get_by_label("Search conversations").fill("capstan")
    hit = page.locator(".conversations .hit")
    expect(hit.first).to_contain_text("capstan")
    hit.first.click()
    expect(page.locator(".item.found")).to_have_count(1)
    page.get_by_label("Search conversations").fill("")
    expect(hit).to_have_count(0)
    entry = page.locator(".conversations li").first
    entry.locator("summary").click()
    entry.get_by_role("button", name="Hide").click()
    expect(page.locator(".told")).to_contain_text("is hidden")
    expect(page.locator(".conversations .title")).to_have_count(0)
    page.get_by_role("button", name="Take back").click()
    entry = page.locator(".conversations li").first
    expect(entry.locator(".title")).to_have_text("Deck gear")
    if not entry.locator("details[open]").count():
        entry.locator("summary").click()
    entry.get_by_role("button", name="Move to the trash").click()
    expect(page.locator(".told")).to_contain_text("in the trash")
    expect(page.locator(".empty")).to_be_visible()
    page.get_by_label("Which conversations").select_option("Trash")
    expect(page.locator(".conversations .title")).to_have_text("Deck gear")


@pytest.mark.slow
def test_keys_do_what_their_list_says(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve())
    say(page, "Hello")
    expect(page.locator("article.assistant")).to_have_count(1)
    page.keyboard.press("Alt+r")
    expect(page.get_by_role("tabpanel")).to_contain_text("What was sent for #2")
    page.keyboard.press("Escape")
    expect(page.get_by_role("tabpanel")).to_have_count(0)
    page.keyboard.press("Alt+n")
    expect(page.locator(".empty")).to_be_visible()
    page.get_by_role("log").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
    shot(page, "keys")
    page.keyboard.press("Escape")
    page.keyboard.press("Alt+ArrowDown")
    expect(page.locator("article.user .body")).to_have_text("Hello")


@pytest.mark.slow
def test_a_tool_asks_with_its_arguments_before_it_runs(serve: Serve, open_page: OpenPage, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    server = {"command": sys.executable, "args": [str(PLAIN)], "approval": "ask"}
    (tmp_path / "home" / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": server}}))
    call = {"name": "plain__add", "arguments": {"a": 40, "b": 2}, "id": "c1"}
    page = open_page(serve({"tool_calls": [call]}, {"text": "done"}, vault=None))
    say(page, "Add them")
    question = page.locator(".asks")
    expect(question).to_contain_text("plain:add")
    expect(question.locator("pre")).to_contain_text('"a": 40')
    shot(page, "approval")
    question.get_by_role("button", name="Allow").click()
    expect(page.locator("article.assistant .body").last).to_have_text("done")
    expect(page.locator("article.tool")).to_contain_text("you allowed it")


@pytest.mark.slow
def test_the_terminal_and_the_page_stay_in_step(serve: Serve, open_page: OpenPage) -> None:
    served = serve({"text": "from the page"})
    page = open_page(served)
    say(page, "Hello from the page")
    expect(page.locator("article.assistant")).to_have_count(1)
    served.run("ask", "--continue", *served.options, "Hello from the terminal")
    expect(page.locator("article.user .body").last).to_have_text("Hello from the terminal")
    expect(page.locator("article.assistant")).to_have_count(2)
    say(page, "And on")
    expect(page.locator("article.user")).to_have_count(3)
    expect(page.locator("article.assistant")).to_have_count(3)
