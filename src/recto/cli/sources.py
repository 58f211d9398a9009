"""`recto sources`: rules, references and tools of a conversation and its agent; MCP servers. `recto memory`: facts
remembered between conversations. Some commands of both are in the table of actions.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.cli import options, show
from recto.cli.actions import add_commands
from recto.errors import Altered, Invalid
from recto.sources.source import SOURCE_KINDS, SourceKind
from recto.store.fact import FACT_KINDS

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.sources.server_config import ServerConfig

FindTalk = Callable[["Desk"], "Talk"]


server_argument = click.argument("server", metavar="SERVER")
agent_option = click.option("--agent", metavar="NAME", help="Conversations of this agent alone.")
since_option = click.option("--since", type=options.Moment(), metavar="DATE", help="From this day or time on.")
fact_kind_option = click.option("--kind", type=click.Choice(FACT_KINDS), help="The kind of fact.")


@click.group()
def command() -> None:
    """See and choose what goes into the window: rules, references, tools.

    They are named rule:NAME, ref:NAME and tool:SERVER/NAME.

    Example: recto sources list
    """


@command.command("list")
@click.option("--kind", type=click.Choice(SOURCE_KINDS), help="Only these.")
@click.option("--fresh", is_flag=True, help="Ask every MCP server for its tools now.")
@options.session_options
@options.as_json_option
def list_sources(kind: SourceKind | None, fresh: bool, place: FindTalk, as_json: bool) -> None:
    """List the sources of a conversation and its agent.

    Shows what the agent has, how each source is included, which are in the conversation (by default the latest), and
    the state of its MCP servers. Lists of tools are kept for a day; --fresh asks the servers again.

    Example: recto sources list --kind tool --fresh
    """
    from recto.cli.drawing.sources import ServerList, draw_source_list, source_to_json  # rich: a tenth of a second

    kinds = (kind,) if kind else SOURCE_KINDS
    with options.open_desk({}) as desk:
        talk = place(desk)
        found = talk.sources(kinds, fresh=fresh)
        servers = ServerList(talk.agent.servers if "tool" in kinds else (), desk.servers.statuses())
        if as_json:
            for row in (*map(source_to_json, found.items), *servers.to_json()):
                show.emit(row)
        else:
            draw_source_list(show.console(), f"agent {talk.agent.name}, {talk.name}", found.items, kinds, servers)
        for text in found.notes:
            show.note(text)


# -- trust


@command.command("trust")
@server_argument
@options.session_options
@options.as_json_option
def trust(server: str, place: FindTalk, as_json: bool) -> None:
    """Let an MCP server of the project run; accept what has changed about tools that you allowed.

    You trust everything that is shown: command line, address, values, which tools run without asking. Once any of it
    changes, the server is not started until you trust it again. Tools that you allowed, of any server, ask again once
    their server describes them differently; this shows how, and accepts them as they are now.

    Example: recto sources trust github
    """
    with options.open_desk({}) as desk:
        agent = place(desk).agent
        config = agent.server(server)
        is_yours = config is not None and config.is_yours
        if not is_yours:
            _tell_server(desk.trust(server, agent.name), as_json, trusted=True)
        if changes := desk.tool_changes(server, agent.name):
            from recto.cli.questions import ask_changes  # rich: a tenth of a second

            accepted = as_json or ask_changes(show.console(), changes, is_at_terminal=options.has_keyboard())
            if accepted:
                desk.accept_tools(changes)
            for change in changes if as_json else ():
                show.emit({"tool": change.after.id, "accepted": True, "change": change.text, "diff": change.lines})
            if not as_json:
                done = f"{show.counted(len(changes), 'tool')} accepted as shown"
                show.say(done if accepted else "nothing is accepted: these tools ask before they run")
        elif config and is_yours:
            raise _needs_no_trust(config)


@command.command("distrust")
@server_argument
@options.session_options
@options.as_json_option
def distrust(server: str, place: FindTalk, as_json: bool) -> None:
    """Stop trusting an MCP server of the project: it is no longer started.

    Example: recto sources distrust github
    """
    with options.open_desk({}) as desk:
        agent = place(desk).agent
        if (config := agent.server(server)) and config.is_yours:
            raise _needs_no_trust(config)
        _tell_server(desk.distrust(server, agent.name), as_json, trusted=False)


def _needs_no_trust(config: "ServerConfig") -> Invalid:
    why = f"`enabled` in {config.origin} says whether it runs"
    return Invalid(f"{config.name} is your own and needs no trust; {why}", name=config.name)


def _tell_server(config: "ServerConfig", as_json: bool, *, trusted: bool) -> None:
    from recto.cli.drawing.sources import server_facts  # rich: a tenth of a second

    if as_json:
        show.emit({"server": config.name, "trusted": trusted, **server_facts(config), "config": config.to_json()})
        return
    said = "trusted, and started when it is needed" if trusted else "no longer trusted, and not started"
    show.say(f"{config.name} is {said}")
    for name, value in server_facts(config).items():
        show.say(f"  {name:<8} {value}")


# -- use


@command.command("stats")
@agent_option
@since_option
@options.as_json_option
def stats(agent: str | None, since: str | None, as_json: bool) -> None:
    """Show which sources replies use, how many tokens they take, and what could be changed.

    Example: recto sources stats --since 2026-01-01
    """
    from recto.cli.drawing.sources import draw_source_report, stats_to_json  # rich: a tenth of a second

    with options.open_queries() as reader:
        report = reader.source_report(agent, since)
    if report.stats and as_json:
        for stat in report.stats:
            show.emit(stats_to_json(stat, report.advice_for(stat)))
    elif report.stats:
        draw_source_report(show.console(), report)
    else:
        show.note(f"nothing was recorded {_which(agent, since)}: every reply records the sources that it was given")


def _which(agent: str | None, since: str | None) -> str:
    asked = [f"of agent {agent}" if agent else "", f"since {show.when(since)}" if since else ""]
    return " ".join(filter(None, asked)) or "yet"


@command.command("export")
@agent_option
@since_option
@options.output_option
def export(agent: str | None, since: str | None, output: str | None) -> None:
    """Write the context data of every reply, one JSON object per line: what was picked, how, and what was used.

    Example: recto sources export -o context.jsonl
    """
    lines: list[dict[str, Any]] = []
    with options.open_queries() as reader:
        for each in reader.reply_contexts(agent, since):
            if isinstance(each, Altered):
                show.note(f"left out: {each.message}")
            elif output is None:
                show.emit(each.to_json())
            lines += [] if isinstance(each, Altered) else [each.to_json()]
    if not lines:
        show.note(f"nothing was recorded {_which(agent, since)}: there is no reply to export")
    elif output:
        show.write(output, "".join(f"{wire.dumps(line)}\n" for line in lines))
        show.note(f"{show.counted(len(lines), 'request')} written to {output}")


add_commands(command, "sources")


# -- recto memory


@click.group()
def memory() -> None:
    """Remember facts between conversations. The relevant ones go with each message.

    Example: recto memory add "My sister Anna lives in Berlin"
    """


@memory.command("list")
@fact_kind_option
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Show at most N.")
@click.option("--all", "everything", is_flag=True, help="Show all of them, including those that were replaced.")
@options.as_json_option
def list_facts(kind: Any, limit: int, everything: bool, as_json: bool) -> None:
    """List facts, the newest first.

    Example: recto memory list --kind person
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are
    from recto.memory.fact_files import fact_to_json

    with options.open_desk() as desk:
        found = desk.facts.facts(kind, replaced=everything, limit=None if everything else limit)
        total, rows = desk.facts.count, [*fact_rows(found, desk.facts.missing)]
    if as_json:
        show.emit({"facts": [fact_to_json(fact) for fact in found], "total": total})
        return
    for line in rows:
        show.say(line)
    if not found:
        show.note("nothing is remembered yet; `recto memory add TEXT` begins")
    elif len(found) < total and not kind:
        more = "--all includes those that were replaced" if len(found) < limit else "--limit N or --all shows more"
        show.note(f"{len(found)} of {total:,}; {more}")


@memory.command("edit")
@click.argument("number", type=click.IntRange(1))
@click.argument("text", required=False)
@fact_kind_option
@click.option("--replaced-by", type=click.IntRange(1), metavar="NUMBER", help="A newer fact that replaces it.")
@options.as_json_option
def edit(number: int, text: str | None, kind: Any, replaced_by: int | None, as_json: bool) -> None:
    """Change the text or kind of a fact, or let a newer one replace it. The earlier text is kept.

    Example: recto memory edit 1 "My sister Anna lives in Hamburg"
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are
    from recto.memory.fact_files import fact_to_json

    if text is None and kind is None and replaced_by is None:
        raise click.UsageError("Give a TEXT, --kind or --replaced-by.")
    with options.open_desk() as desk:
        changed = desk.facts.edit(number, text, kind)
        if replaced_by is not None:
            changed = desk.facts.replace(number, replaced_by)
    show.answer(fact_to_json(changed) if as_json else next(fact_rows([changed])))


@memory.command("forget")
@click.argument("numbers", type=click.IntRange(1), nargs=-1, required=True)
@options.yes_option
@options.as_json_option
def forget(numbers: tuple[int, ...], is_sure: bool, as_json: bool) -> None:
    """Forget facts completely. Earlier requests and backups keep them.

    Example: recto memory forget 2 --yes
    """
    from recto.cli.drawing.results import fact_rows  # only where facts are

    with options.open_desk() as desk:
        known = [desk.facts.fact(number) for number in dict.fromkeys(numbers)]
        question = f"Forget {show.counted(len(known), 'fact')} for good?"
        if not is_sure and not options.is_confirmed(
            question, fact_rows(known), "nothing was forgotten: --yes confirms it"
        ):
            show.note("nothing was forgotten")
            return
        for fact in known:
            desk.facts.forget(fact.number)
    show.answer(
        {"forgotten": [fact.number for fact in known]}
        if as_json
        else f"forgotten: {', '.join(str(fact.number) for fact in known)}"
    )


@memory.command("export")
@click.option("--format", type=click.Choice(["json", "markdown"]), default="markdown", show_default=True)
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write to this file instead of stdout.")
def export_facts(format: str, output: str | None) -> None:
    """Write all facts as Markdown to read, or as JSON with everything about them.

    Example: recto memory export --format json
    """
    with options.open_desk() as desk:
        text = desk.facts.export(format)
    show.write(output, text, is_private=True)
    if output is not None:
        show.note(f"written to {output}")


add_commands(memory, "memory")
