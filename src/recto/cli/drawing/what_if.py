"""Two windows side by side, as a turn had it and as it would have; strategies side by side over a conversation; how
full the window was turn by turn."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recto.base.text import dollars
from recto.cli.drawing.picks import NARROW
from recto.cli.drawing.requests import MOST, draw_changes, draw_moved
from recto.cli.drawing.windows import UNKNOWN, facts_table
from recto.cli.show import counted, is_plain, literal, visible
from recto.window.window import SECTIONS

if TYPE_CHECKING:
    from recto.chat.blocks import MessageRange
    from recto.reports.request_use import RequestUse
    from recto.reports.what_if import PlanChanges, StrategyComparison, StrategyRun, WhatIf, WindowPlan

NOTHING = "–"
BAR_WIDTH = 20
FATES = {"verbatim": "verbatim", "condensed": "excerpt", "summarised": "summed up", "left_out": "left out"}


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
    for line in _outcome(found):
        console.print(Text(visible(line), "yellow" if found.compaction else ""))
    for note in found.notes:
        console.print(Text(f"· {visible(note)}", "dim"))


def _changes_in_words(changes: "PlanChanges") -> str:
    told = {name: value for name, value in changes.to_json().items() if name != "from_start"}
    words = [f"{name} {value:,}" if name == "window" else f"{name} {literal(value)}" for name, value in told.items()]
    start = ["from the first message on"] if changes.from_start else []
    return ", ".join((*(visible(each).replace('"', "") for each in words), *start)) or "nothing else than it was"


def _windows(was: "WindowPlan | None", would: "WindowPlan | None") -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", overflow="fold")
    table.add_row("", Text("was", "bold"), Text("would", "bold"))
    for key, name in (("strategy", "strategy"), ("limit", "window")):
        table.add_row(name, *(_told(getattr(side.account, key) if side else None) for side in (was, would)))
    sides = [_tokens(side) if side else {} for side in (was, would)]
    for name in [each for each in (*SECTIONS, "total", "free") if any(each in side for side in sides)]:
        before, after = (side.get(name, 0) if side else None for side in sides)
        style = "bold" if name == "total" else ""
        table.add_row(Text(name, style), Text(_told(before), style), Text(_told(after), style), _change(before, after))
    for key, name in FATES.items():
        ranges = [getattr(side.messages, key) if side else () for side in (was, would)]
        if any(ranges):
            table.add_row(name, *map(_ranges, ranges))
    return table


def _tokens(side: "WindowPlan") -> dict[str, int]:
    sections = {each.name: each.tokens for each in side.account.sections or ()}
    return sections | {"total": side.account.total or 0, "free": side.account.free or 0}


def _change(before: int | None, after: int | None) -> Text:
    if before is None or after is None or before == after:
        return Text("")
    return Text(f"{after - before:+,}", "green" if after < before else "yellow")


def _told(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _ranges(ranges: "Sequence[MessageRange]") -> str:
    shown = [f"#{each.first}" if each.first == each.last else f"#{each.first}…#{each.last}" for each in ranges]
    return ", ".join((*shown[:4], *(["…"] if len(shown) > 4 else []))) or NOTHING


def _outcome(found: "WhatIf") -> Iterator[str]:
    if block := found.compaction:
        sizes = f"{block.context_size_before:,} → {block.context_size_after:,} tokens"
        about = ", an estimate" if found.is_estimate else ""
        yield f"a compaction would be due: {found.because}"
        yield f"{counted(block.messages_archived, 'message')} archived, {sizes}{about}"
    elif found.would:
        yield f"no compaction would be due: {found.because}"


def draw_comparison(console: Console, name: str, found: "StrategyComparison") -> None:
    runs = [*([found.recorded] if found.recorded else []), *found.runs]
    replies = max(len(run.requests) + len(run.too_large) for run in runs)
    console.print(Text(f"{name} · {visible(found.model)} · window {found.limit:,}", "bold"))
    if found.changes.to_json():
        console.print(Text(f"what if: {_changes_in_words(found.changes)}"))
    console.print(Text(f"{counted(replies, 'request')}, {counted(found.facts, 'fact')} stated"))
    console.print(Group(*map(_run_in_lines, runs)) if console.width < NARROW else _runs_in_rows(runs))
    for run in runs:
        if run.too_large:
            some = ", ".join(f"#{number}" for number in run.too_large[:MOST])
            more = " …" if len(run.too_large) > MOST else ""
            console.print(Text(f"{run.name}: {counted(len(run.too_large), 'request')} would not fit ({some}{more})"))
    for note in found.notes:
        console.print(Text(f"· {visible(note)}", "dim"))


def _runs_in_rows(runs: Sequence["StrategyRun"]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in (headings := list(_cells(runs[0]))):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(each, "dim") for each in ("strategy", *headings)))
    for run in runs:
        table.add_row(run.name, *_cells(run).values())
    return table


def _run_in_lines(run: "StrategyRun") -> Group:
    """For a narrow screen."""
    return Group(Text(run.name, "bold"), Padding.indent(facts_table(_cells(run).items()), 2))


def _cells(run: "StrategyRun") -> dict[str, str]:
    cost = run.cost_usd
    return {
        "tokens": f"{run.tokens:,}",
        "summaries": f"{run.summary_tokens:,}" if run.summary_tokens else NOTHING,
        "cost": "unknown" if cost is None else dollars(cost),
        "cached": f"{run.cached_share:.0%}",
        "compactions": f"{run.compactions:,}",
        "facts kept": f"{run.facts_share:.0%}",
    }


def use_in_lines(uses: Sequence["RequestUse"]) -> Iterator[str]:
    """A line for each reply: how full its window was, tokens, what it cost, and the compaction before it."""
    width = max((len(f"{each.tokens:,}") for each in uses), default=1)
    for each in uses:
        share = each.tokens / each.limit if each.limit else 0.0
        bar = "" if is_plain() else f"{'█' * round(BAR_WIDTH * min(share, 1.0)):<{BAR_WIDTH}} "
        cost = "" if each.usage.cost_usd is None else dollars(each.usage.cost_usd)
        cached = f"{each.usage.cache_read:,} cached" if each.usage.cache_read else ""
        compacted = f"compaction {each.compaction}" if each.compaction else ""
        beside = " · ".join(filter(None, (cached, cost, compacted)))
        yield f"#{each.number:<5}{bar}{share:>4.0%} {each.tokens:>{width},}  {beside}".rstrip()
