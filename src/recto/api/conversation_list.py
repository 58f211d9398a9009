"""The list of conversations, read without SQLAlchemy, whose import takes twice as long as everything else here.

Anything unusual (another schema, lost messages, an unwritable file) is left to StoreQueries, which handles and reports
it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from recto.base import locations
from recto.base.home_files import private_home
from recto.chat.conversation import Conversation, ConversationState
from recto.store.marker import StoreMarker
from recto.store.migrations import REVISIONS

BUSY_TIMEOUT_S = 5.0
_REVISION = "SELECT version_num FROM alembic_version"
_NEWEST = "SELECT id FROM messages WHERE n = ?"
_LATEST = """
SELECT c.id, c.title, m.id, c.created, c.updated, c.agent, c.details, coalesce(m.said, 0), c.n, c.archived, c.deleted
FROM conversations AS c LEFT JOIN messages AS m ON m.n = c.head
WHERE {} ORDER BY c.updated DESC, c.n DESC LIMIT ?
"""
_ARE: dict[ConversationState, str] = {
    "active": "c.archived IS NULL AND c.deleted IS NULL",
    "hidden": "c.archived IS NOT NULL AND c.deleted IS NULL",
    "deleted": "c.deleted IS NOT NULL",
}


def latest_conversations(
    limit: int, home: Path | None = None, state: ConversationState = "active"
) -> list[Conversation]:
    """The latest first, in `home` (default: RECTO_HOME or ~/.recto)."""
    place = home or locations.find_home()
    store = locations.find_store(place)
    with private_home(place):
        found = _quickly(store, limit, state) if isinstance(store, Path) else None
    if found is not None:
        return found
    from recto.api import store_queries  # sqlalchemy: a fifth of a second

    with store_queries.open_queries(place) as reader:
        return reader.conversations(limit=limit, state=state)


def _quickly(store: Path, limit: int, state: ConversationState) -> list[Conversation] | None:
    """Returns None if a full StoreQueries is needed."""
    try:
        if not store.stat().st_size:  # SQLite would delete the log of an empty file
            return None
        with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S)) as file:
            return _read(file, StoreMarker(store), limit, state)
    except (sqlite3.Error, OSError, ValueError):
        return None


def _read(
    file: sqlite3.Connection, marker: StoreMarker, limit: int, state: ConversationState
) -> list[Conversation] | None:
    newest = marker.read()
    if file.execute(_REVISION).fetchall() != [(REVISIONS[-1],)]:
        return None
    if newest and file.execute(_NEWEST, (newest.number,)).fetchone() != (newest.id,):
        return None
    rows = file.execute(_LATEST.format(_ARE[state]), (limit,))
    return [
        Conversation(id, title, head, created, updated, agent, json.loads(details), *rest)
        for id, title, head, created, updated, agent, details, *rest in rows
    ]
