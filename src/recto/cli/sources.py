"""`recto sources`: rules, references and tools of a conversation and its agent; MCP servers, which have the tools."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show, sources_stats
from recto.errors import Invalid
from recto.sources.source import INCLUDES, KINDS, Include, Kind

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.sources.server import ServerConfig
    from recto.sources.session import Listed
    from recto.talk import Talk

Place = Callable[["Desk"], "Talk"]


class OneKind(click.Choice[Kind]):
    """A kind of sources, also by the short name that ids take."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Kind:
        return super().convert("reference" if value == "ref" else value, param, ctx)


ids_argument = click.argument("ids", metavar="ID...", nargs=-1, required=True)
server_argument = click.argument("server", metavar="SERVER")


@click.group()
def command() -> None:
    """See and choose what goes into the window: rules, references, tools.

    They are named rule:NAME, ref:NAME and tool:SERVER/NAME.

    Example: recto sources list
    """


@command.command("list")
@click.option("--kind", type=OneKind(KINDS), help="Only these; ref stands for reference.")
@click.option("--fresh", is_flag=True, help="Ask the MCP servers for their tools, whatever is kept of them.")
@options.session_options
@options.as_json_option
def list_sources(kind: Kind | None, fresh: bool, place: Place, as_json: bool) -> None:
    """List the sources of a conversation and its agent.

    What the agent has, how it is included, what of it is in the conversation (by default the latest), and how its MCP
    servers are doing. The tools of a server are those that it had when it was last asked, a day ago at most.

    Example: recto sources list --kind tool --fresh
    """
    from recto.cli import source_lists as lists  # rich: a tenth of a second

    kinds = (kind,) if kind else KINDS
    with options.open_desk({}) as desk:
        talk = place(desk)
        found = talk.sources(kinds, fresh=fresh)
        servers = lists.Servers(talk.agent.servers if "tool" in kinds else (), desk.servers.states())
        if as_json:
            for row in (*map(lists.to_json, found.items), *servers.to_json()):
                show.emit(row)
        else:
            lists.draw(show.console(), _whose(talk), found.items, kinds, servers)
        for text in found.notes:
            show.note(text)


def _whose(talk: "Talk") -> str:
    return f"agent {talk.agent.name}, {f'conversation {talk.id}' if talk.id else 'a new conversation'}"


@command.command("add")
@ids_argument
@options.conversation_option
@options.as_json_option
def add_source(ids: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Take sources into a conversation.

    Whatever their mode, they go with every message of it (by default the latest) until they are removed. Where one of
    them cannot be taken in, none is.

    Example: recto sources add rule:style tool:github/create_issue
    """
    from recto.cli.taking import take_in

    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        for listed in take_in(desk, talk, ids):
            _tell(talk, listed, "goes along from the next message on", as_json)


@command.command("remove")
@ids_argument
@options.conversation_option
@options.as_json_option
def remove_source(ids: tuple[str, ...], conversation: str | None, as_json: bool) -> None:
    """Take sources out of a conversation.

    The agent keeps them: those that it always includes are in other conversations as before. Where one of them cannot
    be taken out, none is.

    Example: recto sources remove ref:api
    """
    from recto.cli.taking import take_out

    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        for listed in take_out(desk, talk, ids):
            _tell(talk, listed, "goes along no longer", as_json)


def _tell(talk: "Talk", listed: "Listed", said: str, as_json: bool) -> None:
    from recto.cli.source_lists import to_json  # rich: a tenth of a second

    if as_json:
        show.emit({"conversation": talk.id} | to_json(listed))
    else:
        show.say(f"{listed.source.id} {said}, in conversation {talk.id}")


@command.command("mode")
@click.argument("id", metavar="ID")
@click.argument("mode", type=click.Choice(INCLUDES))
@options.session_options
@options.as_json_option
def set_mode(id: str, mode: Include, place: Place, as_json: bool) -> None:
    """Change how a source comes in, in its agent's file.

    It comes in always, by hand (manual), or when a message needs it (agent). tool:SERVER stands for all tools of a
    server.

    Example: recto sources mode tool:github agent
    """
    from recto.cli.modes import change  # as /rules, /references, /tools do

    with options.open_desk({}) as desk:
        talk = place(desk)
        changed = change(desk, talk, id, mode)
        if as_json:
            show.emit({"id": changed.name, "include": mode, "agent": changed.agent, "file": str(changed.file)})
        else:
            show.say(changed.in_words())


@command.command("ask")
@click.argument("tool", metavar="TOOL")
@options.conversation_option
@options.as_json_option
def ask_again(tool: str, conversation: str | None, as_json: bool) -> None:
    """Ask again before a tool runs.

    Takes back an "always" that was given in a conversation (by default the latest), for tool:SERVER/NAME or for all
    tools of a SERVER.

    Example: recto sources ask tool:github/create_issue
    """
    from recto.cli.always import take_back

    with options.open_desk({}) as desk:
        talk = options.find_talk(desk, conversation)
        taken = take_back(desk, talk, tool)
        if as_json:
            show.emit({"conversation": talk.id, "tool": taken.tool, "asks": taken.asks})
        else:
            show.say(f"{taken.in_words()}, in conversation {talk.id}")


@command.command("trust")
@server_argument
@options.session_options
@options.as_json_option
def trust(server: str, place: Place, as_json: bool) -> None:
    """Let an MCP server of the project run.

    What is trusted is all that is shown: command line, address, values, which tools run without asking. Once any of it
    is changed, the server is not started until it is trusted again.

    Example: recto sources trust github
    """
    with options.open_desk({}) as desk:
        config = desk.trust(server, _agent_with(server, place(desk)))
        _tell_server(config, "trusted, and started when it is needed", as_json, trusted=True)


@command.command("distrust")
@server_argument
@options.session_options
@options.as_json_option
def distrust(server: str, place: Place, as_json: bool) -> None:
    """Let an MCP server of the project run no more.

    Example: recto sources distrust github
    """
    with options.open_desk({}) as desk:
        config = desk.distrust(server, _agent_with(server, place(desk)))
        _tell_server(config, "no longer trusted, and not started", as_json, trusted=False)


def _agent_with(server: str, talk: "Talk") -> str:
    """Whose server it is. Invalid for one of the user's own: whether that runs is no question of trust."""
    config = talk.agent.server(server)
    if config and config.is_yours:
        raise Invalid(
            f"{server} is your own and needs no trust; `enabled` in {config.origin} says whether it runs", name=server
        )
    return talk.agent.name


def _tell_server(config: "ServerConfig", said: str, as_json: bool, *, trusted: bool) -> None:
    from recto.cli.source_lists import runs, unasked_in_words  # rich: a tenth of a second

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


for each in (sources_stats.stats, sources_stats.export):
    command.add_command(each)
