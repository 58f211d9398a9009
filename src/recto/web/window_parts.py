"""Windows as the page shows them: a bar by section, and every pick with its tokens, how it came in and why.

Reads the JSON form, of a window that would be sent and of a request that was, with numbers in place of ids.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from recto.base.text import counted
from recto.sources.source import SOURCE_KINDS

Json = Mapping[str, Any]
# From this share of the window on the meter warns.
WARNS_AT = 80
_SAID = ("message", "messages", "rounds")


class Bar(Struct, frozen=True):
    """A part of the meter."""

    name: str
    tokens: int
    share: float
    """Of the window, in percent."""


def bars(window: Json) -> list[Bar]:
    limit = window.get("limit") or 1
    parts = [(section["name"], section.get("tokens") or 0) for section in window.get("sections") or ()]
    parts.append(("reserve", window.get("reserve") or 0))
    return [Bar(name, tokens, round(100 * tokens / limit, 2)) for name, tokens in parts if tokens]


def percent(window: Json) -> int:
    """How full the window is, the room for the reply included: at 100 something has to go."""
    limit = window.get("limit") or 1
    return round(100 * ((window.get("total") or 0) + (window.get("reserve") or 0)) / limit)


def sections(window: Json) -> list[dict[str, Any]]:
    """Each section with its picks, in words."""
    return [
        {
            "name": section["name"],
            "tokens": section.get("tokens") or 0,
            "budget": section.get("budget"),
            "picks": [pick_values(pick, place) for place, pick in enumerate(section.get("picks") or ())],
        }
        for section in window.get("sections") or ()
    ]


def pick_values(pick: Json, place: int = 0) -> dict[str, Any]:
    kind, name = str(pick.get("kind") or ""), str(pick.get("name") or "")
    mode, server = str(pick.get("mode") or "always"), pick.get("server")
    is_source = kind in SOURCE_KINDS
    prefix = {"reference": "ref"}.get(kind, kind)
    return {
        "kind": kind,
        "name": f"{server}:{name}" if server else name,
        "mode": mode.capitalize(),
        "badged": is_source or kind in ("document", "memory", "fact"),
        "score": pick.get("score"),
        "tokens": pick.get("tokens") or 0,
        "because": str(pick.get("because") or ""),
        "place": place,
        "has_text": bool(pick.get("sha256")),
        "source": (f"{prefix}:{server}/{name}" if server else f"{prefix}:{name}") if is_source else "",
        "said": kind in _SAID,
    }


def counts_line(window: Json) -> str:
    """5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"""
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in SOURCE_KINDS}
    for section in window.get("sections") or ():
        for pick in section.get("picks") or ():
            if pick.get("kind") in by_kind:
                by_kind[pick["kind"]][str(pick.get("mode") or "always")] += 1
    return ", ".join(f"{counted(modes.total(), kind)} ({_modes(modes)})" for kind, modes in by_kind.items() if modes)


def _modes(modes: Counter[str]) -> str:
    if len(modes) == 1:
        (mode,) = modes
        return mode if modes.total() == 1 else f"all {mode}"
    return ", ".join(f"{modes[mode]} {mode}" for mode in sorted(modes))


def left_out(window: Json) -> list[dict[str, Any]]:
    return [pick_values(pick) for pick in window.get("not_picked") or ()]


def plan_words(plan: Json | None) -> list[str]:
    """What the strategy decided, in sentences."""
    if not plan:
        return []
    told = [f"{plan.get('strategy')}: {plan.get('because')}"] if plan.get("because") else []
    for key, words in (("summed_up", "would be summed up"), ("left_out", "would be left out")):
        part = plan.get(key) or {}
        if part.get("count"):
            told.append(f"{counted(part['count'], 'message')} ({part.get('tokens') or 0:,} tokens) {words}")
    told += [f"{counted(len(plan['excerpts']), 'message')} sent as an excerpt"] if plan.get("excerpts") else []
    return told + _lifted(plan.get("lifted") or ())


def _lifted(lifts: Iterable[Json]) -> list[str]:
    return [f"still sent: {', '.join(lift.get('messages') or ())} ({lift.get('because', '')})" for lift in lifts]
