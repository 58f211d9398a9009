"""The entry point: a table of commands, each imported when it is called, and the one place that reports errors.

Imports no command, so `recto --help` takes hardly longer than click itself.
"""

import gc
import io
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from recto import __version__
from recto.cli import show
from recto.cli.terminal import end_in_order
from recto.errors import RectoError

# Name -> its line of help.
COMMANDS = {
    "chat": "Chat with a model, in the terminal or line by line.",
    "web": "Chat in the browser, with the context of every reply beside it.",
    "ask": "Ask one question and print the answer.",
    "conversations": "List, read, search, rename, branch, hide and delete conversations; pin messages.",
    "context": "See and change what the model gets: windows, summaries, strategies.",
    "request": "See, rebuild and verify what was sent.",
    "sources": "See and choose what goes into the window: rules, references, tools.",
    "agent": "See, make and configure agents; let one work toward a goal.",
    "vault": "Search a folder of notes, follow its links, see what is used.",
    "memory": "Remember facts between conversations.",
    "store": "Check the store of all conversations, back it up, restore it, copy it, remove what is old.",
    "config": "See and change settings.",
    "models": "List models, and fetch those that run on this machine.",
    "serve": "Serve OpenAI's and Anthropic's API to other programs.",
    "mcp": "Let other assistants search and read your notes, conversations and memory, as an MCP server.",
    "keys": "Store keys of providers, list where they come from, remove them.",
}
# A command is `command` in the module of its name, or has its own name in another module.
NEIGHBOURS = {
    "ask": "chat",
    "request": "context",
    "memory": "sources",
    "web": "serve",
    "mcp": "serve",
    "keys": "models",
}
INTERRUPTED = 130


class LazyGroup(click.Group):
    """A group that imports a command's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"recto.cli.{NEIGHBOURS.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in NEIGHBOURS else "command")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _with_ask(args))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from difflib import get_close_matches  # only where a name is wrong

            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"Did you mean {near[0]}?" if near else f'To ask the model: recto ask "{" ".join(args)}"'
            raise click.UsageError(f"There is no command {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **named: Any) -> NoReturn:
        given = _without_plain(list(sys.argv[1:] if args is None else args))
        named |= {"prog_name": "recto", "standalone_mode": False}
        before = given[: given.index("--")] if "--" in given else given
        as_json = "--json" in before  # a usage error comes before click knows the options
        try:
            code = super().main(given, *rest, **named)
            sys.stdout.flush()
        except BrokenPipeError:
            # the reader of our output has left: keep Python from complaining about the buffer at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 1
        except click.ClickException as why:
            code = _refuse(why, as_json)
        except RectoError as why:
            from recto.cli.log import log_failure  # logging: only for failures

            code = _fail(why.type, log_failure(why), as_json)
        except Exception as why:
            from recto.cli.log import log_bug

            code = _fail("Bug", log_bug(why), as_json)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="recto %(version)s")
@click.option(
    "--log",
    "log_file",
    metavar="FILE",
    envvar="RECTO_LOG_FILE",
    help="Log to FILE (or set RECTO_LOG_FILE); RECTO_LOG=debug, info, warning or error says how much.",
)
@click.option("--plain", is_flag=True, expose_value=False, help="For screen readers: plain lines, no drawings.")
@click.pass_context
def recto(ctx: click.Context, log_file: str | None) -> None:
    """Chat with language models, and see exactly what they are sent.

    Example: recto chat --vault notes
    """
    level = os.environ.get("RECTO_LOG")
    if level or log_file:
        from recto.cli.log import set_up  # logging: only when it is wanted

        set_up(level, log_file, ctx.invoked_subcommand or "")


def _without_plain(args: list[str]) -> list[str]:
    """`--plain` may follow any command."""
    end = args.index("--") if "--" in args else len(args)
    if "--plain" not in args[:end]:
        return args
    show.force_plain()
    return [*(arg for arg in args[:end] if arg != "--plain"), *args[end:]]


def _with_ask(args: list[str]) -> list[str]:
    """`recto "question"`, `recto @agent …` and `recto --model …` mean `recto ask`. A single word that is not a command
    is a mistake rather than a question."""
    at = 0
    while at < len(args) and args[at].startswith("--log"):
        at += 1 if "=" in args[at] else 2
    first = args[at] if at < len(args) else ""
    is_option = first.startswith("-") and first not in ("-h", "--help", "--version", "-", "--")
    is_question = is_option or first.startswith("@") or any(letter.isspace() for letter in first.strip())
    return [*args[:at], "ask", *args[at:]] if first not in COMMANDS and is_question else args


def _fail(kind: str, message: str, as_json: bool) -> int:
    """Report an error on stderr in one sentence, and return the exit code."""
    if as_json:
        show.emit({"error": {"type": kind, "message": message}}, err=True)
    else:
        show.say(f"recto: {message}", err=True)
    return 1


def _refuse(why: click.ClickException, as_json: bool) -> int:
    """Report wrong arguments with the usage; may quote them."""
    if as_json:
        _fail("Usage" if isinstance(why, click.UsageError) else "Invalid", why.format_message(), as_json)
    else:
        why.show(shown := io.StringIO())
        show.say(shown.getvalue(), err=True, nl=False)
    return why.exit_code


def main() -> None:
    # imports allocate much and free little: garbage collection would take a tenth of a command's time
    gc.set_threshold(50_000, 20, 50)
    end_in_order()
    threading.excepthook = _log_thread_failure
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
        elif isinstance(stream, io.TextIOWrapper):
            # an unsupported character must not end the command
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    recto.main()


def _log_thread_failure(args: threading.ExceptHookArgs) -> None:
    """Send a background thread's traceback to the log and the crash file instead of the screen."""
    from recto.cli.log import log_bug  # logging: only for failures

    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        log_bug(args.exc_value)
