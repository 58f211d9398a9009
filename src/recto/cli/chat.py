"""`recto chat`: messages in, replies out, until there are no more. At a terminal with a prompt, else line by line."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.agents.agent import DEFAULT
from recto.cli import options, show
from recto.cli.listen import Lines, follow
from recto.errors import RectoError

if TYPE_CHECKING:
    from types import FrameType

    from prompt_toolkit.formatted_text import FormattedText

    from recto.cli.ongoing import Chat
    from recto.cli.screen import Screen
    from recto.desk import Desk
    from recto.talk import Talk

METER_WIDTH = 10
WARN_PERCENT = 80


@click.command()
@options.settings_options
@options.place_options
@options.document_option
@options.allow_tool_option
@click.option("--thinking", is_flag=True, help="Show what the model thinks before it answers.")
@click.option("--show-context", is_flag=True, help="Show what goes in before each answer.")
def command(
    flags: dict[str, str],
    place: Callable[["Desk"], "Talk"],
    document: str | None,
    allowed: tuple[str, ...],
    thinking: bool,
    show_context: bool,
) -> None:
    """Talk with a model, in the terminal or line by line.

    Example: recto chat --vault notes --continue
    """
    from recto.cli.ongoing import Chat  # rich: a tenth of a second

    with options.open_desk(flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        options.allow_tools(desk, talk, allowed)
        if talk.vault:
            talk.vault.watch()
            desk.engine.libraries.of(talk.vault).stir()
        chat = Chat(desk, talk, show.console(), thinking=thinking, shows_context=show_context)
        if options.has_keyboard() and chat.console.is_terminal and not chat.console.is_dumb_terminal:
            _at_terminal(chat)
        elif not _line_by_line(chat):
            sys.exit(1)


def _line_by_line(chat: "Chat") -> bool:
    """Each line of stdin is a message, as the bytes it came in. False when any of them failed; the rest still ran."""
    well = True
    for raw in sys.stdin.buffer if sys.stdin else ():
        line = raw.rstrip(b"\r\n")
        if not line.strip():
            continue
        try:
            _take_line(chat, line)
        except RectoError as why:
            well = False
            click.echo(f"recto: {show.visible(why.message)}", err=True)
        if chat.over:
            break
    return well


def _take_line(chat: "Chat", line: bytes) -> None:
    from recto.cli import slash  # rich: a tenth of a second

    if line.startswith(b"/") and not line.startswith(b"//"):
        slash.run(chat, line.decode("utf-8", "replace"))
    else:
        message = line[1:] if line.startswith(b"//") else line
        events = chat.talk.stream(message, strategy=chat.strategy, answers=False)
        follow(events, Lines(shows_context=chat.shows_context), chat.watch)


def _at_terminal(chat: "Chat") -> None:
    from prompt_toolkit.completion import merge_completers  # a fifth of a second

    from recto.cli import slash  # rich: a tenth of one
    from recto.cli.complete_sources import SourceCompleter
    from recto.cli.prompt import open_prompt

    # while the first message is typed they have time to start
    chat.desk.servers.stir(chat.talk.agent.servers, chat.desk.project)
    commands = {name: (known.help, known.words) for name, known in slash.COMMANDS.items()}
    prompt = open_prompt(
        chat.desk.home, commands, lambda: _toolbar(chat), lambda: chat.talk.vault, chat.desk.project or Path.cwd()
    )
    sources = SourceCompleter(lambda: chat.talk.agent.written, lambda kind: chat.talk.sources((kind,)).items)
    prompt.completer = merge_completers([sources, *([prompt.completer] if prompt.completer else [])])
    chat.tell(f"{chat.talk.model} · {_agent(chat)}{_vault(chat)} · {slash.began(chat)} · /help")
    # between prompt and reply Ctrl-C means nothing, and would break the prompt that is just being opened
    with _on_interrupt(lambda *_: None):
        while not chat.over:
            try:
                if (line := prompt.prompt()).strip():
                    _answer(chat, line)
            except KeyboardInterrupt:
                continue  # the line is cleared
            except EOFError:
                break
    if chat.talk.id:
        chat.tell(f"recto chat -c {chat.talk.id} goes on with this")


def _answer(chat: "Chat", line: str) -> None:
    """One line of the terminal. Whatever goes wrong is said, and the chat goes on."""
    from recto.cli import slash  # rich: a tenth of a second

    chat.console.print()
    try:
        with _on_interrupt(signal.default_int_handler):
            if line.startswith("/") and not line.startswith("//"):
                slash.run(chat, line.strip())
            else:
                message = line[1:] if line.startswith("//") else line
                follow(chat.talk.stream(message, strategy=chat.strategy), _screen(chat), chat.watch)
    except KeyboardInterrupt:
        pass  # the screen has said so
    except RectoError as why:
        chat.console.print(show.visible(why.message), style="red")
    if not chat.over:
        chat.console.print()


def _screen(chat: "Chat") -> "Screen":
    from recto.cli.screen import Screen  # rich: a tenth of a second
    from recto.cli.source_lists import starting_in_words

    return Screen(
        chat.console,
        thinking=chat.thinking,
        shows_context=chat.shows_context,
        more=" (/references shows all)",
        starting=lambda: starting_in_words(chat.desk.servers.states()),
    )


@contextmanager
def _on_interrupt(handler: Callable[[int, "FrameType | None"], object]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _agent(chat: "Chat") -> str:
    name = chat.talk.agent.name
    return "" if name == DEFAULT else f"agent {name} · "


def _vault(chat: "Chat") -> str:
    vault = chat.talk.vault
    return f"vault {vault.root.name}" if vault else "no vault"


def _toolbar(chat: "Chat") -> "FormattedText":
    from prompt_toolkit.formatted_text import FormattedText  # prompt_toolkit: a fifth of a second

    model = ("", show.visible(chat.talk.model))
    if chat.usage is None:
        return FormattedText([model])
    filled = min(METER_WIDTH, round(chat.usage.percent * METER_WIDTH / 100))
    meter = "▰" * filled + "▱" * (METER_WIDTH - filled)
    told = f"{meter} {chat.usage.percent:.0f} % of {chat.usage.limit:,} tokens  "
    return FormattedText([(meter_style(chat.usage.percent, chat.due_percent), told), model])


def meter_style(percent: float, due_percent: float | None) -> str:
    """Yellow where the window gets full, red where it is about to be compacted."""
    if due_percent is not None and percent >= due_percent:
        return "class:due"
    return "class:full" if percent >= WARN_PERCENT else ""
