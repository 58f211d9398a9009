"""Citations: the documents of a turn: those the message names, and those that tools read or found for the reply.

Each document is listed once. Documents are recognised from a tool's name and the JSON it returns.

DocumentSummaryWriter: after a reply, a model writes one line about each long document, in the background. Lines are
kept by the document's hash. The first failure ends the work for the turn."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from recto.base.concurrency import TaskSet
from recto.chat.blocks import (
    REFUSED,
    UNREADABLE,
    DocumentReference,
    Quote,
    References,
    ToolCall,
    ToolResult,
    reference_list,
    unique_references,
)
from recto.chat.message import Message
from recto.errors import RectoError
from recto.settings.settings import ReferenceSettings
from recto.sources.documents import NamedDocument
from recto.sources.vault_tools import FIND_DOCUMENTS, FIND_EXCERPTS, READ_DOCUMENT
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.preamble import build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideCall, call_model, count_texts
from recto.vault.answers import AnswerPassage
from recto.vault.document import Document
from recto.vault.document_summary import DocumentSummaries, document_summary
from recto.vault.vault import Vault
from recto.window.request import Parameters

ORDER = (
    "Say in one sentence of at most 20 words what this document is about. Answer with that sentence alone.\n\n{text}"
)
MOST_TOKENS, LOOKED_AT = 50, 4_000
# Per turn; other documents get their line the next time they are cited.
MOST, TIMEOUT_S = 3, 60.0
# So that `recto ask`, which ends with its reply, gets its lines too.
LAST_WAIT_S = 10.0


def document_line(document: Document, gists: DocumentSummaries | None) -> str:
    """One line about a document: its own first sentence, or a model's summary of exactly this text."""
    own = document_summary(document)
    return own.text if own.is_complete or gists is None else gists.get(_sha(document)) or own.text


class DocumentSummaryWriter:
    def __init__(self, store: Store, settings: ReferenceSettings) -> None:
        self._store, self._is_on = store, settings.gists
        self._tasks = TaskSet()

    def begin(self, session: ChatSession, context: TurnContext, citations: "Citations") -> None:
        """Starts writing lines, except for documents that describe themselves, or with a weak model."""
        gists = citations.summaries
        if not self._is_on or gists is None or not context.model.summarizes:
            return
        unclear = (each for each in citations.documents.values() if not document_summary(each).is_complete)
        if wanted := [each for each in unclear if gists.get(_sha(each)) is None]:
            self._tasks.begin(self._write(session, context, wanted[:MOST], gists))

    async def _write(
        self, session: ChatSession, context: TurnContext, documents: Sequence[Document], gists: DocumentSummaries
    ) -> None:
        with suppress(RectoError):
            for document in documents:
                text = document.text[document.head[1] :][:LOOKED_AT]
                preamble = await build_preamble(context.token_cache, Parameters())
                order = (await count_texts(context, [ORDER.format(text=text)]))[0]
                question = SideCall(context, preamble, (), order, f"a line about {document.path}", MOST_TOKENS)
                if question.fits:
                    answer = await call_model(question, self._store, session, None, TIMEOUT_S, purpose="gist")
                    await asyncio.to_thread(gists.put, _sha(document), answer.text)

    async def close(self) -> None:
        """Drops lines that are not written within a short while."""
        await self._tasks.close(LAST_WAIT_S)


def _sha(document: Document) -> bytes:
    return hashlib.sha256(document.text.encode()).digest()


SNIPPET = 100
FOUND = "found by a search"
SEARCHES = {FIND_DOCUMENTS: "documents", FIND_EXCERPTS: "excerpts"}


class Citations(Struct):
    vault: Vault | None
    summaries: DocumentSummaries | None = None
    is_on: bool = True
    documents: dict[str, Document] = field(default_factory=dict)
    quotes: tuple[Quote, ...] = ()
    are_quotes_told: bool = False
    """True if the user saw the quotes before the model was ready."""
    are_notes_asked: bool = False
    instead: str = ""
    """Replaces the reply of a model too small to answer from notes."""
    _found: list[DocumentReference] = field(default_factory=list)

    def add_passages(self, passages: Sequence[AnswerPassage]) -> None:
        if self.is_on:
            self._found += [_found(each.document.path, each.text) for each in passages]

    def with_references(
        self, message: Message, documents: Sequence[NamedDocument], reader: str | None, opened: Document | None = None
    ) -> Message:
        """The message with the documents it names, if any.

        The model only sees the list if it can read documents: otherwise it is led astray."""
        if not self.is_on:
            return message
        roots = {each.path: str(each.root) for each in documents if each.path and each.root}
        named = [self._direct(each) for each in documents]
        if opened:
            named.append(DocumentReference(self._link(opened.path), opened.path, "direct", self._line(opened)))
        references = unique_references(named)
        if not references:
            return message
        blocks: dict[str, list[DocumentReference]] = {}
        for each in references:
            blocks.setdefault(roots.get(each.relative_path or "", self.root), []).append(each)
        text = reference_list(references, reader) if reader else ""
        made = [References(tuple(some), vault=root) for root, some in blocks.items()]
        return replace(message, blocks=(*message.blocks, replace(made[0], told=text), *made[1:]))

    def add_result(self, call: ToolCall, result: ToolResult) -> None:
        """Keeps what a tool read or found, to cite it. A search result has a snippet; a document that was read has
        none."""
        if not self.is_on or not self.vault or result.is_error:
            return
        try:
            answer = json.loads(result.text)
        except ValueError:
            return
        if not isinstance(answer, dict):
            return
        if call.name == READ_DOCUMENT and (path := answer.get("path")):
            self._found.append(_found(path, None))
        for each in answer.get(SEARCHES[call.name], ()) if call.name in SEARCHES else ():
            if path := each.get("path"):
                self._found.append(_found(path, each.get("text") or FOUND))

    @property
    def has_found(self) -> bool:
        return bool(self._found or self.quotes)

    def block(self) -> References | None:
        """The documents used for the reply, with a line about each."""
        found = unique_references(self._found)
        if not found and not (self.quotes and self.is_on):
            return None
        # found by one call and read by another counts as read
        read, told = {each.relative_path for each in self._found if each.context_snippet is None}, []
        for each in found:
            path = each.relative_path or ""
            each = replace(each, context_snippet=None) if path in read else each
            told.append(replace(each, wikilink=self._link(path), summary=self._about(path, each)))
        return References(tuple(told), vault=self.root, quotes=self.quotes)

    def _direct(self, named: NamedDocument) -> DocumentReference:
        document, refused = named.document, f"{REFUSED}{named.refused}" if named.refused else None
        told = self._line(document) if document else UNREADABLE if named.path else refused
        return DocumentReference(named.wikilink, named.path, "direct", told)

    def _line(self, document: Document) -> str | None:
        self.documents[document.path] = document
        return document_line(document, self.summaries) or None

    def _link(self, path: str) -> str:
        """A link by name if that is unambiguous: two notes may share one."""
        assert self.vault is not None
        return self.vault.shortest_link(path)

    @property
    def root(self) -> str:
        """The folder that paths are relative to."""
        return str(self.vault.root) if self.vault else ""

    def _about(self, path: str, reference: DocumentReference) -> str | None:
        assert self.vault is not None
        try:
            return self._line(self.documents.get(path) or self.vault.read(path))
        except RectoError:
            # the model has read it, even if the file has changed since
            return UNREADABLE if reference.context_snippet else None


def _found(path: object, text: object) -> DocumentReference:
    snippet = None if text is None else " ".join(str(text).split())[:SNIPPET]
    return DocumentReference(f"[[{path}]]", str(path), "search", None, snippet)
