"""A small form of every bench in under three minutes, as ratios that can be held against those of the last time.

A time stands beside a peer's of the same run, or beside a yardstick's: what the machine is and does cancels out. A
quality stands for itself. `bench/last.json` keeps what was measured when a change was merged: `--save` writes it.
"""

import json
import math
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path

from bench import peers
from bench.figure import YARDSTICK, Figure, yardstick
from bench.table import show
from bench.turn import apart

LAST = Path(__file__).parent / "last.json"
DIGITS = 3
WORSE = 1.3
GOAL_S = 180
# How many benches run at the same time where nothing is timed: qualities, bytes and tokens.
AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Last:
    """The figures of an earlier run: ratios, and qualities as they are."""

    date: str
    python: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Change:
    shown: str
    is_worse: bool = False


def main(names: Sequence[str], *, save: bool, path: Path = LAST) -> None:
    peers.install()
    started, before = time.monotonic(), os.getloadavg()[0]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        untimed = list(pool.map(partial(measure, form="small_untimed"), names))
    figures = [figure for name, found in zip(names, untimed, strict=True) for figure in (*measure(name), *found)]
    took, load = time.monotonic() - started, f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    show_all(figures, read(path), f"{took:.0f} s in all (goal ≤ {GOAL_S} s on a quiet machine); {load}")
    if save:
        write(path, figures)


def measure(name: str, form: str = "small") -> list[Figure]:
    """The figures of one bench, made in a process of its own; the yardstick before it and after it. What takes no time
    may be `small_untimed`: then it disturbs nobody, and others run beside it."""
    if not hasattr(import_module(f"bench.{name}"), form):
        return []
    before = yardstick()
    found, took = apart(_measured, name, form)
    print(f"  {name}{', untimed' if form != 'small' else ''}: {took:.0f} s", flush=True)
    return with_yardstick(found, (before + yardstick()) / 2)


def _measured(name: str, form: str) -> tuple[list[Figure], float]:
    started = time.monotonic()
    # beside the project, not in a temporary folder that may be memory
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        figures = list(getattr(import_module(f"bench.{name}"), form)(Path(folder)))
    return figures, time.monotonic() - started


def with_yardstick(figures: Sequence[Figure], seconds: float) -> list[Figure]:
    return [replace(each, reference=seconds * 1000) if each.of == YARDSTICK else each for each in figures]


# -- the last time


def rounded(value: float, digits: int = DIGITS) -> float:
    """Significant digits: more would be chance."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0.0


def change(figure: Figure, last: float | None) -> Change:
    """Of a ratio how many times it is what it was; of a quality the difference."""
    now = rounded(figure.value)
    if last is None:
        return Change("new")
    if figure.is_quality:
        more = now - last
        worse = more < 0 if figure.more_is_better else more > 0
        return Change(f"{more:+.3g}" if more else "=", worse)
    times = now / last if last else math.inf
    return Change(f"{times:.2f}×", times > WORSE)


def read(path: Path) -> Last | None:
    if not path.is_file():
        return None
    found = json.loads(path.read_text("utf-8"))
    return Last(found["date"], found["python"], found["figures"])


def write(path: Path, figures: Sequence[Figure]) -> None:
    """What another run is held against; figures of benches that did not run this time stay."""
    before, ran = read(path), {_bench(each.name) for each in figures}
    kept = {name: value for name, value in before.figures.items() if _bench(name) not in ran} if before else {}
    told = {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "figures": kept | {each.name: rounded(each.value) for each in figures},
    }
    path.write_text(json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def _bench(figure: str) -> str:
    return figure.partition(":")[0]


# -- the table


def rows(figures: Sequence[Figure], last: Mapping[str, float]) -> list[list[str]]:
    return [_row(each, last.get(each.name)) for each in figures]


def _row(figure: Figure, last: float | None) -> list[str]:
    changed = change(figure, last)
    mark = ("FELL" if figure.is_quality else "WORSE") if changed.is_worse else ""
    reference = "–" if figure.is_quality else f"{_number(figure.reference)} ({figure.of})"
    sign = "" if figure.is_quality else "×"
    then = "–" if last is None else f"{_number(last)}{sign}"
    return [
        figure.name,
        f"{_number(figure.ours)} {figure.unit}",
        reference,
        f"{_number(figure.value)}{sign}",
        then,
        changed.shown,
        mark,
    ]


def _number(value: float) -> str:
    return f"{rounded(value):,.10g}"


def show_all(figures: Sequence[Figure], last: Last | None, note: str) -> None:
    known = last.figures if last else {}
    gone = sorted(set(known) - {each.name for each in figures})
    since = f"last: {last.date}, Python {last.python}" if last else f"there is no {LAST.name} yet: --save writes it"
    show(
        "Every bench in small",
        ("figure", "ours", "reference", "ratio", "last", "change", ""),
        rows(figures, known),
        notes=(
            f"WORSE: more than {WORSE} times the ratio of the last time; FELL: a quality that is not what it was",
            "yardstick: a fixed piece of work in Python, SQLite and zlib, measured before and after each bench",
            since,
            *([f"not measured this time: {', '.join(gone)}"] if gone else []),
            note,
        ),
    )
