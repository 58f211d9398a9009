"""The tree of errors, by what the caller can do about them. Knows nothing of the rest.

RectoError
├── NotFound          conversation, document, model          → check the name
├── Invalid           settings, input, a file from elsewhere → fix the value
├── DoesNotFit        needed, room, largest                  → cut more, or a larger model
├── ProviderError     ├ NoKey ├ RateLimited ├ Unreachable ├ Refused ├ Overflow
├── NoVectors         the extra, the embedder, its answer     → words alone go on
└── StoreError        ├ Busy ├ TooNew ├ Altered
"""


class RectoError(Exception):
    """One sentence that the user can act on; what it is made of rides along as attributes."""

    def __init__(self, message: str, **data: object) -> None:
        super().__init__(message)
        self.message = message
        self.data = data

    @property
    def type(self) -> str:
        return type(self).__name__


class NotFound(RectoError):
    """No such conversation, message, document, request or model."""


class Invalid(RectoError):
    """A value from outside that we cannot take; the message says which and what is allowed."""


class DoesNotFit(RectoError):
    """What must be in the window is larger than its room."""

    def __init__(self, message: str, *, needed: int, room: int, largest: str) -> None:
        super().__init__(message, needed=needed, room=room, largest=largest)
        self.needed, self.room, self.largest = needed, room, largest


class ProviderError(RectoError):
    """The model's side failed; `partial` says that some of a reply had come before."""

    partial: bool = False


class NoKey(ProviderError):
    """The provider wants a key and none is set."""


class RateLimited(ProviderError):
    """The provider asks us to slow down; `retry_after_s` is its own wish, where it gave one."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.retry_after_s = retry_after_s


class Unreachable(ProviderError):
    """No answer, a broken stream, a server error, or something that is not the format at all."""


class Refused(ProviderError):
    """The provider understood and said no: a bad key, an unknown model, a forbidden request."""


class Overflow(ProviderError):
    """The provider counted more than we did."""


class NoVectors(RectoError):
    """The embedder is not installed, cannot be reached or gave something that is no meaning; words alone go on."""


class StoreError(RectoError):
    """The database cannot be read or written."""


class Busy(StoreError):
    """Another process held the database for longer than we wait."""


class TooNew(StoreError):
    """The store was written by a newer version; it is left untouched."""


class Altered(StoreError):
    """A stored request no longer rebuilds to the bytes that were sent."""
