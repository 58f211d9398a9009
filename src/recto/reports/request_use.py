"""RequestUse: how full the window of each request was and what it cost, along a path; compactions are marked."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from recto.chat.message import Message, Usage
from recto.store.store import Store
from recto.window.account import NO_ACCOUNT


class RequestUse(Struct, frozen=True):
    number: int
    """Of the reply."""
    reply: str
    model: str
    created: str
    tokens: int
    """As they were counted before it was sent."""
    limit: int
    usage: Usage
    """As the provider reported it; an estimate for a request that was not sent."""
    compaction: int | None = None
    """The number of the compaction that was made for it."""
    answers: int = 0
    """The number of the message that it answers: requests of one turn share it."""

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_builtins(self)
        return plain


def recorded_use(store: Store, path: Sequence[Message]) -> Iterator[RequestUse]:
    """Of the replies of a path, oldest first, that have a record."""
    compaction, answers = None, 0
    accounts = store.records.window_sizes([message.request for message in path if message.request])
    for message in path:
        if block := message.compaction:
            compaction = block.compaction_number if block.action == "compact" else compaction
        elif message.role == "user":
            answers = message.said
        elif message.role == "assistant" and message.request:
            account = accounts.get(message.request, NO_ACCOUNT)
            yield RequestUse(
                message.said,
                message.id,
                message.model or account.model or "",
                message.created,
                account.total or 0,
                account.limit or 0,
                message.usage or Usage(reported=False),
                compaction,
                answers,
            )
            compaction = None
