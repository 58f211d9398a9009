"""Slash commands about sources: list, add and remove rules, references and tools, and change their modes."""

from rich.rule import Rule
from rich.text import Text

from recto.cli.chat_state import ChatState
from recto.cli.drawing import sources as lists
from recto.cli.drawing.references import message_references
from recto.errors import Invalid
from recto.sources.source import SourceKind

ALL = "all"
VERBS = ("add", "remove", "mode")
WORDS = (*VERBS, ALL)
ASK = "ask"
TOOL_WORDS = (*WORDS, ASK, "servers")
# Without `all`, at most this many available sources are listed.
FOLD = 12
# `/references` looks for documents in this many of the latest messages.
LATEST = 200
NAMED: dict[str, SourceKind] = {"rules": "rule", "references": "reference", "tools": "tool"}
PREFIXES = {"rules": ("rule",), "references": ("ref", "reference"), "tools": ("tool",)}


def rules(chat: ChatState, argument: str) -> None:
    _sources(chat, "rules", argument)


def references(chat: ChatState, argument: str) -> None:
    """Lists references; below them the documents of the last turn, or of all turns."""
    _sources(chat, "references", argument)
    if argument in ("", ALL):
        chat.console.print(Rule(style="dim") if chat.console.is_terminal else "")
        _documents(chat, argument)


def tools(chat: ChatState, argument: str) -> None:
    verb, _, name = argument.partition(" ")
    if verb == ASK and name.strip():
        chat.tell(lists.approval_in_words(chat.talk.ask_again(name)))
        return
    if argument != "servers":
        if argument in ("", ALL):
            chat.desk.servers.refresh()
        _sources(chat, "tools", argument)
        return
    servers = lists.ServerList(chat.talk.agent.servers, chat.desk.servers.statuses())
    servers.draw(chat.console)
    if not servers:
        chat.tell("this agent has no MCP servers; `mcpServers` in its agent.toml or in .mcp.json names them")


def _sources(chat: ChatState, command: str, argument: str) -> None:
    verb, _, rest = argument.partition(" ")
    name = rest.strip()
    if verb in ("", ALL) and not name:
        _list(chat, command, fold=None if verb else FOLD)
    elif verb == "mode" and " " in name:
        name, _, mode = name.rpartition(" ")
        chat.tell(lists.include_in_words(chat.talk.set_include(_id(command, name), mode)))
    elif verb in ("add", "remove") and name:
        _move(chat, verb, _id(command, name))
    else:
        more = f", {ASK} NAME, servers" if command == "tools" else ""
        raise Invalid(f"/{command} takes add NAME, remove NAME, mode NAME MODE{more}, all, or nothing")


def _id(command: str, name: str) -> str:
    """The id for a typed name, with or without quotes and kind: `/rules add rule:latin` works too."""
    typed, colon, rest = name.strip().partition(":")
    unquoted = rest.strip() if colon and typed.lower().lstrip("@") in PREFIXES[command] else name.strip()
    if len(unquoted) > 1 and unquoted[0] == unquoted[-1] == '"':
        unquoted = unquoted[1:-1].strip()
    return f"{NAMED[command]}:{unquoted}"


def _move(chat: ChatState, verb: str, id: str) -> None:
    if verb == "add":
        chat.tell(f"{chat.talk.add_source(id).source.id} is included from the next message on")
    else:
        chat.tell(f"{chat.talk.remove_source(id).source.id} is no longer included")


def _list(chat: ChatState, command: str, fold: int | None) -> None:
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


def _documents(chat: ChatState, argument: str) -> None:
    """Lists the documents of the last turn that has any; with `all`, of every turn."""
    found = chat.talk.messages(limit=None if argument == ALL else LATEST)
    turns = [message for message in found if message.references]
    if not turns:
        chat.tell("no documents were referred to")
        return
    if argument != ALL:
        last = max(at for at, message in enumerate(found) if message.references)
        starts = [at for at, message in enumerate(found[: last + 1]) if message.role == "user"]
        turns = found[starts[-1] if starts else last : last + 1]
    for line in message_references(turns, is_terminal=chat.console.is_terminal, fold=None):
        chat.console.print(Text.from_ansi(line))
