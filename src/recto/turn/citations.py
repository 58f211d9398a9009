"""Citations: the documents of a turn: those that the message names, and those that tools read or found for the reply.

Each document once over all rounds of tool calls. What a tool returned is read from its name and its JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recto.chat.blocks import References, ToolCall, ToolResult
from recto.chat.document_reference import UNREADABLE, DocumentReference, reference_list, unique_references
from recto.chat.message import Message
from recto.errors import RectoError
from recto.sources.documents import NamedDocument
from recto.sources.vault_tools import FIND_DOCUMENTS, FIND_EXCERPTS, READ_DOCUMENT
from recto.turn.document_summaries import document_line
from recto.vault.document import Document, note_name
from recto.vault.document_summary import DocumentSummaries
from recto.vault.folder import is_note
from recto.vault.vault import Vault

SNIPPET = 100
FOUND = "found by a search"


@dataclass(slots=True)
class Citations:
    vault: Vault | None
    summaries: DocumentSummaries | None = None
    is_on: bool = True
    documents: dict[str, Document] = field(default_factory=dict)
    """Documents that were referred to and read."""
    _found: list[DocumentReference] = field(default_factory=list)

    def with_references(
        self, message: Message, documents: Sequence[NamedDocument], reader: str | None, opened: Document | None = None
    ) -> Message:
        """The message with the documents that it names; as it is where it names none.

        The model is told of them where it can read them: a list of what it cannot look up only leads it astray.
        """
        if not self.is_on:
            return message
        roots = {each.path: str(each.root) for each in documents if each.path and each.root}
        named = [self._direct(each) for each in documents]
        if opened:
            named.append(DocumentReference(f"[[{note_name(opened.path)}]]", opened.path, "direct", self._line(opened)))
        references = unique_references(named)
        if not references:
            return message
        blocks: dict[str, list[DocumentReference]] = {}
        for each in references:
            blocks.setdefault(roots.get(each.relative_path or "", self._root), []).append(each)
        text = reference_list(references, reader) if reader else ""
        made = [References(tuple(some), vault=root) for root, some in blocks.items()]
        return replace(message, blocks=(*message.blocks, replace(made[0], told=text), *made[1:]))

    def add_result(self, call: ToolCall, result: ToolResult) -> None:
        """Remembers for the reply what a tool read or found."""
        if self.is_on and self.vault and not result.is_error:
            self._found += _given(call.name, _read(result.text))

    def block(self) -> References | None:
        """The documents that the reply was made with, with a line about each."""
        found = unique_references(self._found)
        if not found:
            return None
        # found by one call and read by another counts as read
        read = {each.relative_path for each in self._found if each.context_snippet is None}
        kept = (replace(each, context_snippet=None) if each.relative_path in read else each for each in found)
        return References(tuple(replace(each, summary=self._about(each)) for each in kept), vault=self._root)

    def _direct(self, finding: NamedDocument) -> DocumentReference:
        document, unread = finding.document, UNREADABLE if finding.path else None
        return DocumentReference(finding.wikilink, finding.path, "direct", self._line(document) if document else unread)

    def _line(self, document: Document) -> str | None:
        self.documents[document.path] = document
        return document_line(document, self.summaries) or None

    @property
    def _root(self) -> str:
        """The folder that paths are relative to."""
        return str(self.vault.root) if self.vault else ""

    def _about(self, reference: DocumentReference) -> str | None:
        try:
            assert self.vault is not None
            path = reference.relative_path or ""
            return self._line(self.documents.get(path) or self.vault.read(path))
        except RectoError:
            # the model has read it, whatever became of the file since
            return UNREADABLE if reference.context_snippet else None


def _read(text: str) -> Mapping[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _given(tool: str, answer: Mapping[str, Any]) -> Iterator[DocumentReference]:
    if tool == READ_DOCUMENT:
        yield from _reference(answer, None)
    for name, key in ((FIND_DOCUMENTS, "documents"), (FIND_EXCERPTS, "excerpts")):
        for each in answer.get(key, ()) if tool == name else ():
            yield from _reference(each, " ".join(str(each.get("text") or FOUND).split())[:SNIPPET])


def _reference(given: Mapping[str, Any], snippet: str | None) -> Iterator[DocumentReference]:
    """A search result shows a snippet; a document that was read has none."""
    if path := given.get("path"):
        name = note_name(str(path)) if is_note(str(path)) else str(path).rpartition("/")[2]
        yield DocumentReference(f"[[{name}]]", str(path), "search", None, snippet)
