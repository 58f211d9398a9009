"""Documents that a message names, by [[link]] or @path: found, read, and fenced so that a model can tell them from
the chat."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from recto.errors import RectoError
from recto.vault.decoding import text_of
from recto.vault.document import Document, block_text, section_text
from recto.vault.imports import Import, files_of, find_imports, resolve_import
from recto.vault.links import Link, find_links
from recto.vault.vault import Vault

UNREADABLE = "[This document could not be read.]"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a message names: the document, the part of it that is meant, or why there is none."""

    wikilink: str
    document: Document | None
    problem: str | None = None
    path: str | None = None
    """Where it should be; None when nothing of that name is there."""
    part: str | None = None
    """The section or block that is meant; None for all of it."""
    root: Path | None = None
    """What the path is relative to."""

    @property
    def text(self) -> str:
        return self.part if self.part is not None else self.document.text if self.document else UNREADABLE


@dataclass(frozen=True, slots=True)
class Roots:
    """Where @paths lead: into the project and the vault, and anywhere else only where that is allowed."""

    project: Path | None = None
    vault: Path | None = None
    outside: bool = False

    @property
    def folders(self) -> list[Path]:
        return [folder for folder in (self.project, self.vault) if folder]

    def base(self, place: Path) -> Path:
        """What a file's path is told relative to: the vault where it is in it, so that it has one name however it was
        named; for a file from outside nothing is."""
        real = [folder.resolve() for folder in (self.vault, self.project) if folder]
        return next((folder for folder in real if place.is_relative_to(folder)), Path(place.anchor))


def find_documents(text: str, vault: Vault | None, roots: Roots = Roots()) -> list[Finding]:  # noqa: B008  frozen
    """Each document, or part of one, once, in order of appearance; what is broken or unreadable says so."""
    findings: dict[tuple[str, str | None], Finding] = {}
    for each in _named(text, vault, roots):
        found = _linked(vault, each) if isinstance(each, Link) and vault else _imported(each, roots)
        key = (found.path or found.wikilink, found.part)
        known = findings.setdefault(key, found)
        if known is not found and found.problem and known.problem is None:
            findings[key] = replace(known, problem=found.problem)
    whole = {path for path, part in findings if part is None}
    return [each for (path, part), each in findings.items() if part is None or path not in whole]


def _named(text: str, vault: Vault | None, roots: Roots) -> list[Link | Import]:
    named: list[Link | Import] = [*find_links(text)] if vault else []
    if roots.folders or roots.outside:
        named += find_imports(text, files_of(roots.folders, roots.outside))
    return sorted(named, key=lambda each: each.start)


def _linked(vault: Vault, link: Link) -> Finding:
    link = vault.settle(link)
    path = vault.resolve(link) if link.target else None
    if path is None:
        return Finding(link.wikilink, None, f"{link.wikilink} leads to no document of the vault{_near(vault, link)}")
    try:
        document = vault.read(path)
    except RectoError as why:
        return Finding(link.wikilink, None, f"{link.wikilink}: {why.message}", path, root=vault.root)
    return _meant(link.wikilink, document, link.heading, link.block, vault.root)


def _near(vault: Vault, link: Link) -> str:
    near = vault.closest(link.target, 1) if link.target else []
    return f"; did you mean {near[0]}?" if near else ""


def _meant(named: str, document: Document, heading: str | None, block: str | None, root: Path) -> Finding:
    part = block_text(document, block) if block else section_text(document, heading) if heading else None
    problem = None
    if part is None and (heading or block):
        problem = f"{document.path} has no {'block' if block else 'heading'} {block or heading}: all of it is meant"
    return Finding(named, document, problem, document.path, part, root)


def _imported(found: Link | Import, roots: Roots) -> Finding:
    assert isinstance(found, Import)
    try:
        place = resolve_import(found, roots.folders, roots.outside)
        base = roots.base(place)
        shown = place if base == Path(place.anchor) else place.relative_to(base)
        document = Document(shown.as_posix(), text_of(place.read_bytes(), found.raw))
    except RectoError as why:
        return Finding(found.raw, None, why.message)
    except OSError as why:
        return Finding(found.raw, None, f"{found.raw}: {why.strerror}")
    return _meant(found.raw, document, found.section, None, base)


def fenced(path: str, text: str) -> str:
    """A text that ends the fence itself gets one that it cannot know."""
    seal = f" {hashlib.sha256(text.encode()).hexdigest()[:8]}" if "END DOCUMENT" in text else ""
    return f"BEGIN DOCUMENT {path}{seal}\n{text.strip()}\nEND DOCUMENT {path}{seal}"
