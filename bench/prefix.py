"""A provider's prefix cache, simulated: what of a request was at the beginning of an earlier one is read, not computed.

Pure. Requests are numbers of messages; what a message is in tokens, the one who asks knows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

Tokens = Sequence[int]
# Providers match whole blocks of this many tokens.
UNIT = 128
READ, WRITE = 0.1, 1.25


@dataclass(frozen=True, slots=True)
class Bill:
    """Input tokens, and how many of them were read from the cache. Everything else is written to it."""

    input: int = 0
    read: int = 0

    def __add__(self, other: "Bill") -> "Bill":
        return Bill(self.input + other.input, self.read + other.read)

    def cost(self, write: float = WRITE) -> float:
        """In tokens at the plain price."""
        return READ * self.read + write * (self.input - self.read)

    @property
    def hit_rate(self) -> float:
        return self.read / self.input if self.input else 0.0


@dataclass(slots=True)
class Node:
    """What came after a beginning, in any request so far."""

    next: dict[int, "Node"] = field(default_factory=dict)


class PrefixCache:
    """All requests of one conversation so far; nothing is ever let go."""

    def __init__(self, tokens: Callable[[int], Tokens]) -> None:
        self._tokens = tokens
        self._root = Node()

    def send(self, request: Sequence[int]) -> Bill:
        """What this request costs; from now on it is known."""
        total = sum(len(self._tokens(message)) for message in request)
        shared = self._shared(request)
        self._keep(request)
        return Bill(total, shared - shared % UNIT)

    def _shared(self, request: Sequence[int]) -> int:
        """The longest common beginning with an earlier request, in tokens."""
        node, shared = self._root, 0
        for message in request:
            if message not in node.next:
                own = self._tokens(message)
                return shared + max((common(own, self._tokens(other)) for other in node.next), default=0)
            node = node.next[message]
            shared += len(self._tokens(message))
        return shared

    def _keep(self, request: Sequence[int]) -> None:
        node = self._root
        for message in request:
            node = node.next.setdefault(message, Node())


def common(one: Tokens, other: Tokens) -> int:
    """How many tokens both begin with. A message never is the beginning of another: its last token marks its end."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def total(bills: Iterable[Bill]) -> Bill:
    return sum(bills, Bill())
