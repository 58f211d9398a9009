"""`recto conversations search` and `index`: finding messages again, and the index that finds them."""

import sys
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import bar

if TYPE_CHECKING:
    from recto.blocking import Desk
    from recto.recall.archive import IndexStatus

ROLES = ["system", "user", "assistant", "tool"]
# Fewer are indexed before anybody notices.
MANY = 100
MAKE_VECTORS = "`recto conversations index --vectors` makes them"


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--conversation", "-c", metavar="ID", help="Only in this conversation.")
@click.option("--role", type=click.Choice(ROLES), help="Only messages of this role.")
@click.option("--since", type=options.Moment(), help="Only messages from this time on.")
@click.option("--before", type=options.Moment(), help="Only messages before this time.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Show at most N.")
@options.as_json_option
def search(words: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Find messages by words and meaning, in all conversations and branches, archived parts too; the best first.

    Example: recto conversations search mast step
    """
    from recto.cli.drawing.hits import found_to_json, hit_lines  # text folding: `list` does without

    wanted = " ".join(words)
    with options.open_desk() as desk:
        told = _fill(desk)
        found = desk.search(wanted, complete=True, **where)
        status = desk.index_status()
        for hit in found:
            if as_json:
                show.emit(found_to_json(hit))
            else:
                for line in hit_lines(hit, wanted):
                    click.echo(line)
        # the index may turn out to be damaged only while it is read
        renewed = "" if status.renewed == told else status.renewed
        for text in filter(None, (renewed, found.note, _lacking(status), "" if found else "nothing was found")):
            show.note(text)


def _fill(desk: "Desk", *, anew: bool = False) -> str:
    """Brings the index up to date; says why where that takes a while. Gives why the index was begun anew, if it was."""
    status = desk.index_status()
    left = status.messages - status.indexed
    why = status.renewed or (f"the search index lacks {show.counted(left, 'message')}" if left > MANY else "")
    if why and not anew:
        show.note(why)
    with bar("indexing") as tell:
        now = desk.index(tell, anew=anew)
    if now.renewed and (anew or now.renewed != status.renewed):
        show.note(now.renewed)
    return now.renewed


def _lacking(status: "IndexStatus") -> str:
    """What cannot be found by meaning yet."""
    if status.embedder is None or status.why or not status.waiting:
        return ""
    passages = show.counted(status.waiting, "passage")
    return f"{passages} can be found by words only, until vectors are made: {MAKE_VECTORS}"


@click.command("index")
@click.option("--vectors", is_flag=True, help="Wait until all vectors are made.")
@click.option("--rebuild", is_flag=True, help="Throw the index away and make a new one.")
@options.as_json_option
def index(vectors: bool, rebuild: bool, as_json: bool) -> None:
    """Bring the search index up to date, and show what is in it.

    Example: recto conversations index --vectors
    """
    with options.open_desk() as desk:
        _fill(desk, anew=rebuild)
        why = desk.check_embedder()
        if vectors and not why:
            with bar("making vectors") as tell:
                desk.index(tell, vectors=True)
        status = desk.index_status()
        _tell_status(status, why or status.why, as_json)
    if vectors and (status.waiting or status.embedder is None):
        sys.exit(1)


def _tell_status(status: "IndexStatus", why: str, as_json: bool) -> None:
    known = {"messages": status.messages, "indexed": status.indexed}
    if as_json:
        made = {"vectors": status.vectors, "waiting": status.waiting}
        show.emit({**known, **made, "embedder": status.embedder, "why": why or None})
        return
    embedder = status.embedder or "none"
    facts = {name: f"{count:,}" for name, count in known.items()} | {
        "vectors": f"{status.vectors:,}; {show.counted(status.waiting, 'passage')} waiting",
        "embedder": f"{embedder}: {why}" if why else embedder,
    }
    for name, value in facts.items():
        show.say(f"{name:<12}{value}")
