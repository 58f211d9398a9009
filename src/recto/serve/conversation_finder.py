"""Whose conversation a request belongs to, and where it goes on. Reads the store, writes nothing.

A client says which conversation it means, or its messages do: replies that it sends back are known again. Everything is
looked up by owner, so that nobody comes upon another's words, however much they are alike.
"""

from collections.abc import Sequence

from msgspec import Struct

from recto.api.client_turn import differing_parts, link_of, said_path
from recto.chat.blocks import Text, ToolCall
from recto.chat.chain import ChainLink, Continuation, Print, continuation
from recto.chat.message import Message
from recto.store.clients import OwnedMessage
from recto.store.store import Store
from recto.window.request import Entry

# Replies of a list that are looked for, from its end: a client that cuts or rewrites keeps one of the last ones.
MOST_ANCHORS = 5
# A reply of so many characters is nobody else's.
TELLING = 40
# Messages of a list that must be the same, where its reply is a short one.
LEAST_SAME = 2
# How much of the shorter of two texts both have, where one is a rewording of the other.
ALIKE = 0.8


class FoundConversation(Struct, frozen=True):
    conversation: str | None
    """None for a new one."""
    at: str | None = None
    """The message up to which the list is known; None for the head of the conversation."""
    known: int = 0
    """So many messages of the list are known: those up to `at`."""
    base: str | None = None
    """The message up to which the list is as its client sent it before: `at`, or one before it."""
    same: int = 0
    """So many messages those are."""


NEW = FoundConversation(None)


def find_conversation_of(
    store: Store, owner: str, given: Sequence[Entry], links: Sequence[ChainLink], chain: Sequence[Print]
) -> FoundConversation:
    """`links` are the prints of what is given, `chain` those of everything up to each of them."""
    anchors = [at for at, link in enumerate(links) if link.role == "assistant"][-MOST_ANCHORS:]
    if not anchors:
        return _unfinished(store, owner, chain)
    exact = _exact(store, owner, chain, anchors)
    for at in reversed([each for each in anchors if each >= exact.same]):
        if (near := _nearest(store, owner, given, links, at, exact)) is not None:
            return near
    return exact


def _exact(store: Store, owner: str, chain: Sequence[Print], anchors: Sequence[int]) -> FoundConversation:
    """The last reply that the list has as its client sent it before, with all that is before it."""
    for at in reversed(anchors):
        if found := store.client_messages.by_chain(owner, chain[at]):
            return _known(found[0], at + 1)
    return NEW


def _known(message: OwnedMessage, number: int) -> FoundConversation:
    return FoundConversation(message.conversation, message.id, number, message.id, number)


def _unfinished(store: Store, owner: str, chain: Sequence[Print]) -> FoundConversation:
    """A list without replies is new, unless it says again what got none, or none that its client has seen whole."""
    for same in range(len(chain), 0, -1):
        for found in store.client_messages.by_chain(owner, chain[same - 1]):
            if not store.client_messages.is_answered(found.id) or store.awaited_replies.is_lost(found.id):
                return _known(found, same)
    return NEW


def _nearest(
    store: Store,
    owner: str,
    given: Sequence[Entry],
    links: Sequence[ChainLink],
    at: int,
    exact: FoundConversation,
) -> FoundConversation | None:
    """Of the conversations that have this reply, the one that has most of the rest too; below what is known already,
    where something is."""
    best: tuple[int, FoundConversation] | None = None
    for candidate in store.client_messages.by_print(owner, links[at].print):
        # ids are in order of time: nothing older stands below
        if exact.base and (candidate.conversation != exact.conversation or candidate.id < exact.base):
            continue
        path = said_path(store, candidate.id, exact.base)
        if path is None:
            continue
        part = links[exact.same : at + 1]
        found = continuation(part, [link_of(message) for message in path], len(part))
        same = exact.same + found.new - len(found.reworded)
        if exact.same + found.new <= at or not _is_same(found, given[exact.same : at + 1], path, same, exact):
            continue
        if best is None or same > best[0]:
            base = (exact.base, exact.same)
            best = same, FoundConversation(candidate.conversation, candidate.id, at + 1, *base)
    return best[1] if best else None


def _is_same(
    found: Continuation, given: Sequence[Entry], path: Sequence[Message], same: int, exact: FoundConversation
) -> bool:
    """A reply that says much is nobody else's. A short one counts where enough beside it is the same, a question among
    it, and what differs is alike: other questions, even some that are alike, may have got the same answers."""
    reply = given[-1]
    if len(_text(reply)) >= TELLING or any(isinstance(block, ToolCall) for block in reply.blocks):
        return True
    reworded = {at for at, _ in found.reworded}
    asked = [at for at, each in enumerate(given) if each.role == "user" and at not in reworded]
    if not exact.base and (same < LEAST_SAME or not asked):
        return False
    return all(_is_alike(_text(given[at]), path[place].text.strip()) for at, place in found.reworded)


def _text(entry: Entry) -> str:
    return "".join(block.text for block in entry.blocks if isinstance(block, Text)).strip()


def _is_alike(one: str, other: str) -> bool:
    """Whether one of two texts is most of the other, but for something that stands in it or around it."""
    differs = min(len(part) for part in differing_parts(one, other))
    return differs <= (1 - ALIKE) * min(len(one), len(other))
