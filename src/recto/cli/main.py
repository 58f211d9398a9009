"""The console entry: a table of commands, each imported only when it is called; the one place where errors are told.

Knows no command from the inside, so that `recto --help` costs no more than click itself.
"""

import gc
import io
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from recto import __version__, wire
from recto.chat.message import now
from recto.cli.signals import end_in_order
from recto.errors import RectoError
from recto.places import find_home

# Name -> its one line of help. The command itself is `command` in the module of the same name in this package.
COMMANDS = {
    "chat": "Talk with a model, in the terminal or line by line.",
    "ask": "Ask one question and print the answer.",
    "conversations": "List, read, search, rename and branch conversations; pin messages.",
    "context": "See and steer what the model is sent: windows, summaries, strategies.",
    "request": "See, compare, rebuild and prove what was sent.",
    "sources": "See and choose what goes into the window: rules, references, tools.",
    "agent": "See, make and configure agents: rules, references, tools.",
    "vault": "Search a folder of notes, follow its links, see what is used.",
    "config": "See and change settings.",
    "models": "See which models there are, and fetch the built-in one.",
}
CRASH_FILE = "crash.log"
INTERRUPTED = 130


class LazyGroup(click.Group):
    """Commands by name; their modules are imported when one of them is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"recto.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, 1)):
            raise click.UsageError(f"There is no command {args[0]}; did you mean {near[0]}?", ctx)
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
        given = list(sys.argv[1:] if args is None else args)
        named |= {"prog_name": "recto", "standalone_mode": False}
        try:
            code = super().main(given, *rest, **named)
            sys.stdout.flush()
        except Exception as why:
            code = _tell(why, as_json=_wants_json(given))
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="recto %(version)s")
def recto() -> None:
    """Chat with language models, and see exactly what they are sent.

    Example: recto chat --vault notes
    """


def main() -> None:
    # a command allocates much while it imports and lets go of little: collecting meanwhile is a tenth of its time
    gc.set_threshold(50_000, 20, 50)
    end_in_order()
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller, who does not want to hear
            setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
        elif isinstance(stream, io.TextIOWrapper):
            # a console that cannot show a character must not end the command
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    recto.main()


def _wants_json(args: list[str]) -> bool:
    """Looked up in the words themselves: a usage error comes before the options are known."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def _tell(why: Exception, *, as_json: bool) -> int:
    """Says on stderr what went wrong, in one sentence, and gives the exit code."""
    if isinstance(why, BrokenPipeError):
        # whoever read our output has left; what is still buffered must not complain at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    kind, message, code = _described(why)
    if as_json:
        click.echo(wire.dumps({"error": {"type": kind, "message": message}}), err=True)
    elif isinstance(why, click.ClickException):
        why.show()
    else:
        click.echo(f"recto: {message}", err=True)
    return code


def _described(why: Exception) -> tuple[str, str, int]:
    if isinstance(why, RectoError):
        return why.type, why.message, 1
    if isinstance(why, click.UsageError):
        return "Usage", why.format_message(), 2
    if isinstance(why, click.ClickException):
        return "Invalid", why.format_message(), why.exit_code
    return "Bug", f"{type(why).__name__}: this is a bug in Recto{_keep(why)}", 1


def _keep(why: Exception) -> str:
    """Writes the traceback to a file, and says where; a home that cannot be written must not hide the error."""
    path = find_home() / CRASH_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{now()} recto {__version__}\n{''.join(traceback.format_exception(why))}\n")
    except OSError:
        return f" ({why})"
    return f"; what happened is written to {path}"
