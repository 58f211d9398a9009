"""Requests explained, drawn from the JSON form with numbers for ids; two requests compared; windows under other
settings; how full the window was turn by turn."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recto.base.text import dollars
from recto.cli.drawing.windows import MOST, NARROW, UNKNOWN, badge, called, draw_notes, draw_parts, facts_table, grid
from recto.cli.show import counted, is_plain, literal, shortened, visible, when
from recto.window.window import SECTIONS

if TYPE_CHECKING:
    from recto.chat.blocks import MessageRange
    from recto.reports.conversation_stats import RequestUse
    from recto.reports.what_if import PlanChanges, StrategyComparison, StrategyResult, WhatIf, WindowPlan
    from recto.store.comparison import ComparedPick, Difference, PickChange, SentMessage, SharedPrefix

Json = Mapping[str, Any]
# Longer differences and lists of messages are cut to this.
MOST_LINES, NUMBERS = 24, 6
NO_NAMES: Mapping[str, str] = {}
CONVERSATION = "conversation"
"""The fact in which requests of different conversations differ."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}
PIECES = {
    "head": "the head, with the model's name",
    "tool": "a tool",
    "join": "the end of the tools",
    "system": "the instructions",
    "message": "a message",
    "tail": "the end, with the parameters",
}
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
    for shift in found.facts:
        if shift.name == CONVERSATION:
            one, other = (names.get(str(id), str(id)) for id in (shift.before, shift.after))
            console.print(Text(f"two conversations: {one} and {other}", "yellow"))
    most = sys.maxsize - 1 if whole else MOST
    draw_moved(console, "came in", "+", found.came_in, found.said_in, most)
    draw_moved(console, "went out", "-", found.went_out, found.said_out, most)
    draw_changes(console, found.changed, most, whole=whole)
    if shifts := [shift for shift in found.sections if shift.before != shift.after]:
        console.print(Text("tokens", "bold"))
        table = grid("name", "number", "number", "number")
        for shift in shifts:
            table.add_row(
                f"  {shift.name}", f"{shift.before:,}", f"→ {shift.after:,}", _change(shift.before, shift.after)
            )
        console.print(table)
    for shift in found.facts:
        if shift.name != CONVERSATION:
            console.print(Text.assemble((f"{shift.name}: ", "dim"), f"{_told(shift.before)} → {_told(shift.after)}"))
    _draw_prefix(console, found.prefix)


def draw_moved(
    console: Console, heading: str, sign: str, items: Sequence["ComparedPick"], said: Sequence["SentMessage"], most: int
) -> None:
    if not items and not said:
        return
    table, mark = grid("name", "text", "dim number"), Text(f"  {sign}", COLOURS[sign])
    if said:
        numbers = [f"#{each.number}" for each in said]
        if len(numbers) > NUMBERS:
            numbers = [*numbers[: NUMBERS - 2], "…", numbers[-1]]
        table.add_row(mark, Text.assemble(counted(len(said), "message"), (f" ({' '.join(numbers)})", "dim")), "")
    shown = items if len(items) <= most + 1 else items[:most]
    for item in shown:
        table.add_row(mark, _item(item), f"{sign}{item.tokens:,}")
    if rest := items[len(shown) :]:
        size = sum(item.tokens for item in rest)
        table.add_row("", Text(f"and {len(rest)} more; --all shows them", "dim"), f"{sign}{size:,}")
    console.print(Text(heading, "bold"))
    console.print(table)


def _item(item: "ComparedPick") -> Text:
    because = (f"{visible(item.because)}", "dim")
    if item.section == "recalled":
        return Text.assemble("recalled ", because)
    return Text.assemble(f"{item.kind} {called(_json(item))} ", badge(_json(item)), " ", because)


def _json(item: "ComparedPick") -> dict[str, Any]:
    return {"name": item.name, "server": item.server, "mode": item.mode, "score": item.score}


def draw_changes(console: Console, changes: Sequence["PickChange"], most: int, *, whole: bool) -> None:
    if not changes:
        return
    console.print(Text("changed", "bold"))
    # a changed text matters more than a changed score
    ordered = sorted(changes, key=lambda change: change.what == ("score",))
    shown = ordered if len(ordered) <= most + 1 else ordered[:most]
    for change in shown:
        after = change.after
        # a recalled message by its number, as the model reads it
        recalled = f"recalled {visible(after.because).partition(',')[0]}"
        name = recalled if after.section == "recalled" else f"{after.kind} {called(_json(after))}"
        console.print(Text.assemble(("  ~ ", "yellow"), f"{name} ", (", ".join(_words(change)), "dim")))
        lines: Iterable[str] = change.text
        if not whole and len(change.text) > MOST_LINES + 1:
            lines = [*change.text[:MOST_LINES], f"… {len(change.text) - MOST_LINES} lines more; --all shows them"]
        for line in lines:
            console.print(Text(f"      {visible(line)}", COLOURS.get(line[:1], "dim")))
    if rest := len(ordered) - len(shown):
        console.print(Text(f"    and {rest} more; --all shows them", "dim"))


def _words(change: "PickChange") -> Iterator[str]:
    before, after = change.before, change.after
    if "text" in change.what:
        yield "another text" if change.text else "another text, of which not both are kept"
    if "mode" in change.what:
        yield f"{badge(_json(before)).plain} → {badge(_json(after)).plain}"
    elif "score" in change.what:
        yield f"score {_told(before.score)} → {_told(after.score)}"
    if "section" in change.what:
        yield f"from {before.section} to {after.section}"


def _draw_prefix(console: Console, prefix: "SharedPrefix") -> None:
    console.print(Text("prefix", "bold"))
    size = f"{prefix.bytes:,} bytes, about {prefix.tokens:,} tokens"
    if prefix.broken_by is None:
        console.print(Text(f"  all {prefix.of} stable pieces came first again ({prefix.pieces} in all, {size})"))
    else:
        console.print(Text(f"  {prefix.pieces} of {prefix.of} stable pieces came first again ({size})"))
        console.print(Text(f"  broken by {visible(prefix.broken_by)}", "yellow"))
    first = prefix.first
    differs = f"the first that differs is piece {first.number}, {PIECES[first.kind]}" if first else "no piece differs"
    console.print(Text(f"  {differs}", "dim"))


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
        draw_moved(console, "came in", "+", found.difference.came_in, (), MOST)
        draw_moved(console, "went out", "-", found.difference.went_out, (), MOST)
        changed = [each for each in found.difference.changed if each.what != ("score",)]
        draw_changes(console, changed, MOST, whole=False)
    if block := found.compaction:
        about = ", an estimate" if found.is_estimate else ""
        sizes = f"{block.context_size_before:,} → {block.context_size_after:,} tokens{about}"
        console.print(Text(f"a compaction would be due: {visible(found.because)}", "yellow"))
        console.print(Text(f"{counted(block.messages_archived, 'message')} archived, {sizes}", "yellow"))
    elif found.would:
        console.print(Text(f"no compaction would be due: {visible(found.because)}"))
    draw_notes(console, found.notes)


def _changes_in_words(changes: "PlanChanges") -> str:
    told = {name: value for name, value in changes.to_json().items() if name != "from_start"}
    words = [f"{name} {value:,}" if name == "window" else f"{name} {literal(value)}" for name, value in told.items()]
    start = ["from the first message on"] if changes.from_start else []
    return ", ".join((*(visible(each).replace('"', "") for each in words), *start)) or "nothing else than it was"


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


def draw_comparison(console: Console, name: str, found: "StrategyComparison") -> None:
    runs = [*([found.recorded] if found.recorded else []), *found.runs]
    replies = max(len(run.requests) + len(run.too_large) for run in runs)
    console.print(Text(f"{name} · {visible(found.model)} · window {found.limit:,}", "bold"))
    if found.changes.to_json():
        console.print(Text(f"what if: {_changes_in_words(found.changes)}"))
    console.print(Text(f"{counted(replies, 'request')}, {counted(found.statements, 'statement')}"))
    if console.width < NARROW:
        for run in runs:
            console.print(Group(Text(run.name, "bold"), Padding.indent(facts_table(_cells(run).items()), 2)))
    else:
        table = grid("name", *["number"] * len(_cells(runs[0])))
        table.add_row(*(Text(each, "dim") for each in ("strategy", *_cells(runs[0]))))
        for run in runs:
            table.add_row(run.name, *_cells(run).values())
        console.print(table)
    for run in runs:
        if run.too_large:
            some = ", ".join(f"#{number}" for number in run.too_large[:MOST])
            more = " …" if len(run.too_large) > MOST else ""
            console.print(Text(f"{run.name}: {counted(len(run.too_large), 'request')} would not fit ({some}{more})"))
    draw_notes(console, found.notes)


def _cells(run: "StrategyResult") -> dict[str, str]:
    return {
        "tokens": f"{run.tokens:,}",
        "summaries": f"{run.summary_tokens:,}" if run.summary_tokens else NOTHING,
        "cost": "unknown" if run.cost_usd is None else dollars(run.cost_usd),
        "cached": f"{run.cached_share:.0%}",
        "compactions": f"{run.compactions:,}",
        "statements kept": f"{run.statements_share:.0%}",
    }


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
