"""Two requests compared. Draws a Difference; parts without a difference are left out."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recto.cli.drawing.picks import badge, called
from recto.cli.show import counted, shortened, visible

if TYPE_CHECKING:
    from recto.store.compared_request import ComparedPick, SentMessage
    from recto.store.comparison import Difference, PickChange
    from recto.store.prefix import SharedPrefix

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
    _draw_moved(console, "came in", "+", found.came_in, found.said_in, most)
    _draw_moved(console, "went out", "-", found.went_out, found.said_out, most)
    _draw_changes(console, found.changed, most, whole=whole)
    _draw_tokens(console, found)
    for shift in (each for each in found.facts if each not in apart):
        console.print(Text.assemble((f"{shift.name}: ", "dim"), f"{_told(shift.before)} → {_told(shift.after)}"))
    _draw_prefix(console, found.prefix)


def _draw_moved(
    console: Console, heading: str, sign: str, items: Sequence["ComparedPick"], said: Sequence["SentMessage"], most: int
) -> None:
    if not items and not said:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    if said:
        table.add_row(_sign(sign), _messages(said), "")
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


def _messages(said: Sequence["SentMessage"]) -> Text:
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


def _draw_changes(console: Console, changes: Sequence["PickChange"], most: int, *, whole: bool) -> None:
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
