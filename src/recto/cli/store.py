"""`recto store`: check, back up, restore, copy and prune the database of all conversations."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recto.cli import options, show
from recto.cli.conversations import removal
from recto.cli.terminal import bar

if TYPE_CHECKING:
    from recto.api.store_files import StoreFiles
    from recto.store.backup import Backup

UNSURE_OF_PRUNING = "what is removed cannot be brought back: --yes removes it without asking, --dry-run shows what goes"
file_argument = click.argument("file", required=False, type=click.Path(path_type=Path))


@click.group()
def command() -> None:
    """Check the store of all conversations, back it up, restore it, copy it, remove what is old.

    Example: recto store check
    """


def _files(location: str | None = None) -> "StoreFiles":
    from recto.api.store_files import StoreFiles  # sqlalchemy: a fifth of a second

    return StoreFiles(location=location)


@command.command("check")
@options.as_json_option
def check(as_json: bool) -> None:
    """Check the database, the trees of messages, and that every request rebuilds; exit 1 if something is wrong.

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
    show.answer({"backup": str(made)} if as_json else f"backed up to {made}")


@command.command("restore")
@file_argument
@options.as_json_option
def restore(file: Path | None, as_json: bool) -> None:
    """Replace the store with a backup (default: the one with the newest messages). The present store is kept in
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
    """Continue with a store that lost messages, as it is now. This does not repair a damaged store: restore a backup.

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


@command.command("copy")
@click.option("--from", "source", metavar="URL", help="The store to copy (default: the one in use).")
@click.option("--to", "target", metavar="URL", required=True, help="An empty database.")
@options.as_json_option
def copy(source: str | None, target: str, as_json: bool) -> None:
    """Copy the whole store into an empty database, such as PostgreSQL: all of it or nothing.

    A URL is postgresql+psycopg://user@host/name, sqlite:///file, or the name of a file.

    Example: recto store copy --to sqlite:///copy.db
    """
    with bar("copying") as tell:
        done = _files(source).copy(target, tell)
    if as_json:
        show.emit({"rows": dict(done)})
        return
    rows = show.counted(sum(done.values()), "row")
    show.say(f"copied: {show.counted(done['messages'], 'message')}, {rows} in all")


@command.command("prune")
@click.option("--older-than", metavar="AGE", required=True, help="Not used for that long: 90d, 12h, 6w, 2y.")
@click.option("--dry-run", is_flag=True, help="Only show what would go, and what would stay.")
@options.yes_option
@options.as_json_option
def prune(older_than: str, is_sure: bool, as_json: bool, dry_run: bool) -> None:
    """Permanently remove conversations not used for AGE: messages, requests, usage, entries of the search index, and
    texts that no other one needs. It cannot be undone.

    A conversation that was used since then stays whole. Learned facts and copies of the store stay too.

    Example: recto store prune --older-than 90d --dry-run
    """
    with options.open_desk() as desk:
        report = desk.prune(older_than, dry_run=True)
        removes = bool(report.conversations) and not dry_run
        if not as_json:
            parts = (("conversation", len(report.conversations)), ("message", report.messages))
            show.say("goes: " + ", ".join(show.counted(number, noun) for noun, number in parts))
            for file in report.copies if report.conversations else ():
                show.say(f"stays: {file}, which may hold them")
        sure = is_sure or not removes or options.is_confirmed(*removal(report.conversations), UNSURE_OF_PRUNING)
        if not sure:
            show.note("nothing was removed")
            return
        if removes:
            with bar("removing") as tell:
                report = desk.prune(older_than, tell)
    if as_json:
        ids, copies = [each.id for each in report.conversations], [str(each) for each in report.copies]
        show.emit({"conversations": ids, "messages": report.messages, "removed": report.removed, "copies": copies})
    elif removes:
        show.say(f"{show.counted(report.removed, 'conversation')} removed for good")


def _described(backup: "Backup") -> str:
    made = show.when(backup.made.isoformat())
    return f"{backup.file} ({show.counted(backup.messages, 'message')}, made {made})"
