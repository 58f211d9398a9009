"""`python -m bench [NAME…] [--quick]`: runs the benchmarks and prints each table as it is ready.

`python -m bench quick [NAME…] [--save]`: a small form of them, as ratios beside those in `bench/last.json`.
"""

import argparse
import os
import platform
import time
from importlib import import_module
from typing import Any

from bench import quick as small_forms

NAMES = (
    "turn",
    "start",
    "commands",
    "count",
    "calibration",
    "store",
    "window",
    "valid",
    "cache",
    "agent",
    "summary",
    "extractive",
    "recall",
    "search",
    "vault",
    "answers",
    "record",
    "transfer",
    "pick",
    "memory",
    "soak",
    "streams",
    "kills",
    "web",
    "scale",
    "serve",
)
QUICK = "quick"
COUNTED = ("soak", "kills")
"""Those that take --count."""
SIZED = "scale"
"""Takes --minutes and --messages."""
LARGE = "commands"
"""Takes --full."""
SEEDED = "summary"
"""Takes --seed and --sample."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures, with peers beside us.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which ones: {', '.join(NAMES)} (default: all); {QUICK}: all, or those named, in small",
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes; BENCH_QUICK=1 does the same")
    parser.add_argument("--save", action="store_true", help=f"with {QUICK}: writes bench/last.json")
    parser.add_argument("--count", type=int, help=f"how many, for {' and '.join(COUNTED)}")
    parser.add_argument("--minutes", type=float, help=f"how long servers are killed (0: not at all), for {SIZED}")
    parser.add_argument("--messages", type=int, help=f"how many messages are loaded, for {SIZED}")
    parser.add_argument("--full", action="store_true", help=f"a million messages, for {LARGE}")
    parser.add_argument("--seed", type=int, default=0, help=f"other conversations, for {SEEDED}")
    parser.add_argument("--sample", action="store_true", help=f"lines to judge by hand instead, for {SEEDED}")
    given = parser.parse_args()
    if unknown := set(given.names) - {*NAMES, QUICK}:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join((QUICK, *NAMES))}")
    if given.save and QUICK not in given.names:
        parser.error(f"--save goes with {QUICK}")
    for name in [name for name in os.environ if name.startswith("RECTO_")]:
        del os.environ[name]  # no setting of this machine steers what is measured
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")
    chosen = [name for name in given.names if name != QUICK] or NAMES
    if QUICK in given.names:
        small_forms.main(chosen, save=given.save)
        return
    for name in chosen:
        options = {"seed": given.seed, "sample": given.sample} if name == SEEDED else {}
        options |= {"minutes": given.minutes, "messages": given.messages} if name == SIZED else {}
        options |= {"count": given.count} if name in COUNTED else {"full": given.full} if name == LARGE else {}
        _run(name, options, quick=given.quick or os.environ.get("BENCH_QUICK", "") not in ("", "0"))


def _run(name: str, options: dict[str, Any], *, quick: bool) -> None:
    started, before = time.monotonic(), os.getloadavg()[0]
    import_module(f"bench.{name}").main(quick, **options)
    print(f"  {name}: {time.monotonic() - started:.0f} s; load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")


if __name__ == "__main__":
    main()
