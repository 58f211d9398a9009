"""The page in a real browser: how soon it can be used, how a long conversation opens, how soon a word is on the screen.

Needs chromium and playwright; each figure stands beside its goal. 20 tabs stream at once from one server.
"""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show
from recto.api.blocking import open_desk
from recto.api.desk import open_async
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import Message, now
from recto.reports.transcript import TranscriptEntry

MESSAGES, TABS, WORDS = 10_000, 20, 200
DELAY_S = 0.02
USABLE_S, OPENS_S, WORD_S, TRANSFER, RSS, METER_S = 1.5, 1.0, 0.12, 2_000_000, 300_000_000, 0.15
PAGE = 60
BROWSER = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
# When each number of words was on the screen, by the browser's clock.
WATCH = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const words = (document.querySelector(".turn")?.textContent.match(/w\\d+/g) ?? []).length;
    if (words && words !== seen.at(-1)?.[1]) seen.push([(performance.timeOrigin + performance.now()) / 1000, words]);
  }).observe(document.querySelector(".turn"), {childList: true, subtree: true, characterData: true});
}"""

# Sends what is written at a moment.
SEND_AT = """at => {
  const button = document.querySelector(".composer-row > button.button:not(.quiet)");
  setTimeout(() => button.click(), Math.max(0, at * 1000 - Date.now()));
}"""


def main(quick: bool) -> None:
    if BROWSER is None:
        print("web: there is no chromium here\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = [*_alone(Path(folder)), *_words(Path(folder)), *_many(Path(folder), 5 if quick else TABS)]
    show("The page, in a browser", ("what", "figure", "goal"), rows)


def small(folder: Path) -> Iterator[Figure]:
    """Without a browser: the HTML of one page of messages."""
    from recto.web.transcript import items

    entries = [TranscriptEntry(_message(number, None)) for number in range(PAGE)]
    items(entries)
    started = time.perf_counter()
    items(entries)
    yield cost("web: HTML of 60 messages", time.perf_counter() - started)


def _alone(folder: Path) -> Iterator[tuple[str, str, str]]:
    _fill(folder)
    with _served(folder) as (link, _), _browser() as browser:
        page = browser.new_page()
        sizes: list[int] = []
        page.context.new_cdp_session(page)
        client = page.context.new_cdp_session(page)
        client.send("Network.enable")
        client.on("Network.loadingFinished", lambda event: sizes.append(int(event["encodedDataLength"])))
        started = time.perf_counter()
        page.goto(link)
        page.wait_for_function("window.did_handshake && document.querySelector('textarea')")
        usable = time.perf_counter() - started
        yield "usable after the first visit, ms", ms(usable), judged(usable, USABLE_S, f"{ms(USABLE_S)} ms")
        yield "transferred, kB", f"{sum(sizes) / 1000:,.0f}", judged(sum(sizes), TRANSFER, "2,000 kB")
        started = time.perf_counter()
        page.locator('.conversations a[data-do="open"]').first.click()
        page.wait_for_selector(".message")
        opened = time.perf_counter() - started
        yield f"{MESSAGES:,} messages open, ms", ms(opened), judged(opened, OPENS_S, f"{ms(OPENS_S)} ms")
        older = []
        for _ in range(20):
            before = page.locator(".item").count()
            started = time.perf_counter()
            page.evaluate("document.querySelector('.messages').scrollTop = 0")
            page.wait_for_function("before => document.querySelectorAll('.item').length > before", arg=before)
            older.append(time.perf_counter() - started)
        yield "60 older messages while scrolling, p95 ms", ms(Times(tuple(older)).p95), ""
        meter = [_typed(page, number) for number in range(20)]
        yield (
            "the meter after a pause, p95 ms",
            ms(Times(tuple(meter)).p95),
            judged(Times(tuple(meter)).p95, METER_S, f"{ms(METER_S)} ms"),
        )


def _typed(page: Any, number: int) -> float:
    """From the last key to the new count, without the pause that the page waits for."""
    before = page.locator(".meter-button").get_attribute("aria-label")
    page.locator(".composer textarea").fill("a few words more " * (number + 2))
    started = time.perf_counter()
    changed = "before => document.querySelector('.meter-button').getAttribute('aria-label') !== before"
    page.wait_for_function(changed, arg=before, polling=10)
    return time.perf_counter() - started - 0.1


def _words(folder: Path) -> Iterator[tuple[str, str, str]]:
    """From the moment that a word comes from the model to the moment that it is on the screen."""
    from recto.events import TextDelta
    from recto.web.live_turn import LiveTurn
    from recto.web.server import serve_page

    heard: list[tuple[float, int]] = []
    hear = LiveTurn.hear

    def noting(turn: LiveTurn, event: Any) -> bool:
        if isinstance(event, TextDelta):
            heard.append((time.time(), heard[-1][1] + event.text.count("w") if heard else event.text.count("w")))
        return hear(turn, event)

    setattr(LiveTurn, "hear", noting)  # noqa: B010  a method cannot be assigned
    links: list[str] = []

    async def run() -> None:
        async with await open_async(home=folder / "latency", model=_script(folder), settings=_quiet()) as desk:
            with socket.create_server(("127.0.0.1", 0)) as listening:
                await serve_page(desk, "127.0.0.1", listening, lambda access: links.append(access.link))

    threading.Thread(target=asyncio.run, args=(run(),), daemon=True).start()
    while not links:
        time.sleep(0.02)
    with _browser() as browser:
        page = browser.new_page()
        page.goto(links[0])
        page.wait_for_function("window.did_handshake")
        page.evaluate(WATCH)
        _say(page)
        page.wait_for_selector("article.assistant", timeout=60_000)
        seen = page.evaluate("window.seen")
    waits = []
    for at, words in heard:
        shown = next((when for when, count in seen if count >= words), None)
        if shown is not None:
            waits.append(shown - at)
    p95 = Times(tuple(waits)).p95
    yield "a word, from the model to the screen, p95 ms", ms(p95), judged(p95, WORD_S, f"{ms(WORD_S)} ms")


def _many(folder: Path, tabs: int) -> Iterator[tuple[str, str, str]]:
    """All tabs are told to send at the same moment, by their own clocks: Playwright fills in one after the other, which
    takes longer than a reply. What a tab is behind is measured against how long the server took for its reply."""
    with _served(folder) as (link, pid), _browser() as browser:
        context = browser.new_context()
        pages = [context.new_page() for _ in range(tabs)]
        for page in pages:
            page.goto(link)
            page.wait_for_function("window.did_handshake")
            page.locator(".composer textarea").fill("Tell me")
            page.evaluate(WATCH)
        used, at = _cpu_s(pid), time.time() + 1 + tabs / 10
        for page in pages:
            page.evaluate(SEND_AT, at)
        for page in pages:
            page.wait_for_selector("article.assistant", timeout=300_000)
        used, seen = _cpu_s(pid) - used, [page.evaluate("window.seen") for page in pages]
        resident = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024  # type: ignore[index]
    took, nominal = _durations(folder, tabs), WORDS * DELAY_S
    shown = [each[-1][0] - each[0][0] for each in seen]
    ends, begins = [each[-1][0] for each in seen], [each[0][0] for each in seen]
    name = f"{tabs} tabs with a reply of {nominal:.0f} s each"
    yield f"{name}: the server's time for one, first to last, s", f"{min(took):.1f} to {max(took):.1f}", ""
    yield f"{name}: from first to last word on the screen, s", f"{min(shown):.1f} to {max(shown):.1f}", ""
    yield f"{name}: first words within, last words within, s", f"{_spread(begins):.1f}, {_spread(ends):.1f}", ""
    yield f"{name}: processor time of the server, s", f"{used:.1f}", ""
    yield f"memory of the server with {tabs} tabs, MB", f"{resident / 1e6:.0f}", judged(resident, RSS, "300 MB")


def _spread(times: list[float]) -> float:
    return max(times) - min(times)


def _durations(folder: Path, number: int) -> list[float]:
    """How long the last replies took, from the request to the last word."""
    with open_desk(home=folder / "home", model=_script(folder), settings=_quiet()) as desk:
        replies = [desk.conversation(each.id).messages(limit=1)[0] for each in desk.conversations(limit=number)]
    blocks = [block for reply in replies for block in reply.blocks if isinstance(block, Text)]
    return [block.made.duration_s for block in blocks if block.made and block.made.duration_s]


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _say(page: Any) -> None:
    page.locator(".composer textarea").fill("Tell me")
    page.keyboard.press("Enter")


def _message(number: int, parent: str | None) -> Message:
    role = "user" if number % 2 == 0 else "assistant"
    text = f"Message {number} speaks of **sails**, `code` and a list:\n\n- one\n- two\n"
    return Message(new_id(), role, (Text(text),), parent, created=now())  # type: ignore[arg-type]


def _fill(folder: Path) -> None:
    with open_desk(home=folder / "home", model=_script(folder), settings=_quiet()) as desk:
        talk = desk.conversation()
        talk.ask("the beginning")
        assert talk.id is not None
        desk.asynchronous.store.tree.append_all(talk.id, (_message(number, None) for number in range(MESSAGES)))


def _quiet() -> dict[str, Any]:
    return {"search.embedder": "none", "store.backup": "off"}


def _script(folder: Path) -> str:
    file = folder / "script.json"
    words = " ".join(f"w{number}" for number in range(WORDS))
    file.write_text(json.dumps({"limit": 100_000, "steps": [{"text": words, "delay_s": DELAY_S}]}))
    return f"scripted:{file}"


@contextmanager
def _served(folder: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "recto", "web", "--no-open", "--model", _script(folder)]
    settings = {"RECTO_HOME": str(folder / "home"), "RECTO_SEARCH_EMBEDDER": "none", "RECTO_STORE_BACKUP": "off"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | settings) as process:
        assert process.stdout
        line = next(line for line in process.stdout if "listens on " in line)
        try:
            yield line.split("listens on ")[1].strip(), process.pid
        finally:
            process.terminate()


@contextmanager
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # only for the page

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()
