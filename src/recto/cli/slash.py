"""What can be typed in the chat besides messages: commands that begin with a slash, with and without a terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from recto.cli.listen import compaction_in_words
from recto.cli.picture import draw_request, draw_window
from recto.cli.request import record_to_json
from recto.cli.show import shortened, visible, when
from recto.errors import Invalid, NotFound
from recto.events import ContextUsage, Event

if TYPE_CHECKING:
    from recto.desk import Desk, Talk

# How many messages `/fork` offers when it is not told which.
OFFERED = 12


@dataclass(slots=True)
class Chat:
    """A chat that is going on: what the commands act on."""

    desk: "Desk"
    talk: "Talk"
    console: Console
    thinking: bool = False
    shows_context: bool = False
    usage: ContextUsage | None = None
    over: bool = False

    def __post_init__(self) -> None:
        """The meter of a conversation that goes on starts where its last request left it."""
        last = self.desk.store.records.latest(self.talk.id) if self.talk.id else None
        account = self.desk.record(last).account if last else {}
        if {"total", "limit"} <= account.keys():
            self.usage = ContextUsage(account["total"], account["limit"])

    def watch(self, event: Event) -> None:
        if isinstance(event, ContextUsage):
            self.usage = event

    def tell(self, text: str) -> None:
        # programs read lines, people read words: only for them is a long line broken
        self.console.print(Text(visible(text), "dim"), soft_wrap=not self.console.is_terminal)


def run(chat: Chat, line: str) -> None:
    """Carries out a line that begins with a slash. Invalid for a command that there is not."""
    name, _, argument = line[1:].partition(" ")
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise Invalid(f"there is no command /{name}; {hint} (a leading // sends a slash)")
    COMMANDS[name][1](chat, argument.strip())


def _help(chat: Chat, argument: str) -> None:
    for name, (help, _) in COMMANDS.items():
        chat.console.print(Text.assemble((f"/{name}".ljust(11), "bold"), help))
    chat.tell("Enter sends; Alt-Enter, Esc Enter or a backslash at the end of a line adds a line.")
    chat.tell("Ctrl-C stops a reply and keeps what came; Ctrl-D quits.")


def _context(chat: Chat, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument)
    draw_window(chat.console, window.to_json())


def _undo(chat: Chat, argument: str) -> None:
    taken = chat.talk.undo()
    what = shortened(taken.text, 70) or "the clear"
    chat.tell(f"taken back: {what} (it stays in the store; /fork {taken.id} returns to it)")


def _fork(chat: Chat, argument: str) -> None:
    if argument:
        chat.talk.fork(argument)
        chat.tell(f"the next message follows {argument}")
        return
    said = [message for message in chat.talk.messages(limit=OFFERED) if message.text]
    if not said:
        raise Invalid("there is no message yet to fork at")
    for message in said:
        chat.tell(f"{message.id}  {message.role:<9}  {shortened(message.text, 50)}")
    chat.tell("/fork MESSAGE goes on from one of them")


def _model(chat: Chat, argument: str) -> None:
    if argument:
        chat.talk.use(argument)
    chat.tell(f"{chat.talk.model} answers" + ("" if argument else "; /model NAME changes that"))


def _clear(chat: Chat, argument: str) -> None:
    block = chat.talk.clear()
    words = compaction_in_words(block.compaction_number, block.messages_archived, 0, 0)
    chat.tell(f"{words}; the model starts anew, nothing is deleted")


def _request(chat: Chat, argument: str) -> None:
    last = argument or (chat.desk.store.records.latest(chat.talk.id) if chat.talk.id else None)
    if last is None:
        raise NotFound("nothing was sent yet in this conversation")
    draw_request(chat.console, record_to_json(chat.desk.record(last)))


def _thinking(chat: Chat, argument: str) -> None:
    if argument not in ("on", "off", ""):
        raise Invalid("/thinking takes on or off")
    chat.thinking = argument == "on" if argument else not chat.thinking
    chat.tell(f"thinking is {'shown' if chat.thinking else 'not shown'}")


def _quit(chat: Chat, argument: str) -> None:
    chat.over = True


COMMANDS: dict[str, tuple[str, Callable[[Chat, str], None]]] = {
    "help": ("what can be typed here", _help),
    "context": ("what the model would be sent with your next message, and why", _context),
    "undo": ("take back your last message and its reply", _undo),
    "fork": ("go on from an earlier message, on a branch of its own", _fork),
    "model": ("who answers, or NAME to change that", _model),
    "clear": ("start anew for the model; nothing is deleted", _clear),
    "request": ("what was sent last, and why", _request),
    "thinking": ("on or off: show what a model thinks before it answers", _thinking),
    "quit": ("leave the chat", _quit),
}


def began(chat: Chat) -> str:
    """Where a chat stands, in one line."""
    latest = chat.talk.messages(limit=1)
    if not latest:
        return "a new conversation"
    return f"conversation {chat.talk.id}, last used {when(latest[-1].created)}"
