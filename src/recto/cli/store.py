"""`recto store`: the database that holds all conversations: checked, backed up, restored."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.cli import options, show
from recto.cli.terminal import bar

if TYPE_CHECKING:
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
    known = [str(each) for each in files.backups]
    if as_json:
        show.emit({"path": files.name, **found.counts, "problems": found.problems, "backups": known})
    else:
        for problem in found.problems:
            show.say(f"PROBLEM {problem}")
        counts = [show.counted(number, noun.removesuffix("s")) for noun, number in found.counts.items()]
        show.say(f"{'ok' if not found.problems else 'damaged'}: {', '.join([files.name, *counts])}")
        show.say(files.note or f"newest backup: {known[0] if known else 'none'}")
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
    """Put a backup in the place of the store (default: the newest). The present store is kept in RECTO_HOME/backups.

    Example: recto store restore
    """
    with bar("copying") as tell:
        used, former = _files().restore(file, tell)
    if as_json:
        show.emit({"restored": str(used), "kept": str(former) if former else None})
        return
    show.say(f"restored {used}")
    if former:
        show.say(f"the former store is {former}")


@command.command("accept")
@options.as_json_option
def accept(as_json: bool) -> None:
    """Go on with a store that lost messages, as it is now. A backup can still be restored later.

    Example: recto store accept
    """
    kept = _files().accept()
    if as_json:
        show.emit({"kept": str(kept) if kept else None})
    else:
        show.say(f"accepted; the empty file was moved to {kept}" if kept else "accepted")


def _files() -> "StoreFiles":
    from recto.store_files import StoreFiles  # sqlalchemy: a fifth of a second

    return StoreFiles()
