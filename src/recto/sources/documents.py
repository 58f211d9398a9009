"""Mentions in a message: documents by [[link]] or @path, which are found, read and fenced, so that a model can
distinguish them from the chat; rules and references by `@rule:name` or `@ref:name`. The message's text stays as typed.

Attachments: files that a user sends with a message, as blocks: images, PDFs, and any text.
"""

import base64
import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from recto.base.text import counted
from recto.chat.blocks import File, Image
from recto.errors import Invalid, NotFound, RectoError
from recto.sources.source import Reference, Rule, SourceKind
from recto.vault.decoding import decode_text
from recto.vault.document import Document, block_text, section_text
from recto.vault.folder import Folder
from recto.vault.imports import Import, exists_under, find_imports, resolve_import
from recto.vault.links import Link, find_links, mask_code
from recto.vault.vault import Vault

UNREADABLE_TEXT = "[This document could not be read.]"
WHOLE_INSTEAD = ": the whole document is used"


class NamedDocument(Struct, frozen=True):
    wikilink: str
    document: Document | None
    problem: str | None = None
    path: str | None = None
    """None if no document has that name."""
    part: str | None = None
    """The text of the named section or block; None for the whole document."""
    root: Path | None = None
    lacking: str = ""
    """Set if the document has no such section or block."""
    refused: str = ""
    """Why the file, which may exist, was not read."""

    @property
    def text(self) -> str:
        return self.part if self.part is not None else self.document.text if self.document else UNREADABLE_TEXT


class ImportRoots(Struct, frozen=True):
    """The folders that @paths may lead into. `outside` allows any other folder."""

    project: Path | None = None
    vault: Path | None = None
    outside: bool = False

    @property
    def folders(self) -> list[Path]:
        return [folder for folder in (self.project, self.vault) if folder]

    def base(self, place: Path) -> Path:
        """The folder for showing a file's path: the vault before the project, so that a file has one name however it
        was mentioned. A path outside both is absolute."""
        real = [folder.resolve() for folder in (self.vault, self.project) if folder]
        return next((folder for folder in real if place.is_relative_to(folder)), Path(place.anchor))


def may_name_documents(text: str) -> bool:
    """A quick check: False if it cannot contain a link or path, like most messages."""
    return "@" in text or "[" in text


def resolve_documents(text: str, vault: Vault | None, roots: ImportRoots = ImportRoots()) -> list[NamedDocument]:  # noqa: B008  frozen
    """The named documents and parts, each once, in order of appearance. Unreadable ones have a `problem`."""
    names: list[Link | Import] = [*find_links(text)] if vault else []
    if roots.folders or roots.outside:
        names += find_imports(text, exists_under(roots.folders, roots.outside))
    found: dict[tuple[str, str | None], NamedDocument] = {}
    for name in sorted(names, key=lambda name: name.start):
        named = _resolve_link(vault, name) if isinstance(name, Link) and vault else _resolve_import(name, roots)
        key = (named.path or named.wikilink, named.part)
        if named.lacking:  # it means the whole document only if no part of it was named before
            key = next((known for known in found if known[0] == named.path), key)
            named = replace(named, problem=f"{named.lacking}{'' if key[1] else WHOLE_INSTEAD}")
        first = found.setdefault(key, named)
        if first is not named and named.problem and first.problem is None:
            found[key] = replace(first, problem=named.problem)
    whole = {path for path, part in found if part is None}
    return [named for (path, part), named in found.items() if part is None or path not in whole]


def _resolve_link(vault: Vault, link: Link) -> NamedDocument:
    path = vault.resolve(link) if link.target else None
    if path is None:
        if refused := vault.folder.refusal(link.target):
            return NamedDocument(link.wikilink, None, f"{link.wikilink}: {refused}", refused=refused)
        near = vault.closest(link.target, 1) if link.target else []
        hint = f"; did you mean {near[0]}?" if near else ""
        return NamedDocument(link.wikilink, None, f"{link.wikilink} leads to no document of the vault{hint}")
    try:
        document = vault.read(path)
    except RectoError as why:
        return NamedDocument(link.wikilink, None, f"{link.wikilink}: {why.message}", path, root=vault.root)
    return _select_part(link.wikilink, document, link.heading, link.block, vault.root)


def _select_part(name: str, document: Document, heading: str | None, block: str | None, root: Path) -> NamedDocument:
    part = block_text(document, block) if block else section_text(document, heading) if heading else None
    is_lacking = part is None and bool(heading or block)
    lacking = f"{document.path} has no {'block' if block else 'heading'} {block or heading}" if is_lacking else ""
    return NamedDocument(name, document, None, document.path, part, root, lacking)


def _resolve_import(name: Link | Import, roots: ImportRoots) -> NamedDocument:
    assert isinstance(name, Import)
    try:
        place = resolve_import(name, roots.folders, roots.outside)
        base = roots.base(place)
        # only the project's hidden files are read
        vault = roots.vault.resolve() if roots.vault else None
        inside = place.relative_to(vault).as_posix() if vault and place.is_relative_to(vault) else ""
        if vault and inside and (refused := Folder(vault).refusal(inside)):
            return NamedDocument(name.raw, None, f"{name.raw}: {refused}", refused=refused)
        shown = place if base == Path(place.anchor) else place.relative_to(base)
        document = Document(shown.as_posix(), decode_text(place.read_bytes(), name.raw))
    except NotFound as why:
        return NamedDocument(name.raw, None, why.message)
    except Invalid as why:
        it = f"it {why.message.removeprefix(f'{name.raw} ')}" if why.message.startswith(f"{name.raw} ") else why.message
        return NamedDocument(name.raw, None, why.message, refused=it)
    except OSError as why:
        return NamedDocument(name.raw, None, f"{name.raw}: {why.strerror}", refused=f"{why.strerror}")
    return _select_lines(name, document, base) or _select_part(name.raw, document, name.section, None, base)


def _select_lines(name: Import, document: Document, root: Path) -> NamedDocument | None:
    if name.lines is None:
        return None
    first, last = name.lines
    lines = document.text.splitlines(keepends=True)
    part = "".join(lines[max(0, first - 1) : last]) or None
    lacking = "" if part else f"{document.path} has {counted(len(lines), 'line')}, and none from {first:,} to {last:,}"
    return NamedDocument(name.raw, document, None, document.path, part, root, lacking)


def fenced_document(path: str, text: str) -> str:
    """Fence a document. If its text contains the end of the fence, the fence gets a hash, which it cannot contain."""
    mark = f" {hashlib.sha256(text.encode()).hexdigest()[:8]}" if "END DOCUMENT" in text else ""
    return f"BEGIN DOCUMENT {path}{mark}\n{text.strip()}\nEND DOCUMENT {path}{mark}"


# -- attachments

# Providers refuse larger files.
LARGEST = 20_000_000
PDF = "application/pdf"
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def read_attachment(path: str | Path) -> Image | File:
    """Read the file as a block, typed by its first bytes. Raises NotFound or Invalid with the reason."""
    try:
        place = Path(path).expanduser()
        if not stat.S_ISREG(place.stat().st_mode):  # a pipe would block, and a device has no end
            raise Invalid(f"{place} is not a file and cannot be attached", path=str(place))
        with place.open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Invalid(f"{place} has more than {LARGEST // 1_000_000} MB and cannot be attached", path=str(place))
        return attachment(place.name, data)
    except FileNotFoundError as why:
        raise NotFound(f"there is no file {place} to attach", path=str(place)) from why
    except OSError as why:
        raise Invalid(f"{str(place)[:200]} cannot be read: {why.strerror}", path=str(place)) from why
    except (ValueError, RuntimeError) as why:  # NUL, a lone surrogate, an unknown user's home
        raise Invalid(f"{str(path)[:200]!r} is not the path of a file", path=str(path)) from why


def attachment(name: str, data: bytes) -> Image | File:
    name = "".join(letter if letter.isprintable() else " " for letter in name)
    if not data:
        raise Invalid(f"{name} is empty: there is nothing to attach", name=name)
    encoded = base64.b64encode(data).decode
    if media_type := image_type(data):
        return Image(media_type, encoded(), name=name)
    if data.startswith(b"%PDF-"):
        return File(name, "", PDF, base64=encoded())
    try:
        return File(name, decode_text(data, name))
    except Invalid as why:
        raise Invalid(f"{name} is neither text nor an image nor a PDF: it cannot be attached", name=name) from why


def image_type(data: bytes) -> str:
    """The media type by the first bytes; empty for anything but an image."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _IMAGES.items() if data.startswith(start)), "")


# -- rules and references

# A backslash escapes a mention, as everywhere in Markdown.
_MENTION = re.compile(r'(?<![\w@/.\\])@(rule|ref|reference):(?:"([^"\n]{1,200})"|([^\s"`<>|@]{1,200}))', re.IGNORECASE)
_TRAILING = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"
_GENITIVE = ("'s", "’s")
# Most unknown names reported: finding similar names takes time.
MAX_PROBLEMS = 10

NamedSource = Rule | Reference


class Mention(Struct, frozen=True):
    kind: SourceKind
    names: tuple[str, ...]
    """Possible names, longest first: final punctuation may belong to the name or to the sentence."""


def find_mentions(text: str) -> list[Mention]:
    """Mentions in order of appearance, except those in code."""
    prose = mask_code(text) if "@" in text else ""
    found = []
    for match in _MENTION.finditer(prose):
        kind: SourceKind = "rule" if match[1].lower() == "rule" else "reference"
        quoted = match[2]
        found.append(Mention(kind, (quoted.strip(),) if quoted else (*_possible_names(match[3]),)))
    return found


def without_mentions(text: str) -> str:
    """The message without mentions, which must not influence the choice of other sources."""
    return _MENTION.sub(" ", text) if "@" in text else text


def _possible_names(written: str) -> Iterator[str]:
    while written:
        yield written
        if written.lower().endswith(_GENITIVE):
            written = written[:-2]
        elif written[-1] in _TRAILING:
            written = written[:-1]
        else:
            break


def mentioned_sources(text: str, sources: Iterable[NamedSource]) -> tuple[list[NamedSource], list[str]]:
    """The enabled sources mentioned in a text, each once; and a sentence for each unknown or disabled one, up to a
    limit."""
    known = {(source.kind, source.name.casefold()): source for source in sources}
    found: dict[tuple[SourceKind, str], NamedSource] = {}
    unknown: dict[tuple[SourceKind, str], Mention] = {}
    for mention in find_mentions(text):
        keys = [(mention.kind, name.casefold()) for name in mention.names]
        if key := next((key for key in keys if key in known), None):
            found[key] = known[key]
        else:
            unknown.setdefault(keys[-1], mention)
    problems = [f"{source.kind} {source.name} is not enabled" for source in found.values() if not source.enabled]
    total = len(problems) + len(unknown)
    problems += [_unknown_text(mention, known) for mention in list(unknown.values())[: MAX_PROBLEMS - len(problems)]]
    if total > MAX_PROBLEMS:
        problems = [*problems[:MAX_PROBLEMS], f"and {total - MAX_PROBLEMS} more are unknown"]
    return [source for source in found.values() if source.enabled], problems


def _unknown_text(mention: Mention, known: Mapping[tuple[SourceKind, str], NamedSource]) -> str:
    names = {key: source.name for (kind, key), source in known.items() if kind == mention.kind}
    near = get_close_matches(mention.names[-1].casefold(), names, 1)
    hint = f"; did you mean {names[near[0]]}?" if near else ""
    return f"there is no {mention.kind} {mention.names[-1]}{hint}"
