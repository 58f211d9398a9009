"""Chat: one that is going on, and what the commands typed in it act on: where it stands, its meter, how it speaks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from recto.cli.show import shortened, visible
from recto.cli.strategy import context_of
from recto.errors import Invalid
from recto.events import ContextUsage, Event

if TYPE_CHECKING:
    from recto.chat.blocks import Compaction
    from recto.desk import Desk
    from recto.talk import Talk

# How many messages `/fork` and `/pin` offer when they are not told which.
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
