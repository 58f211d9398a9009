"""Pictures for people: a window as bars with its picks, its plan, a request explained. Draws the JSON form of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recto.cli.badges import badge, called, is_source
from recto.cli.grouped import draw_considered, draw_sources
from recto.cli.plan import compacting_in_words, plan_facts
from recto.cli.show import counted, visible, when

BAR_WIDTH, LEAST_BAR = 28, 4
# On a screen of fewer columns what the budgets are gives way to bars that can be compared.
NARROW = 60
_EIGHTHS = " ▏▎▍▌▋▊▉"
# Of a longer list only the best are drawn: what follows is one line.
MOST_PICKS = 12
IN_JSON = "--json has them all"
UNKNOWN = "unknown"
# Named by ids, which tell people less than why it is there.
SAID = ("message", "messages", "rounds")

Json = Mapping[str, Any]


def draw_window(console: Console, window: Json, *, outlook: str = "", whole: bool = False) -> None:
    """A window as `Window.to_json` gives it; `outlook` says what sending it would do to what does not fit."""
    where = window.get("conversation") or "a new conversation"
    console.print(Text.assemble((f"{where} · {visible(window.get('model') or UNKNOWN)}", "bold")), soft_wrap=True)
    _draw_parts(console, window, whole=whole, outlook=outlook)


def _draw_parts(console: Console, window: Json, *, whole: bool, outlook: str = "", more: str = IN_JSON) -> None:
    console.print(_sections(window, whole=whole, width=console.width))
    console.print(_sum(window))
    draw_sources(console, window, whole=whole, more=more)
    _draw_plan(console, window, outlook)
    draw_considered(console, window, whole=whole, more=more)
    _draw_not_fitting(console, window, whole=whole)
    _draw_notes(console, window)


def _draw_plan(console: Console, window: Json, outlook: str = "") -> None:
    """What the strategy decided; before anything was said there is nothing to decide."""
    plan = window.get("plan") or {}
    if facts := list(plan_facts(plan)):
        console.print(facts_table(facts))
    if outlook:
        console.print(Text(f"{outlook}: {compacting_in_words(plan)}; nothing is sent or changed now", "yellow"))


def _draw_not_fitting(console: Console, window: Json, *, whole: bool) -> None:
    """What was said and found for the message, but is not sent."""
    if passed := [pick for pick in window.get("not_picked") or () if not is_source(pick)]:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(overflow="fold", style="dim")
        table.add_column(justify="right", no_wrap=True, style="dim")
        for words, size in _picks(passed, whole=whole):
            table.add_row(words, f"{size:,}")
        console.print(Text("found, but did not fit:", "dim"))
        console.print(Padding.indent(table, 2))


def _draw_notes(console: Console, window: Json) -> None:
    for text in window.get("notes") or ():
        console.print(Text(f"· {visible(text)}", "dim"))


def _sections(window: Json, *, whole: bool, width: int) -> RenderableType:
    """A bar for each; rules, references and tools are told below, by kind."""
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


@dataclass(frozen=True, slots=True)
class _Row:
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
    """What the other columns leave: a bar that is folded says nothing."""
    told = [cell_len(row.told) + 2 for row in rows if row.told and not is_narrow]
    others = max((cell_len(row.name) for row in rows), default=0) + max((len(row.size) for row in rows), default=0)
    return max(LEAST_BAR, min(BAR_WIDTH, width - others - max(told, default=0) - 4))


def _limit(window: Json) -> int:
    return window.get("limit") or max(_total(window), 1)


def _total(window: Json) -> int:
    return int(window.get("total") or sum(section.get("tokens") or 0 for section in window["sections"]))


def _picks(picks: Sequence[Json], *, whole: bool) -> Iterator[tuple[Text, int]]:
    """Each with its tokens, in their order; of many the best, and the others together."""
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
        # what was recalled is named by its number, as the model reads it
        return Text(f"{score:.2f} {because}", "dim")
    if kind in SAID:
        return Text(f"{because} ({name})", "dim")
    if kind in ("system", "summary"):
        return Text(f"{name}: {because}", "dim")
    return Text.assemble(name, " ", badge(pick), (f" {because}", "dim"))


def _sum(window: Json) -> Text:
    total, limit = _total(window), _limit(window)
    parts = [f"{window[name]:,} {name}" for name in ("reserve", "free") if name in window]
    kind = "counted exactly" if window.get("exact") else "an estimate"
    because, strategy = (window.get("plan") or {}).get("because"), window.get("strategy")
    plan = [f"{strategy}: {visible(because)}" if because else strategy] if strategy else []
    sums = f"{limit:,} tokens = {' + '.join((f'{total:,} sent', *parts))}"
    return Text(" · ".join((sums, kind, f"{100 * total / limit:.0f} % full", *plan)))


def _bar(tokens: int, limit: int, widest: int) -> str:
    """A bar in eighths of a character; whatever is there at all can be seen."""
    eighths = max(round(8 * widest * max(tokens, 0) / limit), 1 if tokens > 0 else 0)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Names at the left, what there is to say at the right."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(visible(value)))
    return table


def rule(words: str, width: int) -> RenderableType:
    """Words in a line across the screen; where they are too long for one, a line of their own."""
    said = visible(words)
    return Rule(Text(said, "dim"), style="dim") if cell_len(said) + 4 <= width else Text(f"── {said} ──", "dim")


def draw_request(console: Console, record: Json, *, whole: bool = False) -> None:
    """A request as `request show --json` gives it."""
    console.print(Text(f"request {record.get('id') or UNKNOWN}", "bold"))
    console.print(facts_table(_facts(record)))
    console.print("")
    if record.get("sections"):
        _draw_parts(console, record, whole=whole, more="--all shows them")
        return
    console.print("No context data available.", style="dim")
    if facts := list(_listed(record)):
        console.print(facts_table(facts))
    _draw_notes(console, record)


def _listed(record: Json) -> Iterator[tuple[str, str]]:
    """Names alone are what the oldest records have."""
    for name in ("rules", "references", "tools"):
        if isinstance(some := record.get(name), list):
            yield name, ", ".join(called(each) if isinstance(each, Mapping) else str(each) for each in some) or "none"


def _facts(record: Json) -> list[tuple[str, str]]:
    """What is known, in the order it is told; what an older version did not record is left out."""
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
    """What of the request before this one came first again, and what broke the rest."""
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
