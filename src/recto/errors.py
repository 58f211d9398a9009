"""The error tree, ordered by what the caller can do. Imports nothing.

RectoError
├── NotFound          conversation, document, model          → check the name
├── Invalid           settings, input, a file from elsewhere → fix the value
├── DoesNotFit        needed, room, largest                  → cut more, or a larger model
├── SpendLimit        at_most, spent, limit, key             → raise the limit, or ask a cheaper model
├── ProviderError     ├ NoKey ├ RateLimited ├ Unreachable ├ Refused ├ Overflow
├── NoVectors         embedder missing, unreachable or wrong  → search by words alone
├── BrokenPlugin      plugin, package                        → update or remove the package
└── StoreError        ├ Busy ├ TooNew ├ Altered ├ MessagesLost
"""


class RectoError(Exception):
    """An error with one sentence that the user can act on; its data are attributes."""

    def __init__(self, message: str, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    def add(self, sentence: str) -> None:
        """Adds a sentence to the message, on the same line."""
        self.message = f"{self.message.rstrip('.')}; {sentence}"
        self.args = (self.message,)

    @property
    def type(self) -> str:
        return type(self).__name__


class NotFound(RectoError):
    """No such conversation, message, document, request or model."""


class Invalid(RectoError):
    """An invalid value from outside; the message names it, and what is allowed."""


class DoesNotFit(RectoError):
    """The required parts of the window exceed its room."""

    def __init__(self, message: str, *, needed: int, room: int, largest: str) -> None:
        super().__init__(message, needed=needed, room=room, largest=largest)
        self.needed, self.room, self.largest = needed, room, largest


class SpendLimit(RectoError):
    """A call could cost more than is left of a spending limit, so it was not made. US dollars."""

    def __init__(self, message: str, *, at_most: float, spent: float, limit: float, key: str) -> None:
        super().__init__(message, at_most=at_most, spent=spent, limit=limit, key=key)
        self.at_most, self.spent, self.limit, self.key = at_most, spent, limit, key


class ProviderError(RectoError):
    """The provider failed; `partial` is True if part of a reply had arrived."""

    partial: bool = False
    sent: bool = True
    """False if the request never left, for lack of a key or a connection."""
    may_cost: bool = False
    """True if the connection ended without an answer: the provider may have worked on the request."""


class NoKey(ProviderError):
    """The provider requires a key and none is set."""

    sent = False


class RateLimited(ProviderError):
    """The provider limits our rate; `retry_after_s` is the requested wait, if any."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.retry_after_s = retry_after_s


class Unreachable(ProviderError):
    """No answer, a broken stream, a server error, or an answer in another format."""


class Refused(ProviderError):
    """The provider rejected the request: a bad key, an unknown model, a forbidden request."""


class Overflow(ProviderError):
    """The provider counted more tokens than fit in its window."""


class NoVectors(RectoError):
    """The embedder is missing, unreachable or returned invalid vectors; search continues by words alone."""


class BrokenPlugin(RectoError):
    """An extension by another package cannot be used."""


class StoreError(RectoError):
    """The database cannot be read or written."""


class Busy(StoreError):
    """Another process locked the database for too long."""


class TooNew(StoreError):
    """The store was written by a newer version; it is left untouched."""


class MessagesLost(StoreError):
    """The store has lost messages; it is left untouched."""


class Altered(StoreError):
    """A stored request no longer rebuilds to the bytes that were sent."""
