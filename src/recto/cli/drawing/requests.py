"""Requests explained, drawn from the JSON form with numbers for ids; two requests compared; windows under other
settings; how full the window was turn by turn."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recto.base.text import dollars
from recto.cli.drawing.windows import MOST, UNKNOWN, badge, called, draw_notes, draw_parts, facts_table, grid
from recto.cli.show import counted, is_plain, literal, shortened, visible, when
from recto.window.window import SECTIONS

if TYPE_CHECKING:
    from recto.chat.blocks import MessageRange
    from recto.reports.conversation_stats import RequestUse
    from recto.reports.what_if import PlanChanges, WhatIf, WindowPlan
    from recto.store.comparison import ComparedPick, Difference, PickChange

Json = Mapping[str, Any]
NO_NAMES: Mapping[str, str] = {}
COLOURS = {"+": "green", "-": "red", "~": "yellow"}
NOTHING = "–"
BAR_WIDTH = 20
FATES = {"verbatim": "verbatim", "condensed": "excerpt", "summarised": "summed up", "left_out": "left out"}


def draw_request(console: Console, record: Json, *, whole: bool = False) -> None:
    """Draw a request from `Record.to_json`."""
    console.print(Text(f"request {record.get('id') or UNKNOWN}", "bold"))
    console.print(facts_table((name, value) for name, value in _facts(record) if value))
    console.print("")
    if record.get("sections"):
        draw_parts(console, record, whole=whole, more="--all shows them")
        return
    console.print("No context data available.", style="dim")
    draw_notes(console, record.get("notes") or ())


def _facts(record: Json) -> Iterator[tuple[str, str]]:
    """Facts by name; unknown ones are empty."""
    created = f"{when(record['created'])}, " if record.get("created") else ""
    yield "when", f"{created}to get a {record.get('purpose') or 'reply'}"
    window_from = f" (window from {record['window_from']})" if record.get("window_from") else ""
    yield "model", f"{record.get('model') or UNKNOWN}{window_from}"
    parameters = ", ".join(f"{name} {value}" for name, value in (record.get("parameters") or {}).items())
    yield "parameters", parameters or "none: the model's own"
    yield "conversation", record.get("conversation") or ""
    yield "messages", _messages(record.get("messages"))
    yield "prefix", _prefix(record.get("prefix"))
    yield "tokens", _tokens(record)
    yield "reply", _reply(record)
    attempts = record.get("attempts") or ()
    tries = [f"{str(each.get('error')).rstrip('.')} (waited {each.get('wait_s') or 0:g} s)" for each in attempts]
    yield "attempts", f"{len(tries) + 1}; before the last one: {'; '.join(tries)}" if tries else ""
    pieces = f" in {counted(record['pieces'], 'piece')}" if "pieces" in record else ""
    yield "bytes", f"{record['size']:,}{pieces}" if "size" in record else ""
    yield "sha256", record.get("sha256") or ""


def _messages(range: Json | None) -> str:
    if not range:
        return ""
    said = "no history"
    if range.get("count"):
        said = f"{counted(range['count'], 'message')} of history, {range.get('first')} to {range.get('last')}"
    current = f"; answers {range['current']}" if range.get("current") else ""
    rounds = f", {counted(len(range['rounds']), 'message')} of tool calls" if range.get("rounds") else ""
    return f"{said}{current}{rounds}"


def _prefix(prefix: Json | None) -> str:
    """How much of the previous request's prefix was kept, and what broke the rest."""
    if not prefix:
        return ""
    base, kept = prefix.get("base"), prefix.get("kept") or 0
    if base is None:
        return "the first of its conversation"
    if prefix.get("broken_by"):
        return f"{kept} of {prefix.get('of')} stable pieces of {base} kept; broken by {prefix['broken_by']}"
    return f"all that was stable in {base} came first again ({counted(kept, 'piece')})"


def _tokens(record: Json) -> str:
    ours, usage = record.get("counted", record.get("total")), record.get("usage")
    if ours is None:
        return ""
    if not usage or not usage.get("reported", True):
        return f"{ours:,} counted, none reported"
    cached = f" ({usage['cache_read']:,} from its cache)" if usage.get("cache_read") else ""
    reported, output = usage.get("input") or 0, usage.get("output") or 0
    return f"{ours:,} counted, {reported:,} reported{cached}; the reply took {output:,}"


def _reply(record: Json) -> str:
    error = f": {record['error']}" if record.get("error") else ""
    if record.get("not_sent"):
        return f"not sent{error}"
    finish = f"ended by {record['finish']}{error}" if record.get("finish") else "not finished"
    return f"{record['reply']}, {finish}" if record.get("reply") else finish


# -- two requests


def draw_difference(
    console: Console, found: "Difference", *, names: Mapping[str, str] = NO_NAMES, whole: bool = False
) -> None:
    """Draw the parts that differ. `names` has short names for ids."""
    before, after = (names.get(id, id) for id in (found.before, found.after))
    console.print(Text.assemble(("from ", "dim"), before, (" to ", "dim"), after, style="bold"))
    draw_moves(console, found, sys.maxsize - 1 if whole else MOST)
    if shifts := [shift for shift in found.sections if shift.before != shift.after]:
        console.print(Text("tokens", "bold"))
        table = grid("name", "number", "number", "number")
        for shift in shifts:
            table.add_row(
                f"  {shift.name}", f"{shift.before:,}", f"→ {shift.after:,}", _change(shift.before, shift.after)
            )
        console.print(table)
    for shift in found.facts:
        console.print(Text.assemble((f"{shift.name}: ", "dim"), f"{_told(shift.before)} → {_told(shift.after)}"))
    if prefix := found.prefix:
        told = _prefix(prefix.to_json() | {"base": before})
        console.print(Text.assemble(("prefix: ", "dim"), (visible(told), "yellow" if prefix.broken_by else "")))


def draw_moves(console: Console, found: "Difference", most: int) -> None:
    """What came in, went out and changed; a change of the score alone is none to a reader."""
    changes = [change for change in found.changed if change.what != ("score",)]
    moved = [("came in", "+", item, "") for item in found.came_in]
    moved += [("went out", "-", item, "") for item in found.went_out]
    moved += [("changed", "~", change.after, ", ".join(_words(change))) for change in changes]
    for heading, group in groupby(moved, lambda each: each[0]):
        console.print(Text(heading, "bold"))
        table, items = grid("name", "text", "dim number"), list(group)
        shown = items if len(items) <= most + 1 else items[:most]
        for _, sign, item, words in shown:
            size = "" if words else f"{sign}{item.tokens:,}"
            table.add_row(Text(f"  {sign}", COLOURS[sign]), _item(item, words), size)
        if rest := len(items) - len(shown):
            table.add_row("", Text(f"and {rest} more; --all shows them", "dim"), "")
        console.print(table)


def _item(item: "ComparedPick", words: str) -> Text:
    if item.section == "recalled":
        return Text.assemble("recalled ", (visible(words or item.because), "dim"))
    about = _json(item)
    shown = Text("") if words else Text.assemble(badge(about), " ")
    return Text.assemble(f"{item.kind} {called(about)} ", shown, (words or visible(item.because), "dim"))


def _json(item: "ComparedPick") -> dict[str, Any]:
    return {"name": item.name, "server": item.server, "mode": item.mode, "score": item.score}


def _words(change: "PickChange") -> Iterator[str]:
    before, after = change.before, change.after
    if "text" in change.what:
        yield "another text"
    if "mode" in change.what:
        yield f"{badge(_json(before)).plain} → {badge(_json(after)).plain}"
    if "section" in change.what:
        yield f"from {before.section} to {after.section}"


def _change(before: int | None, after: int | None) -> Text:
    if before is None or after is None or before == after:
        return Text("")
    return Text(f"{after - before:+,}", "green" if after < before else "yellow")


def _told(value: Any, nothing: str = "none") -> str:
    if value is None:
        return nothing
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else shortened(str(value), 60)


# -- what if


def draw_what_if(console: Console, name: str, found: "WhatIf") -> None:
    models = dict.fromkeys(side.account.model or UNKNOWN for side in (found.was, found.would) if side)
    console.print(Text(f"message #{found.number} of {name} · {visible(' → '.join(models))}", "bold"))
    console.print(Text(f"what if: {_changes_in_words(found.changes)}"))
    if found.was is None:
        console.print(Text("No context data available: no request is recorded for it.", "dim"))
    if found.error:
        console.print(Text(f"it would not fit: {visible(found.error)}", "yellow"))
    console.print(_windows(found.was, found.would))
    if found.difference:
        draw_moves(console, found.difference, MOST)
    if block := found.compaction:
        about = ", an estimate" if found.is_estimate else ""
        sizes = f"{block.context_size_before:,} → {block.context_size_after:,} tokens{about}"
        console.print(Text(f"a compaction would be due: {visible(found.because)}", "yellow"))
        console.print(Text(f"{counted(block.messages_archived, 'message')} archived, {sizes}", "yellow"))
    elif found.would:
        console.print(Text(f"no compaction would be due: {visible(found.because)}"))
    draw_notes(console, found.notes)


def draw_strategies(console: Console, name: str, found: "Sequence[WhatIf]") -> None:
    """One turn as it was, and under several strategies."""
    console.print(Text(f"message #{found[0].number} of {name}", "bold"))
    table = grid("name", *["number"] * (len(FATES) + 1), "text")
    table.add_row(*(Text(each, "dim") for each in ("strategy", "tokens", *FATES.values(), "compaction")))
    sides = [("as it was", found[0].was, ""), *((each.changes.strategy, each.would, _due(each)) for each in found)]
    for strategy, side, due in sides:
        ranges = [getattr(side.messages, key) if side else () for key in FATES]
        counts = (str(sum(each.last - each.first + 1 for each in some)) for some in ranges)
        table.add_row(strategy, _told(side.account.total if side else None, NOTHING), *counts, due)
    console.print(table)
    draw_notes(console, dict.fromkeys(note for each in found for note in each.notes))


def _due(found: "WhatIf") -> str:
    if found.error:
        return f"would not fit: {visible(found.error)}"
    return f"due: {visible(found.because)}" if found.compaction else ""


def _changes_in_words(changes: "PlanChanges") -> str:
    told = changes.to_json().items()
    words = [f"{name} {value:,}" if name == "window" else f"{name} {literal(value)}" for name, value in told]
    return ", ".join(visible(each).replace('"', "") for each in words) or "nothing else than it was"


def _windows(was: "WindowPlan | None", would: "WindowPlan | None") -> Table:
    table = grid("name")
    for _ in range(3):
        table.add_column(justify="right", overflow="fold")
    table.add_row("", Text("was", "bold"), Text("would", "bold"))
    for key, name in (("strategy", "strategy"), ("limit", "window")):
        table.add_row(name, *(_told(getattr(side.account, key) if side else None, NOTHING) for side in (was, would)))
    sides = [_section_tokens(side) if side else {} for side in (was, would)]
    for name in (*SECTIONS, "total", "free"):
        if any(name in side for side in sides):
            before, after = (side.get(name, 0) if side else None for side in sides)
            style = "bold" if name == "total" else ""
            told = (Text(_told(size, NOTHING), style) for size in (before, after))
            table.add_row(Text(name, style), *told, _change(before, after))
    for key, name in FATES.items():
        ranges = [getattr(side.messages, key) if side else () for side in (was, would)]
        if any(ranges):
            table.add_row(name, *map(_ranges, ranges))
    return table


def _section_tokens(side: "WindowPlan") -> dict[str, int]:
    sections = {each.name: each.tokens for each in side.account.sections or ()}
    return sections | {"total": side.account.total or 0, "free": side.account.free or 0}


def _ranges(ranges: "Sequence[MessageRange]") -> str:
    shown = [f"#{each.first}" if each.first == each.last else f"#{each.first}…#{each.last}" for each in ranges]
    return ", ".join((*shown[:4], *(["…"] if len(shown) > 4 else []))) or NOTHING


def use_in_lines(uses: Sequence["RequestUse"]) -> Iterator[str]:
    """A line for each reply: fill of the window, tokens, cost, and the compaction before it."""
    width = max((len(f"{each.tokens:,}") for each in uses), default=1)
    for each in uses:
        share = each.tokens / each.limit if each.limit else 0.0
        bar = "" if is_plain() else f"{'█' * round(BAR_WIDTH * min(share, 1.0)):<{BAR_WIDTH}} "
        cost = "" if each.usage.cost_usd is None else dollars(each.usage.cost_usd)
        cached = f"{each.usage.cache_read:,} cached" if each.usage.cache_read else ""
        compacted = f"compaction {each.compaction}" if each.compaction else ""
        beside = " · ".join(filter(None, (cached, cost, compacted)))
        yield f"#{each.number:<5}{bar}{share:>4.0%} {each.tokens:>{width},}  {beside}".rstrip()
