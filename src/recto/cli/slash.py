"""Slash commands of the chat, at a terminal and in a pipe.

The table of actions names them. An action with a method is called with the argument; all others have a function here.
"""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct
from rich.rule import Rule
from rich.text import Text

from recto.api.actions import BY_NAME, FOLLOWS_SETTINGS, Action, offered
from recto.chat.blocks import Compaction
from recto.chat.compaction_words import block_in_words
from recto.cli import options
from recto.cli.agent import follow_run
from recto.cli.chat_state import ChatState
from recto.cli.drawing import sources as lists
from recto.cli.drawing.requests import draw_request
from recto.cli.drawing.results import fact_rows, learned_lines, tell, titled
from recto.cli.drawing.statistics import cost_lines
from recto.cli.drawing.transcripts import (
    LOST_MESSAGES,
    NOTHING_COMPACTED,
    beside_summary,
    branch_in_words,
    compaction_facts,
    hit_lines,
    lost_in_words,
    message_references,
    no_summary_in_words,
    plan_tree,
)
from recto.cli.drawing.windows import draw_window, facts_table, outlook, setting_in_words, strategy_in_words
from recto.cli.listener import Lines, follow
from recto.cli.questions import said_yes
from recto.cli.screen import Page, Screen
from recto.cli.show import shortened, visible, when
from recto.cli.terminal import edited
from recto.errors import Invalid, NotFound
from recto.settings.settings import conversation_key
from recto.sources.documents import read_attachment
from recto.sources.source import SourceKind

ALL = "all"
STRATEGY = "context.strategy"
# Messages that `/search` finds, `/history` lists and `/references` looks through; conversations listed.
FOUND, LISTED, LATEST, CONVERSATIONS = 8, 20, 200, 15
# Available sources listed without `all`, and facts found.
FOLD, NEWEST = 12, 5
# Most characters of a title in the name of an exported file.
LONGEST_NAME = 60
NAMED: dict[str, SourceKind] = {"rules": "rule", "references": "reference", "tools": "tool"}
PREFIXES = {"rules": ("rule",), "references": ("ref", "reference"), "tools": ("tool",)}
HELP = """\
/help COMMAND shows how to use one of them, with examples.
MESSAGE is a number that /history lists, such as #12, or an id.
Enter sends; Alt-Enter, Esc Enter or a backslash at the end of a line adds a line; pasted lines stay one text.
Up arrow recalls earlier input that begins like your line; Ctrl-R searches all of it.
@rule:NAME or @ref:NAME in a message includes a rule or a reference from then on.
What you type during a reply is sent as soon as possible; up arrow takes it back.
Ctrl-C stops a reply and keeps the part received; Ctrl-D quits."""


class SlashCommand(Struct, frozen=True):
    help: str
    usage: str
    examples: tuple[str, ...]
    words: tuple[str, ...]
    action: Action


def _made(action: Action) -> SlashCommand:
    slash = action.slash
    assert slash is not None
    examples = tuple(f"/{action.word} {each}".rstrip() for each in slash.arguments)
    return SlashCommand(slash.help, slash.usage, examples, slash.words, action)


COMMANDS = {action.word: _made(action) for action in offered("slash")}


def run(chat: ChatState, line: str) -> None:
    """Run a line that begins with a slash. Invalid for an unknown command."""
    name, _, typed = line[1:].partition(" ")
    known = _command(name)
    if own := OWN.get(name):
        own(chat, typed.strip())
    else:
        named = {"conversation": _stored(chat)} if known.action.target == "named" else {}
        act(chat, known.action.name, **known.action.typed(typed.strip()), **named)


def act(chat: ChatState, name: str, **given: Any) -> Any:
    """Run an action of the table on this conversation, and show its result like the command."""
    done = BY_NAME[name].perform(chat.desk, chat.talk, given)
    if isinstance(done.result, Compaction):
        chat.resized(done.result)
    tell(chat, done)
    return done.result


def _stored(chat: ChatState) -> str:
    if chat.talk.id is None:
        raise Invalid("this conversation is new: there is nothing in it yet")
    return chat.talk.id


def _command(name: str) -> SlashCommand:
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise Invalid(f"there is no command /{name}; {hint} (a leading // sends a slash)")
    return COMMANDS[name]


def _do_help(chat: ChatState, argument: str) -> None:
    if argument:
        known = _command(argument.removeprefix("/"))
        for line in (f"/{known.action.word} {known.usage}".rstrip(), f"  {known.help}", *known.examples):
            chat.tell(line)
        return
    chat.console.print(facts_table((f"/{name}", known.help) for name, known in COMMANDS.items()))
    for line in HELP.splitlines():
        chat.tell(line)


# -- the window


def _do_context(chat: ChatState, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument, strategy=chat.strategy, attachments=tuple(chat.attachments))
    drawn = chat.talk.numbered(window.to_json())
    draw_window(chat.console, drawn, outlook=outlook(chat.talk.context_settings, window.plan))


def _do_compact(chat: ChatState, argument: str) -> None:
    listener = Screen(chat.console, stopped=NOTHING_COMPACTED) if chat.console.is_terminal else Lines()
    follow(chat.talk.stream_compaction(argument), listener, chat.watch)
    if block := chat.talk.compaction():
        chat.resized(block)


def _do_summary(chat: ChatState, argument: str) -> None:
    if argument not in ("", "edit", "lost"):
        raise Invalid("/summary takes edit, lost, or nothing")
    block = chat.talk.summary_block()
    if argument == "edit":
        _edit_summary(chat, block)
    elif argument == "lost":
        _print_lines(chat, lost_in_words(chat.talk.lost_statements(LOST_MESSAGES), block.messages_archived))
    else:
        chat.console.print(facts_table(chat.talk.numbered(list(compaction_facts(block)))))
        chat.console.print()
        if block.summary and block.made_by != "model":  # a line for each message, which Markdown would join
            _print_lines(chat, block.summary.splitlines())
        else:
            chat.console.print(Page(visible(block.summary) or no_summary_in_words(block)))
        _print_lines(chat, beside_summary(block))


def _print_lines(chat: ChatState, lines: Iterable[str]) -> None:
    for line in lines:
        chat.console.print(visible(line), soft_wrap=not chat.console.is_terminal, highlight=False)


def _edit_summary(chat: ChatState, block: Compaction) -> None:
    if not options.has_keyboard():
        raise Invalid("there is no keyboard to edit with; `recto context summary --text FILE` replaces a summary")
    text = edited(block.summary)
    chat.tell("the summary is unchanged" if text is None else block_in_words(chat.talk.edit_summary(text)))


def _do_strategy(chat: ChatState, argument: str) -> None:
    if argument:
        chosen = None if argument == FOLLOWS_SETTINGS else argument
        chat.talk.use_strategy(chosen)
        chat.strategy = chosen  # the chat's option would override the conversation's choice
    used = chat.talk.strategy_in_force(chat.strategy)
    chat.tell(strategy_in_words(chat.talk.strategy, used) + ("" if argument else "; /strategy NAME changes that"))


def _do_set(chat: ChatState, argument: str) -> None:
    """List the conversation's settings, or show or set one."""
    key, _, value = argument.partition(" ")
    if value.strip():
        _keep(chat, key, value.strip())
    elif key:
        chat.tell(setting_in_words(conversation_key(key, "/set"), chat.talk.settings))
    else:
        for name in chat.talk.chosen_settings:
            chat.tell(setting_in_words(name, chat.talk.settings))
        more = "" if chat.talk.chosen_settings else "this conversation has no settings of its own; "
        chat.tell(f"{more}/set KEY VALUE keeps one, /unset KEY follows yours again")


def _do_unset(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/unset takes the KEY of a setting; /set lists those of this conversation")
    _keep(chat, argument, None)


def _keep(chat: ChatState, key: str, value: str | None) -> None:
    full = conversation_key(key, "/unset" if value is None else "/set")
    chat.talk.set_setting(full, value)
    if full == STRATEGY:  # as with /strategy
        chat.strategy = value
    if chat.usage:
        chat.measure()
    chat.tell(setting_in_words(full, chat.talk.settings))


def _do_request(chat: ChatState, argument: str) -> None:
    record = chat.talk.request(argument) if argument else chat.talk.last_request()
    if record is None:
        raise NotFound("nothing has been sent yet in this conversation")
    draw_request(chat.console, chat.talk.numbered(record.to_json()))


def _do_cost(chat: ChatState, argument: str) -> None:
    chat.console.print(facts_table(cost_lines(chat.talk, chat.desk)))


# -- sources and memory


def _do_references(chat: ChatState, argument: str) -> None:
    """List references, then the documents of the last turn or of all turns."""
    _sources(chat, "references", argument)
    if argument in ("", ALL):
        chat.console.print(Rule(style="dim") if chat.console.is_terminal else "")
        _documents(chat, argument)


def _documents(chat: ChatState, argument: str) -> None:
    """List the documents of the last turn that has any; with `all`, of every turn."""
    found = chat.talk.messages(limit=None if argument == ALL else LATEST)
    places = [at for at, message in enumerate(found) if message.references]
    if not places:
        chat.tell("no documents were referred to")
        return
    if argument != ALL:
        starts = [at for at, message in enumerate(found[: places[-1] + 1]) if message.role == "user"]
        found = found[starts[-1] if starts else places[-1] : places[-1] + 1]
    for line in message_references(found, is_terminal=chat.console.is_terminal, fold=None):
        chat.console.print(Text.from_ansi(line))


def _do_tools(chat: ChatState, argument: str) -> None:
    verb, _, name = argument.partition(" ")
    if verb == "ask" and name.strip():
        act(chat, "sources ask", tool=name)
        return
    if argument in ("", ALL):
        chat.desk.servers.refresh()
    _sources(chat, "tools", argument)
    servers = lists.ServerList(chat.talk.agent.servers, chat.desk.servers.statuses())
    if servers and argument in ("", ALL):
        servers.draw(chat.console)


def _do_rules(chat: ChatState, argument: str) -> None:
    _sources(chat, "rules", argument)


def _sources(chat: ChatState, command: str, argument: str) -> None:
    verb, _, rest = argument.partition(" ")
    name, _, mode = rest.strip().rpartition(" ")
    if argument in ("", ALL):
        _list_sources(chat, command, fold=None if verb else FOLD)
    elif verb == "mode" and name:
        act(chat, "sources mode", named=_id(command, name), mode=mode)
    elif verb in ("add", "remove") and rest.strip():
        act(chat, f"sources {verb}", names=(_id(command, rest),))
    else:
        more = ", ask NAME" if command == "tools" else ""
        raise Invalid(f"/{command} takes add NAME, remove NAME, mode NAME MODE{more}, all, or nothing")


def _id(command: str, name: str) -> str:
    """The id for a typed name, with or without its kind (`/rules add rule:latin`)."""
    kind, colon, rest = name.strip().partition(":")
    typed = rest if colon and kind.lower().removeprefix("@") in PREFIXES[command] else name
    unquoted = typed.strip().strip('"')
    return f"{NAMED[command]}:{unquoted}"


def _list_sources(chat: ChatState, command: str, fold: int | None) -> None:
    kind = NAMED[command]
    with chat.console.status("looking…"):
        found = chat.talk.sources((kind,))
    lists.draw_items(chat.console, found.items, fold=fold, more=f" (/{command} all shows them)")
    if found.items:
        chat.tell(f"{lists.LEGEND} · /{command} add NAME, remove NAME, mode NAME MODE")
    else:
        chat.tell(f"{chat.talk.agent.name} has no {kind}s")
    for text in found.notes:
        chat.tell(f"· {text}")


def _do_memory(chat: ChatState, argument: str) -> None:
    verb, _, rest = argument.partition(" ")
    rest = rest.strip()
    if verb == "add" and rest:
        for line in learned_lines(chat.desk.facts.learn(rest, conversation=chat.talk.id)):
            chat.tell(line)
    elif verb == "forget" and rest.isdecimal():
        known = chat.desk.facts.fact(int(rest))
        if not chat.is_at_terminal or said_yes(chat.console, f"forget “{shortened(known.text, 60)}”? [y]es / [N]o "):
            chat.tell(f"forgotten: {shortened(chat.desk.facts.forget(known.number).text, 70)}")
    elif verb in ("add", "forget"):
        raise Invalid("/memory takes add TEXT, forget N, words to look for, or nothing")
    elif argument:
        act(chat, "memory search", text=argument, limit=FOLD)
    else:
        act(chat, "memory relevance", text="")
        newest = chat.desk.facts.facts(limit=NEWEST)
        for line in fact_rows(newest, chat.desk.facts.missing):
            chat.tell(line)
        chat.tell("these are the newest facts; /memory WORDS finds others" if newest else "no fact is remembered yet")


# -- what goes with the next message


def _do_document(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.open_document(None if argument == "none" else argument)
    now = chat.talk.document
    chat.tell(f"{now} goes with every message; /document none closes it" if now else "no document is open")


def _do_attach(chat: ChatState, argument: str) -> None:
    if argument == "none":
        chat.attachments.clear()
    elif argument:
        read_attachment(argument)  # refused now, not with the message
        chat.attachments.append(argument)
    files = ", ".join(chat.attachments)
    chat.tell(f"with your next message: {files}; /attach none clears this" if files else "nothing is attached")


def _do_waiting(chat: ChatState, argument: str) -> None:
    """List waiting messages; `drop` takes back the newest."""
    if argument not in ("", "drop"):
        raise Invalid("/waiting takes drop, or nothing")
    if argument and chat.talk.waiting():
        chat.tell(f"taken back: {shortened(chat.talk.take_back().text, 70)}")
    found = chat.talk.waiting()
    for place, each in enumerate(found, 1):
        chat.tell(f"{place}  {shortened(each.text, 70)}")
    chat.tell(
        "your next message brings them along; /waiting drop takes back the last" if found else "nothing is waiting"
    )


def _do_model(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.use(argument)
        with chat.console.status("counting…"):
            chat.measure()
    chat.tell(f"{chat.talk.model} answers" + ("" if argument else "; /model NAME changes that"))


def _do_thinking(chat: ChatState, argument: str) -> None:
    if argument not in ("on", "off", ""):
        raise Invalid("/thinking takes on or off")
    chat.thinking = argument == "on" if argument else not chat.thinking
    chat.tell(f"thinking is {'shown' if chat.thinking else 'not shown'}")


# -- branches and conversations


def _do_branches(chat: ChatState, argument: str) -> None:
    ends = chat.talk.branches()
    if argument:
        if not (argument.isdecimal() and 0 < int(argument) <= len(ends)):
            raise NotFound(f"there is no branch {argument}; there are {len(ends)}: /branches lists them")
        end = ends[int(argument) - 1].message
        chat.talk.fork(end.id)
        chat.tell(f"the next message follows #{end.said}: {shortened(branch_in_words(end), 60)}")
        return
    for number, each in enumerate(ends, 1):
        mark, leaf = "*" if each.is_head else " ", each.message
        chat.tell_row(f"{mark} {number:>2}  {when(leaf.created)}  #{leaf.said:<3}  ", branch_in_words(leaf))
    chat.tell("/branches N continues at the end of one of them" if ends else "there is no branch yet")


def _do_history(chat: ChatState, argument: str) -> None:
    if argument and not (argument.isdecimal() and int(argument)):
        raise Invalid("/history takes how many messages to list, or nothing")
    chat.offer("list", int(argument or LISTED))


def _do_search(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/search takes the words to look for")
    with chat.console.status("searching…"):
        found = chat.desk.search(argument, limit=FOUND)
    for hit in found:
        for line in hit_lines(hit, argument):
            chat.console.print(Text.from_ansi(line))
    for text in filter(None, (found.note, "" if found else "nothing was found")):
        chat.tell(text)


def _do_conversations(chat: ChatState, argument: str) -> None:
    with chat.console.status("searching…"):
        find = chat.desk.find_conversations
        found = find(argument, limit=CONVERSATIONS) if argument else chat.desk.conversations(limit=CONVERSATIONS)
    width = max((len(f"#{each.number}") for each in found), default=0)
    for each in found:
        mark = "*" if each.number == chat.talk.number else " "
        head = f"{mark} {f'#{each.number}':>{width}}  {when(each.updated)}  {each.messages:>5}  "
        chat.tell_row(head, titled(each))
    none = "no conversation was found" if argument else "there is no conversation yet"
    chat.tell("/switch NAME continues one of them, by its number or title" if found else none)


def _do_switch(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/switch takes the number or title of a conversation; /conversations lists them")
    found = chat.desk.conversation(argument, as_left=True)
    if found.id == chat.talk.id:
        raise Invalid(f"this is {found.name} already")
    chat.switch(found)
    chat.tell(chat.greeting())
    chat.recall_end()


def _do_delete(chat: ChatState, argument: str) -> None:
    """Move the conversation to the trash, and begin a new one."""
    if argument:
        raise Invalid("/delete takes nothing: it is about this conversation; /switch goes to another one")
    act(chat, "conversations delete", conversation=_stored(chat))
    chat.switch(chat.desk.conversation(agent=chat.talk.agent.name))
    chat.tell("this is a new conversation")


def _do_export(chat: ChatState, argument: str) -> None:
    """Write the conversation to a file; its ending chooses the format, and the default is Markdown named by the
    title."""
    words = re.findall(r"\w+", chat.talk.title or f"conversation {chat.talk.number}")
    file = Path(argument or "-".join(words)[:LONGEST_NAME] + ".md").expanduser()
    if file.is_dir():
        raise Invalid(f"{file} is a folder: name a file in it", path=str(file))
    if file.exists():
        raise Invalid(f"{file} exists already: /export FILE takes another name", path=str(file))
    format = options.SUFFIXES.get(file.suffix.lower(), "json")
    chat.tell(f"written to {chat.desk.export(file, _stored(chat), format=format)}")


# -- replies


def _do_edit(chat: ChatState, argument: str) -> None:
    named, _, text = argument.partition(" ")
    if not named:
        raise Invalid("/edit takes the number of a message of yours, and TEXT; /history lists them")
    message, wanted = chat.talk.message(named), text.strip()
    if not wanted and message.role == "user":
        if not options.has_keyboard():
            raise Invalid("there is no keyboard to edit with: /edit MESSAGE TEXT gives the new text")
        wanted = edited(message.text) or ""
        if not wanted:
            chat.tell("the message is unchanged")
            return
    listener = chat.listener()
    new = wanted or message.text
    follow(
        chat.talk.stream_edit(message.id, new, can_ask=listener.answers, strategy=chat.strategy), listener, chat.watch
    )


def _do_regenerate(chat: ChatState, argument: str) -> None:
    listener = chat.listener()
    events = chat.talk.stream_regenerate(model=argument or None, can_ask=listener.answers, strategy=chat.strategy)
    follow(events, listener, chat.watch)


def _do_goal(chat: ChatState, argument: str) -> None:
    """Work toward a goal; without an argument, show the plan of the last one."""
    word, _, steps = argument.partition(" ")
    if argument and argument != "stop":
        if chat.is_at_terminal:
            chat.ask_trust()
        listener = chat.listener()
        continues = word == "continue" and (not steps or steps.strip().isdecimal())
        most, can_ask = int(steps) if continues and steps else None, listener.answers
        goal = None if continues else argument
        events = chat.talk.stream_goal(goal, can_ask=can_ask, strategy=chat.strategy, max_steps=most)
        follow_run(events, listener, chat.talk, chat.watch)
        return
    run = chat.talk.last_run()
    # `ChatState.take` stops a current run: this command would run after it
    if run is None or (argument and run.status == "done"):
        chat.tell("no goal is being worked on: /goal TEXT begins to work toward one")
        return
    for line in plan_tree(run.goal, run.plan):
        chat.tell(line)
    because = f": {run.because}" if run.because else ""
    status = "interrupted" if run.status == "running" else run.status
    chat.tell(f"{status}{because}; {run.steps} of {run.max_steps} steps used; /goal continue resumes it")


def _do_quit(chat: ChatState, argument: str) -> None:
    chat.over = True


OWN: dict[str, Callable[[ChatState, str], None]] = {
    name.removeprefix("_do_"): each for name, each in [*globals().items()] if name.startswith("_do_")
}
"""Slash commands with a function of their own."""
