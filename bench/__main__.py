"""`python -m bench [NAME…] [--quick]`: runs the benchmarks and prints each table as it is ready."""

import argparse
import os
import platform
import time
from importlib import import_module

NAMES = (
    "turn",
    "start",
    "count",
    "calibration",
    "store",
    "window",
    "valid",
    "cache",
    "facts",
    "summary",
    "recall",
    "search",
    "vault",
    "record",
    "pick",
    "soak",
    "streams",
    "kills",
)
COUNTED = ("soak", "kills")
"""Those that take --count."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures, with peers beside us.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="smaller sizes; BENCH_QUICK=1 does the same")
    parser.add_argument("--count", type=int, help=f"how many, for {' and '.join(COUNTED)}")
    given = parser.parse_args()
    if unknown := set(given.names) - set(NAMES):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    for name in [name for name in os.environ if name.startswith("RECTO_")]:
        del os.environ[name]  # no setting of this machine steers what is measured
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")
    for name in given.names or NAMES:
        _run(name, given.count, quick=given.quick or os.environ.get("BENCH_QUICK", "") not in ("", "0"))


def _run(name: str, count: int | None, *, quick: bool) -> None:
    started, before = time.monotonic(), os.getloadavg()[0]
    import_module(f"bench.{name}").main(quick, *([count] if name in COUNTED else []))
    print(f"  {name}: {time.monotonic() - started:.0f} s; load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")


if __name__ == "__main__":
    main()
