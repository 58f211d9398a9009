"""DocumentReference: a document that a message names or that a reply was made with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

ReferenceType = Literal["direct", "search"]
UNREADABLE = "this document could not be read"
"""Shown in place of a summary."""


@dataclass(frozen=True, slots=True)
class DocumentReference:
    """A reference is `direct` when a person named the document, `search` when a tool read or found it."""

    wikilink: str
    relative_path: str | None
    """None when the link is broken."""
    reference_type: ReferenceType = "direct"
    summary: str | None = None
    """One line about the document as it was at the time of the reference."""
    context_snippet: str | None = None


_NO_BRACKETS = str.maketrans("[]", "()")


def unique_references(references: Iterable[DocumentReference]) -> tuple[DocumentReference, ...]:
    """Keeps one reference per document: the first, or a direct one before one by search. Broken links count by name."""
    found: dict[tuple[str, str], DocumentReference] = {}
    for reference in references:
        key = ("path", reference.relative_path) if reference.relative_path else ("broken", reference.wikilink)
        known = found.get(key)
        if known is None or (known.reference_type == "search" and reference.reference_type == "direct"):
            found[key] = reference
    return tuple(found.values())


def reference_list(references: Sequence[DocumentReference], reader: str) -> str:
    """The list that the model reads after the user's text; `reader` is the name of the tool that reads a document."""
    if not references:
        return ""
    lines = ["[Documents this message refers to:", *map(_line, references)]
    # a document included by its path may be outside the folder that the tool reads
    if any(reference.relative_path and not reference.wikilink.startswith("@") for reference in references):
        lines.append(f"{reader} reads them.")
    return "\n".join(lines) + "]"


def _line(reference: DocumentReference) -> str:
    if reference.relative_path is None:
        return f"- {reference.wikilink}: not found"
    # a summary with a closing bracket would end the list, and its rest would read as the user's text
    about = f": {reference.summary.translate(_NO_BRACKETS)}" if reference.summary else ""
    return f"- {reference.wikilink} ({reference.relative_path}){about}"
