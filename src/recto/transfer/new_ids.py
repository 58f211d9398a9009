"""New ids for a conversation, so that it stands beside the one that has its ids. Its requests keep their bytes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from recto import wire
from recto.base.ids import derived_id, new_id
from recto.chat.blocks import Block, Compaction
from recto.chat.message import Message
from recto.store.conversation_copy import StoredBytes, StoredItem, StoredRequest
from recto.store.waiting import WaitingMessage
from recto.transfer.incoming import IncomingConversation

_ID = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
# The part of an id that says when it was made.
_TIME_DIGITS = 10


def with_new_ids(found: IncomingConversation) -> IncomingConversation:
    """The same under new ids."""
    before = found.conversation
    ids = _NewIds(new_id())
    after = replace(before, id=ids.salt, head=ids.of(before.head))
    return replace(found, conversation=after, items=ids.items(found.items))


class _NewIds:
    def __init__(self, salt: str) -> None:
        self.salt = salt
        self._seen: set[str] = set()

    def of(self, id: str | None) -> str | None:
        """An id that is not random: nothing has to be remembered for it, and it sorts as the former did."""
        return id and id[:_TIME_DIGITS] + derived_id(0, self.salt, id)[_TIME_DIGITS:]

    def items(self, items: Iterable[StoredItem]) -> Iterator[StoredItem]:
        for item in items:
            if isinstance(item, StoredBytes):
                yield item
                continue
            self._seen.add(item.id)
            if isinstance(item, WaitingMessage):
                yield replace(item, id=str(self.of(item.id)))
            else:
                yield self._message(item) if isinstance(item, Message) else self._request(item)

    def _message(self, message: Message) -> Message:
        named: Any = {name: self.of(getattr(message, name)) for name in ("id", "parent", "request")}
        return replace(message, **named, blocks=tuple(self._block(block) for block in message.blocks))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, Compaction):  # no other names messages
            return block
        return wire.block_from_json(self._renamed(wire.block_to_json(block)))

    def _request(self, request: StoredRequest) -> StoredRequest:
        named: Any = {name: self.of(getattr(request, name)) for name in ("id", "message", "base")}
        told = {name: self._renamed(getattr(request, name)) for name in ("account", "outcome")}
        return replace(request, **named, **told)

    def _renamed(self, value: Any) -> Any:
        """A JSON value with the new ids of what came before."""
        if isinstance(value, str):
            return _ID.sub(lambda found: str(self.of(found[0])) if found[0] in self._seen else found[0], value)
        if isinstance(value, Mapping):
            return {self._renamed(key): self._renamed(each) for key, each in value.items()}
        return [self._renamed(each) for each in value] if isinstance(value, list) else value
