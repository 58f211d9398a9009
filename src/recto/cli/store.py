"""`recto store`: the database that holds all conversations: checked, backed up, restored."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.cli import options, show
from recto.cli.terminal import bar

if TYPE_CHECKING:
    from recto.store.backup import Backup
    from recto.store_files import StoreFiles

file_argument = click.argument("file", required=False, type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Check the store of all conversations, back it up, restore it.

    Example: recto store check
    """


@command.command("check")
@options.as_json_option
def check(as_json: bool) -> None:
    """Check the database, the trees of messages, and that every request rebuilds; exit 1 when something is wrong.

    Example: recto store check
    """
    files = _files()
    with bar("checking") as tell:
        found = files.check(tell)
    known = files.backups
    if as_json:
        names = [str(each.file) for each in known]
        show.emit({"path": files.name, **found.counts, "problems": found.problems, "backups": names})
    else:
        for problem in found.problems:
            show.say(f"PROBLEM {problem}")
        counts = [show.counted(number, noun.removesuffix("s")) for noun, number in found.counts.items()]
        show.say(f"{'ok' if not found.problems else 'damaged'}: {', '.join([files.name, *counts])}")
        show.say(files.note or f"newest backup: {_described(known[0]) if known else 'none'}")
    if found.problems:
        sys.exit(1)


@command.command("backup")
@file_argument
@options.as_json_option
def backup(file: Path | None, as_json: bool) -> None:
    """Copy the store to FILE while others go on writing (default: a new file in RECTO_HOME/backups).

    Example: recto store backup
    """
    with bar("copying") as tell:
        made = _files().backup(file, tell)
    show.emit({"backup": str(made)}) if as_json else show.say(f"backed up to {made}")


@command.command("restore")
@file_argument
@options.as_json_option
def restore(file: Path | None, as_json: bool) -> None:
    """Put a backup in the place of the store (default: the one with the newest messages). The present store is kept in
    RECTO_HOME/backups.

    Example: recto store restore
    """
    with bar("copying") as tell:
        done = _files().restore(file, tell)
    kept = str(done.former) if done.former else None
    if as_json:
        found = {"restored": str(done.backup.file), "messages": done.backup.messages, "missing": done.missing}
        show.emit({**found, "kept": kept})
        return
    fewer = f"; the store before it held {show.counted(done.missing, 'message')} more" if done.missing else ""
    show.say(f"restored {_described(done.backup)}{fewer}")
    if kept:
        show.say(f"the former store is {kept}")


@command.command("accept")
@options.as_json_option
def accept(as_json: bool) -> None:
    """Go on with a store that lost messages, as it is now. A damaged store is not mended by this: restore a backup.

    Example: recto store accept
    """
    files = _files()
    done = files.accept()
    held = f"{files.name} holds {show.counted(done.messages, 'message')}"
    if as_json:
        kept = str(done.aside) if done.aside else None
        show.emit({"accepted": done.was_lost, "messages": done.messages, "kept": kept})
    elif not done.was_lost:
        show.say(f"nothing is missing, and nothing was changed: {held}")
    else:
        show.say(f"accepted: {held}" + (f"; the empty file was moved to {done.aside}" if done.aside else ""))


def _described(backup: "Backup") -> str:
    made = show.when(backup.made.isoformat())
    return f"{backup.file} ({show.counted(backup.messages, 'message')}, made {made})"


def _files() -> "StoreFiles":
    from recto.store_files import StoreFiles  # sqlalchemy: a fifth of a second

    return StoreFiles()
