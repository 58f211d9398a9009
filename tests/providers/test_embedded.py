"""The embedded model for real: it answers, counts, keeps quiet, and ends with its process."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from recto.chat.blocks import Text
from recto.errors import Invalid, NotFound, Overflow
from recto.providers.catalog import ModelCatalog
from recto.providers.embedded import EmbeddedProvider, Running, _running, _stop_all, give_back, take
from recto.providers.model import Done, ReplyPart, TextPart
from recto.weights import named
from recto.window.request import Entry, Parameters, Piece

NOWHERE = Path("/nonexistent")
TINY = named("tiny")


@pytest.fixture(scope="module", autouse=True)
def let_go() -> Iterator[None]:
    """A process keeps its servers for good, hundreds of megabytes with one window each: not while others are tested."""
    yield
    _stop_all()


def embedded(home: Path = NOWHERE, window: int | None = None) -> EmbeddedProvider:
    return EmbeddedProvider(ModelCatalog(home, None), window)


def pieces(provider: EmbeddedProvider, text: str, max_tokens: int = 12) -> list[Piece]:
    asked = Parameters(max_tokens=max_tokens, temperature=0.0)
    preamble = provider.format.preamble("smollm2", asked, "Be brief.", [])
    said = provider.format.entry(Entry("user", (Text(text),)), provider.name)
    message = [piece for data in said for piece in (Piece("join", b","), Piece("message", data))]
    return [*preamble, *message, provider.format.closing(asked)]


async def answered(provider: EmbeddedProvider, body: Sequence[Piece]) -> list[ReplyPart]:
    return [part async for part in provider.stream(b"".join(piece.data for piece in body), "reply")]


async def test_it_answers_counts_what_it_reports_and_caches_a_prefix() -> None:
    provider = embedded()
    model = await provider.model("embedded:smollm2")
    question = "What is the capital of France? Answer in one sentence."
    body = pieces(provider, question)
    parts = await answered(provider, body)
    counter = await provider.counter(model)
    counts = await counter.count(body)
    again = (await answered(provider, pieces(provider, question, 1)))[-1]
    await provider.close()
    assert "Paris" in "".join(part.text for part in parts if isinstance(part, TextPart))
    done = parts[-1]
    assert isinstance(done, Done)
    assert done.usage is not None
    assert done.usage.input == sum(count.tokens for count in counts) + counter.priming.tokens
    assert all(count.exact for count in counts)
    assert counter.without_system.tokens > 0
    assert counter.note is None
    assert isinstance(again, Done)
    assert again.usage is not None
    assert again.usage.cache_read > 10, "a warm prefix is reported as cached"


def test_a_process_has_one_server_for_all() -> None:
    found: list[Running] = []
    threads = [threading.Thread(target=lambda: found.append(take(TINY, 512))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(running is found[0] for running in found)


def test_a_server_that_is_let_go_as_soon_as_it_has_started_ends() -> None:
    take(TINY, 300)
    _stop_all()  # it would hang here


def wait_until_let_go(window: int) -> None:
    while any(known == window for _, known in _running):
        time.sleep(0.01)


def test_an_idle_model_is_let_go_and_starts_again_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recto.providers.embedded.IDLE_S", 0.05)
    provider = embedded(window=300)

    async def act() -> None:
        body = pieces(provider, "Hello", 1)
        counter = await provider.counter(await provider.model("smollm2"))
        await asyncio.to_thread(wait_until_let_go, 300)
        assert all(count.exact for count in await counter.count(body))
        assert isinstance((await answered(provider, body))[-1], Done)
        await provider.close()

    asyncio.run(act())
    taken = take(TINY, 300)
    threading.Event().wait(0.2)
    assert taken in _running.values()
    give_back(taken)


def test_it_listens_on_loopback_and_to_nobody_without_the_key() -> None:
    import httpx2

    running = take(TINY, 512)
    assert running.address.startswith("http://127.0.0.1:")
    with httpx2.Client(base_url=running.address, trust_env=False, timeout=60) as stranger:
        assert stranger.get("/props").status_code == 401
        assert stranger.post("/v1/chat/completions", json={"messages": []}).status_code == 401


async def test_the_window_of_the_settings_is_the_servers_and_too_much_overflows() -> None:
    provider = embedded(window=512)
    model = await provider.model("smollm2")
    assert (model.window, model.window_from) == (512, "settings")
    try:
        with pytest.raises(Overflow):
            await answered(provider, pieces(provider, "word " * 600))
    finally:
        await provider.close()


@pytest.mark.parametrize("window", [0, 255, 8193, -1])
def test_a_window_it_cannot_have_is_named(window: int) -> None:
    with pytest.raises(Invalid, match="from 256 to 8192"):
        asyncio.run(embedded(window=window).model("smollm2"))


def test_without_weights_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECTO_MODELS", str(tmp_path))
    provider = embedded(tmp_path)
    with pytest.raises(NotFound, match="recto models pull smollm2"):
        asyncio.run(answered(provider, pieces(provider, "Hello")))


def test_without_xllamacpp_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(NotFound, match=r"pip install 'recto-context\[embedded\]'"):
        take(TINY, 300)


BARE = """
import sys
for name in ("xllamacpp", "onnxruntime", "psycopg"):
    sys.modules[name] = None
from recto.cli.main import recto
recto({command})
"""


def bare(*command: str) -> "subprocess.CompletedProcess[str]":
    """A command where none of the extras is installed."""
    code = BARE.replace("{command}", repr(list(command)))
    environment = {name: value for name, value in os.environ.items() if name != "RECTO_SEARCH_EMBEDDER"}
    environment["RECTO_MODELS"] = str(NOWHERE)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)


def test_without_extras_one_message_says_all_that_is_missing_and_what_helps() -> None:
    done = bare("ask", "Hello")
    assert (done.returncode, done.stdout) == (1, "")
    told = done.stderr.splitlines()[-1]
    for part in ("xllamacpp", "1,117 MB", "onnxruntime", "Universal Sentence Encoder", "OPENAI_API_KEY"):
        assert part in told
    for command in (
        "pip install 'recto-context[embedded]' && recto models pull qwen2.5-coder-1.5b",
        "recto-context[meaning]",
    ):
        assert command in told


@pytest.mark.slow
def test_without_extras_everything_else_works(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"text": "She is called Sorrel."}]')
    assert bare("ask", "-m", f"scripted:{script}", "What is the boat called?").stdout == "She is called Sorrel.\n"
    found = bare("conversations", "search", "boat")
    assert "boat" in found.stdout
    assert "words only" in found.stderr
    assert bare("request", "verify", "--all").stdout.startswith("ok ")


def test_weights_that_cannot_be_loaded_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECTO_MODELS", str(tmp_path))
    path = TINY.path(TINY.files[0])
    path.parent.mkdir()
    path.touch()
    os.truncate(path, TINY.bytes)
    with pytest.raises(Invalid, match=r"cannot be loaded. Run `recto models pull smollm2`"):
        take(TINY, 512)
    assert capfd.readouterr() == ("", "")


QUIET = """
import asyncio, contextlib, pathlib
from recto.providers.catalog import ModelCatalog
from recto.providers.embedded import EmbeddedProvider
from recto.errors import Overflow, Refused

async def main():
    provider = EmbeddedProvider(ModelCatalog(), 512)
    head = b'{"model":"smollm2","stream":true,"messages":['
    user = b'{"role":"user","content":"Write a long story about the sea."}'
    for body, error in ((head + b'7]}', Refused), (head + user.replace(b"Write", b"word " * 900) + b']}', Overflow)):
        try:
            async for part in provider.stream(body, "reply"):
                raise SystemExit("an answer to nonsense")
        except error:
            pass
    async for part in provider.stream(head + user + b'],"max_tokens":4}', "reply"):
        pass
    async with contextlib.aclosing(provider.stream(head + user + b']}', "reply")) as reply:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(anext(reply), 2)
        END
    await provider.close()
"""


@pytest.mark.parametrize(
    "end", ["pass", *(pytest.param(end, marks=pytest.mark.slow) for end in ("return", "raise SystemExit(0)"))]
)
def test_it_prints_nothing_and_ends_cleanly(end: str) -> None:
    """Whether the provider is closed, left open, or in the middle of a reply."""
    code = QUIET.replace("END", end) + "\nasyncio.run(main())\n"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
