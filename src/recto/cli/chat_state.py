"""ChatState: a running chat, read and changed by slash commands: its talk, its meter, its console."""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from recto.cli.drawing.statistics import status_of_cost
from recto.cli.show import fold, shortened, visible, when
from recto.errors import Invalid, NotFound, RectoError
from recto.events import Appended, ContextUsage, Event
from recto.sources.source import DEFAULT_AGENT

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import FormattedText

    from recto.api.blocking import Desk, Talk
    from recto.chat.blocks import Compaction
    from recto.cli.listener import Listener
    from recto.sources.server_config import ServerConfig

# Messages that `/fork` and `/pin` list when none is given.
OFFERED = 12
# The last exchange is searched in this many messages: tools may have run in between.
END = 40
# Default width of a list row without a terminal, and the minimum width of its text.
ROW_WIDTH, LEAST_WIDTH = 70, 20
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
    """The share of the window at which it is compacted; None for never."""
    strategy: str | None = None
    """The strategy chosen in this chat; it overrides the chat's option."""
    attachments: list[str] = field(default_factory=list)
    """Attachments of the next message."""
    waiting: list[str] = field(default_factory=list)
    """Messages typed during a reply that have not entered the conversation yet."""
    commands: list[str] = field(default_factory=list)
    """Slash commands typed during a reply: they run after it."""
    typed: str = ""
    """Unsent text typed during a reply: the next prompt begins with it."""
    cost: str = ""
    """The cost of the conversation so far, for the status line."""
    remember: Callable[[str], object] = lambda line: None
    """Puts a line into the prompt's history."""
    asked_about: set[str] = field(default_factory=set)
    """Servers that the user was asked about in this chat."""
    is_at_terminal: bool = False
    """False if lines come from a pipe."""
    over: bool = False

    def __post_init__(self) -> None:
        self._set_meter()

    def switch(self, talk: "Talk") -> None:
        """Continue another conversation, with its own model and vault."""
        self.talk, self.usage, self.due_percent, self.strategy = talk, None, None, None
        self.attachments.clear()
        talk.watch_vault()
        self._set_meter()
        if self.is_at_terminal:
            self.wake()

    def wake(self) -> None:
        """Start servers, model and tokenizer while the user types."""
        self._wake_servers()
        self.talk.wake()

    def _wake_servers(self) -> None:
        self.desk.servers.wake(self.talk.agent.servers, self.desk.project)

    # -- trust

    def untrusted(self) -> "list[ServerConfig]":
        """The project's servers that the user does not trust yet."""
        self._wake_servers()
        waiting = {status.name for status in self.desk.servers.statuses() if status.state == "untrusted"}
        return [config for config in self.talk.agent.servers if config.name in waiting]

    def trust(self, server: str, shown: "ServerConfig | None") -> None:
        """Trust a server as it was shown, and start it."""
        if self.desk.trust(server, self.talk.agent.name) != shown:
            self.desk.distrust(server, self.talk.agent.name)
            raise Invalid(
                f"{server} has changed since it was shown: `recto sources trust {server}` shows it again", name=server
            )
        self._wake_servers()
        self.tell(f"{server} is trusted: its tools are offered from now on")

    def ask_trust(self) -> None:
        """Ask once per chat about each server that needs trust, before a message is sent without its tools."""
        from recto.cli.questions import ask_trust  # prompt_toolkit: a fifth of a second

        for config in self.untrusted():
            if config.name in self.asked_about:
                continue
            self.asked_about.add(config.name)
            if ask_trust(self.console, config):
                self.trust(config.name, config)
            else:
                self.tell(f"{config.name} is not started; `recto sources trust {config.name}` lets it run later")

    # -- what happens

    def _set_meter(self) -> None:
        """Set the meter of a stored conversation to its last request, or to the compaction after it; to the next
        window if the model has changed."""
        last = self.talk.last_request()
        account = last.account if last else None
        if account and account.model != self.talk.model:
            self.measure()
        elif account and account.total is not None and account.limit is not None:
            self.watch(ContextUsage(account.total, account.limit))
            if (newest := self.talk.messages(limit=1)[-1:]) and newest[0].compaction:
                self.resized(newest[0].compaction)

    def watch(self, event: Event) -> None:
        if isinstance(event, ContextUsage):
            context = self.talk.context_settings
            self.usage, self.due_percent = event, 100 * context.threshold if context.enabled else None
        elif isinstance(event, Appended):
            self.waiting.clear()
            self.attachments.clear()

    def take(self, line: str) -> None:
        """Handle a line typed during a reply."""
        self.remember(line)
        if line.split() == ["/goal", "stop"] and self.talk.stop_goal():
            return
        if line.startswith("/") and not line.startswith("//"):
            self.commands.append(line)
            return
        text = line[1:] if line.startswith("//") else line
        self.talk.queue(text)
        self.waiting.append(text)

    def take_back(self) -> str | None:
        """Remove and return the last waiting message; None if there is none."""
        try:
            taken = self.talk.take_back()
        except NotFound:
            return None
        del self.waiting[-1:]
        return taken.text

    def resized(self, block: "Compaction") -> None:
        """Update the meter after a compaction."""
        if block.action == "undo":  # it has no size
            self.measure()
        elif self.usage and block.context_size_after:
            self.usage = ContextUsage(block.context_size_after, self.usage.limit)

    def update_cost(self) -> None:
        with suppress(RectoError):  # the status line must not end a chat
            self.cost = status_of_cost(self.talk, self.desk)

    def measure(self) -> None:
        """Measure the next window for the meter, as after a change of model."""
        try:
            window = self.talk.window()
        except RectoError:
            self.usage = None  # the next message will report it
        else:
            self.watch(ContextUsage(window.total, window.limit))

    # -- what is shown

    def tell(self, text: str) -> None:
        # only a terminal folds lines
        lines = visible(text).split("\n")
        told = [fold(line, self.console.width) for line in lines] if self.console.is_terminal else lines
        self.console.print(Text("\n".join(told), "dim"), soft_wrap=True)

    say = note = tell

    def offer(self, command: str, limit: int = OFFERED) -> None:
        """List the latest messages, for a command without a message number."""
        said = [message for message in self.talk.messages(limit=limit) if message.text]
        if not said:
            raise Invalid(f"there is no message yet to {command}")
        width = len(f"#{said[-1].said}")
        for message in said:
            self.tell_row(f"{f'#{message.said}':>{width}}  {message.role:<9}  ", message.text)

    def tell_row(self, head: str, text: str) -> None:
        """Print a row of a list, shortened to the line."""
        width = self.console.width - len(head) - 1 if self.is_at_terminal else ROW_WIDTH
        self.tell(head + shortened(text, max(LEAST_WIDTH, width)))

    def recall_end(self) -> None:
        """Show the title and the last exchange of a continued conversation."""
        said = [message for message in self.talk.messages(limit=END) if message.text and not message.compaction]
        asked = [place for place, message in enumerate(said) if message.role == "user"]
        if title := self.talk.title:
            self.tell(shortened(title, self.console.width - 1))
        for message in said[asked[-1] :] if asked else said[-1:]:
            if message.role in ("user", "assistant"):
                self.tell_row("› " if message.role == "user" else "  ", message.text)

    def listener(self) -> "Listener":
        """The listener that shows a turn."""
        from recto.cli.listener import Lines, open_listener  # the engine's events: only to chat
        from recto.cli.terminal import Typeahead

        context = self.talk.numbered if self.shows_context else None
        if not self.is_at_terminal:
            return Lines(context=context)
        typeahead = Typeahead(self.take, self.take_back, lambda text: setattr(self, "typed", text), self.typed)
        return open_listener(thinking=self.thinking, context=context, typeahead=typeahead, waiting=self.waiting)

    def greeting(self) -> str:
        """One line with the model, the vault and the state of the conversation."""
        agent, vault, latest = self.talk.agent.name, self.talk.vault, self.talk.messages(limit=1)
        used = f", last used {when(latest[-1].created)}" if latest else ""
        whose = "" if agent == DEFAULT_AGENT else f"agent {agent}"
        notes = f"vault {vault.root}" if vault else "no vault"
        return " · ".join(filter(None, (self.talk.model, whose, notes, f"{self.talk.name}{used}", "/help")))

    def status(self) -> str:
        """The toolbar's text as a sentence."""
        used = f"{self.usage.percent:.0f} % of {self.usage.limit:,} tokens used" if self.usage else "nothing sent yet"
        return ", ".join(filter(None, (used, self.cost, self.talk.model)))

    def toolbar(self) -> "FormattedText":
        from prompt_toolkit.formatted_text import FormattedText  # prompt_toolkit: a fifth of a second

        name = re.split("[/:]", visible(self.talk.model))[-1]
        if self.usage is None:
            return FormattedText([("", shortened(self.talk.model, self.console.width - 1))])
        filled = min(METER_WIDTH, round(self.usage.percent * METER_WIDTH / 100))
        meter = "▰" * filled + "▱" * (METER_WIDTH - filled)
        size, rest = f"{meter} {self.usage.percent:.0f} % of {self.usage.limit:,} tokens", f"  {self.cost}  {name}"
        if cell_len(size + rest) >= self.console.width:
            size, rest = f"{self.usage.percent:.0f} %", f"  {name}"
        return FormattedText([(meter_style(self.usage.percent, self.due_percent), size), ("", rest)])


def meter_style(percent: float, due_percent: float | None) -> str:
    """Yellow for a window that is getting full, red for one close to compaction."""
    if due_percent is not None and percent >= due_percent:
        return "class:due"
    return "class:full" if percent >= WARN_PERCENT else ""
