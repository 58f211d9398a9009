"""`recto sources`: rules, references and tools of a conversation and its agent; MCP servers, which have the tools."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from recto import wire
from recto.cli import options, show
from recto.cli.terminal import SUMMING, bar
from recto.errors import Altered, Invalid
from recto.sources.source import INCLUDES, SOURCE_KINDS, Include, SourceKind

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.sources.overrides import SourceStatus
    from recto.sources.server_config import ServerConfig
    from recto.sources.tool_definition import ToolChange
    from recto.store.source_uses import Period, SourcePeriod

FindTalk = Callable[["Desk"], "Talk"]


class OneKind(click.Choice[SourceKind]):
    """A kind of sources, also by the short name that ids take."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SourceKind:
        return super().convert("reference" if value == "ref" else value, param, ctx)


ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True)
server_argument = click.argument("server", metavar="SERVER")
agent_option = click.option("--agent", metavar="NAME", help="Conversations of this agent alone.")
since_option = click.option("--since", type=options.Moment(), metavar="DATE", help="From this day or time on.")


@click.group()
def command() -> None:
    """See and choose what goes into the window: rules, references, tools.

    They are named rule:NAME, ref:NAME and tool:SERVER/NAME.

    Example: recto sources list
    """


@command.command("list")
@click.option("--kind", type=OneKind(SOURCE_KINDS), help="Only these; ref stands for reference.")
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


@command.command("add")
@ids_argument
@options.conversation_option
@options.as_json_option
def add_source(ids: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Add sources to a conversation.

    Whatever their mode, they go with every message of it (by default the latest) until they are removed. Where one of
    them cannot be added, none is.

    Example: recto sources add rule:style tool:github/create_issue
    """
    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        for listed in talk.add_sources(ids):
            _tell(talk, listed, "goes along from the next message on", as_json)


@command.command("remove")
@ids_argument
@options.conversation_option
@options.as_json_option
def remove_source(ids: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Remove sources from a conversation.

    The agent keeps them: those that it always includes stay in other conversations. Where one of them cannot be
    removed, none is.

    Example: recto sources remove ref:api
    """
    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        for listed in talk.remove_sources(ids):
            _tell(talk, listed, "goes along no longer", as_json)


def _tell(talk: "Talk", listed: "SourceStatus", said: str, as_json: bool) -> None:
    from recto.cli.drawing.sources import source_to_json  # rich: a tenth of a second

    if as_json:
        show.emit({"conversation": talk.id} | source_to_json(listed))
    else:
        show.say(f"{listed.source.id} {said}, in {talk.name}")


@command.command("mode")
@click.argument("id", metavar="ID")
@click.argument("mode", type=click.Choice(INCLUDES))
@options.session_options
@options.as_json_option
def set_mode(id: str, mode: Include, place: FindTalk, as_json: bool) -> None:
    """Change how a source comes in, in its agent's file.

    It comes in always, by hand (manual), or when a message needs it (agent). tool:SERVER stands for all tools of a
    server.

    Example: recto sources mode tool:github agent
    """
    from recto.cli.drawing.sources import include_in_words  # rich: a tenth of a second

    with options.open_desk({}) as desk:
        changed = place(desk).set_include(id, mode)
        if as_json:
            show.emit({"id": changed.name, "include": mode, "agent": changed.agent, "file": str(changed.file)})
        else:
            show.say(include_in_words(changed))


@command.command("ask")
@click.argument("tool", metavar="TOOL")
@options.conversation_option
@options.as_json_option
def ask_again(tool: str, conversation: str | None, as_json: bool) -> None:
    """Ask again before a tool runs.

    Takes back an "always" that you gave in a conversation (by default the latest), for tool:SERVER/NAME or for all
    tools of a SERVER.

    Example: recto sources ask tool:github/create_issue
    """
    from recto.cli.drawing.sources import approval_in_words  # rich: a tenth of a second

    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        change = talk.ask_again(tool)
        if as_json:
            show.emit({"conversation": talk.id, "tool": change.tool, "asks": change.asks})
        else:
            show.say(f"{approval_in_words(change)}, in {talk.name}")


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
        talk = place(desk)
        config = talk.agent.server(server)
        if config is None or not config.is_yours:
            trusted = desk.trust(server, talk.agent.name)
            _tell_server(trusted, "trusted, and started when it is needed", as_json, trusted=True)
        changes = desk.tool_changes(server, talk.agent.name)
        if changes:
            _accept(desk, changes, as_json)
        elif config and config.is_yours:
            raise _needs_no_trust(config)


def _accept(desk: "Desk", changes: "Sequence[ToolChange]", as_json: bool) -> None:
    from recto.cli.questions import ask_changes  # rich: a tenth of a second

    accepted = as_json or ask_changes(show.console(), changes, is_at_terminal=options.has_keyboard())
    if accepted:
        desk.accept_tools(changes)
    for change in changes if as_json else ():
        show.emit({"tool": change.after.id, "accepted": True, "change": change.text, "diff": change.lines})
    if not as_json:
        tools = show.counted(len(changes), "tool")
        show.say(f"{tools} accepted as shown" if accepted else "nothing is accepted: these tools ask before they run")


@command.command("distrust")
@server_argument
@options.session_options
@options.as_json_option
def distrust(server: str, place: FindTalk, as_json: bool) -> None:
    """Stop trusting an MCP server of the project: it is not started any more.

    Example: recto sources distrust github
    """
    with options.open_desk({}) as desk:
        config = desk.distrust(server, _agent_with(server, place(desk)))
        _tell_server(config, "no longer trusted, and not started", as_json, trusted=False)


def _agent_with(server: str, talk: "Talk") -> str:
    """The agent whose server it is. Invalid for one of the user's own, which needs no trust."""
    config = talk.agent.server(server)
    if config and config.is_yours:
        raise _needs_no_trust(config)
    return talk.agent.name


def _needs_no_trust(config: "ServerConfig") -> Invalid:
    why = f"`enabled` in {config.origin} says whether it runs"
    return Invalid(f"{config.name} is your own and needs no trust; {why}", name=config.name)


def _tell_server(config: "ServerConfig", said: str, as_json: bool, *, trusted: bool) -> None:
    from recto.cli.drawing.sources import runs, unasked_in_words  # rich: a tenth of a second

    line, unasked = runs(config, whole=True), unasked_in_words(config)
    if as_json:
        told = {"server": config.name, "trusted": trusted, "runs": line, "unasked": unasked, "origin": config.origin}
        show.emit(told | {"config": config.to_json()})
        return
    show.say(f"{config.name} is {said}")
    show.say(f"  runs     {line}")
    if unasked:
        show.say(f"  asks     {unasked}")
    show.say(f"  said in  {config.origin}")


@command.command("stats")
@agent_option
@since_option
@click.option("--by", type=click.Choice(["month", "day"]), help="How many were chosen and used, over time.")
@options.as_json_option
def stats(agent: str | None, since: str | None, by: "Period | None", as_json: bool) -> None:
    """Show which sources replies use, how many tokens they take, and what could be changed.

    Example: recto sources stats --by month --since 2026-01-01
    """
    if by:
        with options.open_reader() as reader, bar(SUMMING) as tell:
            periods = reader.source_periods(by, agent, since, tell)
        for period in periods:
            show.emit(period.to_json()) if as_json else show.say(_period_in_words(period))
        if not periods:
            show.note(f"nothing was recorded {_which(agent, since)}: every reply records the sources that it was given")
        return
    with options.open_reader() as reader, bar(SUMMING) as tell:
        report = reader.source_report(agent, since, tell)
    if not report.stats:
        show.note(f"nothing was recorded {_which(agent, since)}: every reply records the sources that it was given")
        return
    from recto.cli.drawing.sources import draw_source_report, stats_to_json  # rich: a tenth of a second

    if as_json:
        for stat in report.stats:
            show.emit(stats_to_json(stat, report.advice_for(stat)))
    else:
        draw_source_report(show.console(), report)


def _period_in_words(period: "SourcePeriod") -> str:
    share = f" ({period.used / period.looked:.0%})" if period.looked else ""
    score = "" if period.score is None else f", mean score {period.score:.2f}"
    chosen = f"{period.chosen:,} chosen, {period.used:,} of them used{share}{score}" if period.chosen else "none chosen"
    replies = f"{period.replies:,} {'reply' if period.replies == 1 else 'replies'}"
    return f"{period.name:<10}  {replies}, {show.counted(period.included, 'source')} included: {chosen}"


def _which(agent: str | None, since: str | None) -> str:
    asked = [f"of agent {agent}" if agent else "", f"since {show.when(since)}" if since else ""]
    return " ".join(filter(None, asked)) or "yet"


@command.command("export")
@agent_option
@since_option
@click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
def export(agent: str | None, since: str | None, output: str | None) -> None:
    """Write the context data of every reply, a JSON object a line: what was picked, how, and what was used.

    Example: recto sources export -o context.jsonl
    """
    lines = 0
    with options.open_reader() as reader:
        found = reader.reply_contexts(agent, since)
        with _opened(output) as write:
            for each in found:
                if isinstance(each, Altered):
                    show.note(f"left out: {each.message}")
                    continue
                write(each.to_json())
                lines += 1
    if not lines:
        show.note(f"nothing was recorded {_which(agent, since)}: there is no reply to export")
    elif output:
        show.note(f"{show.counted(lines, 'request')} written to {output}")


@contextmanager
def _opened(output: str | None) -> Iterator[Callable[[dict[str, Any]], object]]:
    if output is None:
        yield show.emit
        return
    try:
        with open(output, "w", encoding="utf-8", newline="\n") as out:
            yield lambda row: out.write(wire.dumps(row) + "\n")
    except OSError as why:
        raise Invalid(f"cannot write {output}: {why.strerror}", path=output) from why
