"""Whose conversation a request belongs to, and where it goes on. Reads the store, writes nothing.

A client says which conversation it means, or its messages do: replies that it sends back are known again. Everything is
looked up by owner, so that nobody comes upon another's words, however much they are alike.
"""

from collections.abc import Sequence

from msgspec import Struct

from recto.chat.blocks import Text, ToolCall
from recto.chat.chain import ChainLink, Continuation, Print, continuation
from recto.client_turn import link_of, said_path
from recto.store.store import Store
from recto.window.request import Entry

# Replies of a list that are looked for, from its end: a client that cuts or rewrites keeps one of the last ones.
MOST_ANCHORS = 5
# A reply of so many characters is nobody else's.
TELLING = 40
# Messages of a list that must be the same, where its reply is a short one.
LEAST_SAME = 2


class FoundConversation(Struct, frozen=True):
    conversation: str | None
    """None for a new one."""
    at: str | None = None
    """The message up to which the list is known; None for the head of the conversation."""
    same: int = 0
    """So many messages of the list are the whole path to `at`, word for word."""


NEW = FoundConversation(None)


def find_conversation_of(
    store: Store, owner: str, given: Sequence[Entry], links: Sequence[ChainLink], chain: Sequence[Print]
) -> FoundConversation:
    """`links` are the prints of what is given, `chain` those of everything up to each of them."""
    anchors = [at for at, link in enumerate(links) if link.role == "assistant"][-MOST_ANCHORS:]
    for at in reversed(anchors):
        if exact := store.client_messages.by_chain(owner, chain[at]):
            return FoundConversation(exact[0].conversation, exact[0].id, at + 1)
    if not anchors:
        return _unfinished(store, owner, chain)
    for at in reversed(anchors):
        if (near := _nearest(store, owner, given, links, at)) is not None:
            return near
    return NEW


def _unfinished(store: Store, owner: str, chain: Sequence[bytes]) -> FoundConversation:
    """A list without replies is new, unless it says again what got none."""
    for same in range(len(chain), 0, -1):
        for found in store.client_messages.by_chain(owner, chain[same - 1]):
            if not store.client_messages.is_answered(found.id):
                return FoundConversation(found.conversation, found.id, same)
    return NEW


def _nearest(
    store: Store, owner: str, given: Sequence[Entry], links: Sequence[ChainLink], at: int
) -> FoundConversation | None:
    """Of the conversations that have this reply, the one that has most of the rest too."""
    best: tuple[int, FoundConversation] | None = None
    for candidate in store.client_messages.by_print(owner, links[at].print):
        path = [link_of(message) for message in said_path(store, candidate.id)]
        found = continuation(links[: at + 1], path)
        same = found.new - len(found.reworded)
        if not _is_same(found, given[at], at, same):
            continue
        if best is None or same > best[0]:
            best = same, FoundConversation(candidate.conversation, candidate.id)
    return best[1] if best else None


def _is_same(found: Continuation, reply: Entry, at: int, same: int) -> bool:
    if found.new <= at:
        return False
    text = "".join(block.text for block in reply.blocks if isinstance(block, Text))
    is_telling = len(text.strip()) >= TELLING or any(isinstance(block, ToolCall) for block in reply.blocks)
    return same >= LEAST_SAME or is_telling
