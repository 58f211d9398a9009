"""Grouped: the rules, references and tools of a window under their headings, and those that were only considered."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recto.cli.badges import KINDS, badge, called, counts_line, is_source
from recto.cli.show import visible

Json = Mapping[str, Any]
# Of a longer list only so many are drawn: what follows is one line.
MOST = 8
WIDEST_NAME = 32
MODES = ("agent", "manual", "always")


def sources_of(window: Json) -> list[Json]:
    sections = window.get("sections") or ()
    return [pick for section in sections for pick in section.get("picks") or () if is_source(pick)]


def draw_sources(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """The counts, then each kind's; the agent's own choice behind what the session has, the best first."""
    picks = sources_of(window)
    if not picks:
        return
    console.print(Text(counts_line(picks), "bold"))
    signs = _signs(window)
    table = _table()
    for kind in KINDS:
        if some := [pick for pick in picks if pick["kind"] == kind]:
            table.add_row(Text(f"{kind.capitalize()}s ({len(some)})", "bold"))
            some.sort(key=lambda pick: _order(pick, MODES[::-1]))
            _fill(table, some, signs, most=len(some) if whole else MOST, more=more)
    console.print(table)


def draw_considered(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """Sources that this message might have needed, and because of what they are not sent."""
    if picks := [pick for pick in window.get("not_picked") or () if is_source(pick)]:
        console.print(Text("considered, not sent:", "dim"))
        table = _table("dim")
        _fill(table, picks, {}, most=len(picks) if whole else MOST, more=more)
        console.print(table)


def _table(style: str = "") -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=WIDEST_NAME + 2, style=style)
    table.add_column(no_wrap=True, style=style)
    table.add_column(overflow="fold", style="dim")
    table.add_column(justify="right", no_wrap=True, style="dim")
    return table


def _fill(table: Table, picks: Sequence[Json], signs: Mapping[tuple[str, ...], str], *, most: int, more: str) -> None:
    shown = picks if len(picks) <= most + 1 else _telling(picks, signs)[:most]
    for pick in (pick for pick in picks if pick in shown):
        because = Text(visible(str(pick.get("because") or "")))
        if sign := signs.get(_key(pick)):
            because.append(f"{' · ' * bool(because.plain)}used: {visible(sign)}", "green")
        table.add_row(_inset(called(pick)), badge(pick), because, _size(pick.get("tokens")))
    if rest := [pick for pick in picks if pick not in shown]:
        size = sum(pick.get("tokens") or 0 for pick in rest)
        table.add_row("", "", f"and {len(rest)} more; {more}", _size(size))


def _size(tokens: int | None) -> str:
    """Nothing for what takes none: it was not sent."""
    return f"{tokens:,}" if tokens else ""


def _telling(picks: Sequence[Json], signs: Mapping[tuple[str, ...], str]) -> list[Json]:
    """What was used or chosen first: what is always there tells the least."""
    return sorted(picks, key=lambda pick: (_key(pick) not in signs, *_order(pick, MODES)))


def _inset(text: str) -> Padding:
    return Padding(Text(text, overflow="fold"), (0, 0, 0, 2))


def _order(pick: Json, modes: Sequence[str]) -> tuple[int, float]:
    mode = pick.get("mode") or "always"
    score = (pick.get("score") or 0.0) if mode == "agent" else 0.0
    return modes.index(mode) if mode in modes else len(modes), -score


def _signs(window: Json) -> dict[tuple[str, ...], str]:
    """What the reply showed of each, where somebody looked."""
    return {_key(used): str(used["sign"]) for used in _used(window.get("used")) if used.get("sign")}


def _used(told: Any) -> Iterator[Json]:
    found: Iterable[Any] = told if isinstance(told, list | tuple) else ()
    return (used for used in found if isinstance(used, Mapping))


def _key(pick: Json) -> tuple[str, ...]:
    return tuple(str(pick.get(name) or "") for name in ("kind", "name", "server"))
