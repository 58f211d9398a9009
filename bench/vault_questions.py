"""Questions over notes in several languages: how often the right note and the right excerpt come first.

Each paragraph of XQuAD is a note. Beside us SQLite's own full-text search over whole notes: porter stems, the words of
the question joined by OR, ranked by bm25.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from bench.corpus import DATA
from bench.figure import Figure, share
from bench.table import show
from bench.turn import apart
from recto.base.locations import CATALOG_FILE, SEARCH_FILE
from recto.search.embedder import LOCAL, NONE, Embedder, open_embedder
from recto.vault.vault import Vault
from recto.vault.vault_search import VaultSearch

GOALS = {
    "en": "words and meaning ≥ .96",
    "de": "words ≥ .90, with meaning ≥ .90",
    "es": "words ≥ .93, with meaning ≥ .93",
}
EXCERPT_DEPTHS = (1, 3)
GOAL_FOREIGN = 0.85
# Shares of the vectors that are made, and how many notes count for the mean reciprocal rank.
VECTOR_SHARES, RANKED_NOTES = (0.0, 0.25, 0.5, 0.75, 0.98, 1.0), 10


@dataclass(frozen=True, slots=True)
class NoteQuestion:
    text: str
    path: str
    """The note that answers it."""
    answer: str


@dataclass(frozen=True, slots=True)
class Asked:
    """Shares of the questions."""

    first: float
    """The right note is the first document."""
    excerpts: tuple[float, ...] = ()
    """The answer is in one of the first excerpts, by EXCERPT_DEPTHS."""


def languages() -> list[str]:
    return sorted(path.stem for path in (DATA / "xquad").glob("*.json"))


def show_questions(home: Path, step: int = 1) -> None:
    """Every `step`-th question."""
    if not languages():
        print("vault: XQuAD is not there; BENCH_DATA names the folder that holds xquad/")
        return
    rows = []
    for language in languages():
        plain, words, both = apart(measure, home / language, language, step)
        figures = [plain.first, words.first, both.first, *words.excerpts, *both.excerpts]
        rows.append([language, *(f"{each:.3f}" for each in figures), GOALS.get(language, "≥ FTS5, ≥ words alone")])
    columns = ("FTS5 porter", "words", "words, meaning", *(f"{name}: excerpt in {n}" for name in "wm" for n in (1, 3)))
    said = (
        "right note first; then the answer is in one of the first excerpts, by words (w), by words and meaning (m)",
        "excerpts of English have the goals ≥ .92 and ≥ .975",
    )
    show("Questions over 240 notes", ("", *columns, "goal"), rows, said)


def show_foreign(home: Path, step: int = 1) -> None:
    """Questions in another language than the notes."""
    rows = []
    for notes in languages():
        for asked in (each for each in languages() if each != notes):
            first, among = apart(measure_foreign, home / f"{asked} {notes}", asked, notes, step)
            goal = "≥ .85 among five" if among >= GOAL_FOREIGN else "≥ .85 among five: MISSED"
            rows.append([f"{asked}, notes in {notes}", f"{first:.3f}", f"{among:.3f}", goal])
    show("Questions in another language than 240 notes", ("", "right note first", "among five", "goal"), rows)


def measure_foreign(home: Path, asked: str, notes: str, step: int = 1) -> tuple[float, float]:
    """How often the right note is the first, and among the first five."""
    root = home / "notes"
    write_language(root, _file(notes))
    questions = write_language(home / "asked", _file(asked))[::step]
    with _opened(root, home / "both", lambda: open_embedder(LOCAL, home=home)) as search:
        search.fill(vectors=True)
        found = [[hit.path for hit in search.find_documents(each.text, 5).hits] for each in questions]
    right = list(zip(questions, found, strict=True))
    first = sum(paths[:1] == [each.path] for each, paths in right)
    return first / len(right), sum(each.path in paths for each, paths in right) / len(right)


def small_questions(home: Path) -> Iterator[Figure]:
    for language in languages():
        root = home / language / "notes"
        questions = write_language(root, _file(language), articles=10)[::4]
        for name, embedder in (("words", NONE), ("words and meaning", LOCAL)):
            opened = partial(open_embedder, embedder, home=home)
            found = ask(root, home / language / name, opened, questions, depths=())
            yield share(f"vault: right note first, {language}, {name}", found.first)
    if {"de", "en"} <= set(languages()):
        _, among = measure_foreign(home / "de en", "de", "en", step=12)
        yield share("vault: right note among five, asked in another language", among)


def measure(home: Path, language: str, step: int = 1) -> tuple[Asked, Asked, Asked]:
    """FTS5, words alone, words and meaning."""
    root = home / "notes"
    questions = write_language(root, _file(language))[::step]
    plain = ask_plain(root, questions)
    words = ask(root, home / "words", lambda: None, questions)
    return plain, words, ask(root, home / "both", lambda: open_embedder(LOCAL, home=home), questions)


def _file(language: str) -> Path:
    return DATA / "xquad" / f"{language}.json"


def write_language(
    root: Path, data: Path, articles: int | None = None, *, shuffled: bool = False
) -> list[NoteQuestion]:
    """`shuffled`: paragraphs of an article are not next to each other."""
    root.mkdir(parents=True)
    found = list[NoteQuestion]()
    told = json.loads(data.read_text("utf-8"))["data"][:articles]
    paragraphs = [paragraph for article in told for paragraph in article["paragraphs"]]
    if shuffled:
        Random(5).shuffle(paragraphs)
    for number, paragraph in enumerate(paragraphs, 1):
        path = f"{number:04}.md"
        (root / path).write_text(paragraph["context"], "utf-8")
        found += [NoteQuestion(asked["question"], path, asked["answers"][0]["text"]) for asked in paragraph["qas"]]
    return found


def ask(
    root: Path,
    home: Path,
    embedder: Callable[[], Embedder | None],
    questions: Sequence[NoteQuestion],
    depths: Sequence[int] = EXCERPT_DEPTHS,
) -> Asked:
    with _opened(root, home, embedder) as search:
        search.fill(vectors=True)
        first, within = 0, [0] * len(depths)
        for question in questions:
            first += [hit.path for hit in search.find_documents(question.text, 1).hits] == [question.path]
            excerpts = search.find_excerpts(question.text, max(depths)).hits if depths else ()
            holds = [hit.path == question.path and question.answer in hit.text for hit in excerpts]
            within = [count + any(holds[:n]) for count, n in zip(within, depths, strict=True)]
    return Asked(first / len(questions), tuple(count / len(questions) for count in within))


@contextmanager
def _opened(root: Path, home: Path, embedder: Callable[[], Embedder | None]) -> Iterator[VaultSearch]:
    home.mkdir(parents=True)
    with (
        closing(Vault(root, home / CATALOG_FILE)) as vault,
        closing(VaultSearch(vault, home / SEARCH_FILE, embedder, timeout_s=30)) as search,
    ):
        yield search


# -- while vectors are being made


@dataclass(frozen=True, slots=True)
class RankedNotes:
    """The rank of the right note among the first RANKED_NOTES, over all questions."""

    first: float
    reciprocal: float
    by_vectors: float
    """The share of questions for which vectors counted."""


def show_growing(home: Path, step: int = 4) -> None:
    """The ranking while vectors are being made is at least as good as by words alone."""
    rows = []
    for language in languages():
        words, growing = apart(measure_growing, home / language, language, step)
        rows += [
            [
                language if not number else "",
                f"{share:.0%}",
                *(f"{value:.3f}" for each in (words, ranked) for value in (each.first, each.reciprocal)),
                f"{ranked.by_vectors:.0%}",
                "≥ words" if ranked.reciprocal >= words.reciprocal else "BELOW WORDS",
            ]
            for number, (share, ranked) in enumerate(zip(VECTOR_SHARES, growing, strict=True))
        ]
    columns = ("", "vectors made", "words: first", "words: MRR", "first", "MRR", "questions by vectors", "goal")
    show("Questions over 240 notes while vectors are being made", columns, rows, ["notes in random order"])


def measure_growing(home: Path, language: str, step: int) -> tuple[RankedNotes, list[RankedNotes]]:
    """Words alone, and with each share of the vectors."""
    root = home / "notes"
    questions = write_language(root, _file(language), shuffled=True)[::step]
    growing = list[RankedNotes]()
    with _opened(root, home / "words", lambda: None) as search:
        search.fill()
        words = _ranked(search, questions)
    with _opened(root, home / "both", lambda: open_embedder(LOCAL, home=home)) as search:
        search.fill()
        for share_made in VECTOR_SHARES:
            _make_vectors(search, share_made)
            growing.append(_ranked(search, questions))
    return words, growing


def _make_vectors(search: VaultSearch, share_made: float) -> None:
    index = search._index  # no command makes a part of the vectors
    assert index.vectors is not None
    while index.passages - index.vectors.waiting < share_made * index.passages:
        assert index.vectors.make_batch(), index.vectors.problem


def _ranked(search: VaultSearch, questions: Sequence[NoteQuestion]) -> RankedNotes:
    first, reciprocal, by_vectors = 0, 0.0, 0
    for question in questions:
        hits = search.find_documents(question.text, RANKED_NOTES).hits
        rank = next((rank for rank, hit in enumerate(hits, 1) if hit.path == question.path), None)
        first += rank == 1
        reciprocal += 1 / rank if rank else 0.0
        by_vectors += any("near in meaning" in hit.because for hit in hits)
    total = len(questions)
    return RankedNotes(first / total, reciprocal / total, by_vectors / total)


def ask_plain(root: Path, questions: Sequence[NoteQuestion]) -> Asked:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE notes USING fts5(path UNINDEXED, text, tokenize='porter unicode61')")
        rows = [(path.name, path.read_text("utf-8")) for path in sorted(root.iterdir())]
        db.executemany("INSERT INTO notes VALUES (?, ?)", rows)
        first = 0
        for question in questions:
            words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.text))
            found = db.execute("SELECT path FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 1", (words,)).fetchone()
            first += found == (question.path,)
    return Asked(first / len(questions))
