"""What can be typed in the chat besides messages: commands that begin with a slash, with and without a terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from rich.text import Text

from recto.cli import slash_sources as sources
from recto.cli import steer
from recto.cli.compaction import block_in_words
from recto.cli.hits import lines
from recto.cli.ongoing import Chat
from recto.cli.picture import draw_request, draw_window
from recto.cli.request import record_to_json
from recto.cli.show import shortened, when
from recto.cli.strategy import FOLLOWS_SETTINGS, outlook
from recto.errors import Invalid, NotFound
from recto.settings import STRATEGIES

# How many messages `/search` shows.
SHOWN = 8
STRATEGY_WORDS = (*STRATEGIES, FOLLOWS_SETTINGS)


def run(chat: Chat, line: str) -> None:
    """Carries out a line that begins with a slash. Invalid for a command that there is not."""
    name, _, argument = line[1:].partition(" ")
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise Invalid(f"there is no command /{name}; {hint} (a leading // sends a slash)")
    COMMANDS[name].run(chat, argument.strip())


def _help(chat: Chat, argument: str) -> None:
    for name, known in COMMANDS.items():
        chat.console.print(Text.assemble((f"/{name}".ljust(12), "bold"), known.help))
    chat.tell("Enter sends; Alt-Enter, Esc Enter or a backslash at the end of a line adds a line.")
    chat.tell("@rule:NAME or @ref:NAME in a message takes a rule or a reference along from then on.")
    chat.tell("Ctrl-C stops a reply and keeps what came; Ctrl-D quits.")


def _context(chat: Chat, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument, strategy=chat.strategy)
    draw_window(chat.console, window.to_json(), outlook=outlook(chat.desk, chat.talk, window.plan))


def _search(chat: Chat, argument: str) -> None:
    if not argument:
        raise Invalid("/search takes the words to look for")
    with chat.console.status("searching…"):
        found = chat.desk.search(argument, limit=SHOWN)
    for hit in found:
        for line in lines(hit, argument):
            chat.console.print(Text.from_ansi(line))
    for text in filter(None, (found.note, "" if found else "nothing was found")):
        chat.tell(text)


def _document(chat: Chat, argument: str) -> None:
    if argument:
        chat.talk.open_document(None if argument == "none" else argument)
    now = chat.talk.document
    chat.tell(f"{now} goes with every message; /document none closes it" if now else "no document is open")


def _undo(chat: Chat, argument: str) -> None:
    taken = chat.talk.undo()
    what = shortened(taken.text, 70) or "the clear"
    chat.tell(f"taken back: {what} (it stays in the store; /fork {taken.id} returns to it)")


def _fork(chat: Chat, argument: str) -> None:
    if argument:
        chat.talk.fork(argument)
        chat.tell(f"the next message follows {argument}")
        return
    chat.offer("fork at")
    chat.tell("/fork MESSAGE goes on from one of them")


def _model(chat: Chat, argument: str) -> None:
    if argument:
        chat.talk.use(argument)
    chat.tell(f"{chat.talk.model} answers" + ("" if argument else "; /model NAME changes that"))


def _clear(chat: Chat, argument: str) -> None:
    block = chat.talk.clear()
    chat.resized(block)
    chat.tell(f"{block_in_words(block)}; the model starts anew, nothing is deleted")


def _request(chat: Chat, argument: str) -> None:
    last = argument or (chat.desk.store.records.latest(chat.talk.id) if chat.talk.id else None)
    if last is None:
        raise NotFound("nothing was sent yet in this conversation")
    draw_request(chat.console, record_to_json(chat.desk.record(chat.desk.store.records.named(last))))


def _thinking(chat: Chat, argument: str) -> None:
    if argument not in ("on", "off", ""):
        raise Invalid("/thinking takes on or off")
    chat.thinking = argument == "on" if argument else not chat.thinking
    chat.tell(f"thinking is {'shown' if chat.thinking else 'not shown'}")


def _quit(chat: Chat, argument: str) -> None:
    chat.over = True


@dataclass(frozen=True, slots=True)
class Command:
    help: str
    run: Callable[[Chat, str], None]
    words: tuple[str, ...] = ()
    """What may be typed behind it, for completion."""


COMMANDS = {
    "help": Command("what can be typed here", _help),
    "context": Command("what the model would be sent with your next message, and why", _context),
    "compact": Command("sum up all but the latest messages now; say behind it what to keep", steer.compact),
    "uncompact": Command("take the newest compaction back", steer.uncompact),
    "summary": Command("the summary of what is archived; edit changes it", steer.summary, ("edit",)),
    "pin": Command("keep a message in every window: MESSAGE, or last for your last one", steer.pin, ("last",)),
    "unpin": Command("let a pinned message be archived like any other; alone, list them", steer.unpin),
    "priority": Command("MESSAGE N: how much a message matters to hybrid, from 1 to 10", steer.priority),
    "strategy": Command("what happens when the window is full, or NAME to change that", steer.strategy, STRATEGY_WORDS),
    "search": Command("find messages by words and meaning, in all conversations", _search),
    "rules": Command("rules that go along, and that could; add, remove, mode NAME", sources.rules, sources.WORDS),
    "references": Command(
        "the same for references; documents of the last turn, or of all",
        sources.references,
        sources.WORDS,
    ),
    "tools": Command(
        "the same for tools, as SERVER/NAME; ask NAME takes an always back; servers for how they are doing",
        sources.tools,
        sources.TOOL_WORDS,
    ),
    "document": Command("a note that goes with every message: PATH, or none to close it", _document, ("none",)),
    "undo": Command("take back your last message and its reply", _undo),
    "fork": Command("go on from an earlier message, on a branch of its own", _fork),
    "model": Command("who answers, or NAME to change that", _model),
    "clear": Command("start anew for the model; nothing is deleted", _clear),
    "request": Command("what was sent last, and why", _request),
    "thinking": Command("on or off: show what a model thinks before it answers", _thinking, ("on", "off")),
    "quit": Command("leave the chat", _quit),
}


def began(chat: Chat) -> str:
    """Where a chat stands, in one line."""
    latest = chat.talk.messages(limit=1)
    if not latest:
        return "a new conversation"
    return f"conversation {chat.talk.id}, last used {when(latest[-1].created)}"
