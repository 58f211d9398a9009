"""Options that several commands share, and opening the desk. Imports nothing heavy before a command runs."""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recto.cli import show
from recto.cli.terminal import bar, forget_keys
from recto.errors import Invalid, NotFound

if TYPE_CHECKING:
    from recto.api.blocking import Desk, Talk
    from recto.api.store_queries import StoreQueries
    from recto.api.vault_queries import VaultQueries
    from recto.transfer.report import ExportFormat
    from recto.vault.vault import VaultChanges

R = TypeVar("R")
Decorator = Callable[[Callable[..., R]], Callable[..., R]]

NO_CONVERSATION = "there is no conversation yet: `recto chat` starts one"
# Settings with their own option; all others go through --set.
SETTINGS = {
    "vault": "vault",
    "model": "model",
    "strategy": "context.strategy",
    "system": "system_prompt",
    "system_file": "system_prompt_file",
    "allow_write": "tools.allow_write",
}
# The default format of an export by file ending.
SUFFIXES: "dict[str, ExportFormat]" = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html"}


class Moment(click.ParamType[str]):
    """A date or time, in the form of stored times. Without a zone it is local."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from recto.chat.message import stored_time  # all blocks: only where a time is given

        try:
            return stored_time(value)
        except (ValueError, OverflowError):
            self.fail(f"{value} is not a time; write 2026-01-31 or 2026-01-31T18:00", param, ctx)


class GivenFile(click.ParamType[Path]):
    """A file, optionally with the @ that mentions use."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(value.removeprefix("@")).expanduser()


def _conversation(help: str) -> Decorator[Any]:
    return click.option("--conversation", "-c", metavar="ID", help=help)


def _agent(help: str) -> Decorator[Any]:
    return click.option("--agent", metavar="NAME", help=help)


as_json_option = click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
limit_option = click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="Show at most N.")
output_option = click.option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
yes_option = click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
set_option = click.option(
    "--set",
    "assignments",
    metavar="KEY=VALUE",
    multiple=True,
    help="Any setting, for this call.",
)
message_argument = click.argument("message", metavar="MESSAGE")
document_option = click.option("--document", metavar="PATH", help="A note of the vault that goes with every message.")
allow_tool_option = click.option(
    "--allow-tool",
    "allowed",
    metavar="SERVER[/TOOL]",
    multiple=True,
    help="Let a tool, or all tools of a server, run without asking; can be given several times.",
)
conversation_option = _conversation("Its number, id or title (default: the latest).")
home_option = _conversation("Its conversation (default: the one with this id; for a number the latest).")


def conversation_argument(command: Callable[..., R]) -> Callable[..., R]:
    """Adds a conversation that is named by its place or by -c; the command gets it as `id`."""

    @click.argument("id", metavar="[ID]", required=False)
    @_conversation("The same as ID.")
    @wraps(command)
    def run(*args: Any, id: str | None, conversation: str | None, **named: Any) -> R:
        if id and conversation:
            raise click.UsageError("Give an ID or --conversation, not both.")
        return command(*args, id=conversation or id, **named)

    return run


# A value may be -1.
TAKES_NEGATIVE: dict[str, Any] = {"context_settings": {"ignore_unknown_options": True}}


def assigned(option: str, assignments: Iterable[str]) -> dict[str, str]:
    """Repeated KEY=VALUE options, by key."""
    found: dict[str, str] = {}
    for text in assignments:
        key, equals, value = text.partition("=")
        if not equals:
            example = "; for example --set reply.tries=2" if option == "--set" else ""
            raise click.UsageError(f"{option} takes KEY=VALUE, not {text}{example}")
        found[key.strip()] = value.strip()
    return found


def settings_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that change settings for this call; the command gets `flags`, by key."""

    @click.option("--vault", metavar="DIR", help="Folder of notes to chat over.")
    @click.option("--model", "-m", metavar="NAME", help="Who answers, as provider:model.")
    @click.option("--strategy", metavar="NAME", help="What happens when the window is full.")
    @click.option("--system", metavar="TEXT", help="The instructions for the model.")
    @click.option("--system-file", metavar="FILE", help="File with the instructions for the model.")
    @click.option("--allow-write", is_flag=True, default=None, help="Let the model write, rename and delete notes.")
    @set_option
    @wraps(command)
    def run(*args: Any, assignments: tuple[str, ...], **named: Any) -> R:
        flags = assigned("--set", assignments)
        for option, key in SETTINGS.items():
            if (value := named.pop(option)) is not None:
                flags[key] = value
        if "system_prompt" in flags:
            if flags.get("system_prompt_file"):
                raise click.UsageError("Give --system or --system-file, not both.")
            flags["system_prompt_file"] = ""  # one would override the other
        return command(*args, flags=flags, **named)

    return run


def place_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that choose a conversation; the command gets `place`, a function of the desk."""

    @_conversation("Continue this conversation: its number, id or title.")
    @click.option("--continue", "continues", is_flag=True, help="Continue the latest conversation.")
    @click.option("--new", is_flag=True, help="Start a new conversation (the default).")
    @_agent("The agent of a new conversation.")
    @wraps(command)
    def run(*args: Any, conversation: str | None, continues: bool, new: bool, agent: str | None, **named: Any) -> R:
        if (conversation is not None) + continues + new > 1:
            raise click.UsageError("Give only one of --conversation, --continue and --new.")
        if agent and (conversation is not None or continues):
            raise click.UsageError("--agent is for a new conversation; this one has its own.")

        def place(desk: "Desk") -> "Talk":
            if conversation is not None:
                return desk.conversation(conversation)
            if continues:
                return _talk_to_continue(desk)
            return desk.conversation(agent=agent) if agent else desk.conversation()

        return command(*args, place=place, **named)

    return run


def session_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that choose whose sources; the command gets `place`, a function of the desk."""

    @_conversation("Of this conversation (default: the latest).")
    @_agent("Of this agent, as a new conversation would start.")
    @wraps(command)
    def run(*args: Any, conversation: str | None, agent: str | None, **named: Any) -> R:
        if conversation is not None and agent is not None:
            raise click.UsageError("Give --conversation or --agent, not both: a conversation has its own agent.")

        def place(desk: "Desk") -> "Talk":
            if agent is not None:
                return desk.conversation(agent=agent)
            return desk.conversation(conversation) if conversation is not None else desk.latest() or desk.conversation()

        return command(*args, place=place, **named)

    return run


def has_keyboard() -> bool:
    """True if someone can type; False if stdin is closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_confirmed(question: str, lines: Iterable[str], refused: str) -> bool:
    """Show what is at stake, and ask. Raises Invalid(`refused`) if nobody can answer."""
    if not has_keyboard():
        raise Invalid(refused)
    for line in lines:
        show.say(line, err=True)
    forget_keys()
    show.say(f"{question} Type yes: ", err=True, nl=False)
    try:
        return input().strip().lower() == "yes"
    except (EOFError, KeyboardInterrupt):
        show.say("", err=True)
        return False


def open_desk(flags: dict[str, str] | None = None) -> "Desk":
    """Open a desk with these settings; without any it opens no vault."""
    from recto.api import blocking  # the store: a third of a second

    return blocking.open_desk(settings={"vault": ""} if flags is None else dict(flags))


def open_queries() -> "StoreQueries":
    """Open the store for look-ups, without settings or an engine."""
    from recto.api import store_queries  # sqlalchemy: a fifth of a second

    return store_queries.open_queries()


def vault_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options of commands over a vault; the command gets the settings as `flags`, by key."""

    @click.option("--vault", metavar="DIR", help="Folder of notes (default: the setting `vault`).")
    @set_option
    @as_json_option
    @wraps(command)
    def run(*args: Any, vault: str | None, assignments: tuple[str, ...], **named: Any) -> R:
        flags = assigned("--set", assignments)
        return command(*args, flags=flags | ({"vault": vault} if vault else {}), **named)

    return run


def open_vault(flags: dict[str, str]) -> "VaultQueries":
    """The vault of these settings."""
    from recto.api.vault_queries import open_vault_queries  # with its links and names, a twentieth of a second

    return open_vault_queries(settings=flags)


def read_notes(reader: "VaultQueries") -> "VaultChanges":
    """Read changed notes, with a bar: the first time in a large vault takes a while."""
    with bar("reading notes") as tell:
        return reader.refresh(tell)


def find_talk(desk: "Desk", id: str | None) -> "Talk":
    """The named conversation, or the latest."""
    talk = desk.conversation(id) if id is not None else desk.latest(unsent=True)
    if talk is None:
        raise NotFound(NO_CONVERSATION)
    return talk


def find_or_new_talk(desk: "Desk", id: str | None) -> "Talk":
    """The named or latest conversation, or a new one if there is none yet."""
    return desk.conversation(id) if id is not None else desk.latest(unsent=True) or desk.conversation()


def _talk_to_continue(desk: "Desk") -> "Talk":
    if (talk := desk.latest()) is not None:
        return talk
    if (unsent := desk.latest(unsent=True)) is None:
        raise NotFound(NO_CONVERSATION)
    raise NotFound(f"nothing was ever sent in {unsent.name}: `-c {unsent.number}` continues it anyway")
