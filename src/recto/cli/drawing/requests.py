"""Requests explained: when, with what, and what became of them. Draws the JSON form, with numbers for ids."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from recto.cli.drawing.picks import called
from recto.cli.drawing.windows import UNKNOWN, draw_notes, draw_parts, facts_table
from recto.cli.show import counted, when

Json = Mapping[str, Any]


def draw_request(console: Console, record: Json, *, whole: bool = False) -> None:
    """A request as `Record.to_json` gives it."""
    console.print(Text(f"request {record.get('id') or UNKNOWN}", "bold"))
    console.print(facts_table(_facts(record)))
    console.print("")
    if record.get("sections"):
        draw_parts(console, record, whole=whole, more="--all shows them")
        return
    console.print("No context data available.", style="dim")
    if facts := list(_listed(record)):
        console.print(facts_table(facts))
    draw_notes(console, record)


def _listed(record: Json) -> Iterator[tuple[str, str]]:
    """The oldest records hold only names."""
    for name in ("rules", "references", "tools"):
        if isinstance(some := record.get(name), list):
            yield name, ", ".join(called(each) if isinstance(each, Mapping) else str(each) for each in some) or "none"


def _facts(record: Json) -> list[tuple[str, str]]:
    """In the order it is told; what an older version did not record is left out."""
    window_from = f" (window from {record['window_from']})" if record.get("window_from") else ""
    parameters = ", ".join(f"{name} {value}" for name, value in (record.get("parameters") or {}).items())
    created = f"{when(record['created'])}, " if record.get("created") else ""
    pieces = f" in {counted(record['pieces'], 'piece')}" if "pieces" in record else ""
    facts = [
        ("when", f"{created}to get a {record.get('purpose') or 'reply'}"),
        ("model", f"{record.get('model') or UNKNOWN}{window_from}"),
        ("parameters", parameters or "none: the model's own"),
        ("conversation", record.get("conversation") or ""),
        ("messages", _messages(record.get("messages"))),
        ("prefix", _prefix(record)),
        ("tokens", _tokens(record)),
        ("reply", _reply(record)),
        ("attempts", _attempts(record.get("attempts") or ())),
        ("bytes", f"{record['size']:,}{pieces}" if "size" in record else ""),
        ("sha256", record.get("sha256") or ""),
    ]
    return [(name, value) for name, value in facts if value]


def _messages(range: Json | None) -> str:
    if not range:
        return ""
    said = "no history"
    if range.get("count"):
        said = f"{counted(range['count'], 'message')} of history, {range.get('first')} to {range.get('last')}"
    current = f"; answers {range['current']}" if range.get("current") else ""
    rounds = f", {counted(len(range['rounds']), 'message')} of tool calls" if range.get("rounds") else ""
    return f"{said}{current}{rounds}"


def _prefix(record: Json) -> str:
    """How much of the request before this one came first again, and what broke the rest."""
    prefix = record.get("prefix")
    if not prefix:
        return ""
    base, kept = prefix.get("base"), prefix.get("kept") or 0
    if base is None:
        return "the first of its conversation"
    if prefix.get("broken_by"):
        return f"{kept} of {prefix.get('of')} stable pieces of {base} kept; broken by {prefix['broken_by']}"
    return f"all that was stable in {base} came first again ({counted(kept, 'piece')})"


def _tokens(record: Json) -> str:
    counted_here = record.get("counted", record.get("total"))
    usage = record.get("usage")
    if counted_here is None:
        return ""
    if not usage or not usage.get("reported", True):
        return f"{counted_here:,} counted, none reported"
    cached = f" ({usage['cache_read']:,} from its cache)" if usage.get("cache_read") else ""
    reported, output = usage.get("input") or 0, usage.get("output") or 0
    return f"{counted_here:,} counted, {reported:,} reported{cached}; the reply took {output:,}"


def _reply(record: Json) -> str:
    error = f": {record['error']}" if record.get("error") else ""
    finish = f"ended by {record['finish']}{error}" if record.get("finish") else "not finished"
    return f"{record['reply']}, {finish}" if record.get("reply") else finish


def _attempts(attempts: Any) -> str:
    tries = [f"{str(each.get('error')).rstrip('.')} (waited {each.get('wait_s') or 0:g} s)" for each in attempts]
    return f"{len(tries) + 1}; before the last one: {'; '.join(tries)}" if tries else ""
