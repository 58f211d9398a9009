"""Placement: where a client's messages stand in the store: the conversation is found or made, what is new is added."""

from collections.abc import Sequence

from msgspec import Struct

from recto.chat.chain import ChainLink, chained, print_of
from recto.chat.message import Message
from recto.client_turn import ExtendedPath, extend_path
from recto.serve.conversation_finder import FoundConversation, find_conversation_of
from recto.serve.gateway import CHOSEN, Gateway
from recto.store.clients import KnownMessage
from recto.store.store import Store
from recto.turn.session import ChatSession
from recto.window.request import Entry


class Placement(Struct):
    """A client's messages, stored. `chain` is the hash of all of them."""

    gateway: Gateway
    owner: str
    session: ChatSession
    notes: tuple[str, ...]
    chain: bytes

    async def keep_reply(self, message: Message) -> None:
        """By its print a reply is known again when the client sends it back."""
        link = ChainLink(message.role, print_of(message.role, message.blocks))
        known = KnownMessage(message.id, link.print, chained([link], self.chain)[0])
        await self.gateway.store_thread.do(self.gateway.store.client_messages.add, self.owner, [known])


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
    do, store = gateway.store_thread.do, gateway.store
    async with gateway.lock(owner):
        session, at = await do(_begin, store, owner, named, model, given, follows)
        extended = await extend_path(gateway.engine, session, given, at=at, goes_back=True, follows=follows is not None)
        chain = await do(_note, store, owner, session, extended, given)
    return Placement(gateway, owner, session, extended.notes, chain)


def _begin(
    store: Store,
    owner: str,
    named: str | None,
    model: str,
    given: Sequence[Entry],
    follows: FoundConversation | None,
) -> tuple[ChatSession, str | None]:
    """The conversation, found or made, and the message up to which the list is known."""
    found = follows or find_conversation_of(store, owner, given)
    home, at = found.conversation, found.at
    if named is not None and follows is None and (known := store.client_messages.named(owner, named)) != home:
        home, at = known, None
    if home is None:
        with store.database.write():
            details = {"model": model, "settings": dict(CHOSEN)}
            home = store.tree.create(details=details).id
            store.client_messages.own(home, owner, named)
        return ChatSession(home, chosen=CHOSEN), None
    return ChatSession(home, store.tree.conversation(home).head, chosen=CHOSEN), at


def _note(store: Store, owner: str, session: ChatSession, extended: ExtendedPath, given: Sequence[Entry]) -> bytes:
    """Writes down the prints of new messages; gives the chain up to the last of all."""
    tree, known = store.tree, store.client_messages
    new = given[len(given) - extended.stored :]
    before = tree.message(extended.messages[0]).parent if extended.messages else session.head
    while before and (message := tree.message(before)).compaction:
        before = message.parent
    chain = (known.chain(before) if before else None) or b""
    links = [ChainLink(entry.role, print_of(entry.role, entry.blocks)) for entry in new]
    chains = chained(links, chain)
    rows = zip(extended.messages, links, chains, strict=True)
    known.add(owner, [KnownMessage(id, link.print, each) for id, link, each in rows])
    return chains[-1] if chains else chain
