"""Where a client's messages belong: whose conversation they go on in, and their way into the store.

A client says which conversation it means, or its messages do: replies that it sends back are known again. Everything is
looked up by owner, so that nobody comes upon another's words, however much they are alike.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from recto.api.client_turn import (
    ExtendedPath,
    add_to_path,
    chain_links,
    differing_parts,
    kept_entries,
    link_of,
    said_path,
)
from recto.chat.blocks import Block, Text, ToolCall
from recto.chat.chain import ChainLink, Continuation, Print, chained, continuation, print_of
from recto.chat.message import Message
from recto.serve.gateway import CHOSEN, Gateway
from recto.store.clients import KnownMessage, OwnedMessage
from recto.store.store import Store
from recto.turn.session import ChatSession
from recto.window.request import Entry

# -- which conversation

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


# -- into the store

# Messages that one transaction stores, and how long the store is left to others before the next.
MOST_AT_ONCE, PAUSE_S = 500, 0.05


class Placement(Struct):
    """A client's messages, stored. `chain` is the hash of all of them."""

    gateway: Gateway
    owner: str
    session: ChatSession
    notes: tuple[str, ...]
    chain: bytes
    awaited: str | None = None
    """The client's first message, which is known again until its reply has gone out."""
    left: int = 0
    """How many of the last messages are not stored yet."""

    async def end_delivery(self, *, is_delivered: bool) -> None:
        """Whether the reply has gone out whole. What is told first holds."""
        if (awaited := self.awaited) is not None:
            self.awaited = None
            end = partial(self.gateway.store.awaited_replies.end, awaited, is_delivered=is_delivered)
            await self.gateway.store_thread.do(end)

    def note_reply(self, id: str, blocks: Sequence[Block]) -> None:
        """By its print a reply is known again when the client sends it back. In the store's thread."""
        link = ChainLink("assistant", print_of("assistant", blocks))
        known = KnownMessage(id, link.print, chained([link], self.chain)[0])
        self.gateway.store.client_messages.add(self.owner, [known])


async def place(
    gateway: Gateway,
    owner: str,
    named: str | None,
    model: str,
    given: Sequence[Entry],
    follows: FoundConversation | None = None,
) -> Placement:
    """`named`: the conversation that the client means, by its id or by a name of the client's own. `follows`: the reply
    that the messages come after, without those before it."""
    gateway.store_thread.use_own_lane()
    kept = await kept_entries(gateway.engine, given)
    links = chain_links(kept)
    placing = Placing(gateway, owner, named, model, kept, links, chained(links), follows)
    async with gateway.lock(owner):
        placement = await gateway.store_thread.do(placing.write)
        notes, left = placement.notes, placement.left
        while left:
            await asyncio.sleep(PAUSE_S)
            placement = await gateway.store_thread.do(placing.rest(placement, left).write)
            left = placement.left
        return replace(placement, notes=notes)


class Placing(Struct, frozen=True):
    """A client's messages on their way into the store. Used in its thread."""

    gateway: Gateway
    owner: str
    named: str | None
    model: str
    given: Sequence[Entry]
    links: Sequence[ChainLink]
    chain: Sequence[Print]
    """For each message the print of everything up to it."""
    follows: FoundConversation | None

    def rest(self, before: Placement, left: int) -> "Placing":
        """The last messages, which come after those that are stored."""
        at = before.session.head
        after = FoundConversation(before.session.conversation, at, base=at)
        return replace(self, given=self.given[-left:], links=self.links[-left:], chain=(), follows=after)

    def write(self) -> Placement:
        """All in one transaction, or the first of very many messages: others write to the store too."""
        with self.gateway.store.database.write():
            found = self.follows or self._found(self.gateway.store)
            end = found.known + MOST_AT_ONCE
            # where a list may differ from what is stored, all of it is compared
            if len(self.given) <= end or not (found == NEW or found.known or self.follows):
                return self._written(found)
            first = replace(self, given=self.given[:end], links=self.links[:end], chain=self.chain[:end])
            return replace(first._written(found), left=len(self.given) - end)

    def _written(self, found: FoundConversation) -> Placement:
        store, follows = self.gateway.store, self.follows
        with store.database.write():
            session = self._session(store, found)
            extended = add_to_path(
                store,
                session,
                self.given,
                self.links,
                at=found.at,
                base=found.base,
                same=found.same,
                known=found.known,
                goes_back=True,
                follows=follows is not None,
            )
            chain = self._note(store, session, extended, found)
            awaited = self._awaited(store, extended, found)
        return Placement(self.gateway, self.owner, session, extended.notes, chain, awaited)

    def _found(self, store: Store) -> FoundConversation:
        found = find_conversation_of(store, self.owner, self.given, self.links, self.chain)
        if self.named is None:
            return found
        known = store.client_messages.named(self.owner, self.named)
        return found if known == found.conversation else FoundConversation(known)

    def _awaited(self, store: Store, extended: ExtendedPath, found: FoundConversation) -> str | None:
        """The last message, where nothing else would tell whose it is if it came again."""
        if self.named is not None or self.follows or any(link.role == "assistant" for link in self.links):
            return None
        last = extended.messages[-1] if extended.messages else found.at
        if last is not None:
            store.awaited_replies.begin(last)
        return last

    def _session(self, store: Store, found: FoundConversation) -> ChatSession:
        """Of the conversation that was found, or of a new one."""
        if (home := found.conversation) is not None:
            head = store.tree.conversation(home).head
            return self.gateway.sessions.take(home, head) or ChatSession(home, head, chosen=CHOSEN)
        home = store.tree.create(details={"model": self.model, "settings": dict(CHOSEN)}).id
        store.client_messages.own(home, self.owner, self.named)
        return ChatSession(home, chosen=CHOSEN)

    def _note(self, store: Store, session: ChatSession, extended: ExtendedPath, found: FoundConversation) -> Print:
        """Writes down the prints of new messages; gives the chain up to the last of all."""
        if found.at and found.known > found.same:  # what its client has reworded or cut is known the next time
            store.client_messages.rechain(found.at, self.chain[found.known - 1])
        if found == NEW or found.known:
            chains, last = self.chain[len(self.chain) - extended.stored :], self.chain[-1]
        else:
            chains, last = self._chains(store, session, extended)
        new = self.links[len(self.links) - extended.stored :]
        rows = zip(extended.messages, new, chains, strict=True)
        store.client_messages.add(self.owner, [KnownMessage(id, link.print, each) for id, link, each in rows])
        return last

    def _chains(self, store: Store, session: ChatSession, extended: ExtendedPath) -> tuple[Sequence[Print], Print]:
        """The chain of what is stored, which is not what the client sends."""
        tree, known = store.tree, store.client_messages
        before = tree.message(extended.messages[0]).parent if extended.messages else session.head
        while before and (message := tree.message(before)).compaction:
            before = message.parent
        chain = (known.chain(before) if before else None) or b""
        chains = chained(self.links[len(self.links) - extended.stored :], chain)
        return chains, chains[-1] if chains else chain
