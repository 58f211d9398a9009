"""Commands of `recto conversations` that put a conversation away, bring it back, or remove it for good."""

from collections.abc import Sequence

import click

from recto import wire
from recto.chat.conversation import Conversation
from recto.chat.message import now
from recto.cli import options, show
from recto.cli.terminal import bar, forget_keys
from recto.errors import Invalid

name_argument = click.argument("name", metavar="ID")
# What must be typed before anything is removed for good.
CONFIRMATION = "yes"
# Of a full trash the question names so many.
NAMED = 10
UNSURE = "what is removed from the trash cannot be brought back: --yes removes it without asking"


@click.command("archive")
@name_argument
@options.as_json_option
def archive(name: str, as_json: bool) -> None:
    """Put a conversation away: it is no longer listed, but still searched.

    `recto conversations list --archived` lists what is archived. A new message brings a conversation back.

    Example: recto conversations archive 3
    """
    with options.open_desk() as desk:
        _tell(desk.archive(name), "is archived; `recto conversations unarchive {}` brings it back", as_json)


@click.command("unarchive")
@name_argument
@options.as_json_option
def unarchive(name: str, as_json: bool) -> None:
    """List an archived conversation again.

    Example: recto conversations unarchive 3
    """
    with options.open_desk() as desk:
        _tell(desk.unarchive(name), "is listed again", as_json)


@click.command("delete")
@name_argument
@options.as_json_option
def delete(name: str, as_json: bool) -> None:
    """Move a conversation to the trash: it is not listed, not searched and not continued.

    `recto conversations list --trash` lists the trash. Nothing is removed before `empty-trash`.

    Example: recto conversations delete 3
    """
    with options.open_desk() as desk:
        _tell(desk.delete(name), "is in the trash; `recto conversations restore {}` brings it back", as_json)


@click.command("restore")
@name_argument
@options.as_json_option
def restore(name: str, as_json: bool) -> None:
    """Bring a conversation back from the trash.

    Example: recto conversations restore 3
    """
    with options.open_desk() as desk:
        _tell(desk.restore(name), "is back", as_json)


def _tell(changed: Conversation, what: str, as_json: bool) -> None:
    if as_json:
        show.emit(wire.conversation_to_json(changed))
    else:
        show.say(f"conversation #{changed.number} {what.format(changed.number)}: {titled(changed)}")


def titled(conversation: Conversation) -> str:
    return show.shortened(conversation.title, 70) or "(no title)"


@click.command("empty-trash")
@click.option(
    "--older-than", metavar="DAYS", type=click.IntRange(0, 36_500), default=0, help="Only what has been there so long."
)
@click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
@options.as_json_option
def empty_trash(older_than: int, is_sure: bool, as_json: bool) -> None:
    """Remove the conversations in the trash for good: messages, requests, and texts that no other one needs.

    It cannot be undone. Backups that were made before still hold them.

    Example: recto conversations empty-trash --older-than 30
    """
    with options.open_desk() as desk:
        limit = now(days_ago=older_than)
        found = [each for each in desk.conversations(state="deleted", limit=1_000_000) if (each.deleted or "") <= limit]
        if found and not is_sure and not is_removal_confirmed(found, UNSURE):
            show.note("nothing was removed")
            return
        with bar("emptying the trash") as tell:
            removed = desk.empty_trash(older_than, tell)
    if as_json:
        show.emit({"removed": removed})
    else:
        show.say(
            f"{show.counted(removed, 'conversation')} removed for good" if removed else "there is nothing to remove"
        )


def is_removal_confirmed(found: Sequence[Conversation], refused: str) -> bool:
    """Names what is to go, and asks. Invalid with the sentence `refused` where nobody can answer."""
    if not options.has_keyboard():
        raise Invalid(refused)
    for each in found[:NAMED]:
        show.say(f"#{each.number}  {titled(each)}", err=True)
    if len(found) > NAMED:
        show.say(f"… and {len(found) - NAMED} more", err=True)
    forget_keys()
    show.say(f"Remove {show.counted(len(found), 'conversation')} for good? Type {CONFIRMATION}: ", err=True, nl=False)
    try:
        return input().strip().lower() == CONFIRMATION
    except (EOFError, KeyboardInterrupt):
        show.say("", err=True)
        return False


COMMANDS = (archive, unarchive, delete, restore, empty_trash)
