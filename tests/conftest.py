"""Real parts, small: a home in a temporary folder and models that answer from a script."""

import asyncio
import gc
import json
import os
import signal
import threading
from collections.abc import Callable, Collection, Coroutine, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.cluster import find_programs, throwaway_cluster
from coverage import Coverage
from hypothesis import settings as hypothesis_settings
from tests.cli.preloaded import Preloaded
from tests.providers.conftest import Loopback

from recto.api.blocking import Desk, open_desk

_ASKED = os.environ.get("RECTO_EXAMPLES", "")


def examples(all: int, few: int = 20) -> int:
    """How often a law is tried: RECTO_EXAMPLES says "all" or a number, without it a few must do."""
    if not _ASKED:
        return min(all, few)
    return all if _ASKED == "all" else int(_ASKED)


# no test asserts a time, not even through the property tests; the few examples are the same on every machine
hypothesis_settings.register_profile("recto", deadline=None, max_examples=examples(100), derandomize=not _ASKED)
hypothesis_settings.load_profile("recto")

Open = Callable[..., Desk]
Script = Callable[..., str]
Serve = Callable[..., Loopback]


def mostly_slow(values: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Of many examples of one promise a few run in `make test`, and all in `make test-all`."""
    return [each if each in quick else pytest.param(each, marks=pytest.mark.slow) for each in values]


def pytest_configure() -> None:
    gc.disable()  # until all tests are collected: nothing of that is garbage
    _handle_ignored_signals()


def _handle_ignored_signals() -> None:
    """A shell ignores SIGINT for background jobs, and `nohup` SIGHUP; processes started by tests would inherit that.

    A handler, unlike an ignored signal, is not inherited.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs laws and tests marked `untraced` without coverage: it doubles their time and finds no new lines there."""
    tracing = Coverage.current()
    if tracing is None or not any(item.get_closest_marker(name) for name in ("hypothesis", "untraced")):
        return (yield)
    tracing.stop()
    try:
        return (yield)
    finally:
        tracing.start()


@pytest.fixture(autouse=True)
def quiet_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting, key or server of the machine that runs the tests reaches them."""
    for name in list(os.environ):
        # a process that a test starts is not measured: that takes twice as long, and coverage listens to signals too
        if name.startswith(("RECTO_", "COVERAGE_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RECTO_HOME", str(tmp_path / "home"))
    # the real embedder has tests of its own: opening it in every other one would take longer than the test
    monkeypatch.setenv("RECTO_SEARCH_EMBEDDER", "none")
    monkeypatch.setenv("RECTO_STORE_BACKUP", "off")  # has tests of its own
    monkeypatch.setenv("RECTO_CONTEXT_COUNT_AT_PROVIDER", "off")  # as has this
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def real_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    """MiniLM as it is installed; on a busy machine it takes longer to open than a user would wait."""
    monkeypatch.delenv("RECTO_SEARCH_EMBEDDER")
    monkeypatch.setenv("RECTO_SEARCH_TIMEOUT_S", "60")


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a script and gives the name of the model that speaks it."""
    written = iter(range(1000))

    def write(*steps: dict[str, Any], limit: int | None = None, **besides: Any) -> str:
        path = tmp_path / f"script{next(written)}.json"
        more = besides | ({"limit": limit} if limit else {})
        path.write_text(json.dumps({**more, "steps": steps} if more else list(steps)))
        return f"scripted:{path}"

    return write


@pytest.fixture(params=["scripted", pytest.param("embedded", marks=pytest.mark.slow)])
def any_model(request: pytest.FixtureRequest, script: Script, monkeypatch: pytest.MonkeyPatch) -> str:
    """What examples and README show with an embedded model: the smallest, and a quick one in its place."""
    monkeypatch.setenv("RECTO_MODEL", "embedded:smollm2")
    if request.param == "scripted":
        answers = [{"text": "She was built in 1934."}] * 50
        monkeypatch.setenv("RECTO_MODEL", script(*answers, {"text": "They talked of a boat.", "when": "summary"}))
    return str(request.param)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Open]:
    """Opens desks on one home and closes them at the end."""
    opened: list[Desk] = []

    def make(model: str | None, vault: Path | None = None, **settings: Any) -> Desk:
        made = open_desk(
            home=tmp_path / "home",
            model=model,
            vault=vault,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        )
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.close()


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """Starts commands at terminals."""
    started = Preloaded()
    yield started
    started.close()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers on loopback that run beside the test."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    servers: list[Loopback] = []

    def wait(work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    def start(*answers: Any, **more: Any) -> Loopback:
        servers.append(Loopback(*answers, **more))
        wait(servers[-1].__aenter__())
        return servers[-1]

    yield start
    for server in servers:
        wait(server.__aexit__(None, None, None))
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """A PostgreSQL server of the tests' own, on a Unix socket; a call makes an empty database and gives its URL."""
    if (programs := find_programs()) is None:
        pytest.skip("no PostgreSQL server is installed here; `make test-all` installs one")
    pytest.importorskip("psycopg", reason="psycopg is not installed here; requirements/dev.txt has it")
    with throwaway_cluster(programs) as make:
        yield make
