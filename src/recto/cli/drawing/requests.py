"""Requests explained: when, with what, and what became of them. Draws the JSON form, with numbers for ids.

Two requests compared. Draws a Difference; parts without a difference are left out.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recto.cli.drawing.picks import badge, called
from recto.cli.drawing.windows import UNKNOWN, draw_notes, draw_parts, facts_table
from recto.cli.show import counted, shortened, visible, when

if TYPE_CHECKING:
    from recto.store.comparison import ComparedPick, Difference, PickChange, SentMessage, SharedPrefix


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
    draw_notes(console, record)


def _facts(record: Json) -> list[tuple[str, str]]:
    """In the order it is told; what is not known is left out."""
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
    if record.get("not_sent"):
        return f"not sent{error}"
    finish = f"ended by {record['finish']}{error}" if record.get("finish") else "not finished"
    return f"{record['reply']}, {finish}" if record.get("reply") else finish


def _attempts(attempts: Any) -> str:
    tries = [f"{str(each.get('error')).rstrip('.')} (waited {each.get('wait_s') or 0:g} s)" for each in attempts]
    return f"{len(tries) + 1}; before the last one: {'; '.join(tries)}" if tries else ""


# Of longer lists, and of longer differences between two texts, only this much is drawn.
MOST, MOST_LINES = 8, 24
NUMBERS = 6
NO_NAMES: Mapping[str, str] = {}
CONVERSATION = "conversation"
"""The fact that two requests of different conversations differ in."""
COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def draw_difference(
    console: Console, found: "Difference", *, names: Mapping[str, str] = NO_NAMES, whole: bool = False
) -> None:
    """`names` has short names for ids."""
    before, after = (names.get(id, id) for id in (found.before, found.after))
    console.print(Text.assemble(("from ", "dim"), before, (" to ", "dim"), after, style="bold"))
    apart = [shift for shift in found.facts if shift.name == CONVERSATION]
    for shift in apart:
        one, other = (names.get(str(id), str(id)) for id in (shift.before, shift.after))
        console.print(Text(f"two conversations: {one} and {other}", "yellow"))
    most = sys.maxsize - 1 if whole else MOST
    draw_moved(console, "came in", "+", found.came_in, found.said_in, most)
    draw_moved(console, "went out", "-", found.went_out, found.said_out, most)
    draw_changes(console, found.changed, most, whole=whole)
    _draw_tokens(console, found)
    for shift in (each for each in found.facts if each not in apart):
        console.print(Text.assemble((f"{shift.name}: ", "dim"), f"{_told(shift.before)} → {_told(shift.after)}"))
    _draw_prefix(console, found.prefix)


def draw_moved(
    console: Console, heading: str, sign: str, items: Sequence["ComparedPick"], said: Sequence["SentMessage"], most: int
) -> None:
    if not items and not said:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    if said:
        table.add_row(_sign(sign), _said_in_short(said), "")
    shown = items if len(items) <= most + 1 else items[:most]
    for item in shown:
        table.add_row(_sign(sign), _item(item), f"{sign}{item.tokens:,}")
    if rest := items[len(shown) :]:
        size = sum(item.tokens for item in rest)
        table.add_row("", Text(f"and {len(rest)} more; --all shows them", "dim"), f"{sign}{size:,}")
    console.print(Text(heading, "bold"))
    console.print(table)


def _sign(sign: str) -> Text:
    return Text(f"  {sign}", COLOURS[sign])


def _said_in_short(said: Sequence["SentMessage"]) -> Text:
    numbers = [f"#{each.number}" for each in said]
    if len(numbers) > NUMBERS:
        numbers = [*numbers[: NUMBERS - 2], "…", numbers[-1]]
    return Text.assemble(counted(len(said), "message"), (f" ({' '.join(numbers)})", "dim"))


def _item(item: "ComparedPick") -> Text:
    pick = _json(item)
    if item.section == "recalled":
        return Text.assemble("recalled ", (visible(item.because), "dim"))
    return Text.assemble(f"{item.kind} {called(pick)} ", badge(pick), (f" {visible(item.because)}", "dim"))


def _json(item: "ComparedPick") -> dict[str, Any]:
    return {"name": item.name, "server": item.server, "mode": item.mode, "score": item.score}


# -- what changed


def draw_changes(console: Console, changes: Sequence["PickChange"], most: int, *, whole: bool) -> None:
    if not changes:
        return
    console.print(Text("changed", "bold"))
    # another text tells more than another score
    ordered = sorted(changes, key=lambda change: change.what == ("score",))
    shown = ordered if len(ordered) <= most + 1 else ordered[:most]
    for change in shown:
        console.print(Text.assemble(("  ~ ", "yellow"), _change(change)))
        for line in _folded(change.text, None if whole else MOST_LINES):
            console.print(Text(f"      {visible(line)}", COLOURS.get(line[:1], "dim")))
    if rest := len(ordered) - len(shown):
        console.print(Text(f"    and {rest} more; --all shows them", "dim"))


def _change(change: "PickChange") -> Text:
    before, after = change.before, change.after
    name = f"{after.kind} {called(_json(after))}"
    if after.section == "recalled":  # by its number, as the model reads it
        name = f"recalled {visible(after.because).partition(',')[0]}"
    return Text.assemble(f"{name} ", (", ".join(_words(change, before, after)), "dim"))


def _words(change: "PickChange", before: "ComparedPick", after: "ComparedPick") -> Iterator[str]:
    if "text" in change.what:
        yield "another text" if change.text else "another text, of which not both are kept"
    if "mode" in change.what:
        yield f"{badge(_json(before)).plain} → {badge(_json(after)).plain}"
    elif "score" in change.what:
        yield f"score {_told(before.score)} → {_told(after.score)}"
    if "section" in change.what:
        yield f"from {before.section} to {after.section}"


def _folded(lines: Sequence[str], most: int | None) -> Iterable[str]:
    if most is None or len(lines) <= most + 1:
        return lines
    return [*lines[:most], f"… {len(lines) - most} lines more; --all shows them"]


# -- numbers and the prefix


def _draw_tokens(console: Console, found: "Difference") -> None:
    shifts = [shift for shift in found.sections if shift.before != shift.after]
    if not shifts:
        return
    console.print(Text("tokens", "bold"))
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in range(3):
        table.add_column(justify="right", no_wrap=True)
    for shift in shifts:
        more = shift.after - shift.before
        change = Text(f"{more:+,}", "green" if more < 0 else "yellow")
        table.add_row(f"  {shift.name}", f"{shift.before:,}", f"→ {shift.after:,}", change)
    console.print(table)


def _draw_prefix(console: Console, prefix: "SharedPrefix") -> None:
    console.print(Text("prefix", "bold"))
    size = f"{prefix.bytes:,} bytes, about {prefix.tokens:,} tokens"
    if prefix.broken_by is None:
        console.print(Text(f"  all {prefix.of} stable pieces came first again ({prefix.pieces} in all, {size})"))
    else:
        console.print(Text(f"  {prefix.pieces} of {prefix.of} stable pieces came first again ({size})"))
        console.print(Text(f"  broken by {visible(prefix.broken_by)}", "yellow"))
    if prefix.first:
        console.print(
            Text(f"  the first that differs is piece {prefix.first.number}, {NAMES[prefix.first.kind]}", "dim")
        )
    else:
        console.print(Text("  no piece differs", "dim"))


NAMES = {
    "head": "the head, with the model's name",
    "tool": "a tool",
    "join": "the end of the tools",
    "system": "the instructions",
    "message": "a message",
    "tail": "the end, with the parameters",
}


def _told(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else shortened(str(value), 60)
