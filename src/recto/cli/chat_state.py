"""ChatState: a running chat, which the commands typed in it read and change: its talk, its meter, its console."""

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field
from rich.console import Console
from rich.text import Text

from recto.cli.drawing.costs import status_of_cost
from recto.cli.show import shortened, visible, when
from recto.errors import Invalid, NotFound, RectoError
from recto.events import Appended, ContextUsage, Event
from recto.sources.source import DEFAULT_AGENT

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import FormattedText

    from recto.blocking import Desk, Talk
    from recto.chat.blocks import Compaction

# Messages that `/fork` and `/pin` list when none is given.
OFFERED = 12
METER_WIDTH = 10
WARN_PERCENT = 80


class ChatState(Struct):
    desk: "Desk"
    talk: "Talk"
    console: Console
    thinking: bool = False
    shows_context: bool = False
    usage: ContextUsage | None = None
    due_percent: float | None = None
    """The window is compacted when it is this full; None when it never is."""
    strategy: str | None = None
    """The strategy chosen in this chat, which wins over the option it was started with."""
    attachments: list[str] = field(default_factory=list)
    """Files that go with the next message."""
    undone: list[str] = field(default_factory=list)
    """Heads that `/redo` returns to, the latest last."""
    waiting: list[str] = field(default_factory=list)
    """Messages that were typed while a reply came, and have not entered yet."""
    commands: list[str] = field(default_factory=list)
    """Slash commands that were typed while a reply came: they run after it."""
    typed: str = ""
    """What was typed while a reply came, and not sent: the next prompt begins with it."""
    cost: str = ""
    """What the conversation has cost so far, for the status line."""
    over: bool = False

    def __post_init__(self) -> None:
        """Sets the meter of a stored conversation to its last request, or to the compaction after it."""
        last = self.talk.last_request()
        account = last.account if last else None
        if account and account.total is not None and account.limit is not None:
            self.watch(ContextUsage(account.total, account.limit))
            if (newest := self.talk.messages(limit=1)[-1:]) and newest[0].compaction:
                self.resized(newest[0].compaction)

    def watch(self, event: Event) -> None:
        if isinstance(event, ContextUsage):
            context = self.talk.context_settings
            self.usage, self.due_percent = event, 100 * context.threshold if context.enabled else None
        elif isinstance(event, Appended):
            self.waiting.clear()
            self.undone.clear()
            self.attachments.clear()

    def take(self, line: str) -> None:
        """Takes a line that was typed while a reply came."""
        if line.startswith("/") and not line.startswith("//"):
            self.commands.append(line)
            return
        text = line[1:] if line.startswith("//") else line
        self.talk.queue(text)
        self.waiting.append(text)

    def take_back(self) -> str | None:
        """The last message that waits, which waits no longer; None when there is none any more."""
        try:
            taken = self.talk.take_back()
        except NotFound:
            return None
        del self.waiting[-1:]
        return taken.text

    def resized(self, block: "Compaction") -> None:
        """Shows the new size on the meter before the next message does."""
        if self.usage and block.context_size_after:
            self.usage = ContextUsage(block.context_size_after, self.usage.limit)

    def update_cost(self) -> None:
        with suppress(RectoError):  # a chat never ends because of its status line
            self.cost = status_of_cost(self.talk, self.desk)

    def measure(self) -> None:
        """Sets the meter to the next window, as after another model was chosen."""
        try:
            window = self.talk.window()
        except RectoError:
            self.usage = None  # the next message says what is wrong
        else:
            self.watch(ContextUsage(window.total, window.limit))

    def tell(self, text: str) -> None:
        # a program reads whole lines; only a terminal wraps them
        self.console.print(Text(visible(text), "dim"), soft_wrap=not self.console.is_terminal)

    def offer(self, command: str) -> None:
        """Lists the latest messages by number, for a command that got none."""
        said = [message for message in self.talk.messages(limit=OFFERED) if message.text]
        if not said:
            raise Invalid(f"there is no message yet to {command}")
        width = len(f"#{said[-1].said}")
        for message in said:
            number = f"#{message.said}".rjust(width)
            self.tell(f"{number}  {message.role:<9}  {shortened(message.text, 70)}")

    def greeting(self) -> str:
        """Who answers, over which vault, and where the conversation stands, in one line."""
        agent, vault, latest = self.talk.agent.name, self.talk.vault, self.talk.messages(limit=1)
        parts = [
            self.talk.model,
            *([] if agent == DEFAULT_AGENT else [f"agent {agent}"]),
            f"vault {vault.root.name}" if vault else "no vault",
            f"{self.talk.name}, last used {when(latest[-1].created)}" if latest else self.talk.name,
            "/help",
        ]
        return " · ".join(parts)

    def toolbar(self) -> "FormattedText":
        from prompt_toolkit.formatted_text import FormattedText  # prompt_toolkit: a fifth of a second

        model = ("", visible(self.talk.model))
        if self.usage is None:
            return FormattedText([model])
        filled = min(METER_WIDTH, round(self.usage.percent * METER_WIDTH / 100))
        meter = "▰" * filled + "▱" * (METER_WIDTH - filled)
        told = f"{meter} {self.usage.percent:.0f} % of {self.usage.limit:,} tokens  "
        cost = ("", f"{self.cost}  " if self.cost else "")
        return FormattedText([(meter_style(self.usage.percent, self.due_percent), told), cost, model])


def meter_style(percent: float, due_percent: float | None) -> str:
    """Yellow for a window that is getting full, red for one that is about to be compacted."""
    if due_percent is not None and percent >= due_percent:
        return "class:due"
    return "class:full" if percent >= WARN_PERCENT else ""
