"""Documents of a conversation with their quotes; a note at its heading, with the used passages marked."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from recto.api.talk import AsyncTalk
from recto.chat.blocks import DocumentReference, Quote, unique_references
from recto.errors import Invalid, NotFound
from recto.vault.document import Document, section_text
from recto.vault.folder import is_note
from recto.vault.links import Link, split_link
from recto.vault.vault import NO_VAULT, Vault
from recto.vault.vault_answers import questions_in_notes
from recto.web.markdown import rendered_note
from recto.web.templates import fill

# Messages whose documents are listed.
MOST_MESSAGES = 400
OTHER_QUESTIONS = (
    "What is a context window, in three sentences?",
    "Help me plan a weekend: ask me what you need to know.",
    "Write a friendly reminder about an unpaid invoice.",
)


class DocumentsView:
    name, title = "documents", "Documents"

    def __init__(self, talk: Callable[[], AsyncTalk]) -> None:
        self._talk = talk

    async def do_documents(self) -> None:
        """Opens the view."""

    async def html(self) -> str:
        talk = self._talk()
        references, quotes = await documents_of(talk)
        return fill("documents", references=references, quotes=quotes, has_vault=talk.vault is not None)


async def documents_of(talk: AsyncTalk) -> tuple[tuple[DocumentReference, ...], list[Quote]]:
    """The documents of the latest messages, each once, and their quotes."""
    said = await talk.messages(limit=MOST_MESSAGES) if talk.id else []
    references = unique_references(each for message in reversed(said) for each in message.references)
    quotes = list(dict.fromkeys(quote for message in reversed(said) for quote in message.quotes))
    return references, quotes


class NoteView:
    name, title = "note", "Note"

    def __init__(self, vault: Callable[[], Vault | None], talk: Callable[[], AsyncTalk] | None = None) -> None:
        """`talk` returns the conversation whose quotes are marked."""
        self._find_vault, self._talk = vault, talk
        self._note: tuple[str, str, int] | None = None
        """The path, and the heading or line to scroll to."""

    @property
    def is_open(self) -> bool:
        return self._note is not None

    def close(self) -> None:
        self._note = None

    async def do_note(self, link: str, line: int = 0) -> None:
        self._note = await asyncio.to_thread(_found, self._vault(), link, line)

    def _vault(self) -> Vault:
        if (vault := self._find_vault()) is None:
            raise Invalid(NO_VAULT)
        return vault

    async def html(self) -> str:
        if self._note is None:
            return fill("hint", text="A link to a note opens it here.")
        quotes = (await documents_of(self._talk()))[1] if self._talk else ()
        lines = sorted({quote.line for quote in quotes if quote.relative_path == self._note[0]})
        return await asyncio.to_thread(_note_html, self._vault(), *self._note, lines)


def _found(vault: Vault, link: str, line: int) -> tuple[str, str, int]:
    """The note of a link or a path. NotFound suggests near ones."""
    inside = link.strip().removeprefix("[[").removesuffix("]]")
    parsed = Link(f"[[{inside}]]", *split_link(inside))
    at = vault.find_existing(inside)
    path = at if at and is_note(at) else vault.resolve(parsed) if parsed.target else None
    if path is None:
        near = vault.closest(parsed.target)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise NotFound(f"there is no document {inside[:80]} in the vault{hint}", path=inside)
    if not is_note(path):
        raise Invalid(f"{path} is not a note: open it with another program", path=path)
    return path, parsed.heading or "", line


def _note_html(vault: Vault, path: str, heading: str, line: int, marked: list[int]) -> str:
    document = vault.read(path)
    start = document.parsed.body_start
    return fill(
        "note",
        path=path,
        title=document.title,
        titled=any(each.text == document.title for each in document.parsed.headings[:1]),
        tags=document.parsed.tags,
        body=rendered_note(document.text[start:], document.text.count("\n", 0, start) + 1),
        marked=" ".join(map(str, marked)),
        at=line or _heading_line(document, heading),
        backlinks=sorted({each.source for each in vault.backlinks(path)}),
        place=Path(vault.root, path),
    )


def _heading_line(document: Document, heading: str) -> int:
    wanted = heading.rpartition("#")[2].strip().casefold()
    if not wanted or section_text(document, heading) is None:
        return 0
    return next((each.line for each in document.parsed.headings if each.text.strip().casefold() == wanted), 0)


def questions_to_try(vault: Vault | None) -> list[str]:
    """Three questions for an empty conversation: from the notes, about the notes that changed last, or general ones."""
    if vault is None:
        return list(OTHER_QUESTIONS)
    notes = sorted(vault.folder.walk(), key=lambda entry: -entry.mtime_ns)
    names = [vault.shortest_link(each.path) for each in notes if is_note(each.path)][:2]
    forms = ("What is in {}?", "What do {} and its links say?")
    asked = [form.format(name) for form, name in zip(forms, names, strict=False)]
    return [*questions_in_notes(vault, 3), *asked, *OTHER_QUESTIONS][:3]
