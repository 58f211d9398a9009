"""Several servers on one PostgreSQL, one of them killed again and again; a turn beside SQLite; many messages.

Clients hold conversations through `recto serve`, ask any server, and try another one when theirs dies. Goal: no message
is lost or doubled, no conversation is forked by anybody but its client, every request verifies; a turn takes at most
twice as long as on SQLite, and a turn and a search among many messages twice as long as among 100,000.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import httpx2

from bench import corpus, peers
from bench.cluster import find_programs, throwaway_cluster
from bench.figure import Figure, cost, wrong
from bench.load_messages import load_messages
from bench.table import Times, judged, ms, show
from bench.text_search import show_found, show_times
from recto.api.blocking import Desk, open_desk
from recto.api.client_turn import said_path
from recto.store.store import Store

SERVERS, CLIENTS, TURNS = 4, 6, 8
MINUTES, QUICK_MINUTES, KILL_EVERY_S = 2.0, 0.5, 60.0
FEW, MANY, QUICK_FEW, QUICK_MANY = 100_000, 1_000_000, 5_000, 20_000
QUICK_STEP = 20
WARMED, TIMED, MOST_TIMES = 20, 40, 2.0
SETTINGS = {"search.embedder": "none", "references.gists": False}
REPLY = " ".join(f"word{number}" for number in range(40))
LIMIT, WAIT_S = 4_000, 60
# As a server has it: every commit is on the disk before it is told.
DURABLE = "-c synchronous_commit=on"


def main(quick: bool, minutes: float | None = None, messages: int | None = None) -> None:
    if (programs := find_programs()) is None:
        print("scale: no PostgreSQL server is installed here")
        return
    peers.FOLDER.mkdir(exist_ok=True)
    lasts_s = 60 * (minutes if minutes is not None else QUICK_MINUTES if quick else MINUTES)
    few, many = (QUICK_FEW, QUICK_MANY) if quick else (FEW, MANY)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder, throwaway_cluster(programs, DURABLE) as new_database:
        if lasts_s:
            kill_every_s = min(KILL_EVERY_S, lasts_s / 3)
            _show_servers(run_servers(Path(folder) / "servers", new_database(), lasts_s, kill_every_s))
        _show_turn(*compare_turns(Path(folder), new_database()))
        sizes = [Size(Path(folder) / str(count), new_database(), count) for count in (few, messages or many)]
        for size in sizes:
            load_size(size)
            index_size(size)
        measure_sizes(sizes)
        _show_sizes(sizes)
        show_found(new_database(), QUICK_STEP if quick else 1)
        with _desk(sizes[0].home, sizes[0].url) as desk:
            show_times(sizes[0].url, few, desk.engine.message_index)


def small_untimed(folder: Path) -> Iterator[Figure]:
    if (programs := find_programs()) is None:
        return
    with throwaway_cluster(programs, DURABLE) as new_database:
        seen = run_servers(folder / "servers", new_database(), 8.0, 3.0)
        yield wrong("scale: messages lost or doubled", seen.lost + seen.doubled)
        yield wrong("scale: forks and requests that do not verify", seen.forked + seen.unverified)


def small(folder: Path) -> Iterator[Figure]:
    if (programs := find_programs()) is None:
        return
    with throwaway_cluster(programs, DURABLE) as new_database:
        file, server = compare_turns(folder, new_database())
        yield cost("scale: a turn on PostgreSQL", server.p50, "SQLite", file.p50)


# -- several servers


@dataclass(slots=True)
class Seen:
    """What clients sent and got, and what of it is in the store."""

    seconds: float = 0.0
    conversations: int = 0
    messages: int = 0
    kills: int = 0
    retries: int = 0
    lost: int = 0
    doubled: int = 0
    forked: int = 0
    unverified: int = 0
    requests: int = 0
    times: list[float] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    """The conversations of clients that give theirs no name, by ours, as the last reply told."""


Said = list[tuple[str, str]]
"""Roles and texts, as a client knows them."""


class Server:
    """`recto serve` with a home of its own, as on a machine of its own; started again after it was killed."""

    def __init__(self, home: Path, url: str, model: str) -> None:
        self._home, self._url, self._model = home, url, model
        self.start()

    def start(self) -> None:
        words = [sys.executable, "-m", "recto", "serve", "--open", "--port", "0", "--model", self._model]
        chosen = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={json.dumps(value)}")]
        environment = {**os.environ, "RECTO_HOME": str(self._home), "RECTO_DB": self._url}
        self._process = subprocess.Popen([*words, *chosen], stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[2]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


@contextmanager
def _servers(folder: Path, url: str) -> Iterator[list[Server]]:
    folder.mkdir(parents=True)
    script = folder / "script.json"
    steps = [
        {"text": REPLY, "delay_s": 0.004, "usage": {"input": 1000, "output": 40}},
        {"text": "They count words.", "when": "summary"},
    ]
    script.write_text(json.dumps({"limit": LIMIT, "steps": steps}), "utf-8")
    with ExitStack() as stack:
        started = []
        for number in range(SERVERS):
            started.append(Server(folder / f"home{number}", url, f"scripted:{script}"))
            stack.callback(started[-1].kill)
        yield started


def run_servers(folder: Path, url: str, lasts_s: float, kill_every_s: float) -> Seen:
    seen, said = Seen(), dict[str, Said]()
    with Store(url), _servers(folder, url) as servers, ThreadPoolExecutor(SERVERS) as pool:
        restarts: dict[int, Future[None]] = {}
        ends, began = time.monotonic() + lasts_s, time.monotonic()
        clients = [threading.Thread(target=_client, args=(n, servers, ends, seen, said)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        # by the clock: on a busy machine a server takes a while to start again, and the others are killed meanwhile
        while (at := began + (seen.kills + 1) * kill_every_s) < ends:
            time.sleep(max(0.0, at - time.monotonic()))
            number = seen.kills % SERVERS
            if number in restarts:
                restarts[number].result()
            servers[number].kill()
            seen.kills += 1
            restarts[number] = pool.submit(servers[number].start)
        for client in clients:
            client.join()
        for restart in restarts.values():
            restart.result()
        seen.seconds = time.monotonic() - began
    with Store(url) as store:
        judge_store(store, said, seen)
    return seen


def _client(number: int, servers: list[Server], ends: float, seen: Seen, said: dict[str, Said]) -> None:
    """Holds one conversation after the other, each turn at any server. Every other client names none of them: where the
    first turn dies with its server, nothing but its words tells where it belongs."""
    random, speaker, talks = Random(number), corpus.Speaker(number), 0
    with httpx2.Client(timeout=WAIT_S) as client:
        while time.monotonic() < ends:
            name, talks = f"client {number} talk {talks}", talks + 1
            own = said[name] = []
            for turn in range(TURNS):
                own.append(("user", f"{name}, turn {turn}: {speaker.message()}"))
                began = time.monotonic()
                own.append(("assistant", _asked(client, random, servers, name, own, seen)))
                seen.times.append(time.monotonic() - began)


def _asked(client: httpx2.Client, random: Random, servers: list[Server], name: str, said: Said, seen: Seen) -> str:
    """The reply of one server or, where that dies, of another."""
    body = {"model": "recto", "messages": [{"role": role, "content": text} for role, text in said]}
    is_named = int(name.split()[1]) % 2 == 0
    while True:
        at = f"{random.choice(servers).address}/chat/completions"
        try:
            response = client.post(at, json=body, headers={"x-recto-conversation": name} if is_named else {})
            if response.status_code == 200:
                if not is_named:
                    seen.homes[name] = response.headers["x-recto-conversation"]
                return str(response.json()["choices"][0]["message"]["content"])
        except httpx2.HTTPError:
            pass
        seen.retries += 1
        time.sleep(0.1)


def judge_store(store: Store, said: dict[str, Said], seen: Seen) -> None:
    """Compares what clients know with what is stored."""
    seen.conversations, seen.messages = len(said), sum(len(own) for own in said.values())
    stored = Counter[str]()
    number = 0
    while page := store.tree.after(number, most=1000):
        number = page[-1].n
        stored.update(each.message.text for each in page if each.message.role == "user")
    for name, own in said.items():
        sent = [text for role, text in own if role == "user"]
        seen.lost += sum(stored[text] == 0 for text in sent)
        seen.doubled += sum(max(0, stored[text] - 1) for text in sent)
        home = seen.homes.get(name) or store.client_messages.named("", name)
        head = store.tree.conversation(home).head if home else None
        path = [(message.role, message.text) for message in said_path(store, head) or ()]
        if path != own:
            seen.forked += 1
            seen.lost += sum(each not in path for each in own if each[0] == "assistant")
    found = list(store.records.differences(store.records.ids()))
    seen.requests, seen.unverified = len(found), sum(difference is not None for _, difference in found)


def _show_servers(seen: Seen) -> None:
    times = Times(tuple(seen.times))
    bad = seen.lost + seen.doubled
    show(
        f"{SERVERS} servers on one PostgreSQL for {seen.seconds:.0f} s, {seen.kills} killed",
        ("", "figure", "goal"),
        [
            ["messages that clients know", f"{seen.messages:,}", ""],
            ["messages per second", f"{seen.messages / seen.seconds:.1f}", ""],
            ["a turn, p50 / p95 ms", f"{ms(times.p50)} / {ms(times.p95)}", ""],
            ["requests tried again", str(seen.retries), ""],
            ["lost or doubled messages", str(bad), judged(bad, 0, "0")],
            ["conversations whose path is another", str(seen.forked), judged(seen.forked, 0, "0")],
            ["requests that do not verify", f"{seen.unverified} of {seen.requests:,}", judged(seen.unverified, 0, "0")],
        ],
        [
            f"{CLIENTS} clients, half of them without names for their conversations",
            f"a reply of {len(REPLY.split())} words takes {0.004 * len(REPLY.split()):.2f} s upstream",
        ],
    )


# -- one turn


@contextmanager
def _desk(home: Path, url: str) -> Iterator[Desk]:
    home.mkdir(parents=True, exist_ok=True)
    script = home / "script.json"
    steps = [{"text": REPLY, "usage": {"input": 1000, "output": 40}}]
    script.write_text(json.dumps({"limit": 100_000, "steps": steps}), "utf-8")
    before = os.environ.pop("RECTO_DB", None)
    if url:
        os.environ["RECTO_DB"] = url
    try:
        with open_desk(home=home, model=f"scripted:{script}", settings=dict(SETTINGS)) as desk:
            yield desk
    finally:
        os.environ.pop("RECTO_DB", None)
        if before is not None:
            os.environ["RECTO_DB"] = before


def compare_turns(folder: Path, url: str) -> tuple[Times, Times]:
    """Of turns on SQLite and on PostgreSQL, in turns, so that both have the same machine."""
    speaker = corpus.Speaker(1)
    with _desk(folder / "file", "") as file, _desk(folder / "server", url) as server:
        talks = [file.conversation(), server.conversation()]
        found: list[list[float]] = [[], []]
        for _ in range(WARMED + TIMED):
            message = speaker.message()
            for talk, times in zip(talks, found, strict=True):
                times.append(_timed(partial(talk.ask, message)))
    return Times(tuple(found[0][WARMED:])), Times(tuple(found[1][WARMED:]))


def _show_turn(file: Times, server: Times) -> None:
    times = server.p50 / file.p50
    show(
        "One turn",
        ("", "p50 ms", "p95 ms", "goal"),
        [
            ["SQLite", ms(file.p50), ms(file.p95), ""],
            ["PostgreSQL", ms(server.p50), ms(server.p95), judged(times, MOST_TIMES, f"{times:.2f}× (≤ 2×)")],
        ],
    )


# -- many messages


@dataclass(slots=True)
class Size:
    """A database with so many messages. Its times are those of the same turns and searches as the other's."""

    home: Path
    url: str
    messages: int
    loaded_s: float = 0.0
    indexed_s: float = 0.0
    bytes_each: float = 0.0
    index_bytes_each: float = 0.0
    turns: list[float] = field(default_factory=list)
    searches: list[float] = field(default_factory=list)

    @property
    def turn(self) -> Times:
        return Times(tuple(self.turns[WARMED:]))

    @property
    def search(self) -> Times:
        return Times(tuple(self.searches[WARMED:]))


def load_size(size: Size) -> None:
    with Store(size.url) as store:
        began = time.monotonic()
        load_messages(store.database, size.messages)
        size.loaded_s = time.monotonic() - began
        with store.database.read() as connection:
            found = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
        size.bytes_each = found / size.messages


def index_size(size: Size) -> None:
    with _desk(size.home, size.url) as desk:
        began = time.monotonic()
        desk.index()
        size.indexed_s = time.monotonic() - began
    size.index_bytes_each = (size.home / "search.db").stat().st_size / size.messages


def measure_sizes(sizes: Sequence[Size]) -> None:
    """One turn and one search after the other, of one size and of the next, so that all have the same machine."""
    with ExitStack() as stack:
        desks = [stack.enter_context(_desk(size.home, size.url)) for size in sizes]
        talks = [desk.conversation(1) for desk in desks]
        speaker, random = corpus.Speaker(3), Random(3)
        for _ in range(WARMED + TIMED):
            message, words = speaker.message(), " ".join(random.sample(speaker.message().split(), 3))
            for size, desk, talk in zip(sizes, desks, talks, strict=True):
                size.turns.append(_timed(partial(talk.ask, message)))
                size.searches.append(_timed(partial(desk.search, words)))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _show_sizes(sizes: list[Size]) -> None:
    few = sizes[0]
    show(
        "Many messages in PostgreSQL, loaded by COPY",
        ("messages", "loaded/s", "bytes each", "indexed/s", "index bytes each", "turn p50 ms", "search p50 ms", "goal"),
        [
            [
                f"{each.messages:,}",
                f"{each.messages / each.loaded_s:,.0f}",
                f"{each.bytes_each:,.0f}",
                f"{each.messages / each.indexed_s:,.0f}",
                f"{each.index_bytes_each:,.0f}",
                ms(each.turn.p50),
                ms(each.search.p50),
                _size_goal(few, each),
            ]
            for each in sizes
        ],
    )


def _size_goal(few: Size, each: Size) -> str:
    times = max(each.turn.p50 / few.turn.p50, each.search.p50 / few.search.p50)
    return "" if each is few else judged(times, MOST_TIMES, f"{times:.2f}× (≤ 2×)")
