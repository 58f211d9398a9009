"""`recto chat`: a prompt at a terminal; line by line from a pipe. `recto ask`: one question, one answer."""

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import ignore_interrupt, on_interrupt
from recto.errors import RectoError

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.cli.chat_state import ChatState


NOTHING_LATER = {"context.prepare_at": "0"}
"""Settings of commands that end with the reply: the next summary would cost money and be lost."""


@click.command()
@options.settings_options
@options.place_options
@options.document_option
@options.allow_tool_option
@click.option("--thinking", is_flag=True, help="Show the model's thinking before each answer.")
@click.option("--show-context", is_flag=True, help="Show what is sent before each answer.")
def command(
    flags: dict[str, str],
    place: Callable[["Desk"], "Talk"],
    document: str | None,
    allowed: tuple[str, ...],
    thinking: bool,
    show_context: bool,
) -> None:
    """Chat with a model, in the terminal or line by line.

    Example: recto chat --vault notes --continue
    """
    from recto.cli.chat_state import ChatState  # rich: a tenth of a second

    with options.open_desk(flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        for tool in allowed:
            talk.allow(tool)
        talk.watch_vault()
        chat = ChatState(desk, talk, show.console(), thinking=thinking, shows_context=show_context)
        chat.is_at_terminal = options.has_keyboard() and sys.stdout.isatty()
        if chat.is_at_terminal:
            _at_terminal(chat)
        elif not _line_by_line(chat):
            sys.exit(1)


# -- from a pipe


def _line_by_line(chat: "ChatState") -> bool:
    """Send each line of stdin as a message, byte for byte. False if one failed; the others still run."""
    from recto.cli.log import log_failure

    went_well = True
    for raw in sys.stdin.buffer if sys.stdin else ():
        line = raw.rstrip(b"\r\n")
        if not line.strip():
            continue
        try:
            if _is_command(line):
                _run_command(chat, line.decode("utf-8", "replace"))
            else:
                _send(chat, line)
        except RectoError as why:
            went_well = False
            show.say(f"recto: {log_failure(why)}", err=True)
        if chat.over:
            break
    return went_well


# -- at a terminal


def _at_terminal(chat: "ChatState") -> None:
    chat.wake()
    ask = _ask_plainly if show.is_plain() else _open_prompt(chat)
    chat.update_cost()
    chat.tell(chat.greeting())
    chat.recall_end()
    _tell_waiting(chat)
    # here Ctrl-C would break the prompt that is being opened
    with on_interrupt(ignore_interrupt):
        while not chat.over:
            try:
                typed, chat.typed = chat.typed, ""
                if (line := ask(typed)).strip():
                    _answer(chat, line)
                    while chat.commands and not chat.over:  # typed while the reply came
                        later = chat.commands.pop(0)
                        chat.tell(f"{later}:")
                        _answer(chat, later)
            except KeyboardInterrupt:
                continue  # Ctrl-C clears the line
            except EOFError:
                break
    if chat.talk.number:
        # without the #, which starts a comment in a shell
        chat.tell(f"recto chat -c {chat.talk.number} continues this conversation")


def _ask_plainly(typed: str) -> str:
    """A prompt for screen readers: a whole line, nothing redrawn."""
    with on_interrupt(signal.default_int_handler):
        return typed + input("> ")


def _open_prompt(chat: "ChatState") -> Callable[[str], str]:
    # prompt_toolkit: a fifth of a second
    from recto.cli.prompt import AgentCompleter, FileCompleter, LinkCompleter, SlashCompleter, open_prompt
    from recto.cli.slash import COMMANDS

    files = FileCompleter(lambda: chat.talk.vault, chat.desk.project or Path.cwd())
    completers = (
        SlashCompleter({name: (known.help, known.words) for name, known in COMMANDS.items()}),
        LinkCompleter(lambda: chat.talk.vault),
        AgentCompleter(lambda: chat.desk.agents.names() if chat.talk.id is None else ()),
        files,
    )
    prompt = open_prompt(chat.desk.home, completers, chat.toolbar)
    files.start()
    chat.remember = prompt.history.append_string
    return lambda typed: prompt.prompt(default=typed)


def _answer(chat: "ChatState", line: str) -> None:
    """Handle one line of the terminal. Errors are shown, and the chat continues."""
    from recto.cli.log import log_bug, log_failure

    chat.console.print()
    chat.waiting.clear()  # only a message sends what a stopped reply left waiting
    try:
        # the screen has reported Ctrl-C
        with suppress(KeyboardInterrupt), on_interrupt(signal.default_int_handler):
            if _is_command(line):
                _run_command(chat, line.strip())
            else:
                chat.ask_trust()
                _send(chat, line)
            while chat.waiting and chat.talk.waiting():  # queued while the reply was ending
                _send(chat, ())
    except RectoError as why:
        chat.console.print(show.visible(log_failure(why)), style="red")
    except Exception as why:  # the chat survives every bug
        chat.console.print(show.visible(log_bug(why)), style="red")
    _tell_waiting(chat)
    if not chat.over:
        chat.update_cost()
        if not chat.console.is_terminal and chat.usage:
            chat.tell(chat.status())
        chat.console.print()


def _tell_waiting(chat: "ChatState") -> None:
    """Report messages left waiting by a stopped or failed reply, or by an earlier chat."""
    if count := len(chat.talk.waiting()):
        what = show.counted(count, "message")
        chat.tell(f"{what} waiting: your next one brings {'it' if count == 1 else 'them'} along; /waiting lists them")


# -- a line


def _is_command(line: str | bytes) -> bool:
    return _start(line)[:1] == "/" != _start(line)[1:]


def _start(line: str | bytes) -> str:
    return line[:2].decode("ascii", "replace") if isinstance(line, bytes) else line[:2]


def _run_command(chat: "ChatState", line: str) -> None:
    from recto.cli import slash  # rich: a tenth of a second

    slash.run(chat, line)


def _send(chat: "ChatState", line: "str | bytes | tuple[()]") -> None:
    """Send a message, or the waiting ones; a doubled slash at the start of a line becomes one."""
    from recto.cli.listener import follow  # the engine's events: only to chat

    message = line[1:] if line and _start(line) == "//" else line
    listener, attachments = chat.listener(), tuple(chat.attachments)
    events = chat.talk.stream(message, strategy=chat.strategy, can_ask=listener.answers, attachments=attachments)
    follow(events, listener, chat.watch)


# -- recto ask


@click.command()
@click.argument("text", nargs=-1)
@options.settings_options
@options.place_options
@options.document_option
@options.allow_tool_option
@click.option("--attach", "attachments", multiple=True, metavar="FILE", help="Attach an image, a PDF or a text file.")
@click.option("--template", "-t", metavar="NAME", help="Ask with a template of RECTO_HOME/templates.")
@click.option("--param", "-p", "params", multiple=True, metavar="KEY=VALUE", help="A variable of the template.")
@click.option("--show-context", is_flag=True, help="Show what is sent before the answer.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking before the answer.")
@options.as_json_option
def ask(
    text: tuple[str, ...],
    flags: dict[str, str],
    place: Callable[["Desk"], "Talk"],
    document: str | None,
    allowed: tuple[str, ...],
    attachments: tuple[str, ...],
    template: str | None,
    params: tuple[str, ...],
    show_context: bool,
    thinking: bool,
    as_json: bool,
) -> None:
    """Ask one question and print the answer. Piped input is added to the question, or is the question.

    `recto "QUESTION"` does the same. A question that begins with @NAME goes to the agent of this name.

    Example: recto ask "Sum this up" < report.txt
    """
    message = _message(" ".join(text))
    if params and not template:
        raise click.UsageError("--param goes with --template.")
    if template:
        message = _filled(template, params, message, flags)
    with options.open_desk(NOTHING_LATER | flags) as desk:
        talk = place(desk)
        if document:
            talk.open_document(document)
        for tool in allowed:
            talk.allow(tool)
        if as_json:
            show.emit(_answer_as_json(talk, message, attachments, show_context))
            return
        from recto.cli.listener import follow, open_listener  # the engine's events: only to ask

        listener = open_listener(thinking=thinking, context=talk.numbered if show_context else None)
        follow(talk.stream(message, can_ask=listener.answers, attachments=attachments), listener)


def _message(text: str) -> bytes:
    """The question followed by the piped input, as bytes: the engine repairs invalid UTF-8 and reports it."""
    said = text.encode("utf-8", "surrogateescape")
    if sys.stdin is None or options.has_keyboard():
        return said
    piped = sys.stdin.buffer.read()
    if not piped.strip():
        return said
    return said + b"\n\n" + piped if text.strip() else piped


def _filled(name: str, params: tuple[str, ...], message: bytes, flags: dict[str, str]) -> bytes:
    """Fill in a template. Options override its model and instructions."""
    from recto.agents.templates import read_template  # reads notes: only for templates
    from recto.base.locations import find_home, find_project

    home = find_home()
    template = read_template(name, home, find_project(Path.cwd(), home))
    if template.note:
        show.note(template.note)
    filled = template.fill(options.assigned("--param", params), message.decode("utf-8", "surrogateescape"))
    if template.model:
        flags.setdefault("model", template.model)
    if template.system and not flags.keys() & {"system_prompt", "system_prompt_file"}:
        flags |= {"system_prompt": template.system, "system_prompt_file": ""}
    return filled.encode("utf-8", "surrogateescape")


def _answer_as_json(talk: "Talk", message: bytes, attachments: tuple[str, ...], shows_context: bool) -> dict[str, Any]:
    from recto import wire  # the message types: only for JSON

    before = talk.compaction()
    reply = talk.ask(message, attachments=attachments)
    window, block = reply.window, talk.compaction()
    told: dict[str, Any] = {
        "conversation": window.conversation,
        "message": reply.message.id,
        "request": reply.request_id,
        **wire.fields_to_json(reply, "text", "references", "usage", "notes", "branched", "quotes"),
        "tokens": wire.fields_to_json(window, "total", "limit", "reserve", "exact"),
        "cost_usd": reply.cost,
        "compaction": wire.block_to_json(block) if block and block != before else None,
    }
    return told | ({"context": window.to_json()} if shows_context else {})
