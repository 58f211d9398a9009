"""Slash commands: what can be typed in the chat besides messages, at a terminal and in a pipe."""

from collections.abc import Callable
from difflib import get_close_matches

from msgspec import Struct
from rich.text import Text

from recto.chat.message import Message
from recto.cli import slash_commands as commands
from recto.cli import slash_conversations as conversations
from recto.cli.chat_state import ChatState
from recto.cli.drawing.costs import cost_lines
from recto.cli.drawing.references import hit_lines
from recto.cli.drawing.requests import draw_request
from recto.cli.drawing.windows import FOLLOWS_SETTINGS, facts_table
from recto.cli.folding import fold
from recto.cli.show import shortened
from recto.errors import Invalid, NotFound
from recto.settings.strategy import STRATEGIES
from recto.sources.documents import read_attachment
from recto.transfer.report import EXPORT_FORMATS

# Messages that `/search` shows.
SHOWN = 8
STRATEGY_WORDS = (*STRATEGIES, FOLLOWS_SETTINGS)


def run(chat: ChatState, line: str) -> None:
    """Runs a line that begins with a slash. Invalid for an unknown command."""
    name, _, argument = line[1:].partition(" ")
    _command(name).run(chat, argument.strip())


def _help(chat: ChatState, argument: str) -> None:
    if argument:
        _help_with(chat, argument.removeprefix("/"))
        return
    table = facts_table((f"/{name}", known.help) for name, known in COMMANDS.items())
    table.columns[0].style = "bold"
    chat.console.print(table)
    chat.tell("/help COMMAND shows how to use one of them, with examples.")
    chat.tell("MESSAGE is a number that /history lists, such as #12, or an id.")
    chat.tell(
        "Enter sends; Alt-Enter, Esc Enter or a backslash at the end of a line adds a line; pasted lines stay one text."
    )
    chat.tell("The arrow up goes through what you typed before that begins like your line; Ctrl-R searches all of it.")
    chat.tell("# TEXT is added to the project's memory file, after a question; ## sends a message that begins with #.")
    chat.tell("@rule:NAME or @ref:NAME in a message includes a rule or a reference from then on.")
    chat.tell("What you type while a reply comes waits and is sent as soon as it can be; the arrow up takes it back.")
    chat.tell("Ctrl-C stops a reply and keeps what came; Ctrl-D quits.")


def _help_with(chat: ChatState, name: str) -> None:
    known = _command(name)
    chat.console.print(Text(f"/{name} {known.usage}".rstrip(), "bold"))
    chat.console.print(Text(fold([f"  {known.help}"], chat.console.width)))
    for example in known.examples:
        chat.tell(f"  {example}")


def _command(name: str) -> "SlashCommand":
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise Invalid(f"there is no command /{name}; {hint} (a leading // sends a slash)")
    return COMMANDS[name]


def _search(chat: ChatState, argument: str) -> None:
    if not argument:
        raise Invalid("/search takes the words to look for")
    with chat.console.status("searching…"):
        found = chat.desk.search(argument, limit=SHOWN)
    for hit in found:
        for line in hit_lines(hit, argument):
            chat.console.print(Text.from_ansi(line))
    for text in filter(None, (found.note, "" if found else "nothing was found")):
        chat.tell(text)


def _document(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.open_document(None if argument == "none" else argument)
    now = chat.talk.document
    chat.tell(f"{now} goes with every message; /document none closes it" if now else "no document is open")


def _attach(chat: ChatState, argument: str) -> None:
    if argument == "none":
        chat.attachments.clear()
    elif argument:
        read_attachment(argument)  # refused now, not with the message
        chat.attachments.append(argument)
    files = ", ".join(chat.attachments)
    chat.tell(f"with your next message: {files}; /attach none clears this" if files else "nothing is attached")


def _undo(chat: ChatState, argument: str) -> None:
    before = chat.talk.messages(limit=1)
    taken = chat.talk.undo()
    chat.undone += [message.id for message in before]
    what = shortened(taken.text, 70) or "the clear"
    chat.tell(f"taken back: {what} (nothing is deleted; /redo returns to it)")


def _redo(chat: ChatState, argument: str) -> None:
    if not chat.undone:
        raise Invalid("there is nothing to redo: /undo was not used since the last message")
    chat.talk.fork(chat.undone.pop())
    _tell_follows(chat, next(message for message in chat.talk.path() if not message.compaction))


def _fork(chat: ChatState, argument: str) -> None:
    if argument:
        message = chat.talk.message(argument)
        chat.talk.fork(message.id)
        _tell_follows(chat, message)
        return
    chat.offer("fork at")
    chat.tell("/fork MESSAGE continues from one of them")


def _tell_follows(chat: ChatState, message: Message) -> None:
    text = shortened(message.text, 60)
    chat.tell(f"the next message follows #{message.said}" + (f": {text}" if text else ""))


def _model(chat: ChatState, argument: str) -> None:
    if argument:
        chat.talk.use(argument)
        with chat.console.status("counting…"):
            chat.measure()
    chat.tell(f"{chat.talk.model} answers" + ("" if argument else "; /model NAME changes that"))


def _request(chat: ChatState, argument: str) -> None:
    record = chat.talk.request(argument) if argument else chat.talk.last_request()
    if record is None:
        raise NotFound("nothing has been sent yet in this conversation")
    draw_request(chat.console, chat.talk.numbered(record.to_json()))


def _cost(chat: ChatState, argument: str) -> None:
    chat.console.print(facts_table(cost_lines(chat.talk, chat.desk)))


def _thinking(chat: ChatState, argument: str) -> None:
    if argument not in ("on", "off", ""):
        raise Invalid("/thinking takes on or off")
    chat.thinking = argument == "on" if argument else not chat.thinking
    chat.tell(f"thinking is {'shown' if chat.thinking else 'not shown'}")


def _waiting(chat: ChatState, argument: str) -> None:
    """Lists what waits; `drop` takes the newest or the one of a number back."""
    verb, _, number = argument.partition(" ")
    found = chat.talk.waiting()
    if verb not in ("", "drop") or (number and not number.strip().isdecimal()):
        raise Invalid("/waiting takes drop, drop N, or nothing")
    if verb and found:
        place = int(number) - 1 if number else len(found) - 1
        if not 0 <= place < len(found):
            raise NotFound(f"there is no waiting message {number.strip()}; /waiting lists them")
        taken = chat.talk.take_back(found[place].id)
        chat.tell(f"taken back: {shortened(taken.text, 70)}")
        found = chat.talk.waiting()
    for place, each in enumerate(found, 1):
        chat.tell(f"{place}  {shortened(each.text, 70)}")
    brought = "it" if len(found) == 1 else "them"
    hint = f"your next message brings {brought} along; /waiting drop N takes one back"
    chat.tell(hint if found else "nothing is waiting")


def _quit(chat: ChatState, argument: str) -> None:
    chat.over = True


class SlashCommand(Struct, frozen=True):
    help: str
    run: Callable[[ChatState, str], None]
    usage: str
    """What may follow it; capitals stand for what the user chooses."""
    examples: tuple[str, ...]
    words: tuple[str, ...] = ()
    """Words that may follow it, for completion."""


COMMANDS = {
    "help": SlashCommand("list these commands", _help, "[COMMAND]", ("/help", "/help pin")),
    "context": SlashCommand(
        "show what would be sent with your next message, and why",
        commands.show_window,
        "[TEXT]",
        ("/context", "/context Who owns her?"),
    ),
    "compact": SlashCommand(
        "summarize all but the latest messages now; KEEP says what to keep",
        commands.compact,
        "[KEEP]",
        ("/compact", "/compact the prices"),
    ),
    "uncompact": SlashCommand("take back the newest compaction", commands.uncompact, "", ("/uncompact",)),
    "summary": SlashCommand(
        "show the summary of archived messages; edit changes it, lost lists what it does not tell",
        commands.summary,
        "[edit | lost]",
        ("/summary", "/summary lost"),
        ("edit", "lost"),
    ),
    "pin": SlashCommand(
        "keep a MESSAGE in every window; last is your last one",
        commands.pin,
        "[MESSAGE | last]",
        ("/pin", "/pin 1", "/pin last"),
        ("last",),
    ),
    "unpin": SlashCommand(
        "let a pinned MESSAGE be archived again; alone, list pinned messages",
        commands.unpin,
        "[MESSAGE]",
        ("/unpin", "/unpin 1"),
    ),
    "priority": SlashCommand(
        "MESSAGE N: how much a message matters to hybrid, from 1 to 10",
        commands.priority,
        "MESSAGE N",
        ("/priority 1 9",),
    ),
    "strategy": SlashCommand(
        "show what happens when the window is full; NAME changes it",
        commands.strategy,
        "[NAME]",
        ("/strategy", "/strategy hybrid", "/strategy default"),
        STRATEGY_WORDS,
    ),
    "set": SlashCommand(
        "KEY VALUE: keep a setting with this conversation; alone, list its settings",
        commands.keep_setting,
        "[KEY [VALUE]]",
        ("/set", "/set context.threshold 0.7", "/set context.threshold"),
    ),
    "unset": SlashCommand(
        "KEY: follow your own settings again", commands.drop_setting, "KEY", ("/unset context.threshold",)
    ),
    "settings": SlashCommand(
        "list settings with value and origin, those of this conversation first; WORD filters",
        commands.list_settings,
        "[WORD]",
        ("/settings", "/settings model", "/settings context.budget"),
    ),
    "history": SlashCommand(
        "list the latest messages of this conversation by number; N says how many",
        conversations.history,
        "[N]",
        ("/history", "/history 5"),
    ),
    "conversations": SlashCommand(
        "list conversations; WORDS search their titles and messages",
        conversations.conversations,
        "[WORDS]",
        ("/conversations", "/conversations boat"),
    ),
    "switch": SlashCommand(
        "continue another conversation, by its number or title", conversations.switch, "NAME", ("/switch 1",)
    ),
    "search": SlashCommand(
        "find messages by words and meaning, in all conversations", _search, "WORDS", ("/search boat",)
    ),
    "rules": SlashCommand(
        "list rules; add, remove or mode NAME changes them",
        commands.rules,
        "[add NAME | remove NAME | mode NAME MODE | all]",
        ("/rules", "/rules remove style", "/rules add style", "/rules mode style manual"),
        commands.WORDS,
    ),
    "references": SlashCommand(
        "the same for references, and list documents of the last turn; all: of all turns",
        commands.references,
        "[add NAME | remove NAME | mode NAME MODE | all]",
        ("/references", "/references all", "/references add prices"),
        commands.WORDS,
    ),
    "tools": SlashCommand(
        "the same for tools, as SERVER/NAME; ask NAME takes an always back; servers shows their state",
        commands.tools,
        "[add NAME | remove NAME | mode NAME MODE | ask NAME | servers | all]",
        (
            "/tools",
            "/tools servers",
            "/tools remove harbour/berth",
            "/tools add harbour/berth",
            "/tools ask harbour/berth",
        ),
        commands.TOOL_WORDS,
    ),
    "memory": SlashCommand(
        "show the memory that goes with your next message; add TEXT, forget N or WORDS to search",
        commands.memory,
        "[add TEXT | forget N | WORDS]",
        ("/memory", "/memory add I prefer short answers", "/memory short answers", "/memory forget 1"),
        ("add", "forget"),
    ),
    "trust": SlashCommand(
        "let an MCP server of the project run, after showing what it runs, or accept tools that have changed; alone, "
        "list the servers that wait for it",
        commands.trust,
        "[SERVER]",
        ("/trust", "/trust harbour"),
    ),
    "document": SlashCommand(
        "send a note with every message: PATH, or none to close it",
        _document,
        "[PATH | none]",
        ("/document", "/document Welcome.md", "/document none"),
        ("none",),
    ),
    "attach": SlashCommand(
        "send an image, a PDF or a text FILE with your next message; none clears",
        _attach,
        "[FILE | none]",
        ("/attach notes/Welcome.md", "/attach", "/attach none"),
        ("none",),
    ),
    "undo": SlashCommand("take back your last message and its reply", _undo, "", ("/undo",)),
    "redo": SlashCommand("return to what /undo took back", _redo, "", ("/redo",)),
    "fork": SlashCommand("continue from an earlier MESSAGE, on a new branch", _fork, "[MESSAGE]", ("/fork", "/fork 1")),
    "branches": SlashCommand(
        "list the ends of all branches; N continues at one of them",
        conversations.branches,
        "[N]",
        ("/branches", "/branches 1"),
    ),
    "edit": SlashCommand(
        "change a MESSAGE of yours and send it again, on a new branch; TEXT replaces it",
        conversations.edit,
        "[MESSAGE [TEXT]]",
        ("/edit", "/edit 1 Who owns the boat?"),
    ),
    "regenerate": SlashCommand(
        "get another reply to your last message, by MODEL if you name one",
        conversations.regenerate,
        "[MODEL]",
        ("/regenerate",),
    ),
    "goal": SlashCommand(
        "work toward a goal by itself, over many steps; alone, show its plan",
        conversations.goal,
        "[TEXT | continue [STEPS] | stop]",
        ("/goal", "/goal List the boats of my notes"),
        ("continue", "stop"),
    ),
    "rename": SlashCommand(
        "give this conversation another TITLE", conversations.rename, "TITLE", ("/rename The boat",)
    ),
    "archive": SlashCommand(
        "no longer list this conversation; it is still searched", conversations.archive, "", ("/archive",)
    ),
    "delete": SlashCommand(
        "move this conversation to the trash, and start a new one", conversations.delete, "", ("/delete",)
    ),
    "export": SlashCommand(
        "write this conversation to a file to read, or as json to import again",
        conversations.export,
        "[markdown | html | json] [FILE]",
        ("/export", "/export html", "/export json talk.json"),
        EXPORT_FORMATS,
    ),
    "model": SlashCommand(
        "show which model answers; NAME changes it", _model, "[NAME]", ("/model", "/model embedded:smollm2")
    ),
    "clear": SlashCommand("start with an empty window; nothing is deleted", commands.clear, "", ("/clear",)),
    "request": SlashCommand(
        "show what was sent last, or for a MESSAGE, and why", _request, "[MESSAGE]", ("/request", "/request 2")
    ),
    "waiting": SlashCommand(
        "list messages typed while a reply came that were not sent; drop N takes one back",
        _waiting,
        "[drop [N]]",
        ("/waiting", "/waiting drop"),
        ("drop",),
    ),
    "cost": SlashCommand("show what this conversation and today have cost", _cost, "", ("/cost",)),
    "thinking": SlashCommand(
        "on or off: show the model's thinking before it answers",
        _thinking,
        "[on | off]",
        ("/thinking on", "/thinking off"),
        ("on", "off"),
    ),
    "quit": SlashCommand("leave the chat", _quit, "", ("/quit",)),
}
