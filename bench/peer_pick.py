"""Sources ranked for messages by rank_bm25, the best five. Argument: a JSON file of hands: texts, and messages to ask.

Prints for each hand the places of what it would choose for each message, and how long that took in seconds.
"""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from rank_bm25 import BM25Okapi  # type: ignore[import-not-found]  # only in the peers' environment

MOST = 5
_WORD = re.compile(r"[^\W_]+")
_STOP = (
    "a an and are as at be by did do does for from had has have he her his how i in is it its me my of on or our she "
    "that the their they this to us was we were what when where which who whom whose why will with you your"
)
STOP = frozenset(_STOP.split())


def words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in STOP]


def ask(hand: dict[str, Any]) -> list[tuple[list[int], float]]:
    index: Any = BM25Okapi([words(text) or [""] for text in hand["texts"]])
    found = []
    for message in hand["messages"]:
        began = time.perf_counter()
        scores = index.get_scores(words(message))
        best = sorted(range(len(scores)), key=lambda place: -scores[place])[:MOST]
        found.append(([place for place in best if scores[place] > 0], time.perf_counter() - began))
    return found


def main(path: str) -> None:
    print(json.dumps([ask(hand) for hand in json.loads(Path(path).read_text("utf-8"))]))


if __name__ == "__main__":
    main(*sys.argv[1:])
