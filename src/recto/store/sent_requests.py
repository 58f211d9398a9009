"""SentRequest: what statistics of a conversation need of its requests, without a record of each."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, bindparam, select

from recto import wire
from recto.chat.message import Usage
from recto.store.database import Database
from recto.store.prepared_statement import Statement
from recto.store.rebuild import recalled_picks
from recto.store.rows import AnyRow, read_details
from recto.store.schema import conversations, messages, requests
from recto.store.statements import WAS_SENT

_OF_CONVERSATION = requests.c.conversation == (
    select(conversations.c.n).where(conversations.c.id == bindparam("id")).scalar_subquery()
)
_SENT = Statement(
    select(*(requests.c[name] for name in ("n", "id", "purpose", "model", "outcome", "cost", "account")))
    .where(_OF_CONVERSATION, WAS_SENT)
    .order_by(requests.c.n)
)
# A request with several replies has the usage of its first one: the last row here.
_DETAILS = Statement(
    select(messages.c.request, messages.c.details)
    .join(requests, requests.c.n == messages.c.request)
    .where(_OF_CONVERSATION)
    .order_by(messages.c.n.desc())
)


class SentRequest(Struct, frozen=True):
    """A request that was sent."""

    purpose: str
    model: str
    """Empty where it is not known."""
    usage: Mapping[str, int]
    """As the provider reported it; empty where it reported none."""
    cost_usd: float | None
    recalled: tuple[Mapping[str, Any], ...] | None
    """The archived messages that came back with it, as its account states them; None without a section for them."""


def sent_requests(database: Database, conversation: str) -> list[SentRequest]:
    """Those of a conversation, oldest first."""
    with database.read() as connection:
        details = _DETAILS(connection, id=conversation)
        usage = {number: read_details(text).get("usage") for number, text in details}
        rows = _SENT(connection, id=conversation).all()
        return [_sent_request(connection, row, usage.get(row.n)) for row in rows]


def _sent_request(connection: Connection, row: AnyRow, usage: Usage | None) -> SentRequest:
    stated = asdict(usage) if usage else {}
    reported = wire.loads(row.outcome).get("usage", stated) or {}
    return SentRequest(row.purpose, row.model or "", reported, row.cost, recalled_picks(connection, row))
