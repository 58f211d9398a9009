"""Whether a request would be accepted and answered: pairs of calls and results, the last question, the budget. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.wire import Wire, texts, weights

# Enough of a question to know it by, also where only an excerpt of it is sent.
KNOWN_BY = 60


@dataclass(frozen=True, slots=True)
class Verdict:
    """On one request, or on all of a conversation: then the worst of each."""

    loose_results: int = 0
    """Results whose call is not right before them."""
    open_calls: int = 0
    """Calls whose result does not follow."""
    lost: bool = False
    """The last message of the user is not in it."""
    over: float = 0.0
    """Tokens as a share of the budget; over 1 is too much."""

    def __or__(self, other: "Verdict") -> "Verdict":
        return Verdict(
            max(self.loose_results, other.loose_results),
            max(self.open_calls, other.open_calls),
            self.lost or other.lost,
            max(self.over, other.over),
        )


def judge(messages: Sequence[Wire], question: str, most: int, besides: int = 0) -> Verdict:
    """`besides` are tokens of the request that are no messages: its tools."""
    loose, unanswered = unpaired(messages)
    return Verdict(loose, unanswered, not holds(messages, question), (weights(messages) + besides) / most)


def unpaired(messages: Sequence[Wire]) -> tuple[int, int]:
    """How many results stand without their call, and calls without their result, as a provider checks them: results
    must directly follow the message that calls."""
    loose = unanswered = 0
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            loose += message["tool_call_id"] not in waiting
            waiting.discard(message["tool_call_id"])
        else:
            unanswered += len(waiting)
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return loose, unanswered + len(waiting)


def holds(messages: Sequence[Wire], question: str) -> bool:
    """Whether a message of the user's role has the question, or its beginning."""
    start = question[:KNOWN_BY]
    return any(start in text for message in messages if message["role"] == "user" for text in texts(message))
