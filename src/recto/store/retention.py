"""Retention: removes the conversations that nobody has used for a while, for those who must not keep them.

A conversation goes as a whole: later messages, summaries and requests repeat the earlier ones, so no part of it could
be removed without leaving its words in the rest.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

from msgspec import Struct
from sqlalchemy import ColumnElement, Table, and_, exists, func, select

from recto.chat.conversation import Conversation
from recto.errors import Invalid, NotFound
from recto.store.backup import automatic_backups, delete_automatic_backups, other_copies
from recto.store.database import Database
from recto.store.rows import conversation_of
from recto.store.schema import access_keys, client_conversations, conversations, facts, messages, requests, waiting
from recto.store.statements import CONVERSATION
from recto.store.trash import Trash

Tell = Callable[[int, int], object]
"""Called with how many rows were read, and how many there are."""
UNITS: Mapping[str, timedelta] = {
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
# A century.
LONGEST = timedelta(days=36_500)


def time_before(age: str) -> str:
    """The time that was so long ago (`90d`, `12h`, `6w`, `2y`), as the store writes it. Invalid where it is no age."""
    text = age.strip().lower()
    number, unit = text[:-1], UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdigit() and len(number) < 7):
        raise Invalid(f"{age[:40]!r} is not an age: write 90d, 12h, 6w or 2y", age=age)
    if (ago := int(number) * unit) > LONGEST:
        raise Invalid(f"{age} is more than a century", age=age)
    return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class RetentionScope(Struct, frozen=True):
    """Which conversations are to go."""

    before: str
    """Those that were used last before this time."""
    conversation: str | None = None
    """Only this one, by its id."""
    owner: str | None = None
    """Only those of this key of the endpoint."""


class Removal(Struct, frozen=True):
    """What goes with the conversations of a scope, and what stays of them."""

    conversations: tuple[Conversation, ...]
    messages: int
    requests: int
    facts: int
    """Facts that were learned from them: they stay."""
    used_since: int
    """Conversations of the scope that began before its time and were used since: they stay, whole."""


class PruneOptions(TypedDict, total=False):
    conversation: str | int | None
    """Only this one."""
    key: str | None
    """Only those of this key of the endpoint."""
    backups: bool
    """Delete the daily backups too."""
    dry_run: bool
    """Only tell."""


class PruneReport(Struct, frozen=True):
    found: Removal
    """What was to go."""
    removed: int
    """How many conversations went; fewer where one was used meanwhile."""
    deleted_backups: tuple[Path, ...]
    copies: tuple[Path, ...]
    """Copies of the store beside it that stay, and may hold what went."""


class Retention:
    def __init__(self, database: Database, trash: Trash) -> None:
        self._database, self._trash = database, trash

    def preview(self, scope: RetentionScope) -> Removal:
        """What `prune` would remove now."""
        wanted = _goes(scope)
        going = select(conversations.c.n).where(wanted).scalar_subquery()
        ids = select(conversations.c.id).where(wanted).scalar_subquery()
        stays = and_(_within(scope), conversations.c.created < scope.before, ~wanted)
        with self._database.read() as connection:

            def count(table: Table, *conditions: ColumnElement[bool]) -> int:
                return int(connection.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one())

            if scope.owner is not None and not (
                count(access_keys, access_keys.c.name == scope.owner)
                or count(client_conversations, client_conversations.c.owner == scope.owner)
            ):
                raise NotFound(
                    f"there is no key {scope.owner}; `recto serve keys list` shows those there are", name=scope.owner
                )
            found = connection.execute(CONVERSATION.where(wanted).order_by(conversations.c.updated)).all()
            return Removal(
                tuple(map(conversation_of, found)),
                count(messages, messages.c.conversation.in_(going)),
                count(requests, requests.c.conversation.in_(going)),
                count(facts, facts.c.conversation.in_(ids), facts.c.forgotten.is_(None)),
                count(conversations, stays),
            )

    def prune(
        self, scope: RetentionScope, tell: Tell | None = None, *, backups: bool = False, dry_run: bool = False
    ) -> PruneReport:
        """Removes for good, one conversation after the other."""
        found, file = self.preview(scope), self._database.file
        removed = 0 if dry_run else self._trash.remove(_goes(scope), tell)
        daily = automatic_backups(file) if file else []
        deleted = daily if backups else []
        if file and backups and not dry_run:
            deleted = delete_automatic_backups(file)
        copies = [*(each for each in daily if each not in deleted), *(other_copies(file) if file else ())]
        return PruneReport(found, removed, tuple(deleted), tuple(copies))


def _goes(scope: RetentionScope) -> ColumnElement[bool]:
    # what waits for a reply to end is not in the conversation yet, and counts as use
    is_awaited = exists().where(waiting.c.conversation == conversations.c.n, waiting.c.created >= scope.before)
    return and_(_within(scope), conversations.c.updated < scope.before, ~is_awaited)


def _within(scope: RetentionScope) -> ColumnElement[bool]:
    parts: list[ColumnElement[bool]] = [conversations.c.n > 0]
    if scope.conversation is not None:
        parts.append(conversations.c.id == scope.conversation)
    if scope.owner is not None:
        owned = client_conversations.c.conversation == conversations.c.n
        parts.append(exists().where(owned, client_conversations.c.owner == scope.owner))
    return and_(*parts)
