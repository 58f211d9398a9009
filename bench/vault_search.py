"""What a vault says, searched: by words beside ripgrep, which reads every note every time; by words and meaning.

Goal: p95 at most 15 ms among 10,000 notes.
"""

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from shutil import which

from bench import peers
from bench.figure import Figure, cost
from bench.notes import Notes, write_notes
from bench.table import Times, judged, ms, show
from bench.turn import apart
from recto.base.locations import CATALOG_FILE, SEARCH_FILE
from recto.search.embedder import LOCAL, Embedder, open_embedder
from recto.search.terms import STOP_WORDS
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

GOAL_S = 0.015
QUERIES = 240
SORTS = ("one word", "two words", "question")


@dataclass(frozen=True, slots=True)
class Query:
    sort: str
    text: str
    path: str
    """A note that holds all of its words."""


@dataclass(slots=True)
class Searched:
    seconds: dict[str, list[float]] = field(default_factory=lambda: {sort: [] for sort in SORTS})
    computed: list[float] = field(default_factory=list)
    """What of all of them this process did, not the machine's other work."""
    held: int = 0
    """Of the first hits those that hold all words of the question."""

    def timed(self, query: Query, find: Callable[[str], Sequence[str]]) -> Sequence[str]:
        begun, computed = time.perf_counter(), time.process_time()
        found = find(query.text)
        self.seconds[query.sort].append(time.perf_counter() - begun)
        self.computed.append(time.process_time() - computed)
        return found


# -- words


def show_words(notes: Notes, home: Path) -> None:
    ours = apart(_search, notes, home)
    theirs, name = apart(_grep_all, notes)
    rows = [_row(which_one, searched, judge=True) for which_one, searched in ours.items()]
    rows.append(_row(f"{name}, any of the words", theirs))
    said = (
        f"{QUERIES} queries from the notes themselves, in turn; caches warm after one round",
        *(
            f"{which_one}: the first hit holds all words of {each.held} in {QUERIES}"
            for which_one, each in ours.items()
        ),
        f"{name} is started for every query, reads all notes and ranks nothing",
    )
    _show(f"Words among {len(notes.paths):,} notes, in ms", rows, said)


def small_search(notes: Notes, home: Path) -> Figure:
    ours, (theirs, name) = _search(notes, home, 45), _grep_all(notes, 45)
    return cost("vault: words found", _every(next(iter(ours.values()))).p50, name, _every(theirs).p50)


def _every(searched: Searched) -> Times:
    return Times(tuple(second for seconds in searched.seconds.values() for second in seconds))


def _show(title: str, rows: Sequence[Sequence[str]], said: Sequence[str]) -> None:
    columns = [part for sort in (*SORTS, "all") for part in (f"{sort} p50", "p95")]
    show(title, ("", *columns, "CPU p95", "goal"), rows, said)


def _row(name: str, searched: Searched, *, judge: bool = False) -> list[str]:
    every = _every(searched)
    parts = [*(Times(tuple(seconds)) for seconds in searched.seconds.values()), every]
    times = [ms(value) for each in parts for value in (each.p50, each.p95)]
    computed = Times(tuple(searched.computed)).p95
    return [name, *times, ms(computed), judged(every.p95, GOAL_S, "p95 ≤ 15 ms") if judge else ""]


def queries_of(notes: Notes, count: int = QUERIES) -> list[Query]:
    """Words that stand together in a paragraph of some note; sorts in turn."""
    random, found = Random(9), list[Query]()
    while len(found) < count:
        path = random.choice(notes.paths)
        paragraph = random.choice((notes.root / path).read_text("utf-8").split("\n\n"))
        rare = re.search(r"It is the (\w+) of (\w+)\.", paragraph)
        plain = [word for word in re.findall("[a-z]+", paragraph.lower()) if word not in STOP_WORDS and len(word) > 2]
        if rare and len(plain) > 12:
            sort = SORTS[len(found) % len(SORTS)]
            texts = dict(zip(SORTS, (rare[1], f"{plain[0]} {rare[2]}", f"what of {' '.join(plain[:6])}?"), strict=True))
            found.append(Query(sort, texts[sort], path))
    return found


def _search(notes: Notes, home: Path, count: int = QUERIES) -> dict[str, Searched]:
    with _opened(notes.root, home) as library:
        library.fill()
        queries = queries_of(notes, count)
        _asked(library, notes.root, queries)
        return _asked(library, notes.root, queries)


@contextmanager
def _opened(root: Path, home: Path, embedder: Callable[[], Embedder | None] = lambda: None) -> Iterator[VaultSearch]:
    vault = Vault(root, home / CATALOG_FILE)
    library = VaultSearch(vault, home / SEARCH_FILE, embedder)
    # as in a chat: who does not watch looks through the folder every two seconds
    vault.watch().wait(10)
    try:
        yield library
    finally:
        library.close()
        vault.close()


def _asked(library: VaultSearch, root: Path, queries: Sequence[Query]) -> dict[str, Searched]:
    finds = {
        "find_excerpts, the 8 best": lambda text: [hit.path for hit in library.find_excerpts(text).hits],
        "find_documents, the 3 best": lambda text: [hit.path for hit in library.find_documents(text).hits],
    }
    searched = {name: Searched() for name in finds}
    for query in queries:
        for name, find in finds.items():
            found = searched[name].timed(query, find)
            searched[name].held += bool(found) and _holds(root / found[0], query)
    return searched


def _holds(place: Path, query: Query) -> bool:
    said = place.read_text("utf-8").lower()
    return all(word in said for word in re.findall(r"\w+", query.text) if word not in STOP_WORDS)


def _grep_all(notes: Notes, count: int = QUERIES) -> tuple[Searched, str]:
    rg = peers.BIN / "rg"
    command = [str(rg), "--files-with-matches"] if rg.is_file() else [which("grep") or "grep", "-r", "-l"]
    searched = Searched()
    find = partial(_grep, command, notes.root)
    for query in queries_of(notes, count):
        found = searched.timed(query, find)
        assert query.path in found, f"{command[0]} does not find {query.text}"
    return searched, "ripgrep" if rg.is_file() else "grep -r (ripgrep is not there)"


def _grep(command: Sequence[str], root: Path, text: str) -> list[str]:
    words = [part for word in re.findall(r"\w+", text) if word not in STOP_WORDS for part in ("-e", word)]
    done = subprocess.run(
        [*command, "-i", "-F", *words, "."], cwd=root, capture_output=True, text=True, env=peers.surroundings()
    )
    return [line.removeprefix("./") for line in done.stdout.splitlines()]


# -- words and meaning


@dataclass(frozen=True, slots=True)
class Made:
    vectors: int
    seconds: float
    searched: dict[str, Searched]
    why: str = ""


def show_meaning(home: Path, count: int) -> None:
    place = home / "meaning"
    made = apart(_with_meaning, apart(write_notes, place / "notes", count, 2), place)
    if made.why:
        show(f"Words and meaning among {count:,} notes", ("",), [[made.why]])
        return
    rate = f"{made.vectors:,} texts embedded by MiniLM, {made.vectors / made.seconds:,.0f} a second"
    rows = [_row(name, searched) for name, searched in made.searched.items()]
    _show(f"Words and meaning among {count:,} notes, in ms", rows, [rate])


def _with_meaning(notes: Notes, home: Path) -> Made:
    with _opened(notes.root, home, lambda: open_embedder(LOCAL, home=home)) as library:
        library.fill()
        if (status := library.status).embedder is None:
            return Made(0, 0.0, {}, status.why)
        queries = queries_of(notes, QUERIES // 2)
        _asked(library, notes.root, queries[:1])  # opens the embedder, and begins with the vectors behind
        before, begun = library.status.vectors, time.perf_counter()
        library.fill(vectors=True)
        took = time.perf_counter() - begun
        made = library.status.vectors - before
        _asked(library, notes.root, queries)
        return Made(made, took, _asked(library, notes.root, queries))
