"""Conversations out of a store and into another: 100,000 messages as our own JSON, as Markdown and as a page, and from
exports of ChatGPT and llm; with records, turns of the real engine. Times, processor times and peak memory, each in a
process of its own. Goal of an import: at most 30 s and 500 MB.
"""

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure, cost
from bench.table import judged, show
from bench.turn import apart, import_history, peak_mb
from recto.api.blocking import open_desk
from recto.base.locations import STORE_FILE
from recto.store.store import Store
from recto.transfer.exporter import export_chunks, write_chunks
from recto.transfer.formats import open_source
from recto.transfer.importer import Importer
from recto.transfer.report import ExportFormat

SIZE, QUICK_SIZE, SMALL_SIZE = 100_000, 10_000, 1_000
TURNS, QUICK_TURNS, SMALL_TURNS = 1_000, 200, 20
PER_TALK = 50
GOAL_S, GOAL_MB = 30, 500


@dataclass(frozen=True, slots=True)
class Took:
    what: str
    seconds: float
    processor_s: float
    peak_mb: float
    size_mb: float


def main(quick: bool) -> None:
    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        size, turns = (QUICK_SIZE, QUICK_TURNS) if quick else (SIZE, TURNS)
        prepare(Path(folder), size, turns)
        found = list(measure(Path(folder)))
    show(
        f"In and out: {size:,} messages, and {turns:,} turns with their records",
        ("what", "s", "processor s", "peak MB", "file MB", "goal s", "goal MB"),
        [_row(each) for each in found],
        notes=(f"the goals are for {SIZE:,} messages on a quiet machine",),
    )


def small_prepared(home: Path) -> None:
    prepare(home, SMALL_SIZE, SMALL_TURNS)


def small(home: Path) -> Iterator[Figure]:
    """The processor's time, beside the yardstick."""
    for each in measure(home):
        yield cost(f"transfer: {each.what}", each.processor_s)


def prepare(home: Path, size: int, turns: int) -> None:
    """What is exported, and the exports of others."""
    import_history(home / "said", size)
    _talk(home / "talked", turns)
    for name, write in (("ChatGPT", _write_chatgpt), ("llm", _write_llm), ("message list", _write_list)):
        write(home / f"{name}.export", size)


def measure(home: Path) -> Iterator[Took]:
    said, talked = home / "said" / STORE_FILE, home / "talked" / STORE_FILE
    for name, made in (("messages", said), ("records", talked)):
        file = home / f"{name}.jsonl"
        yield apart(_exported, f"export {name}", made, file, "json")
        yield apart(_imported, f"import {name}", home / f"{name}.db", file)
        yield apart(_imported, f"import {name} again", home / f"{name}.db", file)
    yield apart(_exported, "export Markdown", talked, home / "talk.md", "markdown")
    yield apart(_exported, "export HTML", talked, home / "talk.html", "html")
    for name in ("ChatGPT", "llm", "message list"):
        yield apart(_imported, f"import {name}", home / f"{name}.db", home / f"{name}.export")


def _exported(what: str, store: Path, file: Path, format: ExportFormat) -> Took:
    def work() -> None:
        with Store(store) as opened:
            write_chunks(file, export_chunks(opened, opened.copies.ids(), format))

    return _timed(what, work, file)


def _imported(what: str, store: Path, file: Path) -> Took:
    def work() -> None:
        with Store(store) as opened, open_source(file) as source:
            Importer(opened.copies).run(source)

    return _timed(what, work, file)


def _timed(what: str, work: Callable[[], None], file: Path) -> Took:
    started, before = time.perf_counter(), time.process_time()
    work()
    took, processor = time.perf_counter() - started, time.process_time() - before
    return Took(what, took, processor, peak_mb(), file.stat().st_size / 1e6)


def _talk(home: Path, turns: int) -> None:
    """Turns of the real engine, with compactions."""
    home.mkdir()
    speaker = corpus.Speaker(5)
    (home / "script.json").write_text(json.dumps([{"text": speaker.text(400)} for _ in range(turns)]), "utf-8")
    with open_desk(home=home, project=home, model=f"scripted:{home / 'script.json'}") as desk:
        talk = desk.conversation()
        for _ in range(turns):
            talk.ask(speaker.text(200))


def _texts(size: int) -> Iterator[tuple[int, str, str]]:
    return ((number, role, text) for number, (role, text) in enumerate(corpus.chat(size)))


def _write_chatgpt(file: Path, size: int) -> None:
    talks: dict[int, dict[str, object]] = {}
    for number, role, text in _texts(size):
        message = {
            "id": f"m{number}",
            "author": {"role": role, "name": None, "metadata": {}},
            "create_time": 1_700_000_000 + number,
            "content": {"content_type": "text", "parts": [text]},
            "status": "finished_successfully",
            "metadata": {"model_slug": "gpt-5", "request_id": f"r{number}", "finish_details": {"type": "stop"}},
            "recipient": "all",
        }
        above = f"m{number - 1}" if number % PER_TALK else None
        node: dict[str, object] = {"id": f"m{number}", "message": message, "parent": above, "children": []}
        talks.setdefault(number // PER_TALK, {})[f"m{number}"] = node
    told = [
        {"title": f"Talk {n}", "create_time": 1_700_000_000 + n, "mapping": nodes, "conversation_id": f"c{n}"}
        for n, nodes in talks.items()
    ]
    file.write_text(json.dumps(told), "utf-8")


def _write_list(file: Path, size: int) -> None:
    file.write_text(json.dumps([{"role": role, "content": text} for _, role, text in _texts(size)]), "utf-8")


def _write_llm(file: Path, size: int) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT)")
    columns = ("model", "prompt", "system", "response", "conversation_id", "datetime_utc")
    connection.execute(f"CREATE TABLE responses (id TEXT PRIMARY KEY, {', '.join(columns)})")
    texts = list(_texts(size))
    for (number, _, asked), (_, _, told) in zip(texts[::2], texts[1::2], strict=False):
        row = (f"r{number:07}", "gpt-5", asked, None, told, f"c{number // PER_TALK:05}", "2025-05-14T16:25:00+00:00")
        connection.execute("INSERT INTO responses VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def _row(took: Took) -> list[str]:
    is_import = took.what.startswith("import")
    goals = [judged(took.seconds, GOAL_S, f"≤ {GOAL_S}"), judged(took.peak_mb, GOAL_MB, f"≤ {GOAL_MB}")]
    figures = [f"{each:,.1f}" for each in (took.seconds, took.processor_s, took.peak_mb, took.size_mb)]
    return [took.what, *figures, *(goals if is_import else ["", ""])]


def _folder() -> Path:
    peers.FOLDER.mkdir(exist_ok=True)
    return peers.FOLDER
