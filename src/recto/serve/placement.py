"""Where a client's messages belong: the conversation they go on in is found or made, and what is new is stored.

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
from recto.store.clients import KnownMessage
from recto.turn.session import ChatSession
from recto.window.request import Entry

# Messages that one transaction stores, and how long the store is left to others before the next.
MOST_AT_ONCE, PAUSE_S = 500, 0.05
# Replies of a list that are looked for, from its end: a client that cuts or rewrites keeps one of the last ones.
MOST_ANCHORS = 5
# A reply of this many characters is nobody else's.
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
    """How many messages of the list are known: those up to `at`."""
    base: str | None = None
    """The message up to which the list is as its client sent it before: `at`, or one before it."""
    same: int = 0
    """How many messages those are."""


NEW = FoundConversation(None)


class Placement(Struct):
    """A client's messages, stored."""

    gateway: Gateway
    owner: str
    session: ChatSession
    notes: tuple[str, ...]
    chain: bytes
    """The hash of all messages."""
    awaited: str | None = None
    """The client's first message, which is known again until its reply has gone out."""
    left: int = 0
    """How many of the last messages are not stored yet."""

    async def end_delivery(self, *, is_delivered: bool) -> None:
        """Whether the reply has gone out whole. Only the first call counts."""
        if (awaited := self.awaited) is not None:
            self.awaited = None
            end = partial(self.gateway.store.awaited_replies.end, awaited, is_delivered=is_delivered)
            await self.gateway.store.do(end)

    def note_reply(self, id: str, blocks: Sequence[Block]) -> None:
        """A reply is known again by its print when the client sends it back. In the store's thread."""
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
    gateway.store.use_own_lane()
    kept = await kept_entries(gateway.engine, given)
    links = chain_links(kept)
    placing = _Placing(gateway, owner, named, model, kept, links, chained(links), follows)
    async with gateway.lock(owner):
        placement = await gateway.store.do(placing.write)
        notes = placement.notes
        while left := placement.left:
            await asyncio.sleep(PAUSE_S)
            placement = await gateway.store.do(placing.rest(placement, left).write)
        return replace(placement, notes=notes)


class _Placing(Struct, frozen=True):
    """A client's messages on their way into the store. Used in its thread."""

    gateway: Gateway
    owner: str
    named: str | None
    model: str
    given: Sequence[Entry]
    links: Sequence[ChainLink]
    """The prints of what is given."""
    chain: Sequence[Print]
    """For each message the print of everything up to it."""
    follows: FoundConversation | None

    def rest(self, before: Placement, left: int) -> "_Placing":
        """The last messages, which come after those that are stored."""
        at = before.session.head
        after = FoundConversation(before.session.conversation, at, base=at)
        return replace(self, given=self.given[-left:], links=self.links[-left:], chain=(), follows=after)

    def write(self) -> Placement:
        """Stores all in one transaction, or the first of very many messages: others write to the store too."""
        with self.gateway.store.database.write():
            found = self.follows or self._found()
            end = found.known + MOST_AT_ONCE
            # where a list may differ from what is stored, all of it is compared
            if len(self.given) <= end or not (found == NEW or found.known or self.follows):
                return self._written(found)
            first = replace(self, given=self.given[:end], links=self.links[:end], chain=self.chain[:end])
            return replace(first._written(found), left=len(self.given) - end)

    def _written(self, found: FoundConversation) -> Placement:
        store = self.gateway.store
        session = self._session(found)
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
            follows=self.follows is not None,
        )
        if found.at and found.known > found.same:  # what its client has reworded or cut is known the next time
            store.client_messages.rechain(found.at, self.chain[found.known - 1])
        new = self.links[len(self.links) - extended.stored :]
        if found == NEW or found.known:
            chains, last = self.chain[len(self.chain) - extended.stored :], self.chain[-1]
        else:
            before = self._chain_before(session, extended)
            chains = chained(new, before)
            last = chains[-1] if chains else before
        rows = zip(extended.messages, new, chains, strict=True)
        store.client_messages.add(self.owner, [KnownMessage(id, link.print, each) for id, link, each in rows])
        return Placement(self.gateway, self.owner, session, extended.notes, last, self._awaited(extended, found))

    def _session(self, found: FoundConversation) -> ChatSession:
        """Of the conversation that was found, or of a new one."""
        store = self.gateway.store
        if (home := found.conversation) is not None:
            head = store.tree.conversation(home).head
            return self.gateway.sessions.take(home, head) or ChatSession(home, head, chosen=CHOSEN)
        home = store.tree.create(details={"model": self.model, "settings": dict(CHOSEN)}).id
        store.client_messages.own(home, self.owner, self.named)
        return ChatSession(home, chosen=CHOSEN)

    def _chain_before(self, session: ChatSession, extended: ExtendedPath) -> Print:
        """The chain of what is stored before the new messages, which is not what the client sends."""
        tree = self.gateway.store.tree
        before = tree.message(extended.messages[0]).parent if extended.messages else session.head
        while before and (message := tree.message(before)).compaction:
            before = message.parent
        return (self.gateway.store.client_messages.chain(before) if before else None) or b""

    def _awaited(self, extended: ExtendedPath, found: FoundConversation) -> str | None:
        """The last message, where nothing else would tell whose it is if it came again."""
        if self.named is not None or self.follows or any(link.role == "assistant" for link in self.links):
            return None
        last = extended.messages[-1] if extended.messages else found.at
        if last is not None:
            self.gateway.store.awaited_replies.begin(last)
        return last

    # -- which conversation: reads only

    def _found(self) -> FoundConversation:
        anchors = [at for at, link in enumerate(self.links) if link.role == "assistant"][-MOST_ANCHORS:]
        found = self._by_replies(anchors) if anchors else self._unfinished()
        if self.named is None:
            return found
        known = self.gateway.store.client_messages.named(self.owner, self.named)
        return found if known == found.conversation else FoundConversation(known)

    def _unfinished(self) -> FoundConversation:
        """A list without replies is new, unless it says again what got none, or none that its client has seen whole."""
        store = self.gateway.store
        for same in range(len(self.chain), 0, -1):
            for found in store.client_messages.by_chain(self.owner, self.chain[same - 1]):
                if not store.client_messages.is_answered(found.id) or store.awaited_replies.is_lost(found.id):
                    return FoundConversation(found.conversation, found.id, same, found.id, same)
        return NEW

    def _by_replies(self, anchors: Sequence[int]) -> FoundConversation:
        exact = self._exact(anchors)
        for at in reversed([each for each in anchors if each >= exact.same]):
            if (near := self._nearest(at, exact)) is not None:
                return near
        return exact

    def _exact(self, anchors: Sequence[int]) -> FoundConversation:
        """The last reply that the list has as its client sent it before, with all that is before it."""
        for at in reversed(anchors):
            if found := self.gateway.store.client_messages.by_chain(self.owner, self.chain[at]):
                return FoundConversation(found[0].conversation, found[0].id, at + 1, found[0].id, at + 1)
        return NEW

    def _nearest(self, at: int, exact: FoundConversation) -> FoundConversation | None:
        """Of the conversations that have this reply, the one that has most of the rest too; below what is known
        already, where something is."""
        store, best, most = self.gateway.store, None, -1
        given, links = self.given[exact.same : at + 1], self.links[exact.same : at + 1]
        for candidate in store.client_messages.by_print(self.owner, self.links[at].print):
            # ids are in order of time: nothing older comes after
            if exact.base and (candidate.conversation != exact.conversation or candidate.id < exact.base):
                continue
            path = said_path(store, candidate.id, exact.base)
            if path is None:
                continue
            found = continuation(links, [link_of(message) for message in path], len(links))
            same = exact.same + found.new - len(found.reworded)
            is_known = exact.same + found.new > at and _is_same(found, given, path, same, has_base=bool(exact.base))
            if is_known and same > most:
                most = same
                best = FoundConversation(candidate.conversation, candidate.id, at + 1, exact.base, exact.same)
        return best


def _is_same(
    found: Continuation, given: Sequence[Entry], path: Sequence[Message], same: int, *, has_base: bool
) -> bool:
    """A reply that says much is nobody else's. A short one counts where enough beside it is the same, a question among
    it, and what differs is alike: other questions, even some that are alike, may have got the same answers."""
    reply = given[-1]
    if len(_text(reply)) >= TELLING or any(isinstance(block, ToolCall) for block in reply.blocks):
        return True
    reworded = {at for at, _ in found.reworded}
    has_question = any(each.role == "user" and at not in reworded for at, each in enumerate(given))
    if not has_base and (same < LEAST_SAME or not has_question):
        return False
    return all(_is_alike(_text(given[at]), path[place].text.strip()) for at, place in found.reworded)


def _text(entry: Entry) -> str:
    return "".join(block.text for block in entry.blocks if isinstance(block, Text)).strip()


def _is_alike(one: str, other: str) -> bool:
    """Whether one of two texts is most of the other, but for something inside it or around it."""
    differs = min(len(part) for part in differing_parts(one, other))
    return differs <= (1 - ALIKE) * min(len(one), len(other))
