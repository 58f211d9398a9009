"""sumy's rankings of sentences, as summaries within a cap. Arguments: TextRank or LexRank, a file.

The file: {"cap", "chats": [[[[label, sentence], …] for each round] for each chat]}; in every round the summary of the
round before stands first. Prints {"version", "summaries", "seconds"}; runs with the peers' Python.
"""

import json
import re
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# the peers' packages are not in the environment that checks types
from splintr import Tokenizer
from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence  # type: ignore[import-not-found]
from sumy.summarizers.lex_rank import LexRankSummarizer  # type: ignore[import-not-found]
from sumy.summarizers.text_rank import TextRankSummarizer  # type: ignore[import-not-found]
from sumy.utils import get_stop_words  # type: ignore[import-not-found]

WORD = re.compile(r"[^\W\d_]+")
Said = list[tuple[str, str]]
encode = Tokenizer.from_pretrained("o200k_base").encode_ordinary


class Words:
    """Stands in for NLTK's tokenizer, which would download its data."""

    def to_words(self, text: str) -> tuple[str, ...]:
        return tuple(WORD.findall(text))


class Rated:
    """Gives all sentences back as they were rated, instead of the best few of them."""

    def _get_best_sentences(self, sentences: Any, count: int, rating: Any, *args: Any, **named: Any) -> Any:
        return [rating[sentence] if isinstance(rating, dict) else rating(sentence) for sentence in sentences]


class TextRank(Rated, TextRankSummarizer):  # type: ignore[misc]
    pass


class LexRank(Rated, LexRankSummarizer):  # type: ignore[misc]
    pass


def best(said: Said, cap: int, rank: Any) -> Said:
    """As many of the best as fit, in order of time."""
    ratings = rank(ObjectDocumentModel([Paragraph([Sentence(text, Words()) for _, text in said])]), len(said))
    order = sorted(range(len(said)), key=lambda at: -ratings[at])
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(said, order[:middle]) <= cap else (low, middle - 1)
    return [said[at] for at in sorted(order[:low])]


def size(said: Said, chosen: list[int]) -> int:
    return len(encode(told([said[at] for at in sorted(chosen)])))


def told(said: Said) -> str:
    return "\n".join(f"{label}: {text}" for label, text in said)


def summary(rounds: list[Said], cap: int, rank: Any) -> str:
    kept: Said = []
    for said in rounds:
        kept = best([*kept, *said], cap, rank)
    return told(kept)


def main() -> None:
    rank: Any = {"TextRank": TextRank, "LexRank": LexRank}[sys.argv[1]]()
    rank.stop_words = get_stop_words("english")
    task = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    started = time.perf_counter()
    summaries = [summary(rounds, task["cap"], rank) for rounds in task["chats"]]
    seconds = (time.perf_counter() - started) / len(summaries)
    print(json.dumps({"version": f"sumy {version('sumy')}", "summaries": summaries, "seconds": seconds}))


main()
