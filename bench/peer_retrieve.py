"""Turns ranked for questions, by rank_bm25 or by SQLite's FTS5 alone. Arguments: which, a JSON file.

Prints the ids of the best twenty for each question of each conversation, and the median milliseconds of a question.
"""

import json
import re
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST = 20
_WORD = re.compile(r"\w+")
_STOP = (
    "a an and are as at be by did do does for from had has have he her his how i in is it its of on or she that the "
    "their they this to was were what when where which who whom whose why will with you your"
)
STOP = frozenset(_STOP.split())


def words(text: str) -> list[str]:
    found = [word for word in _WORD.findall(text.lower()) if word not in STOP]
    return found or _WORD.findall(text.lower())


def fts5(turns: list[list[str]]) -> Callable[[str], list[str]]:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE turns USING fts5(text, tokenize='porter unicode61')")
    db.executemany("INSERT INTO turns (rowid, text) VALUES (?, ?)", enumerate(text for _, text in turns))
    query = f"SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT {MOST}"

    def rank(question: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in words(question))
        return [turns[row[0]][0] for row in db.execute(query, (match,))] if match else []

    return rank


def rank_bm25(turns: list[list[str]]) -> Callable[[str], list[str]]:
    from rank_bm25 import BM25Okapi  # type: ignore[import-not-found]  # only in the peers' environment

    index: Any = BM25Okapi([words(text) for _, text in turns])

    def rank(question: str) -> list[str]:
        scores = index.get_scores(words(question))
        best = sorted(range(len(turns)), key=lambda place: -scores[place])[:MOST]
        return [turns[place][0] for place in best]

    return rank


def main(name: str, path: str) -> None:
    ranked: list[list[list[str]]] = []
    times = []
    for each in json.loads(Path(path).read_text("utf-8")):
        rank = {"fts5": fts5, "rank_bm25": rank_bm25}[name](each["turns"])
        ranked.append([])
        for question in each["questions"]:
            started = time.perf_counter()
            ranked[-1].append(rank(question))
            times.append(1000 * (time.perf_counter() - started))
    print(json.dumps([ranked, statistics.median(times)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
