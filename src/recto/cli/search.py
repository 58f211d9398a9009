"""`recto conversations search`, `index`: messages found again, and the index in which they are found."""

import sys
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.moment import Moment
from recto.cli.progress import bar

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.walk.archive import Archive, Filled
    from recto.walk.searching import Findings

ROLES = ["system", "user", "assistant", "tool"]
# Fewer are put into the index before anybody notices.
MANY = 100
MAKE_VECTORS = "`recto conversations index --vectors` makes them"


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--conversation", "-c", metavar="ID", help="Only in this conversation.")
@click.option("--role", type=click.Choice(ROLES), help="Only what this role said.")
@click.option("--since", type=Moment(), help="Only messages from this time on.")
@click.option("--before", type=Moment(), help="Only messages from before this time.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.as_json_option
def search(words: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Find messages by words and meaning, in all conversations and branches, archived parts too; the best first.

    Example: recto conversations search mast step
    """
    from recto.cli.hits import lines, to_json  # what folds words: `list` does without

    wanted = " ".join(words)
    with options.open_desk() as desk:
        found = _found(desk, wanted, where)
        for hit in found:
            if as_json:
                show.emit(to_json(hit))
            else:
                for line in lines(hit, wanted):
                    click.echo(line)
        for text in filter(None, (found.note, _lacking(desk.engine.archive), "" if found else "nothing was found")):
            show.note(text)


def _found(desk: "Desk", wanted: str, where: dict[str, Any]) -> "Findings":
    fill(desk)
    desk.engine.archive.settle(desk.settings.search.timeout_s)
    before = desk.engine.archive.was_renewed
    found = desk.search(wanted, **where)
    if desk.engine.archive.was_renewed == before:
        return found
    fill(desk)  # the index turned out to be damaged while it was read
    return desk.search(wanted, **where)


def fill(desk: "Desk") -> None:
    """Puts what is not in the index yet into it; says why where that takes a while."""
    archive = desk.engine.archive
    left = archive.left
    why = archive.was_renewed or (f"the search index lacks {show.counted(left, 'message')}" if left > MANY else "")
    if why:
        show.note(why)
    with bar("indexing") as tell:
        archive.catch_up(tell)


def _lacking(archive: "Archive") -> str:
    """What is said about vectors that are not made yet."""
    filled = archive.filled
    if filled.embedder is None or filled.why or not filled.waiting:
        return ""
    passages = show.counted(filled.waiting, "passage")
    return f"{passages} can be found by words only, until vectors are made: {MAKE_VECTORS}"


@click.command("index")
@click.option("--vectors", is_flag=True, help="Wait until all vectors are made.")
@click.option("--rebuild", is_flag=True, help="Throw the index away and begin anew.")
@options.as_json_option
def index(vectors: bool, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date, and show what is in it.

    Example: recto conversations index --vectors
    """
    with options.open_desk() as desk:
        archive = desk.engine.archive
        if rebuild:
            archive.renew()
        fill(desk)
        why = archive.check()
        if vectors and not why:
            with bar("making vectors") as tell:
                archive.make_vectors(tell)
        filled = archive.filled
        _tell_filled(filled, why or filled.why, as_json)
    if vectors and (filled.waiting or filled.embedder is None):
        sys.exit(1)


def _tell_filled(filled: "Filled", why: str, as_json: bool) -> None:
    known = {"messages": filled.messages, "indexed": filled.indexed}
    if as_json:
        made = {"vectors": filled.vectors, "waiting": filled.waiting}
        show.emit({**known, **made, "embedder": filled.embedder, "why": why or None})
        return
    embedder = filled.embedder or "none"
    facts = {name: f"{count:,}" for name, count in known.items()} | {
        "vectors": f"{filled.vectors:,}; {show.counted(filled.waiting, 'passage')} waiting",
        "embedder": f"{embedder}: {why}" if why else embedder,
    }
    for name, value in facts.items():
        show.say(f"{name:<12}{value}")
