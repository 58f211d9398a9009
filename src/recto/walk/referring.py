"""Referring: the documents of a turn: those that the message names, and those that tools read or found for the reply.

Over all rounds of the tool calls, each document once. What a tool gives out is known by its name and its JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recto.chat.blocks import References, ToolCall, ToolResult
from recto.chat.message import Message
from recto.chat.references import UNREADABLE, DocumentReference, once, told
from recto.errors import RectoError
from recto.sources.documents import Finding
from recto.sources.reading import FIND_DOCUMENTS, FIND_EXCERPTS, READ
from recto.vault.document import Document, name_of
from recto.vault.folder import is_note
from recto.vault.gists import Gists
from recto.vault.vault import Vault
from recto.walk.gisting import about

SNIPPET = 100
FOUND = "found by a search"


@dataclass(slots=True)
class Referring:
    vault: Vault | None
    gists: Gists | None = None
    is_on: bool = True
    documents: dict[str, Document] = field(default_factory=dict)
    """What was read of those that were referred to."""
    _found: list[DocumentReference] = field(default_factory=list)

    def asked(
        self, message: Message, findings: Sequence[Finding], reader: str | None, opened: Document | None = None
    ) -> Message:
        """The message with the documents that it names; as it is where it names none.

        The model is told of them where it can read them: a list of what it cannot look up only leads it astray.
        """
        if not self.is_on:
            return message
        roots = {each.path: str(each.root) for each in findings if each.path and each.root}
        named = [self._direct(each) for each in findings]
        if opened:
            named.append(DocumentReference(f"[[{name_of(opened.path)}]]", opened.path, "direct", self._line(opened)))
        references = once(named)
        if not references:
            return message
        blocks: dict[str, list[DocumentReference]] = {}
        for each in references:
            blocks.setdefault(roots.get(each.relative_path or "", self._root), []).append(each)
        text = told(references, reader) if reader else ""
        made = [References(tuple(some), vault=root) for root, some in blocks.items()]
        return replace(message, blocks=(*message.blocks, replace(made[0], told=text), *made[1:]))

    def took(self, call: ToolCall, result: ToolResult) -> None:
        """A tool has answered: what it read or found is remembered for the reply."""
        if self.is_on and self.vault and not result.is_error:
            self._found += _given(call.name, _read(result.text))

    def block(self) -> References | None:
        """The documents that the reply was made with, with a line about each."""
        found = once(self._found)
        if not found:
            return None
        # what was found by one call and read by another was read
        read = {each.relative_path for each in self._found if each.context_snippet is None}
        kept = (replace(each, context_snippet=None) if each.relative_path in read else each for each in found)
        return References(tuple(replace(each, summary=self._about(each)) for each in kept), vault=self._root)

    def _direct(self, finding: Finding) -> DocumentReference:
        document, unread = finding.document, UNREADABLE if finding.path else None
        return DocumentReference(finding.wikilink, finding.path, "direct", self._line(document) if document else unread)

    def _line(self, document: Document) -> str | None:
        self.documents[document.path] = document
        return about(document, self.gists) or None

    @property
    def _root(self) -> str:
        """What paths are relative to."""
        return str(self.vault.root) if self.vault else ""

    def _about(self, reference: DocumentReference) -> str | None:
        try:
            assert self.vault is not None
            path = reference.relative_path or ""
            return self._line(self.documents.get(path) or self.vault.read(path))
        except RectoError:
            # what the model has read it has read, whatever became of it since
            return UNREADABLE if reference.context_snippet else None


def _read(text: str) -> Mapping[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _given(tool: str, answer: Mapping[str, Any]) -> Iterator[DocumentReference]:
    if tool == READ:
        yield from _reference(answer, None)
    for name, key in ((FIND_DOCUMENTS, "documents"), (FIND_EXCERPTS, "excerpts")):
        for each in answer.get(key, ()) if tool == name else ():
            yield from _reference(each, " ".join(str(each.get("text") or FOUND).split())[:SNIPPET])


def _reference(given: Mapping[str, Any], snippet: str | None) -> Iterator[DocumentReference]:
    """Whoever searched saw a snippet, whoever read saw it all."""
    if path := given.get("path"):
        name = name_of(str(path)) if is_note(str(path)) else str(path).rpartition("/")[2]
        yield DocumentReference(f"[[{name}]]", str(path), "search", None, snippet)
