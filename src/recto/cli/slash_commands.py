"""Slash commands about sources: list, add and remove rules, references and tools, and change their modes.

Slash commands about the window: show it, compact, take back, edit, pin, set priorities, choose a strategy.
"""

from collections.abc import Iterable

from rich.rule import Rule
from rich.text import Text

from recto.chat.blocks import Compaction
from recto.chat.compaction_words import counts_in_words
from recto.chat.message import Message
from recto.cli import options
from recto.cli.chat_state import ChatState
from recto.cli.drawing import sources as lists
from recto.cli.drawing.references import message_references
from recto.cli.drawing.transcripts import (
    LEDGER,
    LOST_MESSAGES,
    NOTHING_COMPACTED,
    block_in_words,
    compaction_facts,
    ledger_in_words,
    lost_in_words,
    no_summary_in_words,
    set_aside_in_words,
    undone_in_words,
)
from recto.cli.drawing.windows import (
    FOLLOWS_SETTINGS,
    draw_window,
    facts_table,
    outlook,
    setting_in_words,
    strategy_in_words,
)
from recto.cli.listener import Lines, follow
from recto.cli.markdown import Page
from recto.cli.memory import fact_rows, learned_lines
from recto.cli.questions import ask_changes, ask_trust, said_yes, show_server
from recto.cli.screen import Screen
from recto.cli.show import counted, shortened, visible
from recto.cli.terminal import edited
from recto.errors import Invalid, NotFound
from recto.settings.settings import conversation_key, specs
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


def memory(chat: ChatState, argument: str) -> None:
    """Shows the memory of the next message; adds, forgets and finds facts."""
    verb, _, rest = argument.partition(" ")
    facts, rest = chat.desk.facts, rest.strip()
    if verb == "add" and rest:
        learned = facts.learn(rest, conversation=chat.talk.id)
        for line in learned_lines(learned):
            chat.tell(line)
    elif verb == "forget" and rest:
        if not rest.isdecimal():
            raise Invalid("/memory forget takes the number of a fact, which /memory WORDS shows")
        known = facts.fact(int(rest))
        if not chat.is_at_terminal or said_yes(chat.console, f"forget “{shortened(known.text, 60)}”? [y]es / [N]o "):
            chat.tell(f"forgotten: {shortened(facts.forget(known.number).text, 70)}")
    elif verb in ("add", "forget"):
        raise Invalid("/memory takes add TEXT, forget N, words to look for, or nothing")
    elif argument:
        found, note = facts.search(argument, FOLD)
        for line in fact_rows([each.fact for each in found]):
            chat.tell(line)
        for text in filter(None, (note, "" if found else "nothing is remembered about this")):
            chat.tell(text)
    else:
        report = chat.talk.memory()
        for line in (*report.lines, *report.notes):
            chat.tell(line)


def trust(chat: ChatState, argument: str) -> None:
    """Lets a server of the project run, and accepts tools that have changed; without a name it lists servers that wait
    for it."""
    waiting = chat.untrusted()
    if not argument:
        lists.ServerList(waiting, chat.desk.servers.statuses()).draw(chat.console)
        chat.tell("/trust SERVER lets one of them run" if waiting else "no MCP server waits for your trust")
        return
    config = chat.talk.agent.server(argument)
    if config and config not in waiting:
        changes = chat.desk.tool_changes(argument, chat.talk.agent.name)
        if not changes and config.is_yours:
            raise Invalid(f"{argument} is your own and needs no trust", name=argument)
        if not changes:
            chat.tell(f"{config.name} is trusted already")
        elif ask_changes(chat.console, changes, is_at_terminal=chat.is_at_terminal):
            chat.desk.accept_tools(changes)
            chat.tell(f"{counted(len(changes), 'tool')} of {config.name} accepted as shown")
        return
    if config and not chat.is_at_terminal:
        show_server(chat.console, config)
    if config is None or not chat.is_at_terminal or ask_trust(chat.console, config):
        chat.trust(argument, config)
    else:
        chat.tell(f"{config.name} is not started; /trust {config.name} asks again")


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


LAST = "last"
STRATEGY = "context.strategy"


def show_window(chat: ChatState, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument, strategy=chat.strategy, attachments=tuple(chat.attachments))
    drawn = chat.talk.numbered(window.to_json())
    draw_window(chat.console, drawn, outlook=outlook(chat.talk.context_settings, window.plan))


def compact(chat: ChatState, argument: str) -> None:
    listener = Screen(chat.console, stopped=NOTHING_COMPACTED) if chat.console.is_terminal else Lines()
    follow(chat.talk.stream_compaction(argument), listener, chat.watch)
    if block := chat.talk.compaction():
        chat.resized(block)


def uncompact(chat: ChatState, argument: str) -> None:
    before = chat.talk.compaction()
    block = chat.talk.uncompact()
    chat.resized(block)
    chat.tell(undone_in_words(chat.talk, before, block, "/compact"))


def clear(chat: ChatState, argument: str) -> None:
    block = chat.talk.clear()
    chat.resized(block)
    chat.tell(f"{block_in_words(block)}; the model starts anew, nothing is deleted")


def summary(chat: ChatState, argument: str) -> None:
    if argument not in ("", "edit", "lost"):
        raise Invalid("/summary takes edit, lost, or nothing")
    block = chat.talk.summary_block()
    if argument == "edit":
        _edit(chat, block)
        return
    if argument == "lost":
        found, archived = chat.talk.lost_facts(LOST_MESSAGES), block.messages_archived
        _print_lines(chat, lost_in_words(found, looked_at=min(LOST_MESSAGES, archived), archived=archived))
        return
    chat.console.print(facts_table(chat.talk.numbered(list(compaction_facts(block)))))
    chat.console.print()
    if block.summary and block.made_by != "model":  # a line for each message, which Markdown would join
        _print_lines(chat, block.summary.splitlines())
    else:
        chat.console.print(Page(visible(block.summary) or no_summary_in_words(block)))
    if block.ledger:
        chat.console.print(f"\n{LEDGER}")
        _print_lines(chat, ledger_in_words(block.ledger))
    for title, lines in set_aside_in_words(block):
        chat.console.print(f"\n{title}")
        _print_lines(chat, lines)
    if counts := counts_in_words(block.checks):
        chat.console.print(f"\n{counts}.")


def _print_lines(chat: ChatState, lines: Iterable[str]) -> None:
    for line in lines:
        chat.console.print(visible(line), soft_wrap=not chat.console.is_terminal, highlight=False)


def _edit(chat: ChatState, block: Compaction) -> None:
    if not options.has_keyboard():
        raise Invalid("there is no keyboard to edit with; `recto context summary --text FILE` replaces a summary")
    text = edited(block.summary)
    if text is None:
        chat.tell("the summary is unchanged")
        return
    chat.tell(block_in_words(chat.talk.edit_summary(text)))


def pin(chat: ChatState, argument: str) -> None:
    if not argument:
        chat.offer("pin")
        chat.tell("/pin MESSAGE keeps one of them in every window, /pin last your last one")
        return
    message = _last(chat) if argument == LAST else chat.talk.message(argument)
    chat.resized(chat.talk.pin(message.id))
    chat.tell(f"pinned, in every window from now on: {_text(message)} (/unpin #{message.said} ends that)")


def _last(chat: ChatState) -> Message:
    found = next((message for message in chat.talk.path() if message.role == "user"), None)
    if found is None:
        raise Invalid("there is no message yet to pin")
    return found


def unpin(chat: ChatState, argument: str) -> None:
    if argument:
        message = chat.talk.message(argument)
        chat.resized(chat.talk.unpin(message.id))
        chat.tell(f"no longer pinned: {_text(message)}")
        return
    block = chat.talk.compaction()
    pinned = [chat.talk.message(id) for id in block.pinned] if block else []
    for message in pinned:
        chat.tell(f"#{message.said}  {_text(message)}")
    chat.tell("/unpin MESSAGE unpins one of them" if pinned else "nothing is pinned")


def priority(chat: ChatState, argument: str) -> None:
    named, _, number = argument.partition(" ")
    if not number.strip().isdecimal():
        raise Invalid("/priority takes a MESSAGE and a whole number from 1 to 10; /pin lists messages")
    message = chat.talk.message(named)
    chat.talk.set_priority(message.id, int(number))
    chat.tell(f"priority {int(number)}: {_text(message)}")


def strategy(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.use_strategy(None if argument == FOLLOWS_SETTINGS else argument)
        # the option that the chat was started with would win over the conversation's choice
        chat.strategy = None if argument == FOLLOWS_SETTINGS else argument
    used = chat.talk.strategy_in_force(chat.strategy)
    chat.tell(strategy_in_words(chat.talk.strategy, used) + ("" if argument else "; /strategy NAME changes that"))


def keep_setting(chat: ChatState, argument: str) -> None:
    """Lists the settings of the conversation, shows one, or keeps one."""
    key, _, value = argument.partition(" ")
    if not key:
        for name in chat.talk.chosen_settings:
            chat.tell(setting_in_words(name, chat.talk.settings))
        more = "" if chat.talk.chosen_settings else "this conversation has no settings of its own; "
        chat.tell(f"{more}/set KEY VALUE keeps one, /unset KEY follows yours again")
        return
    full = conversation_key(key, "/set")
    if value.strip():
        _keep(chat, full, value.strip())
    chat.tell(setting_in_words(full, chat.talk.settings))


def drop_setting(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/unset takes the KEY of a setting; /set lists those of this conversation")
    full = conversation_key(argument, "/unset")
    _keep(chat, full, None)
    chat.tell(setting_in_words(full, chat.talk.settings))


def list_settings(chat: ChatState, argument: str) -> None:
    """Those that the conversation has come first; a word filters by key."""
    settings, own = chat.talk.settings, chat.talk.chosen_settings
    found = [spec for spec in specs() if argument.lower() in spec.key]
    if not found:
        raise NotFound(f"no setting has {argument} in its name; /settings lists all of them")
    for spec in sorted(found, key=lambda spec: spec.key not in own):
        style = "bold" if settings.origin(spec.key) != "default" else ""
        chat.console.print(Text(visible(setting_in_words(spec.key, settings)), style))
        if len(found) == 1:
            chat.tell(f"  {spec.help}; {spec.allowed}")
    chat.tell("/set KEY VALUE keeps a context. setting with this conversation; `recto config set` changes yours")


def _keep(chat: ChatState, key: str, value: str | None) -> None:
    chat.talk.set_setting(key, value)
    if key == STRATEGY:  # as with /strategy
        chat.strategy = value
    if chat.usage:
        chat.measure()
    if value and chat.talk.settings.origin(key) == "option":
        chat.tell(f"the option that this chat was started with wins over {key} for now")


def _text(message: Message) -> str:
    return shortened(message.text, 60) or f"#{message.said}"
