"""Windows drawn as bars, with their plan and their picks: rules, references and tools, each with its mode:
`[Always]`, `[Manual]`, `[Agent 0.87]`. Draws the JSON form, with numbers in place of ids.

Plans and settings in words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recto.cli.show import counted, is_plain, literal, visible
from recto.sources.source import SOURCE_KINDS

if TYPE_CHECKING:
    from recto.settings.settings import ContextSettings, Settings
    from recto.window.plan import Plan
    from recto.window.window import Window

Json = Mapping[str, Any]
RANGES = {"kept": "kept", "summed_up": "summed up", "left_out": "left out"}
MOST_NUMBERS = 12
BAR_WIDTH, LEAST_BAR = 28, 4
# Longer lists show only the best picks and sources, and count the rest.
MOST_PICKS, MOST = 12, 8
IN_JSON = "--json has them all"
UNKNOWN = "unknown"
# Their names are mere numbers: the reason says more.
SAID = ("message", "messages", "rounds")
COLOURS = {"always": "cyan", "manual": "green", "agent": "magenta"}
MODES = ("agent", "manual", "always")
WIDEST_NAME = 32
COLUMNS: dict[str, dict[str, Any]] = {
    "name": {"no_wrap": True},
    "text": {"overflow": "fold"},
    "number": {"justify": "right", "no_wrap": True},
    "dim name": {"no_wrap": True, "style": "dim"},
    "dim text": {"overflow": "fold", "style": "dim"},
    "dim number": {"justify": "right", "no_wrap": True, "style": "dim"},
}


def grid(*columns: str, **first: Any) -> Table:
    """A table without lines; `first` has options of the first column."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(**COLUMNS[column], **({} if place else first))
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:

    table = grid("dim name", "text")
    for name, value in facts:
        table.add_row(name, Text(visible(value)))
    return table


def rule(words: str, width: int) -> RenderableType:
    """Words in a rule across the screen; on a line of their own if they are too long."""
    said = visible(words)
    if is_plain():
        return Text(said)
    return Rule(Text(said, "dim"), style="dim") if cell_len(said) + 4 <= width else Text(f"── {said} ──", "dim")


# -- plans and settings in words


def plan_facts(plan: Json) -> Iterator[tuple[str, str]]:

    for key, name in RANGES.items():
        if range := _some(plan, key):
            ends = dict.fromkeys(str(range[end]) for end in ("first", "last") if range.get(end))
            yield name, f"{_size(range)} ({'…'.join(ends)})" if ends else _size(range)
    for lift in plan.get("lifted") or ():
        messages = ", ".join(lift.get("messages") or ())
        yield "still sent", f"{lift.get('because', '')}, {lift.get('tokens') or 0:,} tokens ({messages})"
    for key, most in (plan.get("excerpts") or {}).items():
        message, _, call = key.partition("/")
        whose = f"the result of {call} in {message}" if call else "your message" if message == "next" else message
        yield "excerpt", f"{whose}, at most {most:,} tokens of it"
    if bands := plan.get("bands"):
        told = (f"{each.get('name')} {each.get('tokens') or 0:,} of {each.get('budget') or 0:,}" for each in bands)
        yield "bands", " · ".join(told)


def _some(plan: Json, key: str) -> Json | None:
    range: Json = plan.get(key) or {}
    return range if range.get("count") else None


def _size(range: Json) -> str:
    return f"{counted(range['count'], 'message')}, {range.get('tokens') or 0:,} tokens"


def compacting_in_words(plan: Json) -> str:
    """The effect of the next message on the window."""
    done = [f"{_size(range)} {name}" for key, name in RANGES.items() if key != "kept" and (range := _some(plan, key))]
    done += [f"{counted(len(plan['excerpts']), 'message')} sent as an excerpt"] if plan.get("excerpts") else []
    done += [f"at least {plan['frees']:,} tokens freed"] if plan.get("frees") else []
    return ", ".join(done) or "what is still sent changes"


def setting_in_words(key: str, settings: "Settings") -> str:
    return f"{key} = {literal(settings.get(key))} [{settings.origin(key)}]"


def strategy_in_words(chosen: str | None, used: str | None) -> str:
    if chosen is None:
        return f"{used or 'unknown'}, as agent, model and settings say"
    if used in (chosen, None):
        return f"{chosen}, chosen for this conversation"
    return f"{used}, for now; {chosen} is chosen for this conversation"


def outlook(context: "ContextSettings", plan: "Plan") -> str:
    """What would happen to messages that do not fit; empty if all do."""
    if plan.cut is None:
        return ""
    return "would be compacted" if context.enabled and not plan.cut.passing else "would be sent without"


def recalled_in_words(window: "Window") -> str | None:
    """The numbers of recalled messages; None if there are none."""
    picks = [pick for section in window.sections if section.name == "recalled" for pick in section.picks]
    # a message may be recalled in several passages
    numbers = list(dict.fromkeys(pick.because.partition(",")[0] for pick in picks))
    if not numbers:
        return None
    more = " …" if len(numbers) > MOST_NUMBERS else ""
    return f"recalled {counted(len(numbers), 'earlier message')} ({' '.join(numbers[:MOST_NUMBERS])}{more})"


# -- windows


def draw_window(console: Console, window: Json, *, outlook: str = "", whole: bool = False) -> None:
    """Draw a window from `Window.to_json`; `outlook` says what would happen to messages that do not fit."""
    where = f"conversation {window['conversation']}" if window.get("conversation") else "a new conversation"
    title = Text(f"{where} · {visible(window.get('model') or UNKNOWN)}", "bold")
    console.print(title, soft_wrap=not console.is_terminal)
    draw_parts(console, window, whole=whole, outlook=outlook)


def draw_parts(console: Console, window: Json, *, whole: bool, outlook: str = "", more: str = IN_JSON) -> None:
    console.print(_sections(window, whole=whole, width=console.width))
    console.print(_sum(window))
    if parts := window.get("components"):
        told = (
            f"{name} {each['used']:,} of {each['budget']:,} ({each['percent']:.0f} %)" for name, each in parts.items()
        )
        console.print(Text(f"budgets: {', '.join(told)}", "dim"))
    draw_sources(console, window, whole=whole, more=more)
    plan = window.get("plan") or {}  # a new conversation has nothing to decide
    if facts := list(plan_facts(plan)):
        console.print(facts_table(facts))
    if outlook:
        console.print(Text(f"{outlook}: {compacting_in_words(plan)}; nothing is sent or changed now", "yellow"))
    draw_considered(console, window, whole=whole, more=more)
    if passed := [pick for pick in window.get("not_picked") or () if not is_source(pick)]:
        table = grid("dim text", "dim number")
        for words, size in _picks(passed, whole=whole):
            table.add_row(words, f"{size:,}")
        console.print(Text("found, but did not fit:", "dim"))
        console.print(Padding.indent(table, 2))
    draw_notes(console, window.get("notes") or ())


def draw_notes(console: Console, notes: Iterable[str]) -> None:
    for text in notes:
        console.print(Text(f"· {visible(text)}", "dim"))


class _Row(NamedTuple):
    name: str
    tokens: int
    told: str
    colour: str
    style: str = ""
    picks: Sequence[Json] = ()


def _rows(window: Json) -> Iterator[_Row]:
    for section in window["sections"]:
        tokens, budget = section.get("tokens") or 0, section.get("budget")
        colour = "yellow" if budget is not None and tokens > budget else "cyan"
        told = "" if budget is None else f"of {budget:,}"
        others = [pick for pick in section.get("picks") or () if not is_source(pick)]
        yield _Row(section.get("name") or UNKNOWN, tokens, told, colour, "bold", others)
    for name, colour, told in (("reserve", "magenta", "for the reply"), ("free", "dim", "")):
        if name in window:
            yield _Row(name, window[name], told, colour)


def _sections(window: Json, *, whole: bool, width: int) -> RenderableType:
    """A bar for each section; rules, references and tools follow below, by kind."""
    table = grid("name", "text", "number", "dim name")
    widest = max(LEAST_BAR, min(BAR_WIDTH, width // 3))  # a bar must not fold
    for row in _rows(window):
        bar = Text(_bar(row.tokens, _limit(window), widest), row.colour)
        table.add_row(Text(row.name, row.style), bar, f"{row.tokens:,}", row.told)
        for words, size in _picks(row.picks, whole=whole):
            table.add_row("", words, Text(f"{size:,}", "dim"))
    return table


def _limit(window: Json) -> int:
    return window.get("limit") or max(_total(window), 1)


def _total(window: Json) -> int:
    return int(window.get("total") or _tokens(window["sections"]))


def _tokens(some: Iterable[Json]) -> int:
    return sum(each.get("tokens") or 0 for each in some)


def _bar(tokens: int, limit: int, widest: int) -> str:
    """A bar, never empty for a positive share."""
    return "" if is_plain() else "█" * max(round(widest * max(tokens, 0) / limit), tokens > 0)


def _sum(window: Json) -> Text:
    total, limit = _total(window), _limit(window)
    parts = [f"{total:,} sent", *(f"{window[name]:,} {name}" for name in ("reserve", "free") if name in window)]
    kind = "counted exactly" if window.get("exact") else f"an estimate{_calibrated(window)}"
    because, strategy = (window.get("plan") or {}).get("because"), window.get("strategy")
    plan = [f"{strategy}: {visible(because)}" if because else strategy] if strategy else []
    return Text(
        " · ".join((f"{limit:,} tokens = {' + '.join(parts)}", kind, f"{100 * total / limit:.0f} % full", *plan))
    )


def _calibrated(window: Json) -> str:
    told = window.get("calibration") or {}
    if not (replies := told.get("replies")):
        return ""
    return f" × {told['factor']:.2f}, learned from {replies} {'reply' if replies == 1 else 'replies'}"


def _picks(picks: Sequence[Json], *, whole: bool) -> Iterator[tuple[Text, int]]:
    """Picks with their tokens, in order; of many the best, and the sum of the rest."""
    best = sorted(picks, key=lambda pick: -(pick.get("score") or 0.0))[:MOST_PICKS]
    shown = picks if whole or len(picks) <= MOST_PICKS + 1 else [pick for pick in picks if pick in best]
    for pick in shown:
        yield _pick(pick), pick.get("tokens") or 0
    if rest := len(picks) - len(shown):
        yield Text(f"and {rest} more; {IN_JSON}", "dim"), _tokens(picks) - _tokens(shown)


def _pick(pick: Json) -> Text:
    name, because = (visible(str(pick.get(key) or "")) for key in ("name", "because"))
    kind, score = pick.get("kind"), pick.get("score")
    if kind == "message" and score is not None:
        return Text(f"{score:.2f} {because}", "dim")
    if kind in SAID:
        return Text(f"{because} ({name})", "dim")
    if kind in ("system", "summary"):
        return Text(f"{name}: {because}", "dim")
    return Text.assemble(name, " ", badge(pick), (f" {because}", "dim"))


# -- sources that were picked


def badge(pick: Json) -> Text:
    mode = visible(str(pick.get("mode") or "always"))
    score = f" {pick['score']:.2f}" if mode == "agent" and isinstance(pick.get("score"), int | float) else ""
    return Text(f"[{mode.capitalize()}{score}]", COLOURS.get(mode, "dim"))


def called(pick: Json) -> str:
    """A tool with its server."""
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


def draw_sources(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """The counts, then each kind under a heading; sources chosen for the message come last, the best first."""
    sections = window.get("sections") or ()
    picks = [pick for section in sections for pick in section.get("picks") or () if is_source(pick)]
    if not picks:
        return
    console.print(Text(counts_line(picks), "bold"))
    # the reply's sign of use of each source
    used: Any = window.get("used") if isinstance(window.get("used"), list | tuple) else ()
    signs = {_key(each): str(each["sign"]) for each in used if isinstance(each, Mapping) and each.get("sign")}
    for kind in SOURCE_KINDS:
        if some := [pick for pick in picks if pick["kind"] == kind]:
            console.print(Text(f"{kind.capitalize()}s ({len(some)})", "bold"))
            some.sort(key=lambda pick: _order(pick, MODES[::-1]))
            console.print(_source_table(some, signs, more, whole=whole))


def draw_considered(console: Console, window: Json, *, whole: bool, more: str) -> None:
    """Sources that were considered for this message, and why they are not sent."""
    if picks := [pick for pick in window.get("not_picked") or () if is_source(pick)]:
        console.print(Text("considered, not sent:", "dim"))
        console.print(_source_table(picks, {}, more, whole=whole))


def _source_table(picks: Sequence[Json], signs: Mapping[tuple[str, ...], str], more: str, *, whole: bool) -> Table:
    """A row for each source; of many those that were used or chosen, since those always included say the least."""
    table = grid("text", "name", "dim text", "dim number", max_width=WIDEST_NAME + 2)
    telling = sorted(picks, key=lambda pick: (_key(pick) not in signs, *_order(pick, MODES)))
    shown = picks if whole or len(picks) <= MOST + 1 else telling[:MOST]
    for pick in (pick for pick in picks if pick in shown):
        because = Text(visible(str(pick.get("because") or "")))
        if sign := signs.get(_key(pick)):
            because.append(f"{' · ' * bool(because.plain)}used: {visible(sign)}", "green")
        name = Padding(Text(called(pick), overflow="fold"), (0, 0, 0, 2))
        table.add_row(name, badge(pick), because, f"{pick['tokens']:,}" if pick.get("tokens") else "")
    if rest := [pick for pick in picks if pick not in shown]:
        table.add_row("", "", f"and {len(rest)} more; {more}", f"{_tokens(rest):,}" if _tokens(rest) else "")
    return table


def _order(pick: Json, modes: Sequence[str]) -> tuple[int, float]:
    mode = pick.get("mode") or "always"
    score = (pick.get("score") or 0.0) if mode == "agent" else 0.0
    return modes.index(mode) if mode in modes else len(modes), -score


def _key(pick: Json) -> tuple[str, ...]:
    return tuple(str(pick.get(name) or "") for name in ("kind", "name", "server"))
