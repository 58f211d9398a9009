"""Options that several commands share, and the desk they ask for. Nothing heavy is imported before a command runs."""

import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from recto.errors import NotFound
from recto.places import STORE_FILE, find_home
from recto.sources.source import OWN

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.store.store import Store
    from recto.talk import Talk

P = ParamSpec("P")
R = TypeVar("R")

# What an option of its own sets; every other setting goes through --set.
SETTINGS = {
    "vault": "vault",
    "model": "model",
    "strategy": "context.strategy",
    "system_file": "system_prompt_file",
    "allow_write": "tools.allow_write",
}

as_json_option = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
limit_option = click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most N.")
conversation_argument = click.argument("id", required=False)
message_argument = click.argument("message", metavar="MESSAGE")
document_option = click.option("--document", metavar="PATH", help="A note of the vault that goes with every message.")
allow_tool_option = click.option(
    "--allow-tool",
    "allowed",
    metavar="SERVER[/TOOL]",
    multiple=True,
    help="Let a tool, or all tools of a server, run unasked; can be given several times.",
)
conversation_option = click.option("--conversation", "-c", metavar="ID", help="Which one (default: the latest).")
home_option = click.option("--conversation", "-c", metavar="ID", help="The conversation it is in (found by itself).")


def settings_options(command: Callable[..., R]) -> Callable[..., R]:
    """Adds the options that change settings for this call; the command gets them as one `flags`, by key."""

    @click.option("--vault", metavar="DIR", help="Folder of notes to chat over.")
    @click.option("--model", "-m", metavar="NAME", help="Who answers, as provider:model.")
    @click.option("--strategy", metavar="NAME", help="What happens when the window is full.")
    @click.option("--system-file", metavar="FILE", help="File with what the model is told first.")
    @click.option("--allow-write", is_flag=True, default=None, help="Let the model write, rename and delete notes.")
    @click.option("--set", "assignments", metavar="KEY=VALUE", multiple=True, help="Any setting, for this call.")
    @wraps(command)
    def run(*args: Any, assignments: tuple[str, ...], **named: Any) -> R:
        flags = dict(_assignment(text) for text in assignments)
        for option, key in SETTINGS.items():
            if (value := named.pop(option)) is not None:
                flags[key] = value
        return command(*args, flags=flags, **named)

    return run


def place_options(command: Callable[..., R]) -> Callable[..., R]:
    """Adds the options that say which conversation is meant; the command gets `place`, a function of the desk."""

    @click.option("--conversation", "-c", metavar="ID", help="Go on with this conversation.")
    @click.option("--continue", "goes_on", is_flag=True, help="Go on with the latest conversation.")
    @click.option("--new", is_flag=True, help="Start a new conversation (the default).")
    @click.option("--agent", metavar="NAME", help="Whose settings a new conversation follows.")
    @wraps(command)
    def run(*args: Any, conversation: str | None, goes_on: bool, new: bool, agent: str | None, **named: Any) -> R:
        if (conversation is not None) + goes_on + new > 1:
            raise click.UsageError("Give only one of --conversation, --continue and --new.")
        if agent and (conversation is not None or goes_on):
            raise click.UsageError("--agent is for a new conversation; this one has its own.")

        def place(desk: "Desk") -> "Talk":
            if conversation or goes_on:
                return find_talk(desk, conversation)
            return desk.conversation(agent=agent) if agent else desk.conversation()

        return command(*args, place=place, **named)

    return run


def session_options(command: Callable[..., R]) -> Callable[..., R]:
    """Adds the options that say whose sources are meant; the command gets `place`, a function of the desk."""

    @click.option("--conversation", "-c", metavar="ID", help="Of this conversation (default: the latest).")
    @click.option("--agent", metavar="NAME", help="Of this agent, as a new conversation would begin with them.")
    @wraps(command)
    def run(*args: Any, conversation: str | None, agent: str | None, **named: Any) -> R:
        if conversation is not None and agent is not None:
            raise click.UsageError("Give --conversation or --agent, not both: a conversation has its own agent.")

        def place(desk: "Desk") -> "Talk":
            if agent is not None:
                return desk.conversation(agent=agent)
            return find_talk(desk, conversation) if conversation else desk.latest() or desk.conversation()

        return command(*args, place=place, **named)

    return run


def has_keyboard() -> bool:
    """Whether someone sits there and types; a closed stdin is nobody."""
    return sys.stdin is not None and sys.stdin.isatty()


def open_desk(flags: dict[str, str] | None = None) -> "Desk":
    """A desk with these settings; without any it is for reading what was said, which needs no vault."""
    from recto import desk  # the store: a third of a second

    return desk.open_desk(settings={"vault": ""} if flags is None else dict(flags))


def open_store() -> "Store":
    """For commands that only look something up: neither settings nor an engine are needed."""
    from recto.store.store import Store  # sqlalchemy: a fifth of a second

    return Store(find_home() / STORE_FILE)


def find_talk(desk: "Desk", id: str | None) -> "Talk":
    """The conversation of this id, or the latest."""
    talk = desk.conversation(id) if id else desk.latest()
    if talk is None:
        raise NotFound("there is no conversation yet: `recto chat` starts one")
    return talk


def allow_tools(desk: "Desk", talk: "Talk", allowed: Sequence[str]) -> None:
    """What --allow-tool names may run as long as this talk lasts. NotFound for a server that its agent has not, or a
    tool that the server has not, as far as that is known."""
    servers = [OWN, *(each.name for each in talk.agent.servers if each.name != OWN)] if allowed else []
    for named in allowed:
        tool = named.removeprefix("tool:")
        if tool.partition("/")[0] not in servers:
            known = ", ".join(servers)
            raise NotFound(
                f"--allow-tool takes SERVER or SERVER/TOOL, not {named}; the servers are: {known}", name=named
            )
        _check_tool(desk, talk, *tool.partition("/")[::2])
        talk.allow(tool)


def _check_tool(desk: "Desk", talk: "Talk", server: str, tool: str) -> None:
    """No server is started to know it: where nothing is known of its tools, any name may be right."""
    config = talk.agent.server(server)
    known = desk.servers.known(config, desk.project) if config and tool and server != OWN else None
    if known is not None and tool not in known:
        near = get_close_matches(tool, known, 3) or sorted(known)[:10]
        raise NotFound(f"the MCP server {server} has no tool {tool}; it has: {', '.join(near)}", name=tool)


def message_of(desk: "Desk", named: str, conversation: str | None) -> str:
    """The id of a message that is given by id, or by its number in a conversation (the latest unless told): #57."""
    number = named.removeprefix("#")
    if not number.isdecimal() or len(number) > 9:
        return named
    talk = find_talk(desk, conversation)
    head = talk.standing.head
    found = desk.store.tree.numbered(head, [int(number)]) if head else {}
    if not found:
        raise NotFound(f"conversation {talk.id} has no message {named}", id=named)
    return found[int(number)].id


def home_of(desk: "Desk", message: str, conversation: str | None) -> "Talk":
    """The conversation that a message is in; NotFound when that is not the one that is named."""
    owner = desk.store.tree.owner(message)
    if conversation and conversation != owner:
        desk.conversation(conversation)  # says so when it is this that there is not
        raise NotFound(f"message {message} is not part of conversation {conversation}", id=message)
    return desk.conversation(owner)


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--set takes KEY=VALUE, not {text}; for example --set reply.tries=2")
    return key.strip(), value.strip()
