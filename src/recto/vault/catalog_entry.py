"""CatalogEntry: a file of the vault as the catalog stores it: read, parsed, turned into rows and back."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any, NamedTuple

from recto.errors import Invalid, NotFound
from recto.vault.document import ParsedNote, note_name, parse_note
from recto.vault.encoding import decode_text
from recto.vault.folder import Folder, FolderEntry, is_note
from recto.vault.link_resolver import link_key
from recto.vault.links import Link, find_all_links
from recto.vault.prose import mask_code

CONTEXT_CHARS = 50
"""How many characters on either side of a link are its context."""
LINK_COLUMNS = "wikilink, target, heading, block, caption, embed, start, end, line, kind"

_MAX_TITLE, _MAX_LINK, _MAX_HEADINGS = 200, 4096, 500
# A file may be written twice within one tick of the disk's clock, so one as young as this is read once more. Its time
# is stored negative, so that it equals no other.
_TICK_NS = 50_000_000


class FileStamp(NamedTuple):
    """Tells whether a file has changed. There are many, and a tuple is made in half the time of a dataclass."""

    size: int
    mtime_ns: int
    sha: bytes | None
    problem: str | None

    def matches(self, entry: FolderEntry) -> bool:
        if (self.size, self.mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        # an unreadable note may be readable now: changing the mode does not change the time
        return self.sha is not None or not is_note(entry.path)


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An attachment is not read. An unreadable note has a problem and no hash; a note that is not text has both."""

    path: str
    size: int
    mtime_ns: int
    sha: bytes | None = None
    text: str = ""
    parsed: ParsedNote = field(default_factory=ParsedNote)
    links: Sequence[Link] = ()

    def is_unchanged(self, stored: FileStamp | None) -> bool:
        return stored is not None and (stored.sha, stored.problem) == (self.sha, self.parsed.problem)

    @property
    def is_unreadable(self) -> bool:
        return self.sha is None and self.parsed.problem is not None


def read_entry(folder: Folder, entry: FolderEntry) -> CatalogEntry:
    is_settled = time.time_ns() - entry.mtime_ns > _TICK_NS
    stamp = (entry.path, entry.size, entry.mtime_ns if is_settled else -entry.mtime_ns)
    if not is_note(entry.path):
        return CatalogEntry(*stamp)
    try:
        raw = folder.read(entry.path)
    except (Invalid, NotFound) as why:
        return CatalogEntry(*stamp, parsed=ParsedNote(problem=why.message))
    sha = hashlib.sha256(raw).digest()
    try:
        text = decode_text(raw, entry.path)
    except Invalid as why:
        return CatalogEntry(*stamp, sha, parsed=ParsedNote(problem=why.message))
    mask = mask_code(text)
    links = [link for link in find_all_links(text, mask) if len(link.wikilink) <= _MAX_LINK]
    return CatalogEntry(*stamp, sha, text, parse_note(text, mask), links)


def put_entry(db: Connection, entry: CatalogEntry) -> None:
    number = db.execute(
        "INSERT INTO notes (path, size, mtime_ns, sha, title, aliases, tags, headings, problem)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, sha = excluded.sha, title = excluded.title, aliases = excluded.aliases,"
        " tags = excluded.tags, headings = excluded.headings, problem = excluded.problem RETURNING n",
        _note_row(entry),
    ).fetchone()
    db.execute("DELETE FROM links WHERE note = ?", number)
    db.executemany(
        f"INSERT INTO links (note, key, context, {LINK_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (*number, link_key(link.target), link_context(entry.text, link, entry.parsed), *_link_row(link))
            for link in entry.links
        ],
    )


def link_context(text: str, link: Link, parsed: ParsedNote) -> str:
    """A link with the text around it, in one line. Properties do not count as the text around a link."""
    earliest = parsed.body_start if link.start >= parsed.body_start else 0
    return " ".join(text[max(earliest, link.start - CONTEXT_CHARS) : link.end + CONTEXT_CHARS].split())


def link_from_row(row: Sequence[Any]) -> Link:
    """A link from the values of `LINK_COLUMNS`."""
    before, embed, after = row[:5], row[5], row[6:]
    return Link(*(*before, bool(embed), *after))


def _link_row(link: Link) -> tuple[Any, ...]:
    parts = (link.wikilink, link.target, link.heading, link.block, link.caption)
    return (*parts, link.embed, link.start, link.end, link.line, link.kind)


def _note_row(entry: CatalogEntry) -> tuple[Any, ...]:
    parsed = entry.parsed
    title = (parsed.title or note_name(entry.path))[:_MAX_TITLE]
    aliases = json.dumps(parsed.aliases) if parsed.aliases else ""
    headings = [(heading.level, heading.text[:_MAX_TITLE]) for heading in parsed.headings[:_MAX_HEADINGS]]
    details = (title, aliases, " ".join(parsed.tags), json.dumps(headings) if headings else "", parsed.problem)
    return (entry.path, entry.size, entry.mtime_ns, entry.sha, *details)
