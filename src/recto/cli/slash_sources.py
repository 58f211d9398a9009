"""Slash commands about sources: what is in the session, what else the agent has, taking in, taking out, modes."""

from typing import TYPE_CHECKING

from rich.rule import Rule
from rich.text import Text

from recto.cli import source_lists as lists
from recto.cli.always import take_back
from recto.cli.gathered import shown
from recto.cli.modes import change
from recto.errors import Invalid

if TYPE_CHECKING:
    from recto.cli.ongoing import Chat
    from recto.sources.source import Kind

ALL = "all"
VERBS = ("add", "remove", "mode")
WORDS = (*VERBS, ALL)
ASK = "ask"
TOOL_WORDS = (*WORDS, ASK, "servers")
# So many of what is merely available are listed unless all are asked for.
FOLD = 12
# So many messages back `/references` looks for a turn that has any.
LATEST = 200
NAMED: dict[str, "Kind"] = {"rules": "rule", "references": "reference", "tools": "tool"}
PREFIXES = {"rules": ("rule",), "references": ("ref", "reference"), "tools": ("tool",)}


def rules(chat: "Chat", argument: str) -> None:
    _sources(chat, "rules", argument)


def references(chat: "Chat", argument: str) -> None:
    """Those of the session; below them the documents of the last turn, or of all turns."""
    _sources(chat, "references", argument)
    if argument in ("", ALL):
        chat.console.print(Rule(style="dim") if chat.console.is_terminal else "")
        _documents(chat, argument)


def tools(chat: "Chat", argument: str) -> None:
    verb, _, name = argument.partition(" ")
    if verb == ASK and name.strip():
        chat.tell(take_back(chat.desk, chat.talk, name).in_words())
        return
    if argument != "servers":
        if argument in ("", ALL):
            chat.desk.servers.renew()
        _sources(chat, "tools", argument)
        return
    servers = lists.Servers(chat.talk.agent.servers, chat.desk.servers.states())
    servers.draw(chat.console)
    if not servers:
        chat.tell("this agent has no MCP servers; `mcpServers` in its agent.toml or in .mcp.json names them")


def _sources(chat: "Chat", command: str, argument: str) -> None:
    verb, _, rest = argument.partition(" ")
    name = rest.strip()
    if verb in ("", ALL) and not name:
        _list(chat, command, fold=None if verb else FOLD)
    elif verb == "mode" and " " in name:
        name, _, mode = name.rpartition(" ")
        chat.tell(change(chat.desk, chat.talk, _id(command, name), mode).in_words())
    elif verb in ("add", "remove") and name:
        _move(chat, verb, _id(command, name))
    else:
        more = f", {ASK} NAME, servers" if command == "tools" else ""
        raise Invalid(f"/{command} takes add NAME, remove NAME, mode NAME MODE{more}, all, or nothing")


def _id(command: str, name: str) -> str:
    """The name as it is typed, with or without quotes, with or without its kind: `/rules add rule:latin` too."""
    typed, colon, rest = name.strip().partition(":")
    unquoted = rest.strip() if colon and typed.lower().lstrip("@") in PREFIXES[command] else name.strip()
    if len(unquoted) > 1 and unquoted[0] == unquoted[-1] == '"':
        unquoted = unquoted[1:-1].strip()
    return f"{NAMED[command]}:{unquoted}"


def _move(chat: "Chat", verb: str, id: str) -> None:
    if verb == "add":
        chat.tell(f"{chat.talk.add_source(id).source.id} goes along from the next message on")
    else:
        chat.tell(f"{chat.talk.remove_source(id).source.id} goes along no longer")


def _list(chat: "Chat", command: str, fold: int | None) -> None:
    kind = NAMED[command]
    with chat.console.status("looking…"):
        found = chat.talk.sources((kind,))
    lists.draw_items(chat.console, found.items, fold=fold, more=f" (/{command} all shows them)")
    if found.items:
        chat.tell(f"{lists.LEGEND} · /{command} add NAME, remove NAME, mode NAME MODE")
    else:
        chat.tell(f"{chat.talk.agent.name} has {lists.NONE[kind]}")
    for text in found.notes:
        chat.tell(f"· {text}")


def _documents(chat: "Chat", argument: str) -> None:
    """Of the last turn that has any, all of them; of all turns with `all`."""
    found = chat.talk.messages(limit=None if argument == ALL else LATEST)
    turns = [message for message in found if message.references]
    if not turns:
        chat.tell("no documents were referred to")
        return
    if argument != ALL:
        last = max(at for at, message in enumerate(found) if message.references)
        starts = [at for at, message in enumerate(found[: last + 1]) if message.role == "user"]
        turns = found[starts[-1] if starts else last : last + 1]
    for line in shown(turns, is_terminal=chat.console.is_terminal, fold=None):
        chat.console.print(Text.from_ansi(line))
