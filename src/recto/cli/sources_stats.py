"""`recto sources stats` and `export`: which sources replies use, what they cost, and every reply's context data."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from recto import places, wire
from recto.cli import options, show
from recto.cli.moment import Moment
from recto.errors import Altered, Invalid
from recto.sources.source import KINDS, OWN, SourceId

if TYPE_CHECKING:
    from rich.table import Table

    from recto.agents.agents import Agents
    from recto.store.records import Record
    from recto.store.sourced import Sourced
    from recto.store.store import Store
    from recto.uses.advice import Advice
    from recto.uses.stat import Stat

# What every window has, and nobody chose.
NOT_CHOSEN = ("system", "summary", "history", "message")

agent_option = click.option("--agent", metavar="NAME", help="Conversations of this agent alone.")
since_option = click.option("--since", type=Moment(), metavar="DATE", help="From this day or time on.")


@click.command("stats")
@agent_option
@since_option
@options.as_json_option
def stats(agent: str | None, since: str | None, as_json: bool) -> None:
    """Show which sources replies use, what they take, and what could be changed.

    Example: recto sources stats --since 2026-01-01
    """
    from recto.uses.advice import advise

    with options.open_store() as store:
        found = store.sourced.stats(agent, since)
        _check(store, agent)
        advice = advise(found, store.sourced.totals(agent, since), _texts())
    if as_json:
        for stat in found:
            show.emit(_to_json(stat, [each for each in advice if (each.id, each.agent) == (stat.id, stat.agent)]))
    elif found:
        _draw(found, advice)
    if not found:
        show.note(f"nothing was recorded {_which(agent, since)}: every reply notes the sources that it was given")


def _check(store: "Store", agent: str | None) -> None:
    """NotFound for an agent that neither has a folder nor a conversation."""
    if agent is None or any(each.agent == agent for each in store.tree.conversations(limit=sys.maxsize)):
        return
    _agents().check(agent)


def _agents() -> "Agents":
    from recto.agents.agents import Agents  # front matter, links, encodings: a twentieth of a second

    return Agents(places.find_home(), places.find_project(Path.cwd()))


def _texts() -> "Callable[[Stat], str]":
    """What rules say today; nothing for those that are gone."""
    agents = _agents()

    def text(stat: "Stat") -> str:
        source = agents.last(stat.agent).find(stat.id)
        return source.text if source else ""

    return text


def _which(agent: str | None, since: str | None) -> str:
    asked = [f"of agent {agent}" if agent else "", f"since {show.when(since)}" if since else ""]
    return " ".join(filter(None, asked)) or "yet"


def _to_json(stat: "Stat", advice: "Sequence[Advice]") -> dict[str, Any]:
    told = asdict(stat)
    counts = {name: told.pop(name) for name in ("always", "manual", "by_agent")}
    modes = {"always": counts["always"], "manual": counts["manual"], "agent": counts["by_agent"]}
    given = [{"because": each.because, "mode": each.mode, "command": each.command(naming=True)} for each in advice]
    last = {name: told.pop(name) or None for name in ("last_in", "last_used")}
    return {
        "source": str(stat.id),
        **told.pop("id"),
        **told,
        "modes": modes,
        "used": stat.used,
        **last,
        "advice": given,
    }


def _draw(stats: "Sequence[Stat]", advice: "Sequence[Advice]") -> None:
    console, several = show.console(), len({stat.agent for stat in stats}) > 1
    console.print(_table(stats, several))
    if advice:
        console.print("\nSuggestions", style="bold")
    for each in advice:
        console.print(f"· {show.visible(each.because)}")
        console.print(f"  {show.visible(each.command(naming=several))}", style="cyan", soft_wrap=True)


def _table(stats: "Sequence[Stat]", several: bool) -> "Table":
    from rich.table import Table  # rich: a tenth of a second

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("source", overflow="fold")
    if several:
        table.add_column("agent", overflow="fold")
    table.add_column("mode", no_wrap=True)
    table.add_column("replies", justify="right", no_wrap=True)
    table.add_column("used", min_width=11)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("last used", no_wrap=True)
    for stat in stats:
        source, agent = show.visible(str(stat.id)), [show.visible(stat.agent)] if several else []
        last = show.when(stat.last_used)[:10] if stat.last_used else ""
        table.add_row(source, *agent, stat.mode, f"{stat.replies:,}", _used(stat), f"{stat.tokens:,}", last)
    return table


def _used(stat: "Stat") -> str:
    signs = [(stat.called, "called"), (stat.quoted, "quoted"), (stat.paraphrased, "paraphrased")]
    parts = [f"{count:,} {sign}" for count, sign in signs if count]
    return ",\n".join(parts) or ("no signs" if stat.looked else "not looked at")


@click.command("export")
@agent_option
@since_option
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def export(agent: str | None, since: str | None, output: str | None) -> None:
    """Write the context data of every reply, a JSON object a line: what was picked, how, and what was used.

    Example: recto sources export -o context.jsonl
    """
    lines = 0
    with ExitStack() as stack:
        store = stack.enter_context(options.open_store())
        _check(store, agent)
        out = stack.enter_context(_opened(output))
        for line in _lines(store, agent, since):
            out.write(wire.dumps(line) + "\n")
            lines += 1
    if not lines:
        show.note(f"nothing was recorded {_which(agent, since)}: there is no reply to export")
    elif output:
        show.note(f"{show.counted(lines, 'request')} written to {output}")


@contextmanager
def _opened(output: str | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        with open(output, "w", encoding="utf-8", newline="\n") as out:
            yield out
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why


def _lines(store: "Store", agent: str | None, since: str | None) -> Iterator[dict[str, Any]]:
    for reply in store.sourced.replies(agent, since):
        try:
            record = store.records.record(reply.request)
        except Altered as why:
            show.note(f"left out: {why.message}")
            continue
        yield _line(record, reply.agent, store.sourced.of(reply.request))


def _line(record: "Record", agent: str, noted: "Sequence[Sourced]") -> dict[str, Any]:
    signs = {each.id: each.sign for each in noted}
    sections = [each for each in record.account.get("sections", ()) if each["name"] not in NOT_CHOSEN]
    return {
        "request": record.id,
        "conversation": record.conversation,
        "message": record.message,
        "reply": record.outcome.get("reply"),
        "agent": agent,
        "model": record.account.get("model"),
        "created": record.created,
        "picks": [
            {"section": section["name"], **_signed(pick, signs)} for section in sections for pick in section["picks"]
        ],
        "not_picked": record.account.get("not_picked", []),
    }


def _signed(pick: dict[str, Any], signs: dict[SourceId, Any]) -> dict[str, Any]:
    """With the sign of use, where the reply was looked at for one; an old tool without a server is one of ours."""
    kind = pick["kind"]
    if kind not in KINDS:
        return pick
    server = pick.get("server", "")
    sign = signs.get(SourceId(kind, pick["name"], server), signs.get(SourceId(kind, pick["name"], OWN)))
    return {**pick, "sign": sign}
