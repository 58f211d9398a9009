"""The page as its users have it: `recto web` in a process of its own, and a real browser in front of it."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright import sync_api
from playwright.sync_api import Browser, ConsoleMessage, Page
from tests.cli.conftest import run as run
from tests.cli.preloaded import Preloaded

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
SHOTS = os.environ.get("RECTO_SHOTS")
"""A folder for pictures of the page, to look at; none are made without it."""
VAULT = Path(__file__).parents[2] / "examples" / "vault"
# Nothing here asserts a time: a machine under load answers late.
sync_api.expect.set_options(timeout=30_000)


class Served:
    """A running `recto web`."""

    command: tuple[str, ...] = ("web", "--no-open")
    told = re.compile(r"listens on (\S+)")
    """What tells its link."""

    def __init__(self, starter: Preloaded, home: Path, *options: str) -> None:
        self.starter, self.home, self.options = starter, home, options
        settings = {"RECTO_HOME": str(home), "RECTO_SEARCH_EMBEDDER": "none", "RECTO_STORE_BACKUP": "off"}
        self.environment = os.environ | settings
        self._start()

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)", self.link)
        assert found
        return int(found[1])

    def _start(self, *at: str) -> None:
        folder = VAULT if "serve" in self.command else None
        command = (*self.command, *at, *self.options)
        self.process = self.starter.start_piped(*command, environment=self.environment, folder=folder)
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if found := self.told.search(line):
                self.link = found[1]
                return
        raise AssertionError("".join(lines))

    def restart(self) -> None:
        port = str(self.port)
        self.end()
        self._start("--port", port)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def run(self, *command: str) -> str:
        """Another command over the same home."""
        running = self.starter.start_piped(*command, environment=self.environment)
        told, code = running.stdout.read(), running.wait()
        running.end()
        assert code == 0, told
        return told


Serve = Callable[..., Served]


@pytest.fixture(scope="session")
def preloaded_page() -> Iterator[Preloaded]:
    """Starts pages; importing what draws one takes longer than most tests of it."""
    started = Preloaded("recto.web.server")
    yield started
    started.close()


@pytest.fixture
def serve(tmp_path: Path, preloaded_page: Preloaded) -> Iterator[Serve]:
    """Starts the page over a home, with a model that answers from these steps."""
    running: list[Served] = []

    def start(*steps: dict[str, Any], vault: Path | None = VAULT, script: dict[str, Any] | None = None) -> Served:
        file = tmp_path / "script.json"
        file.write_text(json.dumps((script or {}) | {"steps": list(steps or [{"text": "Fine."}])}))
        options = ["--model", f"scripted:{file}", *(("--vault", str(vault)) if vault else ())]
        running.append(Served(preloaded_page, tmp_path / "home", *options))
        return running[-1]

    yield start
    for each in running:
        each.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module, of which no test runs an event loop: that of the browser runs as long as it is open."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium: `apt-get install chromium`")
    with sync_api.sync_playwright() as playwright:
        try:
            made = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except sync_api.Error as why:
            pytest.skip(f"chromium does not start here: {why.message.splitlines()[0]}")
        yield made
        made.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens the page in a browser of its own. Whatever goes wrong in it fails the test."""
    contexts, wrong = [], []

    def open(
        served: Served,
        *,
        width: int = 1280,
        height: int = 800,
        path: str = "/",
        allows: str = "ERR_CONNECTION_REFUSED",
        **options: Any,
    ) -> Page:
        """`allows`: what the browser may complain about; a server that is restarted is away for a moment."""
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()

        def hear(told: ConsoleMessage) -> None:
            if told.type == "error" and allows not in told.text:
                wrong.append(told.text)

        page.on("console", hear)
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("request", lambda asked: wrong.append(asked.url) if not _is_local(asked.url, served) else None)
        page.goto(served.link.replace("/?", f"{path}?"))
        is_chat = path == "/" or path.startswith("/c/")
        (page.get_by_label("Message", exact=True) if is_chat else page.locator("main h1")).wait_for()
        return page

    yield open
    for context in contexts:
        context.close()
    assert wrong == []


def _is_local(url: str, served: Served) -> bool:
    return url.startswith((f"http://127.0.0.1:{served.port}/", "data:", "blob:"))


def say(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()  # Enter would take what is offered for a command


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"))
