"""Requests explained, drawn from the JSON form with numbers for ids; windows under other settings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recto.cli.drawing.windows import UNKNOWN, draw_notes, draw_parts, facts_table
from recto.cli.show import counted, literal, shortened, visible, when
from recto.window.window import SECTIONS

if TYPE_CHECKING:
    from recto.chat.blocks import MessageRange
    from recto.reports.what_if import PlanChanges, WhatIf, WindowPlan

Json = Mapping[str, Any]
NOTHING = "–"
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


# -- what if


def _row(name: str, before: int | None, after: int | None) -> Text:
    grew = f"  {after - before:+,}" if before is not None and after is not None and before != after else ""
    style = "yellow" if grew.startswith("  +") else "green"
    return Text.assemble(f"{name:<14}{_told(before, NOTHING):>9} → {_told(after, NOTHING):>9}", (grew, style))


def _told(value: Any, nothing: str = "none") -> str:
    if value is None:
        return nothing
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else shortened(str(value), 60)


def draw_what_if(console: Console, name: str, found: "WhatIf") -> None:
    console.print(Text(f"message #{found.number} of {name}", "bold"))
    console.print(Text(f"what if: {_changes_in_words(found.changes)}"))
    if found.was is None:
        console.print(Text("No context data available: no request is recorded for it.", "dim"))
    if found.error:
        console.print(Text(f"it would not fit: {visible(found.error)}", "yellow"))
    sides = [_facts_of(side) for side in (found.was, found.would)]
    for key in dict.fromkeys(key for side in sides for key in side):
        was, would = (side.get(key) for side in sides)
        is_number = isinstance(was or would, int)
        row = _row(key, was, would) if is_number else Text(f"{key:<14}{_told(was, NOTHING)} → {_told(would, NOTHING)}")
        console.print(row)
    if block := found.compaction:
        about = ", an estimate" if found.is_estimate else ""
        sizes = f"{block.context_size_before:,} → {block.context_size_after:,} tokens{about}"
        archived = f"{counted(block.messages_archived, 'message')} archived, {sizes}"
        console.print(Text(f"a compaction would be due: {visible(found.because)}; {archived}", "yellow"))
    elif found.would:
        console.print(Text(f"no compaction would be due: {visible(found.because)}"))
    draw_notes(console, found.notes)


def draw_strategies(console: Console, name: str, found: "Sequence[WhatIf]") -> None:
    """One turn as it was, and under several strategies."""
    console.print(Text(f"message #{found[0].number} of {name}", "bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("strategy", "tokens", *FATES.values(), "compaction"):
        table.add_column(heading, justify="left" if heading in ("strategy", "compaction") else "right")
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


def _facts_of(side: "WindowPlan | None") -> dict[str, Any]:
    """One side of a what-if, by name."""
    if side is None:
        return {}
    account, sizes = side.account, {each.name: each.tokens for each in side.account.sections or ()}
    facts = {"model": account.model, "strategy": account.strategy, "window": account.limit}
    facts |= {name: sizes.get(name, 0) for name in SECTIONS if sizes.get(name)}
    facts |= {"total": account.total or 0, "free": account.free or 0}
    messages = {name: _ranges(getattr(side.messages, key)) for key, name in FATES.items()}
    return facts | {name: told for name, told in messages.items() if told}


def _ranges(ranges: "Sequence[MessageRange]") -> str:
    shown = [f"#{each.first}" if each.first == each.last else f"#{each.first}…#{each.last}" for each in ranges]
    return ", ".join((*shown[:4], *(["…"] if len(shown) > 4 else [])))
