"""The endpoint beside litellm's proxy: the same clients, the same upstream, one process each, on loopback.

What an endpoint adds to the time until the first byte of a stream, on conversations of 200 messages: asked one request
at a time, beside the upstream without anything in front. How many requests a second one process answers. And 200
streams at once: how late their words come, and what the process weighs. `manage` stores, plans and records each
request; litellm passes on only, without a database and without logs.
"""

import asyncio
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.serve_load import Address, Client, Heard, all_at_once, one_by_one
from bench.serve_upstream import PACED, QUICK
from bench.table import Times, judged, ms, show
from bench.wire import Wire

MESSAGES, CONVERSATIONS, TURNS, QUICK_TURNS = 200, 8, 40, 8
STREAMS, WORDS, PACE_S = 200, 60, 0.1
FIRST_P50_S, FIRST_P99_S, MANAGED_A_SECOND, MEMORY, LATE_S = 0.020, 0.060, 25, 500_000_000, 1.0
PEER = "proxy"
START_S = 120
OURS = {"record": "recto, record", "manage": "recto, manage"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    port: int
    pid: int
    prefix: str
    """Of the names of models."""
    headers: tuple[str, ...] = ()

    def address(self, model: str) -> Address:
        return Address(self.port, self.prefix + model, self.headers)

    @property
    def resident(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) * 1024 if found else 0


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    first: Times
    a_second: float
    late: Times
    behind: int
    resident: int


def main(quick: bool) -> None:
    peers.install(PEER)
    turns, streams = (QUICK_TURNS, STREAMS // 4) if quick else (TURNS, STREAMS)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder, upstream(WORDS, PACE_S) as direct:
        measured = [asyncio.run(_measure(direct, turns, 0))]
        with litellm(Path(folder), direct.port) as theirs:
            measured.append(asyncio.run(_measure(theirs, turns, streams)))
        for mode, name in OURS.items():
            with recto(Path(folder) / mode, direct.port, mode, name) as ours:
                measured.append(asyncio.run(_measure(ours, turns, streams)))
    _show(measured, turns, streams)


def small(folder: Path) -> Iterator[Figure]:
    with upstream(WORDS, PACE_S) as direct, recto(folder / "home", direct.port, "manage", "recto") as ours:
        alone = asyncio.run(_first_bytes(direct, 4))
        yield cost("serve: added to the first byte", asyncio.run(_first_bytes(ours, 4)).p50 - alone.p50)


# -- what is measured


async def _measure(endpoint: Endpoint, turns: int, streams: int) -> Measured:
    first = await _first_bytes(endpoint, turns)
    a_second = await _requests(endpoint, turns)
    heard, late = list[Heard](), Times((0.0,))
    if streams:
        heard = await _streams(endpoint, streams)
        late = Times(tuple(each for one in heard for each in one.late_s))
    behind = sum(max(one.late_s[-WORDS // 10 :]) > LATE_S for one in heard)
    return Measured(endpoint.name, first, a_second, late, behind, endpoint.resident if streams else 0)


async def _first_bytes(endpoint: Endpoint, turns: int) -> Times:
    clients = _clients(endpoint, QUICK, CONVERSATIONS, "slow")
    await one_by_one(clients, 2)
    heard = await one_by_one(clients, turns // 2)
    _close(clients)
    return Times(tuple(each.first_s for each in heard))


async def _requests(endpoint: Endpoint, turns: int) -> float:
    clients = _clients(endpoint, QUICK, CONVERSATIONS, "many")
    await all_at_once(clients, 1)
    heard, took = await all_at_once(clients, turns // 2)
    _close(clients)
    return len(heard) / took


async def _streams(endpoint: Endpoint, streams: int) -> list[Heard]:
    clients = _clients(endpoint, PACED, streams, "words", messages=0)
    heard, _ = await all_at_once(clients, 1, stream=True)
    _close(clients)
    return heard


def _clients(endpoint: Endpoint, model: str, number: int, about: str, messages: int = MESSAGES) -> list[Client]:
    """Each with a history of its own, which it has from elsewhere."""
    histories = [_history(messages, f"{about} {each}") for each in range(number)]
    return [Client(endpoint.address(model), history) for history in histories]


def _history(messages: int, about: str) -> list[Wire]:
    return [{"role": role, "content": f"{about}: {text}"} for role, text in corpus.chat(messages)]


def _close(clients: Sequence[Client]) -> None:
    for client in clients:
        client.close()


# -- the processes


@contextmanager
def upstream(words: int, pace_s: float) -> Iterator[Endpoint]:
    command = [sys.executable, "-m", "bench.serve_upstream", str(words), str(pace_s)]
    root = peers.HERE.parent
    known = peers.surroundings(PYTHONPATH=str(root))
    with _process(command, known, root, None) as started:
        assert started.stdout is not None
        yield Endpoint("the upstream itself", int(started.stdout.readline()), started.pid, "")


@contextmanager
def recto(home: Path, port: int, mode: str, name: str) -> Iterator[Endpoint]:
    home.mkdir()
    known = peers.surroundings(
        PYTHONPATH=str(peers.HERE.parent / "src"), RECTO_HOME=str(home), RECTO_UP_BASE_URL=f"http://127.0.0.1:{port}/v1"
    )
    command = [sys.executable, "-m", "recto", "serve", "--open", "--port", "0", "--model", f"up:{QUICK}"]
    with _process([*command, "--mode", mode], known, home, home.parent / f"{home.name}.log") as started:
        assert started.stdout is not None
        found = re.search(r":(\d+)/v1", started.stdout.readline())
        if found is None:
            raise SystemExit("recto serve did not start; what it said is above")
        yield Endpoint(name, int(found[1]), started.pid, "up:")


@contextmanager
def litellm(folder: Path, port: int) -> Iterator[Endpoint]:
    upstream = {"api_base": f"http://127.0.0.1:{port}/v1", "api_key": "none"}
    named = [
        {"model_name": model, "litellm_params": {"model": f"openai/{model}", **upstream}} for model in (QUICK, PACED)
    ]
    config, own = folder / "litellm.yaml", _free_port()
    config.write_text(json.dumps({"model_list": named}))
    # the table of prices comes with the package: nothing is fetched
    known = peers.surroundings(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR", NO_PROXY="127.0.0.1")
    known["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"  # as ours with --open, on loopback
    command = [str(peers.bin_of(PEER) / "litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(own)]
    log = folder / "litellm.log"
    with _process([*command, "--num_workers", "1", "--telemetry", "False"], known, folder, log) as started:
        _wait(f"http://127.0.0.1:{own}/health/liveliness", started, log)
        yield Endpoint("litellm's proxy", own, started.pid, "")


@contextmanager
def _process(command: list[str], known: dict[str, str], at: Path, log: Path | None) -> Iterator[subprocess.Popen[str]]:
    with ExitStack() as files:
        told = files.enter_context(log.open("w")) if log else None
        out = told if log and log.name.startswith("litellm") else subprocess.PIPE
        started = subprocess.Popen(command, env=known, cwd=at, stdout=out, stderr=told, text=True)
        files.enter_context(started)
        try:
            yield started
        finally:
            started.send_signal(signal.SIGTERM)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return int(bound.getsockname()[1])


def _wait(url: str, started: subprocess.Popen[str], log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and started.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"litellm's proxy did not start: {log.read_text()[-500:]}")


# -- the table


def _show(measured: Sequence[Measured], turns: int, streams: int) -> None:
    direct, theirs, *_ = measured
    show(
        f"The endpoint: conversations of {MESSAGES} messages, {CONVERSATIONS * (turns // 2)} requests each way",
        ("", "first byte p50", "added", "p99", "added", "goal", "requests/s", "goal"),
        [_row(each, direct, theirs) for each in measured],
        notes=("in ms; requests one at a time for the first byte, 8 clients at once for requests a second",),
    )
    show(
        f"{streams} streams at once, {1 / PACE_S:.0f} words a second each",
        ("", "late p50 ms", "p99", "worst", "behind", "memory MB", "goal"),
        [_stream_row(each) for each in measured if each.resident],
        notes=(f"late: from the upstream to the client; behind: words at its end came more than {LATE_S:g} s late",),
    )
    print(f"  {os.cpu_count()} cores, shared by upstream, endpoint and clients\n")


def p99(times: Times) -> float:
    return sorted(times.seconds)[math.ceil(0.99 * len(times.seconds)) - 1]


def _row(one: Measured, direct: Measured, theirs: Measured) -> list[str]:
    added, most = one.first.p50 - direct.first.p50, p99(one.first) - p99(direct.first)
    is_managed, is_passed = one.name == OURS["manage"], one.name == OURS["record"]
    told = f"{ms(FIRST_P50_S)} / {ms(FIRST_P99_S)} ms"
    worse = max(added / FIRST_P50_S, most / FIRST_P99_S)
    least = MANAGED_A_SECOND if is_managed else theirs.a_second
    return [
        one.name,
        ms(one.first.p50),
        "" if one is direct else ms(added),
        ms(p99(one.first)),
        "" if one is direct else ms(most),
        judged(worse, 1.0, told) if is_managed else "",
        f"{one.a_second:,.0f}",
        judged(-one.a_second, -least, f"{least:,.0f}") if is_managed or is_passed else "",
    ]


def _stream_row(one: Measured) -> list[str]:
    told = "0 behind, 500 MB"
    return [
        one.name,
        *(ms(each) for each in (one.late.p50, p99(one.late), max(one.late.seconds))),
        str(one.behind),
        f"{one.resident / 1e6:.0f}",
        judged(one.behind + max(0.0, one.resident - MEMORY), 0.0, told) if one.name in OURS.values() else "",
    ]
