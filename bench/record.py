"""What the record costs and proves: 1,000 requests with windows of 8k tokens, saved, rebuilt and verified.

A chat with 50 sources in every window and 20 that were considered, compacted every 15 turns. Goals: the record adds at
most 5 ms to a turn, and 1,000 requests or more are verified in a second. Beside it what is done without pieces: whole
bodies and accounts as zlib blobs in SQLite, each body verified by its sha256 and each account read, as ours are.
"""

import hashlib
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.table import Times, judged, ms, show
from bench.wire import tokens
from recto import wire
from recto.base.ids import new_id
from recto.chat.blocks import Text
from recto.chat.message import now
from recto.providers.openai import OpenAIFormat
from recto.sources.source import Mode, Pick, Reference, Rule, Source, Tool
from recto.store.store import Store
from recto.turn.preamble import list_pieces
from recto.window.account import RequestAccount, Section
from recto.window.request import Entry, Parameters, Piece, Request

REQUESTS, QUICK_REQUESTS = 1_000, 200
GOAL_S, GOAL_VERIFIED = 0.005, 1_000
# Rules, references and tools of the session, and those chosen for a message; together 50.
RULES, REFERENCES, TOOLS, CHOSEN = 14, 6, 20, 10
CONSIDERED = 20
SAID = 260
"""Characters of a message."""
HISTORY, TURNS = 76, 15
"""Messages in the window after a compaction, and turns until the next."""
PARAMETERS = Parameters(max_tokens=1024)


@dataclass(frozen=True, slots=True)
class Figures:
    saved: Times
    computed: Times
    """The same saves by the processor's clock: what a busy disk or neighbour adds is not in it."""
    rebuilt_s: float
    verified_s: float
    bytes: int


def main(quick: bool) -> None:
    peers.FOLDER.mkdir(exist_ok=True)
    count = QUICK_REQUESTS if quick else REQUESTS
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        ours, sample = measure(Path(folder) / "recto.db", count)
        theirs = measure_blobs(Path(folder) / "blobs.db", count)
    _show(count, ours, theirs, sample)


def small(home: Path) -> Iterator[Figure]:
    count, blobs = 100, "zlib blobs"
    (ours, _), theirs = measure(home / "recto.db", count), measure_blobs(home / "blobs.db", count)
    yield cost("record: saved", ours.saved.p50, blobs, theirs.saved.p50)
    yield cost("record: verified", ours.verified_s / count, blobs, theirs.verified_s / count)
    yield Figure("record: bytes", ours.bytes / count / 1000, "kB", blobs, theirs.bytes / count / 1000)


# -- the requests of a chat


def requests(conversation: str, count: int) -> Iterator[Request]:
    """As the engine makes them: the stable part grows, a compaction cuts it, every message has its own choice."""
    speaker, format = corpus.Speaker(6), OpenAIFormat()
    session, agents = _sources(speaker)
    tools = [source for source in session if isinstance(source, Tool)]
    system = "\n\n".join(source.text for source in session if not isinstance(source, Tool))
    preamble = format.preamble("gpt-5", PARAMETERS, system, tools)
    history = [_wire(format, place, speaker.text(SAID)) for place in range(HISTORY)]
    for number in range(count):
        if number and number % TURNS == 0:
            history = [_wire(format, 0, speaker.text(SAID * 8)), *history[-HISTORY + 1 :]]
        start = number * 7 % len(agents)
        shuffled = [*agents[start:], *agents[:start]]
        chosen, considered = shuffled[:CHOSEN], shuffled[CHOSEN : CHOSEN + CONSIDERED]
        asked = speaker.text(SAID)
        volatile = "\n\n".join(source.text for source in chosen)
        body = [*history, _wire(format, 0, f"{volatile}\n\n{asked}")]
        pieces = (*preamble, *list_pieces([(data,) for data in body], True), format.closing(PARAMETERS))
        account = _account(session, chosen, considered, number)
        stable = len(preamble) + len(history)
        yield _request(conversation, pieces, account, stable)
        history += [_wire(format, 0, asked), _wire(format, 1, speaker.text(SAID))]


def _sources(speaker: corpus.Speaker) -> tuple[list[Source], list[Source]]:
    """Those of the session, then those from which is chosen."""
    rules = [Rule(f"rule {n}", speaker.text(120), include="always") for n in range(RULES)]
    references = [Reference(f"page {n}", speaker.text(300)) for n in range(REFERENCES)]
    schema = {"type": "object", "properties": {"path": {"type": "string", "description": speaker.text(60)}}}
    tools = [Tool(f"files__tool_{n}", speaker.text(140), schema, server="files") for n in range(TOOLS)]
    agents: list[Source] = [Reference(f"note {n}", speaker.text(200), include="agent") for n in range(60)]
    return [*rules, *references, *tools], agents


def _wire(format: OpenAIFormat, place: int, text: str) -> bytes:
    (data,) = format.entry(Entry("assistant" if place % 2 else "user", (Text(text),)), "openai")
    return data


def _pick(source: Source, mode: Mode, because: str, score: float | None = None) -> Pick:
    named = source.id
    return Pick(named.kind, named.name, because, len(source.text) // 4, mode, score, source.sha256, named.server)


def _account(
    session: Sequence[Source], chosen: Sequence[Source], considered: Sequence[Source], number: int
) -> RequestAccount:
    scores = [round(0.9 - (place * 37 + number * 11) % 500 / 1000, 3) for place in range(len(chosen) + len(considered))]
    picked = [
        _pick(source, "agent", f"near in meaning ({score}) to the message", score)
        for source, score in zip(chosen, scores, strict=False)
    ]
    passed = [
        _pick(source, "agent", f"{score} is under the floor of 0.35", score)
        for source, score in zip(considered, scores[len(chosen) :], strict=True)
    ]
    kinds = {"rules": "rule", "references": "reference", "tools": "tool"}
    sections = [
        Section(
            name, 900, 1500, tuple(_pick(each, "always", "always included") for each in session if each.kind == kind)
        )
        for name, kind in kinds.items()
    ]
    return RequestAccount(
        limit=9000,
        reserve=512,
        total=8000,
        free=488,
        exact=False,
        strategy="hybrid",
        sections=(*sections, Section("sources", 500, 5000, tuple(picked))),
        notes=(),
        not_picked=tuple(passed),
        compaction=number // TURNS or None,
    )


def _request(conversation: str, pieces: tuple[Piece, ...], account: RequestAccount, stable: int) -> Request:
    given = PARAMETERS.given()
    return Request(
        new_id(), conversation, "reply", "openai:gpt-5", "openai", given, pieces, account, created=now(), stable=stable
    )


# -- measured


def measure(path: Path, count: int) -> tuple[Figures, Request]:
    with Store(path) as store:
        home, base = store.tree.create().id, None
        saved: list[tuple[float, float]] = []
        for request in requests(home, count):
            saved.append(both_clocks(partial(store.records.save, request, base)))
            base = request.id
        ids = store.records.ids(home)
        rebuilt = timed(lambda: [store.records.rebuild(id) for id in ids])
        found: list[tuple[str, str | None]] = []
        verified = timed(lambda: found.extend(store.records.differences(ids)))
        assert [difference for _, difference in found] == [None] * count
    return Figures(*_times(saved), rebuilt, verified, size_of(path)), request


def measure_blobs(path: Path, count: int) -> Figures:
    """The same requests, each kept whole."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE requests (id TEXT PRIMARY KEY, account BLOB, body BLOB, sha256 BLOB)")
        saved = [both_clocks(partial(_keep, connection, request)) for request in requests(new_id(), count)]
        rebuilt = timed(lambda: _read_all(connection, check=False))
        verified = timed(lambda: _read_all(connection, check=True))
    return Figures(*_times(saved), rebuilt, verified, size_of(path))


def _keep(connection: sqlite3.Connection, request: Request) -> None:
    body = request.body
    account = zlib.compress(wire.dumpb(request.account.to_json()))
    row = (request.id, account, zlib.compress(body), hashlib.sha256(body).digest())
    connection.execute("INSERT INTO requests VALUES (?, ?, ?, ?)", row)


def _read_all(connection: sqlite3.Connection, *, check: bool) -> None:
    for account, body, sha256 in connection.execute("SELECT account, body, sha256 FROM requests ORDER BY id"):
        whole = zlib.decompress(body)
        if check:
            assert hashlib.sha256(whole).digest() == sha256
            assert wire.loads(zlib.decompress(account))


def size_of(path: Path) -> int:
    """Of the closed file, and of what still waits beside it."""
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*") if not part.name.endswith("-shm"))


def both_clocks(work: Callable[[], object]) -> tuple[float, float]:
    began = time.process_time()
    return timed(work), time.process_time() - began


def _times(saved: Sequence[tuple[float, float]]) -> tuple[Times, Times]:
    wall, computed = zip(*saved, strict=True)
    return Times(wall), Times(computed)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _show(count: int, ours: Figures, theirs: Figures, sample: Request) -> None:
    columns = ("", "recto", "zlib blobs", "goal")
    per_s = count / ours.verified_s
    rows = [
        ["saved, ms p50", ms(ours.saved.p50), ms(theirs.saved.p50), ""],
        ["saved, ms p95", ms(ours.saved.p95), ms(theirs.saved.p95), judged(ours.saved.p95, GOAL_S, "≤ 5 ms")],
        ["  of it computed, p95", ms(ours.computed.p95), ms(theirs.computed.p95), ""],
        ["saved a second", *(f"{count / sum(each.saved.seconds):,.0f}" for each in (ours, theirs)), ""],
        ["rebuilt a second", *(f"{count / each.rebuilt_s:,.0f}" for each in (ours, theirs)), ""],
        [
            "verified a second",
            *(f"{count / each.verified_s:,.0f}" for each in (ours, theirs)),
            judged(-per_s, -GOAL_VERIFIED, f"≥ {GOAL_VERIFIED:,}"),
        ],
        ["bytes a request", *(f"{each.bytes / count:,.0f}" for each in (ours, theirs)), ""],
    ]
    body = sample.body
    window = f"{tokens(body.decode()):,} tokens, {len(body):,} bytes in {len(sample.pieces)} pieces"
    note = f"the last window: {window}; its account: {len(wire.dumpb(sample.account.to_json())):,} bytes of JSON"
    show(f"{count:,} requests of 8k tokens, kept and proved", columns, rows, [note])
