"""What a summary keeps of what readers of a conversation found needed: sentences chosen by the scorer with the author
held out, beside the newest sentences that fit.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from unittest.mock import patch

from bench.summary_data import Reading, is_told, plain
from bench.summary_fit import Sample, held_out_scores, samples
from bench.table import show
from bench.wire import tokens
from recto.sentences.scorer import series_length
from recto.sentences.segments import segments
from recto.summary import extractive_summary
from recto.summary.extractive_summary import LABEL, SEPARATOR, Extraction, label_of

ROOMS = (500, 1228, 1638)
"""Tokens: a narrow one, and what a window of 4,096 and of 8,192 has for chosen sentences."""
Summarize = Callable[[Sample, int], str]


class Judged:
    def __init__(self) -> None:
        self.kept: list[float] = []
        self.worth: list[float] = []
        self.outdated: list[float] = []
        self.tokens: list[int] = []

    def add(self, summary: str, readings: Sequence[Reading]) -> None:
        told = plain(summary)
        parts = [each.text for line in summary.splitlines() for each in segments(LABEL.sub("", line, count=1))]
        parts = [part for each in parts for part in each.split(SEPARATOR)]
        self.tokens.append(tokens(summary))
        for reading in readings:
            self.kept.append(fmean(any(is_told(text, told) for text in key) for key in reading.keys))
            needed = [plain(label.text) for label in reading.labels if label.verdict != "superseded"]
            self.worth.append(fmean(_is_one(plain(part), needed) for part in parts) if parts else 0.0)
            if reading.outdated:
                self.outdated.append(fmean(is_told(text, told) for text in reading.outdated))


def _is_one(part: str, needed: Sequence[str]) -> bool:
    return any(part[:40] in each or each in part for each in needed)


def judge(found: Sequence[Sample], summarize: Summarize) -> dict[int, Judged]:
    judged = {room: Judged() for room in ROOMS}
    for sample in found:
        for room, results in judged.items():
            results.add(summarize(sample, room), sample.readings)
    return judged


def held_out(found: Sequence[Sample]) -> Summarize:
    parts = [(each.author, each.rows, each.targets) for each in found]
    scored = {
        id(each): [score / series_length(row) for score, row in zip(scores.tolist(), each.rows, strict=True)]
        for each, scores in zip(found, held_out_scores(parts), strict=True)
    }

    def summarize(sample: Sample, room: int) -> str:
        with patch.object(extractive_summary, "needed", lambda *_: scored[id(sample)]):
            return Extraction(sample.messages, tokens).within(room)

    return summarize


def newest(sample: Sample, room: int) -> str:
    """The latest sentences that fit, as a window without a summary has them."""
    lines: list[str] = []
    for message in reversed(sample.messages):
        for segment in reversed(message.segments):
            line = label_of(message) + segment.text
            if tokens("\n".join([line, *lines])) > room:
                return "\n".join(lines)
            lines.insert(0, line)
    return "\n".join(lines)


def main() -> None:
    found = samples()
    both = {"newest": judge(found, newest), "chosen, author held out": judge(found, held_out(found))}
    rows = [
        (
            f"{room:,} tokens, {name}",
            f"{fmean(each.kept):.1%}",
            f"{fmean(each.worth):.1%}",
            f"{fmean(each.outdated):.1%}",
            f"{fmean(each.tokens):,.0f}",
        )
        for name, judged in both.items()
        for room, each in judged.items()
    ]
    show(f"{len(found)} conversations by many hands", ("room", "keys kept", "worth it", "outdated", "tokens"), rows)


if __name__ == "__main__":
    main()
