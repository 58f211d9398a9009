"""Places a client's messages: finds or creates their conversation and stores what is new.

Either the client names its conversation, or its messages identify it by the replies that it sends back. All look-ups
are by owner, so nobody reaches another's messages, however similar.
"""

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

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

# Replies of a list that are looked for, from its end: a client that cuts or rewrites keeps one of the last ones.
MOST_ANCHORS = 5
# A reply of this many characters is unique.
TELLING = 40
# Messages of a list that must be the same if its reply is short.
LEAST_SAME = 2
# The share of the shorter text that both must have in common, if one is a rewording of the other.
ALIKE = 0.8


class FoundConversation(Struct, frozen=True):
    conversation: str | None
    """None for a new one."""
    at: str | None = None
    """The last known message of the list; None for the head of the conversation."""
    known: int = 0
    """The number of known messages of the list: those up to `at`."""
    base: str | None = None
    """The last message of the part that is as its client sent it before: `at`, or an earlier one."""
    same: int = 0
    """The number of messages up to `base`."""


NEW = FoundConversation(None)


class Placement(Struct):
    gateway: Gateway
    owner: str
    session: ChatSession
    notes: tuple[str, ...]
    chain: bytes
    awaited: str | None = None
    """The client's first message, which is recognised until its reply is delivered."""

    async def end_delivery(self, *, is_delivered: bool) -> None:
        """Records whether the reply was fully delivered. Only the first call counts."""
        if (awaited := self.awaited) is not None:
            self.awaited = None
            end = partial(self.gateway.store.awaited_replies.end, awaited, is_delivered=is_delivered)
            await self.gateway.store.do(end)

    def note_reply(self, id: str, blocks: Sequence[Block]) -> None:
        """Stores the print by which a reply is recognised when the client sends it back. Runs in the store's thread."""
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
    """`named`: the client's conversation, by its id or by a name of the client's own. `follows`: the reply that the
    messages follow, if they do not repeat those before it."""
    gateway.store.use_own_lane()
    kept = await kept_entries(gateway.engine, given)
    links = chain_links(kept)
    placing = _Placing(gateway, owner, named, model, kept, links, chained(links), follows)
    async with gateway.lock(owner):
        return await gateway.store.do(placing.write)


class _Placing(Struct, frozen=True):
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

    def write(self) -> Placement:
        """Stores all in one transaction."""
        with self.gateway.store.database.write():
            return self._written(self.follows or self._found())

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
        if found.at and found.known > found.same:  # so that what its client has reworded or cut is recognised next time
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
        store = self.gateway.store
        if (home := found.conversation) is not None:
            head = store.tree.conversation(home).head
            return self.gateway.sessions.take(home, head) or ChatSession(home, head, chosen=CHOSEN)
        home = store.tree.create(details={"model": self.model, "settings": dict(CHOSEN)}).id
        store.client_messages.own(home, self.owner, self.named)
        return ChatSession(home, chosen=CHOSEN)

    def _chain_before(self, session: ChatSession, extended: ExtendedPath) -> Print:
        """The chain of what is stored before the new messages; the client does not send that."""
        tree = self.gateway.store.tree
        before = tree.message(extended.messages[0]).parent if extended.messages else session.head
        while before and (message := tree.message(before)).compaction:
            before = message.parent
        return (self.gateway.store.client_messages.chain(before) if before else None) or b""

    def _awaited(self, extended: ExtendedPath, found: FoundConversation) -> str | None:
        """The last message, if nothing else would identify its owner when it is repeated."""
        if self.named is not None or self.follows or any(link.role == "assistant" for link in self.links):
            return None
        last = extended.messages[-1] if extended.messages else found.at
        if last is not None:
            self.gateway.store.awaited_replies.begin(last)
        return last

    # -- finding the conversation: only reads

    def _found(self) -> FoundConversation:
        anchors = [at for at, link in enumerate(self.links) if link.role == "assistant"][-MOST_ANCHORS:]
        found = self._by_replies(anchors) if anchors else self._unfinished()
        if self.named is None:
            return found
        known = self.gateway.store.client_messages.named(self.owner, self.named)
        return found if known == found.conversation else FoundConversation(known)

    def _unfinished(self) -> FoundConversation:
        """A list without replies is new, unless it repeats one without a delivered reply."""
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
        """The last reply of the list whose whole beginning is as its client sent it before."""
        for at in reversed(anchors):
            if found := self.gateway.store.client_messages.by_chain(self.owner, self.chain[at]):
                return FoundConversation(found[0].conversation, found[0].id, at + 1, found[0].id, at + 1)
        return NEW

    def _nearest(self, at: int, exact: FoundConversation) -> FoundConversation | None:
        """The conversation with this reply that has most of the rest too, below anything already known."""
        store, best, most = self.gateway.store, None, -1
        given, links = self.given[exact.same : at + 1], self.links[exact.same : at + 1]
        for candidate in store.client_messages.by_print(self.owner, self.links[at].print):
            # ids are ordered by time: nothing older comes after
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
    """A long reply is unique. A short one counts if enough around it is the same, including a question, and what
    differs is similar: other questions, even similar ones, may have had the same answers."""
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
    """True if one text is most of the other, except for something inside or around it."""
    differs = min(len(part) for part in differing_parts(one, other))
    return differs <= (1 - ALIKE) * min(len(one), len(other))
