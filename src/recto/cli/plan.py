"""A plan in words: what is kept, summed up, left out and lifted, and why. Reads the JSON form of a plan."""

from collections.abc import Iterator, Mapping
from typing import Any

from recto.cli.show import counted

Json = Mapping[str, Any]
RANGES = {"kept": "kept", "summed_up": "summed up", "left_out": "left out"}


def plan_facts(plan: Json) -> Iterator[tuple[str, str]]:
    """By name; plans of older versions say less."""
    for key, name in RANGES.items():
        if range := _some(plan, key):
            ends = dict.fromkeys(str(range[end]) for end in ("first", "last") if range.get(end))
            yield name, f"{_size(range)} ({'…'.join(ends)})" if ends else _size(range)
    for lift in plan.get("lifted") or ():
        ids = ", ".join(lift.get("messages") or ())
        yield "still sent", f"{lift.get('because', '')}, {lift.get('tokens') or 0:,} tokens ({ids})"
    for key, most in (plan.get("excerpts") or {}).items():
        yield "excerpt", f"{_whose(key)}, at most {most:,} tokens of it"
    if bands := plan.get("bands"):
        yield (
            "bands",
            " · ".join(
                f"{band.get('name')} {band.get('tokens') or 0:,} of {band.get('budget') or 0:,}" for band in bands
            ),
        )


def _size(range: Json) -> str:
    return f"{counted(range['count'], 'message')}, {range.get('tokens') or 0:,} tokens"


def _whose(key: str) -> str:
    message, _, call = key.partition("/")
    return f"the result of {call} in {message}" if call else "your message" if message == "next" else message


def compacting_in_words(plan: Json) -> str:
    """What the next message would do to the window."""
    done = [f"{_size(range)} {name}" for key, name in RANGES.items() if key != "kept" and (range := _some(plan, key))]
    done += [f"{counted(len(plan['excerpts']), 'message')} sent as an excerpt"] if plan.get("excerpts") else []
    frees = f"at least {plan['frees']:,} tokens freed" if plan.get("frees") else ""
    return ", ".join(part for part in (*done, frees) if part) or "what is still sent changes"


def _some(plan: Json, key: str) -> Json | None:
    range: Json = plan.get(key) or {}
    return range if range.get("count") else None
