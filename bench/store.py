"""Size of the database for 400 turns of 0.33 MB of text in all, with the records of everything that was sent.

Through the real engine with scripted replies, after a checkpoint, every 100 turns, then by table. Goal: at most 1.5 MB,
growing linearly. Beside it the search index, which can be thrown away, with all its vectors; and the same turns in
llm's own database and in LangGraph's SqliteSaver.
"""

import json
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import chdir, closing
from itertools import pairwise
from pathlib import Path

from bench import corpus, peers
from bench.figure import Figure
from bench.table import judged, show
from recto.api.blocking import open_desk
from recto.base.locations import SEARCH_FILE, STORE_FILE

TURNS, QUICK_TURNS = 400, 200
CHECKPOINTS = 100
STEP = 100
ASKED, ANSWERED = 225, 600
GOAL_MB = 1.5
# The sizes grow linearly when the last hundred turns cost about as much as the second.
GOAL_BEND = 1.1

# What comes after these is too small to matter.
SHOWN = 10

Conversation = list[tuple[str, str]]


def main(quick: bool) -> None:
    peers.install()
    turns = _turns(QUICK_TURNS if quick else TURNS)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        home = Path(folder)
        given = home / "turns.json"
        given.write_text(json.dumps([turns]), "utf-8")
        ours, indexes = _talk(home, turns)
        tables, columns = _by_table(home / STORE_FILE), _by_column(home / STORE_FILE)
        theirs = {
            "llm": peers.ask("llm", given, home / "llm.db", LLM_USER_PATH=str(home)),
            "langgraph": peers.ask("langgraph", given, home / "langgraph.db"),
        }
    others = {"its search index": indexes} | {name: found["sizes"] for name, found in theirs.items()}
    _show(turns, ours, others, [_versions(theirs)])
    if tables:  # not every SQLite is built with dbstat
        _show_parts("Where our bytes are: pages", ("table", "part"), tables)
    _show_parts("Where our bytes are: contents", ("table", "column"), columns)


def small_untimed(home: Path) -> Iterator[Figure]:
    """Bytes of the first hundred turns, beside llm's own database."""
    turns = _turns(STEP)
    given = home / "turns.json"
    given.write_text(json.dumps([turns]), "utf-8")
    [size], _ = _talk(home, turns, has_index=False)
    theirs = peers.ask("llm", given, home / "llm.db", LLM_USER_PATH=str(home))["sizes"][-1]
    yield Figure(f"store: {STEP} turns", size / 1000, "kB", "llm", theirs / 1000)


def _turns(count: int) -> Conversation:
    speaker = corpus.Speaker(4)
    return [(speaker.text(ASKED), speaker.text(ANSWERED)) for _ in range(count)]


def _talk(home: Path, turns: Conversation, *, has_index: bool = True) -> tuple[list[int], list[int]]:
    """The sizes in bytes after every hundred turns, of the store and of the search index."""
    (home / "script.json").write_text(json.dumps([{"text": reply} for _, reply in turns]), "utf-8")
    sizes, indexes = [], []
    # from within the folder: the model's name, which is stored with each reply, is then as short as real ones
    with chdir(home), open_desk(home=home, project=home, model="scripted:script.json") as desk:
        talk = desk.conversation()
        for done, (said, _) in enumerate(turns, 1):
            talk.ask(said)
            if done % STEP == 0:
                sizes.append(_size(home / STORE_FILE))
                if has_index:
                    desk.index(vectors=True)
                    indexes.append(_size(home / SEARCH_FILE))
    return sizes, indexes


def _size(path: Path) -> int:
    """Of the file and what still waits beside it, after a checkpoint."""
    with closing(sqlite3.connect(path)) as connection:
        # whoever reads at this moment, as the index in the background does, keeps the log from being emptied
        for _ in range(CHECKPOINTS):
            if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                break
            time.sleep(0.05)
    return sum(part.stat().st_size for part in path.parent.glob(path.name + "*") if not part.name.endswith("-shm"))


def _by_table(path: Path) -> Counter[tuple[str, str]]:
    """Bytes by table and what of it: its rows or one of its indexes. Empty where SQLite lacks `dbstat`."""
    found: Counter[tuple[str, str]] = Counter()
    with closing(sqlite3.connect(path)) as connection:
        try:
            used = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall()
        except sqlite3.OperationalError:
            return found
        owners = dict(connection.execute("SELECT name, tbl_name FROM sqlite_master"))
    for name, size in used:
        owner = owners.get(name, name)
        found[owner, "rows" if name == owner else name] += size
    return found


def _by_column(path: Path) -> Counter[tuple[str, str]]:
    """Bytes of the values themselves, without what pages and rows cost."""
    found: Counter[tuple[str, str]] = Counter()
    named = "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    with closing(sqlite3.connect(path)) as connection:
        for table, column in connection.execute(named).fetchall():
            size = connection.execute(f'SELECT sum(length(CAST("{column}" AS BLOB))) FROM "{table}"').fetchone()[0]
            found[table, column] = size or 0
    return found


def _versions(theirs: dict[str, dict[str, object]]) -> str:
    return ", ".join(f"{name} {found['version']}" for name, found in theirs.items())


def _show(turns: Conversation, ours: list[int], theirs: dict[str, list[int]], notes: list[str]) -> None:
    text = [sum(len(said.encode()) for turn in turns[: done + STEP] for said in turn) for done in _starts(ours)]
    rows = [
        [f"{start + STEP}", _mb(text[n]), _mb(ours[n]), *(_mb(sizes[n]) for sizes in theirs.values()), ""]
        for n, start in enumerate(_starts(ours))
    ]
    if len(turns) == TURNS:
        rows[-1][-1] = judged(ours[-1] / 1e6, GOAL_MB, f"≤ {GOAL_MB} MB")
    steps = [after - before for before, after in pairwise(ours)]
    bend = judged(steps[-1] / steps[0], GOAL_BEND, f"≤ {GOAL_BEND}×")
    grown = ", ".join(_mb(step) for step in steps)
    title = "Size of the database after so many turns, in MB"
    linear = (
        f"each hundred turns more: {grown} MB; the last {steps[-1] / steps[0]:.2f}× the first of these (goal {bend})"
    )
    show(title, ("turns", "text", "recto, with records", *theirs, "goal"), rows, [linear, *notes])


def _starts(sizes: list[int]) -> range:
    return range(0, len(sizes) * STEP, STEP)


def _show_parts(title: str, names: tuple[str, str], parts: Counter[tuple[str, str]]) -> None:
    total = sum(parts.values())
    rows = [[table, part, _mb(size), f"{size / total:.0%}"] for (table, part), size in parts.most_common(SHOWN)]
    show(title, (*names, "MB", "share"), rows)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.2f}"
