"""The built-in models are chosen on the page, and downloaded there when they are not on this machine."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.cli.preloaded import Preloaded
from tests.web import small_weights
from tests.web.conftest import OpenPage, Served, shot
from tests.web.small_weights import CONTENT

from recto.settings.settings import load

SMALL = "embedded:qwen2.5-coder-0.5b"
HALF = len(CONTENT) // 2


class Hub:
    """Sends half of a file at once, then a byte now and then, and the rest when it may."""

    def __init__(self) -> None:
        self.may_go_on, self.content, self.status = threading.Event(), CONTENT, 200
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.headers.get("range", ""))
                begin = int((outer.asked[-1] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
                rest = outer.content[begin:] if outer.status == 200 else b""
                self.send_response(206 if begin and rest else outer.status)
                self.send_header("content-length", str(len(rest)))
                if begin:
                    self.send_header("content-range", f"bytes {begin}-{len(CONTENT) - 1}/{len(CONTENT)}")
                self.end_headers()
                sent = max(0, HALF - begin)
                with suppress(OSError):  # the download was stopped
                    self.wfile.write(rest[:sent])
                    while rest[sent:] and not outer.may_go_on.wait(0.1):
                        self.wfile.write(rest[sent : sent + 1])
                        sent += 1
                    self.wfile.write(rest[sent:])

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.may_go_on.set()
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.close()


@pytest.fixture(scope="module")
def preloaded_small() -> Iterator[Preloaded]:
    started = Preloaded("recto.web.server", small_weights.__file__)
    yield started
    started.close()


@pytest.fixture
def served(tmp_path: Path, hub: Hub, preloaded_small: Preloaded, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("RECTO_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{hub.http.server_port}")
    monkeypatch.delenv("RECTO_MODEL", raising=False)
    made = Served(preloaded_small, tmp_path / "home")
    yield made
    made.end()


def begin_download(page: Page) -> None:
    page.get_by_role("button", name="Download and use the small model").click()


def test_a_download_is_seen_everywhere_goes_on_where_it_was_stopped_and_its_model_answers(
    served: Served, hub: Hub, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(served)
    expect(page.locator(".chat-head .model")).to_have_text("embedded:qwen2.5-coder-1.5b")
    begin_download(page)
    expect(page.locator(".download")).to_contain_text("1 of 3 MB")
    shot(page, "download")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".download")).to_have_count(0)
    begin_download(page)
    expect(page.locator(".download")).to_contain_text("of 3 MB")
    # whoever leaves finds it again, also elsewhere
    page.close()
    other = open_page(served)
    expect(other.locator(".download")).to_contain_text("of 3 MB")
    expect(other.get_by_role("button", name="Download and use the tiny model")).to_be_disabled()
    chat = open_page(served)
    hub.may_go_on.set()
    expect(chat.locator(".notice")).to_contain_text(f"{SMALL} answers in new conversations")
    expect(chat.locator(".chat-head .model")).to_have_text(SMALL)
    expect(other.locator(".download")).to_have_count(0)
    assert load(tmp_path / "home").model == SMALL
    assert hub.asked[0] == ""
    assert hub.asked[1].startswith("bytes=")


def test_a_download_that_fails_says_why_and_does_not_hold_up_the_end_of_the_page(
    served: Served, hub: Hub, open_page: OpenPage
) -> None:
    page = open_page(served)
    failure = page.locator(".download .failure")
    hub.may_go_on.set()
    hub.status = 404
    begin_download(page)
    expect(failure).to_contain_text("Check the network, then try again")
    hub.status, hub.content = 200, CONTENT[::-1]
    page.get_by_role("button", name="Try again").click()
    expect(failure).to_contain_text("No source has the expected small.gguf")
    shot(page, "download-failed")
    hub.content = CONTENT
    hub.may_go_on.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".download")).to_contain_text("1 of 3 MB")
    page.close()  # it would complain that its server is gone
    served.process.terminate()
    assert served.process.wait() == 0


@pytest.mark.slow
def test_a_conversation_whose_model_is_not_here_offers_it(served: Served, hub: Hub, open_page: OpenPage) -> None:
    hub.may_go_on.set()
    with suppress(AssertionError):  # its model is not here
        served.run("ask", "--model", "tiny", "Hello")
    page = open_page(served, path="/c/1")
    page.get_by_label("Message", exact=True).fill("/model small")
    page.keyboard.press("Enter")
    expect(page.locator(".chat-head .model")).to_have_text(SMALL)
    page.get_by_role("button", name="Download the small model").click()
    expect(page.locator(".download")).to_have_count(0)
    page.goto(f"http://127.0.0.1:{served.port}/")
    expect(page.locator(".chat-head .model")).to_have_text("embedded:qwen2.5-coder-1.5b")
