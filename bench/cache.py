"""What a provider's prefix cache makes of us: billed input over long agent runs, then time to first token for real.

Simulated: a request's longest common beginning with an earlier one of its conversation, in units of 128 tokens of the
exact o200k tokenization, is read at 0.1 of the price, the rest is written at 1.25; requests for summaries count. Beside
us trim_messages at every step, ContextEditing, and SummarizationMiddleware at .85 → .40 of the window, whose model is
shown all that goes; our low water is set so that as much is kept after a compaction. Counts are exact for all, every
summary is the same text with a number. Goals: at most half of trim, 12 % (32k) and 3 % (128k) below
SummarizationMiddleware, 94 % of the input read from the cache.
"""

import json
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import corpus, first_token, peers
from bench.figure import Figure, share
from bench.prefix import Bill, PrefixCache, total
from bench.replay import Made, replay
from bench.runs import FOLDER, Run, long_run, records
from bench.table import judged, show
from bench.turn import apart
from bench.wire import Limits, Wire, encoded, texts, weight
from recto.window.plan import reserve_of

STRATEGY = "summarize"
THRESHOLD, KEPT = 0.85, 0.40
TRIM, EDITING, SUMMARIZING = PEERS = (
    "trim_messages",
    "ContextEditingMiddleware",
    "SummarizationMiddleware, full input",
)
SUMMARY = corpus.Speaker(13).text(3_000)
# The room that our plans set aside for it, its frame included.
FOR_SUMMARY = 700
HIT_RATE = 0.94


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs of so many tokens each in one window, and what we want to save against SummarizationMiddleware."""

    window: int
    runs: int
    tokens: int
    saves: float

    @property
    def room(self) -> int:
        return self.window - reserve_of(self.window, 0, None)

    @property
    def limits(self) -> Limits:
        return Limits(self.room, int(self.window * THRESHOLD), int(self.window * KEPT))


TRIALS = (Trial(32_768, 3, 300_000, 0.12), Trial(131_072, 2, 500_000, 0.03))
QUICK_TRIALS = (Trial(32_768, 1, 150_000, 0.12),)


@dataclass(frozen=True, slots=True)
class Figures:
    bill: Bill
    requests: int
    summaries: int
    kept: float
    """Mean of the requests that come right after a compaction; 0 where there is none."""
    over: int
    """Requests that the window does not hold."""


def main(quick: bool) -> None:
    peers.install()
    if records():
        for trial in QUICK_TRIALS if quick else TRIALS:
            _simulate(trial)
    else:
        print(f"no agent runs in {FOLDER.parent.name}/{FOLDER.name}: set BENCH_DATA to the folder that holds them\n")
    first_token.main(quick)


def small_untimed(home: Path) -> Iterator[Figure]:
    """One shorter run, beside trim_messages; then what the embedded model reads from its cache."""
    if records():
        trial = Trial(32_768, 1, 60_000, 0.0)
        trim, _ = _theirs(_task(home / "task.json", trial), TRIM, trial.window)
        ours = play(home / "ours", trial)
        yield Figure("cache: billed input", ours.bill.cost() / 1000, "k tokens", TRIM, trim.bill.cost() / 1000)
        yield share("cache: read from it", ours.bill.hit_rate)
    yield from first_token.small(home)


def _simulate(trial: Trial) -> None:
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder, ThreadPoolExecutor(2) as pool:
        home = Path(folder)
        task = _task(home / "task.json", trial)
        mine = pool.submit(apart, play, home / "ours", trial)
        found = dict(zip(PEERS, pool.map(lambda name: _theirs(task, name, trial.window), PEERS), strict=True))
        version = found[TRIM][1]
        _show(trial, mine.result(), {name: theirs for name, (theirs, _) in found.items()}, version)


# -- requests become figures


def figures(runs: Iterable[Iterable[Made]], window: int) -> Figures:
    """Takes each request once: all of them together would fill the memory."""
    numbers: dict[str, int] = {}
    rendered: list[tuple[int, ...]] = []

    def number(message: Wire) -> int:
        text = json.dumps(message)
        if text not in numbers:
            numbers[text] = len(rendered)
            rendered.append(render(message))
        return numbers[text]

    bills: list[Bill] = []
    replies: list[tuple[Bill, int | None]] = []
    for run in runs:
        cached = PrefixCache(lambda which: rendered[which])
        for made in run:
            bills.append(cached.send([number(message) for message in made.messages]))
            if made.purpose == "reply":
                replies.append((bills[-1], made.compaction))
    after = [bill.input for (_, before), (bill, now) in pairwise(replies) if now and now != before]
    over = sum(bill.input > window for bill in bills)
    kept = statistics.mean(after) if after else 0.0
    return Figures(total(bills), len(replies), len(bills) - len(replies), kept, over)


def render(message: Wire) -> tuple[int, ...]:
    """As a chat template would: marks around a message, its texts between them."""
    return (-1, *encoded("\n".join((message["role"], *texts(message)))), -2)


# -- ours


def play(home: Path, trial: Trial) -> Figures:
    """All runs through our engine."""
    home.mkdir()
    runs = [long_run(records(), number, trial.tokens) for number in range(trial.runs)]
    settings = [_settings(trial, run) for run in runs]
    played = (
        replay(home / str(number), run, trial.window, SUMMARY, settings[number]) for number, run in enumerate(runs)
    )
    return figures(played, trial.window)


def _settings(trial: Trial, run: Run) -> dict[str, Any]:
    return {
        "context.strategy": STRATEGY,
        "context.threshold": THRESHOLD,
        "context.low_water": low_water(trial, run),
        "context.summary_tokens": FOR_SUMMARY,
    }


def low_water(trial: Trial, run: Run) -> float:
    """As much as the peer keeps: instructions, a summary, and messages up to its share of the window."""
    system: Wire = {"role": "system", "content": run.system}
    return (trial.limits.keep + FOR_SUMMARY + weight(system)) / trial.room


# -- theirs


def _task(path: Path, trial: Trial) -> Path:
    runs = [long_run(records(), number, trial.tokens).wire() for number in range(trial.runs)]
    path.write_text(json.dumps({"limits": trial.limits.to_json(), "summary": SUMMARY, "runs": runs}), "utf-8")
    return path


def _theirs(task: Path, name: str, window: int) -> tuple[Figures, str]:
    out = task.with_name(f"{name}.json")
    version: str = peers.ask("cache", name, task, out)["version"]
    found = json.loads(out.read_text("utf-8"))
    return figures((_made(run, found["messages"]) for run in found["runs"]), window), version


def _made(run: Sequence[dict[str, Any]], messages: Sequence[Wire]) -> Iterator[Made]:
    """A summary is a compaction: the reply after it stands on the next number."""
    summaries = 0
    for request in run:
        summaries += request["purpose"] == "summary"
        yield Made(request["purpose"], [messages[number] for number in request["messages"]], summaries)


# -- the table


def _show(trial: Trial, ours: Figures, theirs: dict[str, Figures], version: str) -> None:
    everyone = {f"recto, {STRATEGY}": ours, **theirs}
    rows = [_row(name, found, theirs) for name, found in everyone.items()]
    trim, peer = (ours.bill.cost() / theirs[name].bill.cost() for name in (TRIM, SUMMARIZING))
    plain = ours.bill.cost(write=1.0) / theirs[SUMMARIZING].bill.cost(write=1.0)
    goals = (
        judged(trim, 0.5, "≤ 0.5× trim"),
        judged(peer, 1 - trial.saves, f"≤ {1 - trial.saves:.2f}× SummarizationMiddleware"),
        judged(-ours.bill.hit_rate, -HIT_RATE, f"≥ {HIT_RATE:.0%} read"),
    )
    share = low_water(trial, long_run(records(), 0, 1))
    size = f"{trial.runs} runs of {trial.tokens:,} tokens"
    show(
        f"Billed input in a window of {trial.window:,}: {size}, in million token equivalents",
        ("", "cost", "to trim", "to summarizing", "input", "read", "requests", "summaries", "kept", "over window"),
        rows,
        notes=(
            f"goals: {'; '.join(goals)}",
            f"kept: mean request after a compaction, equal by our low water of {share:.3f} of the room",
            f"where writing to the cache costs no more than reading anew: {plain:.2f}× SummarizationMiddleware",
            version,
        ),
    )


def _row(name: str, found: Figures, theirs: dict[str, Figures]) -> list[str]:
    ratios = [f"{found.bill.cost() / theirs[peer].bill.cost():.2f}×" for peer in (TRIM, SUMMARIZING)]
    return [
        name,
        f"{found.bill.cost() / 1e6:.2f}",
        *ratios,
        f"{found.bill.input / 1e6:.1f}",
        f"{found.bill.hit_rate:.1%}",
        f"{found.requests:,}",
        f"{found.summaries}",
        f"{found.kept:,.0f}" if found.kept else "–",
        f"{found.over}" if found.over else "–",
    ]
