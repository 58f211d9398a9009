"""References: the documents that a message speaks of or that a reply was made with, one for each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

ReferenceType = Literal["direct", "search"]
UNREADABLE = "this document could not be read"
"""What stands in place of a summary."""


@dataclass(frozen=True, slots=True)
class DocumentReference:
    """`direct` when somebody named it, `search` when a tool read or found it."""

    wikilink: str
    relative_path: str | None
    """None when the link is broken."""
    reference_type: ReferenceType = "direct"
    summary: str | None = None
    """One line about the document, as it was when it was referred to."""
    context_snippet: str | None = None


_NO_BRACKETS = str.maketrans("[]", "()")


def once(references: Iterable[DocumentReference]) -> tuple[DocumentReference, ...]:
    """One for each document: the first, but a direct one takes the place of one by search. Broken links stay apart."""
    found: dict[tuple[str, str], DocumentReference] = {}
    for each in references:
        key = ("path", each.relative_path) if each.relative_path else ("broken", each.wikilink)
        known = found.get(key)
        if known is None or (known.reference_type == "search" and each.reference_type == "direct"):
            found[key] = each
    return tuple(found.values())


def told(references: Sequence[DocumentReference], reader: str) -> str:
    """The list as the model reads it behind the user's words; `reader` is the tool that reads a document."""
    if not references:
        return ""
    lines = ["[Documents this message refers to:", *map(_line, references)]
    # what was brought in by its path may lie outside of what the tool reads
    if any(each.relative_path and not each.wikilink.startswith("@") for each in references):
        lines.append(f"{reader} reads them.")
    return "\n".join(lines) + "]"


def _line(each: DocumentReference) -> str:
    if each.relative_path is None:
        return f"- {each.wikilink}: not found"
    # a note that ends our list in its first line must not go on as if the user spoke
    about = f": {each.summary.translate(_NO_BRACKETS)}" if each.summary else ""
    return f"- {each.wikilink} ({each.relative_path}){about}"
