"""What can be typed in the chat besides messages: commands that begin with a slash, with and without a terminal."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from recto.cli import steer
from recto.cli.compaction import block_in_words
from recto.cli.picture import draw_request, draw_window
from recto.cli.request import record_to_json
from recto.cli.show import shortened, visible, when
from recto.cli.strategy import FOLLOWS_SETTINGS, context_of, outlook
from recto.errors import Invalid, NotFound
from recto.events import ContextUsage, Event
from recto.settings import STRATEGIES

if TYPE_CHECKING:
    from recto.chat.blocks import Compaction
    from recto.desk import Desk, Talk

# How many messages `/fork` and `/pin` offer when they are not told which.
OFFERED = 12
STRATEGY_WORDS = (*STRATEGIES, FOLLOWS_SETTINGS)


@dataclass(slots=True)
class Chat:
    """A chat that is going on: what the commands act on."""

    desk: "Desk"
    talk: "Talk"
    console: Console
    thinking: bool = False
    shows_context: bool = False
    usage: ContextUsage | None = None
    due_percent: float | None = None
    """How full the window is when it is compacted; None when it never is."""
    strategy: str | None = None
    """What was chosen in this chat against an option that it was begun with."""
    over: bool = False

    def __post_init__(self) -> None:
        """The meter of a conversation that goes on starts where its last request left it, or what changed it since."""
        last = self.desk.store.records.latest(self.talk.id) if self.talk.id else None
        account = self.desk.record(last).account if last else {}
        if {"total", "limit"} <= account.keys():
            self.watch(ContextUsage(account["total"], account["limit"]))
            if (newest := self.talk.messages(limit=1)[-1:]) and newest[0].compaction:
                self.resized(newest[0].compaction)

    def watch(self, event: Event) -> None:
        if isinstance(event, ContextUsage):
            self.usage, self.due_percent = event, _due_percent(self.desk, self.talk)

    def resized(self, block: "Compaction") -> None:
        """The user has changed what is sent: the meter shows that before the next message does."""
        if self.usage and block.context_size_after:
            self.usage = ContextUsage(block.context_size_after, self.usage.limit)

    def tell(self, text: str) -> None:
        # programs read lines, people read words: only for them is a long line broken
        self.console.print(Text(visible(text), "dim"), soft_wrap=not self.console.is_terminal)

    def offer(self, command: str) -> None:
        """The latest messages by their ids, for a command that was not told which."""
        said = [message for message in self.talk.messages(limit=OFFERED) if message.text]
        if not said:
            raise Invalid(f"there is no message yet to {command}")
        for message in said:
            self.tell(f"{message.id}  {message.role:<9}  {shortened(message.text, 50)}")


def _due_percent(desk: "Desk", talk: "Talk") -> float | None:
    context = context_of(desk, talk)
    return 100 * context.threshold if context.enabled else None


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
    chat.tell("Ctrl-C stops a reply and keeps what came; Ctrl-D quits.")


def _context(chat: Chat, argument: str) -> None:
    with chat.console.status("counting…"):
        window = chat.talk.window(argument, strategy=chat.strategy)
    draw_window(chat.console, window.to_json(), outlook=outlook(chat.desk, chat.talk, window.plan))


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
    draw_request(chat.console, record_to_json(chat.desk.record(last)))


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
