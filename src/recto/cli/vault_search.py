"""`recto vault search` and `suggest`: documents and passages for a question, or for a conversation."""

from typing import TYPE_CHECKING, Any

import click

from recto.cli import options, show
from recto.cli.terminal import bar, to_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recto.api.vault_reader import VaultReader
    from recto.vault.vault import Vault
    from recto.vault.vault_search import Excerpt, FoundDocument, VaultIndexStatus

DOCUMENTS, EXCERPTS = 3, 8
# Fewer notes are indexed before anybody notices.
MANY = 100
MAKE_VECTORS = "`recto vault index --vectors` makes them"
MAKE_VECTORS_ALL = "each search prepares some more of them, and `recto vault index --vectors` all"
# How long the first search of a small vault waits for its vectors.
FIRST_WAIT_S = 6.0


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--documents", "-n", type=click.IntRange(0), default=DOCUMENTS, show_default=True, help="At most N.")
@click.option("--excerpts", type=click.IntRange(0), default=EXCERPTS, show_default=True, help="At most N.")
@options.vault_options
def search(words: tuple[str, ...], documents: int, excerpts: int, flags: dict[str, str], as_json: bool) -> None:
    """Find documents and passages by words and meaning, the best first.

    Example: recto vault search "which engine did we choose"
    """
    wanted = " ".join(words)
    with options.open_vault(flags) as reader:
        _fill(reader)
        hits, note = reader.search.find_documents(wanted, limit=documents)
        parts, _ = reader.search.find_excerpts(wanted, limit=excerpts)
        if as_json:
            show.emit(_to_json(hits, parts, note))
        else:
            _tell_documents(reader.vault, hits)
            _tell_excerpts(reader.vault, parts, wanted, is_apart=bool(hits))
        lacking = _lacking(reader.search.status)
        for text in filter(None, (note, lacking, "" if hits or parts else "nothing was found")):
            show.note(text)


def _fill(reader: "VaultReader") -> None:
    """Brings the index up to date, says so where that takes a while, and waits a moment for vectors."""
    options.read_notes(reader)
    left = reader.search.status.left
    lacking = f"the search index lacks {show.counted(left, 'note')}" if left > MANY else ""
    why = reader.search.rebuild_reason or lacking
    if why:
        show.note(why)
    with bar("indexing") as tell:
        reader.search.fill(tell)
    with bar("reading the notes for their meaning") as tell:
        reader.search.settle(max(FIRST_WAIT_S, reader.settings.search.timeout_s), tell)


def _lacking(status: "VaultIndexStatus") -> str:
    if status.embedder is None or status.why or not status.waiting:
        return ""
    if status.waiting < status.passages:
        return f"{status.waiting:,} of {status.passages:,} passages are found by words only for now: {MAKE_VECTORS_ALL}"
    return f"only words were searched, not meaning: {MAKE_VECTORS_ALL}"


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
        show.say_styled(f"{_named(vault, hit.path, hit.title)}  {_why(hit.score, hit.because)}")


def _tell_excerpts(vault: "Vault", parts: "Sequence[Excerpt]", wanted: str, *, is_apart: bool) -> None:
    from recto.cli.drawing.references import bold, snippet_around  # text folding: the other commands do without

    if parts and is_apart:
        show.say("")
    for part in parts:
        where = to_file(f"{part.path}:{part.line}", vault.root / part.path)
        heading = f"  {show.shortened(_heading(part), 60)}" if _heading(part) else ""
        show.say_styled(f"{where}{click.style(heading, bold=True)}  {_why(part.score, part.because)}")
        show.say_styled(f"  {bold(*snippet_around(part.text, wanted))}")


def _named(vault: "Vault", path: str, title: str) -> str:
    return f"{to_file(path, vault.root / path)}  {click.style(show.shortened(title, 60), bold=True)}"


def _heading(part: "Excerpt") -> str:
    return part.heading or part.title


def _why(score: float, because: str) -> str:
    return click.style(show.visible(f"{score:.2f} {because}"), dim=True)


@click.command("suggest")
@options.conversation_argument
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, help="Show at most N.")
@options.vault_options
def suggest(id: str | None, limit: int, flags: dict[str, str], as_json: bool) -> None:
    """Suggest documents for a conversation (by default the latest) that were not used in it yet.

    Example: recto vault suggest
    """
    with options.open_desk(flags) as desk:
        talk = options.find_talk(desk, id)
        with bar("indexing") as tell:
            found = talk.suggest_documents(limit, tell)
        assert talk.vault is not None
        for hit in found.hits if as_json else ():
            show.emit({"conversation": talk.id, **document_to_json(hit)})
        title = f" ({show.shortened(talk.title, 50)})" if talk.title else ""
        if found.hits and not as_json:
            show.say(f"For {talk.name}{title}", dim=True)
            _tell_documents(talk.vault, found.hits)
        nothing = "" if found.hits else f"no other document of the vault bears on {talk.name}{title}"
        for text in filter(None, (found.warning, nothing)):
            show.note(text)
