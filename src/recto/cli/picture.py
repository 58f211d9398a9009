"""Pictures for people: a window as bars with its picks, its plan, a request explained. Draws the JSON form of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from recto.cli.plan import compacting_in_words, plan_facts
from recto.cli.show import counted, visible, when

BAR_WIDTH = 28
_EIGHTHS = " ▏▎▍▌▋▊▉"
# Of a longer list only the best are drawn: what follows is one line.
MOST_PICKS = 12
# Named by ids, which tell people less than why it is there.
SAID = ("message", "messages", "rounds")

Json = Mapping[str, Any]


def draw_window(console: Console, window: Json, *, outlook: str = "") -> None:
    """A window as `Window.to_json` gives it; `outlook` says what sending it would do to what does not fit."""
    where = window["conversation"] or "a new conversation"
    console.print(Text.assemble((f"{where} · {visible(window['model'])}", "bold")), soft_wrap=True)
    console.print(_sections(window))
    console.print(_sum(window))
    _draw_plan(console, window, outlook)
    _draw_not_picked(console, window)
    for text in window.get("notes", ()):
        console.print(Text(f"· {visible(text)}", "dim"))


def _draw_plan(console: Console, window: Json, outlook: str = "") -> None:
    """What the strategy decided; before anything was said there is nothing to decide."""
    plan = window.get("plan") or {}
    if facts := list(plan_facts(plan)):
        console.print(facts_table(facts))
    if outlook:
        console.print(Text(f"{outlook}: {compacting_in_words(plan)}; nothing is sent or changed now", "yellow"))


def _draw_not_picked(console: Console, window: Json) -> None:
    """What was found for the message, but is not sent."""
    if passed := window.get("not_picked"):
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(overflow="fold", style="dim")
        table.add_column(justify="right", no_wrap=True, style="dim")
        for words, size in _picks(passed):
            table.add_row(words, f"{size:,}")
        console.print(Text("found, but did not fit:", "dim"))
        console.print(Padding.indent(table, 2))


def _sections(window: Json) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    limit = window["limit"]
    for section in window["sections"]:
        tokens = section["tokens"]
        color = "yellow" if tokens > section["budget"] else "cyan"
        bar = Text(_bar(tokens, limit), color)
        table.add_row(Text(section["name"], "bold"), bar, f"{tokens:,}", f"of {section['budget']:,}")
        for words, size in _picks(section["picks"]):
            table.add_row("", words, Text(f"{size:,}", "dim"), "")
    table.add_row("reserve", Text(_bar(window["reserve"], limit), "magenta"), f"{window['reserve']:,}", "for the reply")
    table.add_row("free", Text(_bar(window["free"], limit), "dim"), f"{window['free']:,}", "")
    return table


def _picks(picks: Sequence[Json]) -> Iterator[tuple[Text, int]]:
    """Each with its tokens, in their order; of many the best, and the others together."""
    best = sorted(picks, key=lambda pick: -(pick["score"] or 0.0))[:MOST_PICKS]
    shown = [pick for pick in picks if pick in best] if len(picks) > MOST_PICKS + 1 else picks
    for pick in shown:
        yield _pick(pick), pick["tokens"]
    if rest := len(picks) - len(shown):
        size = sum(pick["tokens"] for pick in picks) - sum(pick["tokens"] for pick in shown)
        yield Text(f"and {rest} more; --json has them all", "dim"), size


def _pick(pick: Json) -> Text:
    name, because = visible(pick["name"]), visible(pick["because"])
    if pick["kind"] == "message" and pick["score"] is not None:
        # what was recalled is named by its number, as the model reads it
        return Text(f"{pick['score']:.2f} {because}", "dim")
    if pick["kind"] in SAID:
        return Text(f"{because} ({name})", "dim")
    if pick["kind"] in ("system", "summary"):
        return Text(f"{name}: {because}", "dim")
    score = f", score {pick['score']:.2f}" if pick["score"] is not None else ""
    return Text.assemble(name, (f" [{pick['mode']}{score}] {because}", "dim"))


def _sum(window: Json) -> Text:
    total, reserve, free, limit = (window[name] for name in ("total", "reserve", "free", "limit"))
    kind = "counted exactly" if window["exact"] else "an estimate"
    because = (window.get("plan") or {}).get("because")
    plan = f"{window['strategy']}: {visible(because)}" if because else window["strategy"]
    return Text(
        f"{limit:,} tokens = {total:,} sent + {reserve:,} reserve + {free:,} free · {kind} · "
        f"{100 * total / limit:.0f} % full · {plan}"
    )


def _bar(tokens: int, limit: int) -> str:
    """A bar in eighths of a character; whatever is there at all can be seen."""
    eighths = max(round(8 * BAR_WIDTH * max(tokens, 0) / limit), 1 if tokens > 0 else 0)
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


def draw_request(console: Console, record: Json) -> None:
    """A request as `request show --json` gives it."""
    console.print(Text(f"request {record['id']}", "bold"))
    console.print(facts_table(_facts(record)))
    if "sections" in record:
        console.print(Group("", _sections(record), _sum(record)))
        _draw_plan(console, record)
        _draw_not_picked(console, record)
    else:
        console.print("No context data available.", style="dim")
    for text in record.get("notes", ()):
        console.print(Text(f"· {visible(text)}", "dim"))


def _facts(record: Json) -> list[tuple[str, str]]:
    """What is known, in the order it is told; what an older version did not record is left out."""
    window_from = f" (window from {record['window_from']})" if record.get("window_from") else ""
    parameters = ", ".join(f"{name} {value}" for name, value in record.get("parameters", {}).items())
    facts = [
        ("when", f"{when(record['created'])}, to get a {record['purpose']}"),
        ("model", f"{record.get('model', 'unknown')}{window_from}"),
        ("parameters", parameters or "none: the model's own"),
        ("conversation", record["conversation"]),
        ("messages", _messages(record.get("messages"))),
        ("prefix", _prefix(record)),
        ("tokens", _tokens(record)),
        ("reply", _reply(record)),
        ("attempts", _attempts(record.get("attempts", ()))),
        ("bytes", f"{record['size']:,} in {counted(record['pieces'], 'piece')}"),
        ("sha256", record["sha256"]),
    ]
    return [(name, value) for name, value in facts if value]


def _messages(range: Json | None) -> str:
    if not range:
        return ""
    if not range["count"]:
        said = "no history"
    else:
        said = f"{counted(range['count'], 'message')} of history, {range['first']} to {range['last']}"
    rounds = f", {counted(len(range['rounds']), 'message')} of tool calls" if range.get("rounds") else ""
    return f"{said}; answers {range['current']}{rounds}"


def _prefix(record: Json) -> str:
    """What of the request before this one came first again, and what broke the rest."""
    prefix = record.get("prefix")
    if not prefix:
        return ""
    if prefix["base"] is None:
        return "the first of its conversation"
    if prefix["broken_by"]:
        return f"{prefix['kept']} of {prefix['of']} stable pieces of {prefix['base']} kept, by {prefix['broken_by']}"
    return f"all that was stable in {prefix['base']} came first again ({counted(prefix['kept'], 'piece')})"


def _tokens(record: Json) -> str:
    counted_here = record.get("counted", record.get("total"))
    usage = record.get("usage")
    if counted_here is None:
        return ""
    if not usage or not usage.get("reported", True):
        return f"{counted_here:,} counted, none reported"
    cached = f" ({usage['cache_read']:,} from its cache)" if usage.get("cache_read") else ""
    return f"{counted_here:,} counted, {usage['input']:,} reported{cached}; the reply took {usage['output']:,}"


def _reply(record: Json) -> str:
    error = f": {record['error']}" if record.get("error") else ""
    finish = f"ended by {record['finish']}{error}" if record.get("finish") else "not finished"
    return f"{record['reply']}, {finish}" if record.get("reply") else finish


def _attempts(attempts: Any) -> str:
    tries = [f"{attempt['error'].rstrip('.')} (waited {attempt['wait_s']:g} s)" for attempt in attempts]
    return f"{len(tries) + 1}; before the last one: {'; '.join(tries)}" if tries else ""
