"""`recto serve --web`: the endpoint's server shows a page too, and each key sees its own conversations alone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.cli.conftest import Run, failure
from tests.cli.preloaded import Preloaded
from tests.web.conftest import VAULT, Served, say, shot
from tests.web.test_composer import PIXEL

from recto.base.ids import new_id
from recto.base.locations import STORE_FILE
from recto.store.store import Store

SECRET = "the combination of the harbour safe is 4711"


class SharedServer(Served):
    """A running `recto serve --web`."""

    told = re.compile(r"the page is at (http://\S+?)/:")

    def __init__(self, starter: Preloaded, home: Path) -> None:
        self.home, self.script = home, f"scripted:{home / 'script.json'}"
        (home / "script.json").write_text(json.dumps({"steps": [{"text": "Fine."}]}))
        self.command = ("serve", "--web", "--port", "0", "--model", self.script, "--web-host", "recto.example.com")
        self.renew_keys()
        super().__init__(starter, home)

    def renew_keys(self) -> None:
        """New keys of Anna and Ben, who have no conversation yet."""
        with Store(self.home / STORE_FILE) as store:
            self.names = {name: f"{name}-{new_id()}" for name in ("anna", "ben")}
            self.keys = {name: store.access_keys.add(full)[1] for name, full in self.names.items()}

    def ask(self, name: str, content: Any, **headers: str) -> httpx2.Response:
        """As a program with the key of this name."""
        body = {"model": "recto", "messages": [{"role": "user", "content": content}]}
        headers |= {"authorization": f"Bearer {self.keys[name]}"}
        return httpx2.post(f"{self.link}/v1/chat/completions", json=body, headers=headers, timeout=60)

    def get(self, path: str, key: str = "", **headers: str) -> httpx2.Response:
        """As a browser that was signed in with this key."""
        cookie = {"cookie": f"recto-serve-{self.port}={key}"} if key else {}
        return httpx2.get(f"{self.link}{path}", headers={"accept": "text/html"} | cookie | headers, timeout=60)


@pytest.fixture(scope="module")
def running_server(tmp_path_factory: pytest.TempPathFactory, preloaded_page: Preloaded) -> Iterator[SharedServer]:
    server = SharedServer(preloaded_page, tmp_path_factory.mktemp("shared"))
    yield server
    server.end()


@pytest.fixture
def server(running_server: SharedServer) -> SharedServer:
    """One server for all tests, as it is for its users; two keys for each test."""
    running_server.renew_keys()
    return running_server


FORGED = """(name) => {
  const button = document.createElement("button");
  Object.assign(button.dataset, {do: name, size: "tiny", model: "embedded:smollm2"});
  document.querySelector(".chat-head").append(button);
  button.click();
}"""


def sign_in(browser: Browser, server: SharedServer, name: str, path: str = "/") -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(f"{server.link}/")
    page.get_by_label("Your key for this server").fill(server.keys[name])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Message", exact=True).wait_for()
    if path != "/":
        page.goto(f"{server.link}{path}")
    return page


def test_neither_key_sees_the_others_conversations(browser: Browser, server: SharedServer) -> None:
    anna, ben = sign_in(browser, server, "anna"), sign_in(browser, server, "ben")
    say(anna, SECRET)
    expect(anna.locator("article.assistant")).to_contain_text("Fine.")
    expect(anna.locator(".conversations")).to_contain_text("harbour safe")
    shot(anna, "shared")
    expect(ben.locator(".conversations")).not_to_contain_text("harbour")
    # by search
    ben.get_by_label("Search").fill("harbour safe")
    expect(ben.locator(".conversations")).to_contain_text("No title")
    anna.get_by_label("Search").fill("harbour safe")
    expect(anna.locator(".conversations")).to_contain_text("4711")
    # by number and by id
    number = int(anna.url.rpartition("/")[2])
    ben.goto(f"{server.link}/c/{number}")
    expect(ben.get_by_role("alert")).to_contain_text(f"there is no conversation {number}")
    assert "4711" not in ben.content()
    found = json.loads(server.run("conversations", "list", "--json").splitlines()[0])
    ben.goto(f"{server.link}/c/{found['id']}")
    expect(ben.get_by_role("alert")).to_contain_text("there is no conversation")
    # by statistics
    ben.goto(f"{server.link}/stats?c={number}")
    ben.locator("main h1").wait_for()
    expect(ben.locator(".failure")).to_contain_text("there is no conversation")
    assert "harbour" not in ben.content()


def test_a_key_sees_what_its_programs_say_and_goes_on_there(browser: Browser, server: SharedServer) -> None:
    told = server.ask("anna", "The keel was laid in March.")
    assert told.status_code == 200
    page = sign_in(browser, server, "anna")
    page.locator(".conversations").get_by_text("The keel was laid").first.click()
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    say(page, "And launched in June.")
    expect(page.locator("article.assistant")).to_have_count(2)
    assert (
        server.ask("ben", "Hello", **{"x-recto-conversation": told.headers["x-recto-conversation"]}).status_code == 200
    )
    expect(page.locator("article.assistant")).to_have_count(2)


def test_nothing_of_the_machine_and_its_owner_is_there(browser: Browser, server: SharedServer) -> None:
    server.run("memory", "add", "The owner keeps bees.")
    server.run("ask", "--model", server.script, "A word of the owner about bees.")
    page = sign_in(browser, server, "anna")
    expect(page.locator(".conversations")).not_to_contain_text("bees")
    page.get_by_text("More").click()
    assert page.locator(".menu.views a").all_text_contents() == ["Statistics", "Sign out"]
    for path in ("/memory", "/settings", "/sources", "/models", "/graph", "/whatif"):
        assert server.get(path, server.keys["anna"]).status_code == 404
    assert server.get("/vault-image?path=x.png", server.keys["anna"]).status_code == 404
    # a file of the folder that the server runs in
    note = next(VAULT.rglob("*.md")).relative_to(VAULT)
    say(page, f"What do @{note} and bees say?")
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    page.get_by_role("button", name="Context").first.click()
    expect(page.locator("aside")).to_contain_text("What was sent")
    assert "keeps bees" not in page.content()
    page.get_by_role("button", name="Raw").click()
    expect(page.locator("aside pre")).to_contain_text(f'"content": "What do @{note} and bees say?"')
    say(page, "/remember the owner is a fool")
    expect(page.get_by_role("alert")).to_contain_text("belongs to the owner of the server")
    say(page, "/model scripted:/etc/passwd")
    expect(page.get_by_role("alert")).to_contain_text("There is no model")


def test_a_guest_neither_downloads_models_nor_chooses_for_others(browser: Browser, server: SharedServer) -> None:
    page = sign_in(browser, server, "anna")
    expect(page.locator(".empty")).to_be_visible()
    expect(page.get_by_role("button", name="Download")).to_have_count(0)
    for deed in ("use-built-in", "download", "use-model", "choose-model"):
        page.evaluate(FORGED, deed)
    say(page, "Hello")
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    expect(page.locator(".download")).to_have_count(0)
    assert not (server.home / "config.toml").exists()


def test_a_picture_of_one_key_is_no_picture_of_another(server: SharedServer) -> None:
    content = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ]
    assert server.ask("anna", content).status_code == 200
    listed = json.loads(server.run("conversations", "show", "--json").splitlines()[0])
    message = (listed.get("messages") or [listed])[0]["id"]
    assert server.get(f"/attached?message={message}&block=1", server.keys["anna"]).status_code == 200
    assert server.get(f"/attached?message={message}&block=1", server.keys["ben"]).status_code == 404
    assert server.get("/attached?message=%231&block=1", server.keys["ben"]).status_code == 404


def test_nobody_gets_in_without_a_key_from_another_site_or_under_another_name(server: SharedServer) -> None:
    anna, proxy = server.keys["anna"], {"host": "recto.example.com"}
    assert "Sign in" in server.get("/").text
    for key, headers, status in (
        ("", {}, 401),
        ("recto-unknown", {}, 401),
        ("", {"accept": "*/*"}, 403),
        (anna, {}, 200),
        (anna, {"host": "evil.example"}, 403),
        (anna, {"origin": "https://evil.example"}, 403),
        (anna, proxy, 200),
        (anna, proxy | {"origin": "https://recto.example.com"}, 200),
    ):
        assert server.get("/", key, **headers).status_code == status
    policy = server.get("/", anna).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    place, own = f"{server.link}/sign-in", {"origin": server.link}
    away = httpx2.post(place, headers={"origin": "https://evil.example"}, data={"key": anna}, timeout=60)
    wrong = httpx2.post(place, headers=own, data={"key": "recto-x"}, timeout=60)
    for refused in (away, wrong):
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    signed_in = httpx2.post(place, headers=own, data={"key": anna}, timeout=60)
    assert signed_in.status_code == 303
    assert all(word in signed_in.headers["set-cookie"].lower() for word in ("httponly", "samesite=strict"))
    # programs are served as before
    assert httpx2.get(f"{server.link}/health", timeout=60).status_code == 200
    assert server.ask("anna", "Hello").status_code == 200


def test_a_key_that_is_removed_opens_nothing_more(browser: Browser, server: SharedServer) -> None:
    page = sign_in(browser, server, "anna")
    say(page, "Hello")
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    server.run("serve", "keys", "remove", server.names["anna"])
    say(page, "Are you there?")
    expect(page.locator(".place.chat").get_by_role("alert").first).to_contain_text("The key of this page was removed")
    page.goto(f"{server.link}/")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()


def test_signing_out_forgets_the_key(browser: Browser, server: SharedServer) -> None:
    page = sign_in(browser, server, "anna")
    page.get_by_text("More").click()
    page.get_by_role("link", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    shot(page, "sign-in")
    assert page.context.cookies() == []


def test_the_page_needs_keys(run: Run) -> None:
    assert "--web needs keys" in failure(run("serve", "--web", "--open", "--port", "0"))
