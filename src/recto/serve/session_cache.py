"""SessionCache: sessions of conversations that were answered lately, with what their last windows were made of.

A client's next request most likely goes on there: then only what is new is read and counted. Whoever takes a session
has it alone; a request that comes meanwhile reads the store.
"""

import threading

from recto.turn.session import ChatSession

MOST_TOKENS = 4_000_000
"""Of all windows together; a token takes some twenty bytes, as text and as it is sent."""
MESSAGE_TOKENS = 100
"""What a message takes beside its text."""


class SessionCache:
    def __init__(self, most: int = MOST_TOKENS) -> None:
        self._most, self._total = most, 0
        self._kept: dict[str, tuple[ChatSession, int]] = {}
        self._lock = threading.Lock()

    def take(self, conversation: str, head: str | None) -> ChatSession | None:
        """The session of a conversation, if nobody has changed that since."""
        with self._lock:
            session, tokens = self._kept.pop(conversation, (None, 0))
            self._total -= tokens
        return session if session is not None and session.head == head else None

    def keep(self, session: ChatSession) -> None:
        """The session after a reply. One on a branch of its own is not kept: the conversation is elsewhere."""
        if session.branch is not None:
            return
        tokens = _tokens(session)
        with self._lock:
            _, before = self._kept.pop(session.conversation, (None, 0))
            self._kept[session.conversation] = session, tokens
            self._total += tokens - before
            while self._total > self._most:
                _, oldest = self._kept.pop(next(iter(self._kept)))
                self._total -= oldest


def _tokens(session: ChatSession) -> int:
    counts = [entries for loaded in session.loaded.values() for entries in loaded.counted_units.values()]
    return sum(MESSAGE_TOKENS + entry.count.tokens for entries in counts for entry in entries)
