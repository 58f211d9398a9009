"""Card: a file of the vault as the catalogue keeps it: read, taken apart, turned into rows and back."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any, NamedTuple

from recto.errors import Invalid, NotFound
from recto.vault.decoding import text_of
from recto.vault.document import Parsed, name_of, parse
from recto.vault.folder import Entry, Folder, is_note
from recto.vault.links import Link, find_all_links
from recto.vault.names import link_key
from recto.vault.prose import masked

AROUND = 50
"""So many characters on either side of a link are its context."""
LINK = "wikilink, target, heading, block, caption, embed, start, end, line, kind"

_LONGEST_TITLE, _LONGEST_LINK, _MOST_HEADINGS = 200, 4096, 500
# A file may be written twice within one tick of the disk's clock: one as young as this is looked at once more. Its time
# is kept negative, so that no other equals it.
_TICK_NS = 50_000_000


class Known(NamedTuple):
    """What tells whether a file has changed. There are many: a tuple is made in half of the time."""

    size: int
    mtime_ns: int
    sha: bytes | None
    problem: str | None

    def is_of(self, entry: Entry) -> bool:
        if (self.size, self.mtime_ns) != (entry.size, entry.mtime_ns):
            return False
        # a note that could not be read may be readable now: its owner changes its mode, not its time
        return self.sha is not None or not is_note(entry.path)


@dataclass(frozen=True, slots=True)
class Card:
    """An attachment is not read at all; a note that cannot be read has a problem instead of a hash, and one that is no
    text has both."""

    path: str
    size: int
    mtime_ns: int
    sha: bytes | None = None
    text: str = ""
    parsed: Parsed = field(default_factory=Parsed)
    links: Sequence[Link] = ()

    def is_as(self, known: Known | None) -> bool:
        return known is not None and (known.sha, known.problem) == (self.sha, self.parsed.problem)

    @property
    def is_unreadable(self) -> bool:
        return self.sha is None and self.parsed.problem is not None


def read_card(folder: Folder, entry: Entry) -> Card:
    is_settled = time.time_ns() - entry.mtime_ns > _TICK_NS
    facts = (entry.path, entry.size, entry.mtime_ns if is_settled else -entry.mtime_ns)
    if not is_note(entry.path):
        return Card(*facts)
    try:
        raw = folder.read(entry.path)
    except (Invalid, NotFound) as why:
        return Card(*facts, parsed=Parsed(problem=why.message))
    sha = hashlib.sha256(raw).digest()
    try:
        text = text_of(raw, entry.path)
    except Invalid as why:
        return Card(*facts, sha, parsed=Parsed(problem=why.message))
    mask = masked(text)
    links = [link for link in find_all_links(text, mask) if len(link.wikilink) <= _LONGEST_LINK]
    return Card(*facts, sha, text, parse(text, mask), links)


def put_card(db: Connection, card: Card) -> None:
    number = db.execute(
        "INSERT INTO notes (path, size, mtime_ns, sha, title, aliases, tags, headings, problem)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET size = excluded.size,"
        " mtime_ns = excluded.mtime_ns, sha = excluded.sha, title = excluded.title, aliases = excluded.aliases,"
        " tags = excluded.tags, headings = excluded.headings, problem = excluded.problem RETURNING n",
        _row(card),
    ).fetchone()
    db.execute("DELETE FROM links WHERE note = ?", number)
    db.executemany(
        f"INSERT INTO links (note, key, context, {LINK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(*number, link_key(link.target), context(card.text, link, card.parsed), *_parts(link)) for link in card.links],
    )


def context(text: str, link: Link, parsed: Parsed) -> str:
    """A link with what stands around it, in one line; properties are not the text around a link."""
    first = parsed.body_start if link.start >= parsed.body_start else 0
    return " ".join(text[max(first, link.start - AROUND) : link.end + AROUND].split())


def link_of(parts: Sequence[Any]) -> Link:
    """The link whose columns these are, in the order of `LINK`."""
    said, placed = parts[:5], parts[6:]
    return Link(*(*said, bool(parts[5]), *placed))


def _parts(link: Link) -> tuple[Any, ...]:
    parts = (link.wikilink, link.target, link.heading, link.block, link.caption)
    return (*parts, link.embed, link.start, link.end, link.line, link.kind)


def _row(card: Card) -> tuple[Any, ...]:
    parsed = card.parsed
    title = (parsed.title or name_of(card.path))[:_LONGEST_TITLE]
    aliases = json.dumps(parsed.aliases) if parsed.aliases else ""
    headings = [(heading.level, heading.text[:_LONGEST_TITLE]) for heading in parsed.headings[:_MOST_HEADINGS]]
    told = (title, aliases, " ".join(parsed.tags), json.dumps(headings) if headings else "", parsed.problem)
    return (card.path, card.size, card.mtime_ns, card.sha, *told)
