"""Picks: the rules, references and tools of a window, each with how it came in: `[Always]`, `[Manual]`, `[Agent 0.87]`.

Reads the JSON form of picks.

Statistics of a conversation in words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from recto.base.text import dollars
from recto.cli.show import counted, visible
from recto.reports.conversation_stats import MAKE_ROOM, ConversationStats, RecallStats, RequestTotals, SaidStats

Json = Mapping[str, Any]
SOURCE_KINDS = ("rule", "reference", "tool")
COLOURS = {"always": "cyan", "manual": "green", "agent": "magenta"}
# Of a longer list only so many are drawn, and one line tells the rest.
MOST = 8
WIDEST_NAME = 32
# On a screen with fewer columns the budgets of sections give way, so that bars can still be compared, and each source
# takes two lines.
NARROW = 60
MODES = ("agent", "manual", "always")


def badge(pick: Json) -> Text:
    mode = visible(str(pick.get("mode") or "always"))
    score = f" {pick['score']:.2f}" if mode == "agent" and isinstance(pick.get("score"), int | float) else ""
    return Text(f"[{mode.capitalize()}{score}]", COLOURS.get(mode, "dim"))


def called(pick: Json) -> str:
    """A tool with the server that has it."""
    name, server = (visible(str(pick.get(key) or "")) for key in ("name", "server"))
    return f"{server}:{name}" if server else name


def is_source(pick: Json) -> bool:
    return pick.get("kind") in SOURCE_KINDS


def counts_line(picks: Iterable[Json]) -> str:
    """5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)"""
    by_kind: dict[str, Counter[str]] = {kind: Counter() for kind in SOURCE_KINDS}
    for pick in filter(is_source, picks):
        by_kind[pick["kind"]][str(pick.get("mode") or "always")] += 1
    return ", ".join(f"{counted(modes.total(), kind)} ({_modes(modes)})" for kind, modes in by_kind.items() if modes)


def _modes(modes: Counter[str]) -> str:
    if len(modes) == 1:
        (mode,) = modes
        return mode if modes.total() == 1 else f"all {mode}"
    return ", ".join(f"{modes[mode]} {mode}" for mode in sorted(modes))


def sources_of(window: Json) -> list[Json]:
    sections = window.get("sections") or ()
    return [pick for section in sections for pick in section.get("picks") or () if is_source(pick)]


def draw_sources(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """The counts, then each kind with a heading; sources chosen for the message come last, the best first."""
    picks = sources_of(window)
    if not picks:
        return
    console.print(Text(counts_line(picks), "bold"))
    signs = _signs(window)
    table = _table(is_narrow=console.width < NARROW)
    for kind in SOURCE_KINDS:
        if some := [pick for pick in picks if pick["kind"] == kind]:
            table.add_row(Text(f"{kind.capitalize()}s ({len(some)})", "bold"))
            some.sort(key=lambda pick: _order(pick, MODES[::-1]))
            _fill(table, some, signs, most=len(some) if whole else MOST, more=more, is_narrow=console.width < NARROW)
    console.print(table)


def draw_considered(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """Sources that this message might have needed, and why they are not sent."""
    if picks := [pick for pick in window.get("not_picked") or () if is_source(pick)]:
        console.print(Text("considered, not sent:", "dim"))
        table = _table("dim", is_narrow=console.width < NARROW)
        _fill(table, picks, {}, most=len(picks) if whole else MOST, more=more, is_narrow=console.width < NARROW)
        console.print(table)


def _table(style: str = "", *, is_narrow: bool) -> Table:
    """On a narrow screen each source takes two lines, so that no name is cut."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", max_width=None if is_narrow else WIDEST_NAME + 2, style=style)
    if not is_narrow:
        table.add_column(no_wrap=True, style=style)
        table.add_column(overflow="fold", style="dim")
    table.add_column(justify="right", no_wrap=True, style="dim")
    return table


def _fill(
    table: Table,
    picks: Sequence[Json],
    signs: Mapping[tuple[str, ...], str],
    *,
    most: int,
    more: str,
    is_narrow: bool,
) -> None:
    shown = picks if len(picks) <= most + 1 else _telling(picks, signs)[:most]
    for pick in (pick for pick in picks if pick in shown):
        because = Text(visible(str(pick.get("because") or "")))
        if sign := signs.get(_key(pick)):
            because.append(f"{' · ' * bool(because.plain)}used: {visible(sign)}", "green")
        name, size = _inset(called(pick)), _size(pick.get("tokens"))
        if is_narrow:
            table.add_row(name, size)
            table.add_row(Padding(Text.assemble(badge(pick), " ", because), (0, 0, 0, 4)))
        else:
            table.add_row(name, badge(pick), because, size)
    if rest := [pick for pick in picks if pick not in shown]:
        left = sum(pick.get("tokens") or 0 for pick in rest)
        told = f"and {len(rest)} more; {more}"
        table.add_row(*((f"    {told}",) if is_narrow else ("", "", told)), _size(left))


def _size(tokens: int | None) -> str:
    """Empty for a source that was not sent."""
    return f"{tokens:,}" if tokens else ""


def _telling(picks: Sequence[Json], signs: Mapping[tuple[str, ...], str]) -> list[Json]:
    """Those that were used or chosen come first: the ones that are always there tell the least."""
    return sorted(picks, key=lambda pick: (_key(pick) not in signs, *_order(pick, MODES)))


def _inset(text: str) -> Padding:
    return Padding(Text(text, overflow="fold"), (0, 0, 0, 2))


def _order(pick: Json, modes: Sequence[str]) -> tuple[int, float]:
    mode = pick.get("mode") or "always"
    score = (pick.get("score") or 0.0) if mode == "agent" else 0.0
    return modes.index(mode) if mode in modes else len(modes), -score


def _signs(window: Json) -> dict[tuple[str, ...], str]:
    """The sign of use that the reply showed of each source."""
    return {_key(used): str(used["sign"]) for used in _used(window.get("used")) if used.get("sign")}


def _used(told: Any) -> Iterator[Json]:
    found: Iterable[Any] = told if isinstance(told, list | tuple) else ()
    return (used for used in found if isinstance(used, Mapping))


def _key(pick: Json) -> tuple[str, ...]:
    return tuple(str(pick.get(name) or "") for name in ("kind", "name", "server"))


def stats_in_words(name: str, stats: ConversationStats) -> Iterator[tuple[str, str]]:
    """`name` is what people call the conversation."""
    said = stats.said
    roles = ", ".join(f"{count:,} {role}" for role, count in said.roles.items())
    yield "conversation", name.removeprefix("conversation ")
    yield "messages", f"{said.messages:,} ({roles})" if roles else "none"
    yield "tokens said", f"{said.tokens:,}"
    yield "window", _window(stats)
    yield "strategy", stats.strategy or "unknown"
    yield "archived", f"{counted(said.archived, 'message')}; {said.active:,} active"
    yield "compactions", _compactions(said)
    yield "pinned", f"{said.pinned:,}"
    yield "priorities", ", ".join(f"{count:,} of {priority}" for priority, count in said.priorities.items())
    yield "requests", f"{stats.totals.requests:,}"
    yield "tokens sent", _usage(stats.totals)
    yield "cost", _cost(stats.totals)
    yield "recalled", _recalled(stats.recalled)
    if of_these := stats.summaries.requests:
        sent, cost = _usage(stats.summaries), _cost(stats.summaries)
        yield "summaries", f"{counted(of_these, 'request')} of these, {sent}; {cost}"


def _window(stats: ConversationStats) -> str:
    window = stats.window
    if window is None:
        return f"unknown: {stats.window_error}"
    if window.compacts:
        return f"about {window.size:,} of {window.limit:,} tokens, once the next message has compacted it"
    due = f"compacted at {window.trigger:,} to {window.low_water:,}" if window.trigger else "never compacted"
    return f"{window.size:,} of {window.limit:,} tokens ({window.percent:.0f} %), {due}"


def _compactions(said: SaidStats) -> str:
    made = ", ".join(f"{count:,} {by}" for by, count in said.made_by.items())
    others = [f"{count:,} {action}" for action, count in said.actions.items() if action not in MAKE_ROOM]
    done = f"{made} ({said.freed:,} tokens freed)" if made else "none"
    return "; ".join((done, ", ".join(others))) if others else done


def _usage(totals: RequestTotals) -> str:
    usage = totals.usage
    return f"{usage['input']:,} ({usage['cache_read']:,} read from caches), {usage['output']:,} came back"


def _recalled(recalled: RecallStats) -> str:
    if not recalled.requests:
        return "nothing"
    messages, requests = counted(recalled.messages, "archived message"), counted(recalled.requests, "request")
    return f"{messages} in {requests}, {recalled.tokens:,} tokens in all"


def _cost(totals: RequestTotals) -> str:
    if totals.cost_usd is None:
        return "unknown: no prices" if totals.requests else dollars(0)
    missing = f", without {counted(totals.unpriced, 'request')} of unknown price" if totals.unpriced else ""
    return dollars(totals.cost_usd) + missing
