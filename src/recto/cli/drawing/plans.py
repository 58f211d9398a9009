"""Plans in words: what is kept, summed up, left out and recalled; which strategy decides. Reads a plan's JSON form."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from recto.cli.show import counted

if TYPE_CHECKING:
    from recto.settings import ContextSettings
    from recto.window.plan import Plan
    from recto.window.window import Window

Json = Mapping[str, Any]
RANGES = {"kept": "kept", "summed_up": "summed up", "left_out": "left out"}
FOLLOWS_SETTINGS = "default"
"""What is written in place of a strategy to follow agent, model and settings again."""
MOST_NUMBERS = 12


def plan_facts(plan: Json) -> Iterator[tuple[str, str]]:
    """By name; plans of older versions say less."""
    for key, name in RANGES.items():
        if range := _some(plan, key):
            ends = dict.fromkeys(str(range[end]) for end in ("first", "last") if range.get(end))
            yield name, f"{_size(range)} ({'…'.join(ends)})" if ends else _size(range)
    for lift in plan.get("lifted") or ():
        messages = ", ".join(lift.get("messages") or ())
        yield "still sent", f"{lift.get('because', '')}, {lift.get('tokens') or 0:,} tokens ({messages})"
    for key, most in (plan.get("excerpts") or {}).items():
        yield "excerpt", f"{_whose(key)}, at most {most:,} tokens of it"
    if bands := plan.get("bands"):
        yield "bands", " · ".join(_band(band) for band in bands)


def _band(band: Json) -> str:
    return f"{band.get('name')} {band.get('tokens') or 0:,} of {band.get('budget') or 0:,}"


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


def strategy_in_words(chosen: str | None, used: str | None) -> str:
    if chosen is None:
        return f"{used or 'unknown'}, as agent, model and settings say"
    if used in (chosen, None):
        return f"{chosen}, chosen for this conversation"
    return f"{used}, for now; {chosen} is chosen for this conversation"


def outlook(context: "ContextSettings", plan: "Plan") -> str:
    """What the next message would do to messages that do not fit; empty when all do."""
    if plan.cut is None:
        return ""
    is_kept = context.enabled and not plan.cut.passing
    return "would be compacted" if is_kept else "would be sent without"


def recalled_in_words(window: "Window") -> str | None:
    """Which messages were recalled, by their numbers; None where none was."""
    picks = [pick for section in window.sections if section.name == "recalled" for pick in section.picks]
    # several passages of one message are one message
    numbers = list(dict.fromkeys(pick.because.partition(",")[0] for pick in picks))
    if not numbers:
        return None
    more = " …" if len(numbers) > MOST_NUMBERS else ""
    return f"recalled {counted(len(numbers), 'earlier message')} ({' '.join(numbers[:MOST_NUMBERS])}{more})"
