"""`recto vault search`, `suggest`: documents and passages of a vault that bear on a question, or on a conversation."""

import time
from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.hyperlink import to_file
from recto.cli.progress import bar
from recto.cli.vault_place import NO_VAULT, Place, open_place, placed, read_notes
from recto.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recto.talk import Talk
    from recto.vault.library import Excerpt, FoundDocument, Library, Status
    from recto.vault.vault import Vault

DOCUMENTS, EXCERPTS = 3, 8
# Fewer notes are put into the index before anybody notices; for so few vectors one can wait.
MANY, FEW = 100, 64
MAKE_VECTORS = "`recto vault index --vectors` makes them"
# What a conversation is about now: its user's last messages, no longer than a long question.
LAST_MESSAGES, LONGEST_QUESTION = 3, 2000


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--documents", "-n", type=click.IntRange(0), default=DOCUMENTS, show_default=True, help="At most N.")
@click.option("--excerpts", type=click.IntRange(0), default=EXCERPTS, show_default=True, help="At most N.")
@placed
def search(words: tuple[str, ...], documents: int, excerpts: int, folder: str | None, as_json: bool) -> None:
    """Find documents and passages by words and meaning, the best first.

    Example: recto vault search "which engine did we choose"
    """
    wanted = " ".join(words)
    with open_place(folder) as place, place.library() as library:
        fill(place, library)
        hits, note = library.find_documents(wanted, most=documents)
        parts, _ = library.find_excerpts(wanted, most=excerpts)
        if as_json:
            show.emit(_to_json(hits, parts, note))
        else:
            _tell_documents(place.vault, hits)
            _tell_excerpts(place.vault, parts, wanted, is_apart=bool(hits))
        for text in filter(None, (note, _lacking(library.status), "" if hits or parts else "nothing was found")):
            show.note(text)


def fill(place: Place, library: "Library") -> None:
    """Puts what is not in the index yet into it, says so where that takes a while, and waits a moment for vectors."""
    read_notes(place)
    status = library.status
    left = status.documents - status.indexed
    if why := library.was_renewed or (f"the search index lacks {show.counted(left, 'note')}" if left > MANY else ""):
        show.note(why)
    with bar("indexing") as tell:
        library.fill(tell)
    until = time.monotonic() + place.settings.search.timeout_s
    library.stir()
    while 0 < (status := library.status).waiting <= FEW and not status.why and time.monotonic() < until:
        time.sleep(0.02)


def _lacking(status: "Status") -> str:
    if status.embedder is None or status.why or not status.waiting:
        return ""
    return (
        f"{show.counted(status.waiting, 'passage')} can be found by words only, until vectors are made: {MAKE_VECTORS}"
    )


def _to_json(hits: "Sequence[FoundDocument]", parts: "Sequence[Excerpt]", note: str) -> dict[str, Any]:
    return {
        "documents": [document_to_json(hit) for hit in hits],
        "excerpts": [excerpt_to_json(part) for part in parts],
        "note": note or None,
    }


def document_to_json(hit: "FoundDocument") -> dict[str, Any]:
    return {"path": hit.path, "title": hit.title, "score": hit.score, "because": hit.because}


def excerpt_to_json(part: "Excerpt") -> dict[str, Any]:
    names = ("path", "title", "heading", "line", "start", "end", "text", "score", "because")
    return {name: getattr(part, name) for name in names}


def _tell_documents(vault: "Vault", hits: "Sequence[FoundDocument]") -> None:
    for hit in hits:
        click.echo(f"{_named(vault, hit.path, hit.title)}  {_why(hit.score, hit.because)}")


def _tell_excerpts(vault: "Vault", parts: "Sequence[Excerpt]", wanted: str, *, is_apart: bool) -> None:
    from recto.cli.hits import around  # what folds words: the other commands do without
    from recto.cli.hits import bold as bold

    if parts and is_apart:
        click.echo()
    for part in parts:
        where = to_file(f"{part.path}:{part.line}", vault.root / part.path)
        heading = f"  {show.shortened(_heading(part), 60)}" if _heading(part) else ""
        click.echo(f"{where}{click.style(heading, bold=True)}  {_why(part.score, part.because)}")
        click.echo(f"  {bold(*around(part.text, wanted))}")


def _named(vault: "Vault", path: str, title: str) -> str:
    return f"{to_file(path, vault.root / path)}  {click.style(show.shortened(title, 60), bold=True)}"


def _heading(part: "Excerpt") -> str:
    return part.heading or part.title


def _why(score: float, because: str) -> str:
    return click.style(show.visible(f"{score:.2f} {because}"), dim=True)


@click.command("suggest")
@options.conversation_argument
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, help="Show at most N.")
@placed
def suggest(id: str | None, limit: int, folder: str | None, as_json: bool) -> None:
    """Name documents that bear on a conversation (by default the latest) and were not spoken of in it yet.

    Example: recto vault suggest
    """
    with options.open_desk({"vault": folder} if folder else {}) as desk:
        talk = options.find_talk(desk, id)
        if talk.vault is None:
            raise Invalid(NO_VAULT)
        root, question = talk.vault.root, _question(talk)
        known = {use.path for use in desk.store.references.uses(str(root), talk.id)}
    with open_place(str(root)) as place, place.library() as library:
        fill(place, library)
        found = library.find_documents(question, most=limit + len(known))
        hits = [hit for hit in found.hits if hit.path not in known][:limit]
        for hit in hits if as_json else ():
            show.emit(document_to_json(hit))
        if not as_json:
            _tell_documents(place.vault, hits)
        for text in filter(None, (found.note, "" if hits else "nothing more of the vault bears on this conversation")):
            show.note(text)


def _question(talk: "Talk") -> str:
    """The last first: of a question that is too long the end is what is left out."""
    said: list[str] = []
    for message in talk.path():
        if message.role == "user" and message.text:
            said.append(message.text)
        if len(said) == LAST_MESSAGES:
            break
    if not said:
        raise Invalid(f"conversation {talk.id} has no message yet to find documents for")
    return "\n".join(said)[:LONGEST_QUESTION]
