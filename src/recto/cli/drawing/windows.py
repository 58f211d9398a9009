"""Windows drawn as bars, with their picks and their plan. Draws the JSON form, with numbers in place of ids.

Plans in words: what is kept, summed up, left out and recalled; which strategy decides. Reads a plan's JSON form.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recto.cli.drawing.picks import NARROW, badge, draw_considered, draw_sources, is_source
from recto.cli.show import counted, is_plain, literal, visible

if TYPE_CHECKING:
    from recto.settings.settings import ContextSettings, Settings
    from recto.window.plan import Plan
    from recto.window.window import Window


Json = Mapping[str, Any]
RANGES = {"kept": "kept", "summed_up": "summed up", "left_out": "left out"}
FOLLOWS_SETTINGS = "default"
"""What is written in place of a strategy to follow agent, model and settings again."""
MOST_NUMBERS = 12


def plan_facts(plan: Json) -> Iterator[tuple[str, str]]:
    """By name."""
    for key, name in RANGES.items():
        if range := _some(plan, key):
            ends = dict.fromkeys(str(range[end]) for end in ("first", "last") if range.get(end))
            yield name, f"{_size(range)} ({'…'.join(ends)})" if ends else _size(range)
    for lift in plan.get("lifted") or ():
        messages = ", ".join(lift.get("messages") or ())
        yield "still sent", f"{lift.get('because', '')}, {lift.get('tokens') or 0:,} tokens ({messages})"
    for key, most in (plan.get("excerpts") or {}).items():
        yield "excerpt", f"{_whose(key)}, at most {most:,} tokens of it"
    if bands := plan.get("bands"):
        yield "bands", " · ".join(_band(band) for band in bands)


def _band(band: Json) -> str:
    return f"{band.get('name')} {band.get('tokens') or 0:,} of {band.get('budget') or 0:,}"


def _size(range: Json) -> str:
    return f"{counted(range['count'], 'message')}, {range.get('tokens') or 0:,} tokens"


def _whose(key: str) -> str:
    message, _, call = key.partition("/")
    return f"the result of {call} in {message}" if call else "your message" if message == "next" else message


def compacting_in_words(plan: Json) -> str:
    """What the next message would do to the window."""
    done = [f"{_size(range)} {name}" for key, name in RANGES.items() if key != "kept" and (range := _some(plan, key))]
    done += [f"{counted(len(plan['excerpts']), 'message')} sent as an excerpt"] if plan.get("excerpts") else []
    frees = f"at least {plan['frees']:,} tokens freed" if plan.get("frees") else ""
    return ", ".join(part for part in (*done, frees) if part) or "what is still sent changes"


def _some(plan: Json, key: str) -> Json | None:
    range: Json = plan.get(key) or {}
    return range if range.get("count") else None


def setting_in_words(key: str, settings: "Settings") -> str:
    return f"{key} = {literal(settings.get(key))} [{settings.origin(key)}]"


def strategy_in_words(chosen: str | None, used: str | None) -> str:
    if chosen is None:
        return f"{used or 'unknown'}, as agent, model and settings say"
    if used in (chosen, None):
        return f"{chosen}, chosen for this conversation"
    return f"{used}, for now; {chosen} is chosen for this conversation"


def outlook(context: "ContextSettings", plan: "Plan") -> str:
    """What the next message would do to messages that do not fit; empty when all do."""
    if plan.cut is None:
        return ""
    is_kept = context.enabled and not plan.cut.passing
    return "would be compacted" if is_kept else "would be sent without"


def recalled_in_words(window: "Window") -> str | None:
    """Which messages were recalled, by their numbers; None where none was."""
    picks = [pick for section in window.sections if section.name == "recalled" for pick in section.picks]
    # several passages of one message are one message
    numbers = list(dict.fromkeys(pick.because.partition(",")[0] for pick in picks))
    if not numbers:
        return None
    more = " …" if len(numbers) > MOST_NUMBERS else ""
    return f"recalled {counted(len(numbers), 'earlier message')} ({' '.join(numbers[:MOST_NUMBERS])}{more})"


BAR_WIDTH, LEAST_BAR = 28, 4
_EIGHTHS = " ▏▎▍▌▋▊▉"
# Of a longer list only the best are drawn, and one line tells the rest.
MOST_PICKS = 12
IN_JSON = "--json has them all"
UNKNOWN = "unknown"
# Their names are numbers, which tell people less than why they are there.
SAID = ("message", "messages", "rounds")


def draw_window(console: Console, window: Json, *, outlook: str = "", whole: bool = False) -> None:
    """A window as `Window.to_json` gives it; `outlook` says what sending it would do to messages that do not fit."""
    where = f"conversation {window['conversation']}" if window.get("conversation") else "a new conversation"
    console.print(
        Text.assemble((f"{where} · {visible(window.get('model') or UNKNOWN)}", "bold")),
        soft_wrap=not console.is_terminal,
    )
    draw_parts(console, window, whole=whole, outlook=outlook)


def draw_parts(console: Console, window: Json, *, whole: bool, outlook: str = "", more: str = IN_JSON) -> None:
    console.print(_sections(window, whole=whole, width=console.width))
    console.print(_sum(window))
    if parts := window.get("components"):
        told = [
            f"{name} {part['used']:,} of {part['budget']:,} ({part['percent']:.0f} %)" for name, part in parts.items()
        ]
        console.print(Text(f"budgets: {', '.join(told)}", "dim"))
    draw_sources(console, window, whole=whole, more=more)
    _draw_plan(console, window, outlook)
    draw_considered(console, window, whole=whole, more=more)
    _draw_not_fitting(console, window, whole=whole)
    draw_notes(console, window)


def _draw_plan(console: Console, window: Json, outlook: str = "") -> None:
    """What the strategy decided; a new conversation has nothing to decide."""
    plan = window.get("plan") or {}
    if facts := list(plan_facts(plan)):
        console.print(facts_table(facts))
    if outlook:
        console.print(Text(f"{outlook}: {compacting_in_words(plan)}; nothing is sent or changed now", "yellow"))


def _draw_not_fitting(console: Console, window: Json, *, whole: bool) -> None:
    """What was found for the message but is not sent."""
    if passed := [pick for pick in window.get("not_picked") or () if not is_source(pick)]:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(overflow="fold", style="dim")
        table.add_column(justify="right", no_wrap=True, style="dim")
        for words, size in _picks(passed, whole=whole):
            table.add_row(words, f"{size:,}")
        console.print(Text("found, but did not fit:", "dim"))
        console.print(Padding.indent(table, 2))


def draw_notes(console: Console, window: Json) -> None:
    for text in window.get("notes") or ():
        console.print(Text(f"· {visible(text)}", "dim"))


def _sections(window: Json, *, whole: bool, width: int) -> RenderableType:
    """A bar for each; rules, references and tools follow below, by kind."""
    rows = [*_rows(window)]
    is_narrow = width < NARROW
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    if not is_narrow:
        table.add_column(style="dim", no_wrap=True)
    limit, widest = _limit(window), _bar_width(rows, width, is_narrow)
    for row in rows:
        name = Text(row.name, "bold" if row.is_section else "")
        bar = Text(_bar(row.tokens, limit, widest), row.colour)
        table.add_row(name, bar, row.size, *(() if is_narrow else (row.told,)))
        for words, size in _picks(row.picks, whole=whole):
            table.add_row("", words, Text(f"{size:,}", "dim"))
    return table


class _Row(Struct, frozen=True):
    name: str
    tokens: int
    told: str
    colour: str
    is_section: bool = False
    picks: tuple[Json, ...] = ()

    @property
    def size(self) -> str:
        return f"{self.tokens:,}"


def _rows(window: Json) -> Iterator[_Row]:
    for section in window["sections"]:
        tokens, budget = section.get("tokens") or 0, section.get("budget")
        colour = "yellow" if budget is not None and tokens > budget else "cyan"
        others = tuple(pick for pick in section.get("picks") or () if not is_source(pick))
        told = "" if budget is None else f"of {budget:,}"
        yield _Row(section.get("name") or UNKNOWN, tokens, told, colour, True, others)
    for name, colour, told in (("reserve", "magenta", "for the reply"), ("free", "dim", "")):
        if name in window:
            yield _Row(name, window[name], told, colour)


def _bar_width(rows: Sequence[_Row], width: int, is_narrow: bool) -> int:
    """The room that the other columns leave: a folded bar says nothing."""
    told = [cell_len(row.told) + 2 for row in rows if row.told and not is_narrow]
    others = max((cell_len(row.name) for row in rows), default=0) + max((len(row.size) for row in rows), default=0)
    return max(LEAST_BAR, min(BAR_WIDTH, width - others - max(told, default=0) - 4))


def _limit(window: Json) -> int:
    return window.get("limit") or max(_total(window), 1)


def _total(window: Json) -> int:
    return int(window.get("total") or sum(section.get("tokens") or 0 for section in window["sections"]))


def _picks(picks: Sequence[Json], *, whole: bool) -> Iterator[tuple[Text, int]]:
    """Each with its tokens, in order; of many the best, and the others together."""
    best = sorted(picks, key=lambda pick: -(pick.get("score") or 0.0))[:MOST_PICKS]
    shown = picks if whole or len(picks) <= MOST_PICKS + 1 else [pick for pick in picks if pick in best]
    for pick in shown:
        yield _pick(pick), pick.get("tokens") or 0
    if rest := len(picks) - len(shown):
        sizes = [sum(pick.get("tokens") or 0 for pick in some) for some in (picks, shown)]
        yield Text(f"and {rest} more; {IN_JSON}", "dim"), sizes[0] - sizes[1]


def _pick(pick: Json) -> Text:
    name, because = (visible(str(pick.get(key) or "")) for key in ("name", "because"))
    kind, score = pick.get("kind"), pick.get("score")
    if kind == "message" and score is not None:
        # a recalled message is named by its number, as the model reads it
        return Text(f"{score:.2f} {because}", "dim")
    if kind in SAID:
        return Text(f"{because} ({name})", "dim")
    if kind in ("system", "summary"):
        return Text(f"{name}: {because}", "dim")
    return Text.assemble(name, " ", badge(pick), (f" {because}", "dim"))


def _sum(window: Json) -> Text:
    total, limit = _total(window), _limit(window)
    parts = [f"{window[name]:,} {name}" for name in ("reserve", "free") if name in window]
    kind = "counted exactly" if window.get("exact") else f"an estimate{_calibrated(window)}"
    because, strategy = (window.get("plan") or {}).get("because"), window.get("strategy")
    plan = [f"{strategy}: {visible(because)}" if because else strategy] if strategy else []
    sums = f"{limit:,} tokens = {' + '.join((f'{total:,} sent', *parts))}"
    return Text(" · ".join((sums, kind, f"{100 * total / limit:.0f} % full", *plan)))


def _calibrated(window: Json) -> str:
    told = window.get("calibration") or {}
    if not (replies := told.get("replies")):
        return ""
    return f" × {told['factor']:.2f}, learned from {replies} {'reply' if replies == 1 else 'replies'}"


def _bar(tokens: int, limit: int, widest: int) -> str:
    """A bar in eighths of a character; the smallest part can still be seen."""
    if is_plain():
        return ""
    eighths = max(round(8 * widest * max(tokens, 0) / limit), 1 if tokens > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Names at the left, values at the right."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(visible(value)))
    return table


def rule(words: str, width: int) -> RenderableType:
    """Words in a rule across the screen; where they are too long for that, on a line of their own."""
    said = visible(words)
    if is_plain():
        return Text(said)
    return Rule(Text(said, "dim"), style="dim") if cell_len(said) + 4 <= width else Text(f"── {said} ──", "dim")
