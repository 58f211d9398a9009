"""PostgreSQL's own text search beside the index that each server keeps: what is found, and how long it takes.

Both by words alone. `tsvector` does not know how rare a word is, in either of its rankings. A question is looked up by
any of its words: a search for all of them finds next to nothing.
"""

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from sqlalchemy import make_url

from bench import corpus
from bench.locomo import Conversation, conversations, files
from bench.plain import timing
from bench.recall import DEPTHS, Ranked, measured_ranks, searching, shares_by_depth
from bench.table import Times, ms, show
from bench.vault_questions import NoteQuestion, ask, languages, write_language
from recto.recall.message_index import MessageIndex
from recto.search.keyword_index import NO_FILTER

RANKINGS = ("ts_rank_cd", "ts_rank")
DICTIONARIES = {"en": "english", "de": "german", "es": "spanish"}
WORDS_ALONE = {"search.embedder": "none"}
MOST, WARMED, TIMED = 60, 20, 100
OF_MESSAGES = "SELECT n::text, blocks::jsonb #>> '{0,text}' FROM messages"


class TextSearch:
    """Texts by name, in a table of their own with an index of their words."""

    def __init__(self, url: str, dictionary: str) -> None:
        import psycopg

        self._dictionary = dictionary
        self._connection = psycopg.connect(_plain_url(url), autocommit=True)
        self._connection.execute("DROP TABLE IF EXISTS texts")
        self._connection.execute("CREATE TABLE texts (n serial, name text, said tsvector)")

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        with self._connection.cursor() as cursor:
            rows = [(name, self._dictionary, text) for name, text in texts]
            cursor.executemany("INSERT INTO texts (name, said) VALUES (%s, to_tsvector(%s::regconfig, %s))", rows)
        self._index()

    def add_messages(self) -> None:
        """All messages of the store in the same database."""
        self._connection.execute(
            f"INSERT INTO texts (name, said) SELECT name, to_tsvector('{self._dictionary}', said) "
            f"FROM ({OF_MESSAGES}) AS stored (name, said)"
        )
        self._index()

    def _index(self) -> None:
        self._connection.execute("CREATE INDEX ON texts USING gin (said)")
        self._connection.execute("VACUUM ANALYZE texts")

    def find(self, text: str, ranking: str, most: int = MOST) -> list[str]:
        """The names of the texts with any of the words, the best first."""
        query = (
            "WITH asked AS (SELECT replace(plainto_tsquery(%s::regconfig, %s)::text, '&', '|')::tsquery AS words) "
            f"SELECT name FROM texts, asked WHERE said @@ words ORDER BY {ranking}(said, words) DESC, n LIMIT %s"
        )
        return [str(row[0]) for row in self._connection.execute(query, (self._dictionary, text, most))]

    def close(self) -> None:
        self._connection.close()


def _plain_url(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


# -- what is found


def show_found(url: str, step: int = 1) -> None:
    """Every `step`-th question over notes, and of conversations likewise."""
    rows = [["Recto's index, words alone"], *([ranking] for ranking in RANKINGS)]
    columns = [""]
    if files():
        talks = conversations()[::step]
        columns += [f"turns among {depth}" for depth in DEPTHS if depth > 5]
        for row, ranked in zip(rows, [_ours(talks), *(_theirs(url, talks, each) for each in RANKINGS)], strict=True):
            shares = dict(zip(DEPTHS, shares_by_depth(talks, ranked), strict=True))
            row += [f"{share:.3f}" for depth, share in shares.items() if depth > 5]
    for language in languages():
        columns.append(f"right note first, {language}")
        for row, first in zip(rows, _first_notes(url, language, step), strict=True):
            row.append(f"{first:.3f}")
    show("Words found in PostgreSQL's text search", columns, rows, ["turns of LoCoMo, notes and questions of XQuAD"])


def _ours(talks: Sequence[Conversation]) -> Ranked:
    return measured_ranks(talks, searching(WORDS_ALONE))[0]


def _theirs(url: str, talks: Sequence[Conversation], ranking: str) -> Ranked:
    ranked = []
    for each in talks:
        search = TextSearch(url, "english")
        search.add((turn.id, turn.text) for turn in each.turns)
        ranked.append([search.find(question.text, ranking, max(DEPTHS)) for question in each.questions])
        search.close()
    return ranked


def _first_notes(url: str, language: str, step: int) -> list[float]:
    folder = Path(tempfile.mkdtemp(prefix="notes"))
    try:
        questions = write_language(folder / "notes", corpus.DATA / "xquad" / f"{language}.json")[::step]
        ours = ask(folder / "notes", folder / "words", lambda: None, questions).first
        search = TextSearch(url, DICTIONARIES.get(language, "simple"))
        search.add((path.name, path.read_text("utf-8")) for path in sorted((folder / "notes").iterdir()))
        theirs = [_share_first(search, questions, ranking) for ranking in RANKINGS]
        search.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return [ours, *theirs]


def _share_first(search: TextSearch, questions: Sequence[NoteQuestion], ranking: str) -> float:
    return statistics.fmean(search.find(each.text, ranking, 1) == [each.path] for each in questions)


# -- how long it takes


def show_times(url: str, messages: int, archive: MessageIndex) -> None:
    """Our search is among the same messages, and gives no texts either. In turns: both have the same machine."""
    search = TextSearch(url, "english")
    _, indexed_s = timing(search.add_messages)
    speaker, random = corpus.Speaker(4), Random(4)
    finders: dict[str, Callable[[str], object]] = {
        "Recto's index": lambda text: archive.search(text, only=NO_FILTER, most=MOST),
        **{name: partial(search.find, ranking=name) for name in RANKINGS},
    }
    times: dict[str, list[float]] = {name: [] for name in finders}
    for _ in range(WARMED + TIMED):
        words = " ".join(random.sample(speaker.message().split(), 3))
        for name, each in finders.items():
            times[name].append(timing(each, words)[1])
    search.close()
    measured = {name: Times(tuple(seconds[WARMED:])) for name, seconds in times.items()}
    show(
        f"Three words among {messages:,} messages, in ms",
        ("", "p50", "p95"),
        [[name, ms(each.p50), ms(each.p95)] for name, each in measured.items()],
        [f"the {MOST} best; tsvector: {messages / indexed_s:,.0f} messages indexed a second"],
    )
