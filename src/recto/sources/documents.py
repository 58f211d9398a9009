"""Documents that a message names: found by its [[links]], fenced so that a model can tell them from the chat."""

from dataclasses import dataclass

from recto.errors import RectoError
from recto.vault.links import find_links
from recto.vault.vault import Document, Vault


@dataclass(frozen=True, slots=True)
class Finding:
    """A link of the message: the document it leads to, or why there is none."""

    wikilink: str
    document: Document | None
    problem: str | None = None


def find_documents(text: str, vault: Vault | None) -> list[Finding]:
    """Each linked document once, in order of appearance; what is broken or unreadable says so."""
    if vault is None:
        return []
    findings: dict[str, Finding] = {}
    for link in find_links(text):
        path = vault.resolve(link) if link.target else None
        finding = _read(vault, link.wikilink, path)
        findings.setdefault(path or link.wikilink, finding)
    return list(findings.values())


def _read(vault: Vault, wikilink: str, path: str | None) -> Finding:
    if path is None:
        return Finding(wikilink, None, f"{wikilink} leads to no document of the vault")
    try:
        return Finding(wikilink, vault.read(path))
    except RectoError as why:
        return Finding(wikilink, None, f"{wikilink}: {why.message}")


def fenced(document: Document, text: str) -> str:
    return f"BEGIN DOCUMENT {document.path}\n{text.strip()}\nEND DOCUMENT {document.path}"
