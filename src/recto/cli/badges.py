"""Badges: how sources came into a window, as people read it: `[Always]`, `[Manual]`, `[Agent 0.87]`; and their counts.

Reads the JSON form of picks; what an older version did not write is left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from recto.cli.show import counted, visible

Json = Mapping[str, Any]
KINDS = ("rule", "reference", "tool")
COLOURS = {"always": "cyan", "manual": "green", "agent": "magenta"}


def badge(pick: Json) -> Text:
    mode = visible(str(pick.get("mode") or "always"))
    score = f" {pick['score']:.2f}" if mode == "agent" and isinstance(pick.get("score"), int | float) else ""
    return Text(f"[{mode.capitalize()}{score}]", COLOURS.get(mode, "dim"))


def called(pick: Json) -> str:
    """A tool with the server that has it."""
    name, server = (visible(str(pick.get(key) or "")) for key in ("name", "server"))
    return f"{server}:{name}" if server else name


def is_source(pick: Json) -> bool:
    return pick.get("kind") in KINDS


def counts_line(picks: Iterable[Json]) -> str:
    """5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"""
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for pick in filter(is_source, picks):
        by_kind[pick["kind"]][str(pick.get("mode") or "always")] += 1
    return ", ".join(f"{counted(modes.total(), kind)} ({_modes(modes)})" for kind, modes in by_kind.items() if modes)


def _modes(modes: Counter[str]) -> str:
    if len(modes) == 1:
        (mode,) = modes
        return mode if modes.total() == 1 else f"all {mode}"
    return ", ".join(f"{modes[mode]} {mode}" for mode in sorted(modes))
