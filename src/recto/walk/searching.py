"""Searching: what a user looks for: messages of all conversations, archived parts and branches, each once.

Recalling is the other way round: what comes back to a model by itself, from the path that it is on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Literal, overload

from recto.chat.blocks import Compaction
from recto.chat.conversation import Conversation
from recto.chat.message import Message
from recto.chat.trail import Trail
from recto.errors import Invalid
from recto.search.finder import Hit
from recto.search.index import Filter
from recto.store.store import Store
from recto.text import clean
from recto.walk.archive import Archive, Recalled

Place = Literal["active", "archived", "branch"]
"""In the view of its conversation, covered by a compaction, or not on the path to the head."""
Time = str | datetime
# What shares no word with the question counts when it is at least so near to it in meaning.
NEAR = 0.25
# Clocks are put back by an hour: the index keeps the user's own time, to the second.
SLACK = timedelta(hours=1, seconds=1)


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was found, with the passage that was."""

    conversation: str
    title: str
    message: Message
    place: Place
    score: float
    """Between 0 and 1: half of it for the words that it holds, half for its rank by words and meaning."""
    because: str
    text: str
    """The passage as it was said."""
    start: int
    """Where it stands in the message, files and what tools were given and gave out included."""
    end: int


@dataclass(frozen=True, slots=True)
class Findings(Sequence[Found]):
    """What was found, the best first."""

    found: tuple[Found, ...] = ()
    note: str = ""
    """What was not as it should be: no vectors, or an index that is still being made."""

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Found: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Found, ...]: ...
    def __getitem__(self, place: int | slice) -> Found | tuple[Found, ...]:
        return self.found[place]


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for, and where."""

    text: str
    conversation: str | None = None
    role: str | None = None
    since: Time | None = None
    before: Time | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class Home:
    """A conversation as far as it tells where in it a message stands."""

    conversation: Conversation
    trail: Trail
    covered: int
    lifted: frozenset[str]

    def place(self, each: Recalled) -> Place:
        passage = each.hit.passage
        if not self.trail.holds(passage.branch, passage.place):
            return "branch"
        return "archived" if passage.place <= self.covered and each.message.id not in self.lifted else "active"


def search(archive: Archive, store: Store, sought: Sought) -> Findings:
    """NotFound for a conversation that there is not. Waits for nothing: what is not indexed yet is told."""
    if sought.conversation is not None:
        store.tree.conversation(sought.conversation)
    since, before = _stored(sought.since), _stored(sought.before)
    only = Filter(sought.role, _moved(since, -SLACK), _moved(before, SLACK))
    text = clean(sought.text)[0]
    hits, note = archive.search(text, home=sought.conversation, only=only, most=sought.limit)
    best = sorted(filter(_tells, hits), key=_score, reverse=True)
    read = (each for some in _batched(best, sought.limit) for each in archive.read(some))
    between = (each for each in read if _is_between(each.message.created, since, before))
    return Findings(tuple(_found(store, list(islice(between, sought.limit)))), note)


def _batched(hits: Sequence[Hit], size: int) -> Iterator[Sequence[Hit]]:
    """Read no more than are wanted, as a rule: few lie beside the times that are looked for, not between."""
    return (hits[start : start + size] for start in range(0, len(hits), max(1, size)))


def _score(hit: Hit) -> float:
    """By rank alone, what is merely near would stand before what holds the very words that were typed."""
    return round((hit.words + hit.score) / 2, 4)


def _tells(hit: Hit) -> bool:
    return hit.words > 0 or (hit.meaning or 0.0) >= NEAR


def _is_between(created: str, since: str | None, before: str | None) -> bool:
    return (since is None or created >= since) and (before is None or created < before)


def _stored(time: Time | None) -> str | None:
    """A time as it is stored; one without a zone is the user's own."""
    if time is None:
        return None
    try:
        moment = datetime.fromisoformat(time) if isinstance(time, str) else time
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError) as why:
        raise Invalid(f"{time} is no time; write 2026-01-31 or 2026-01-31T18:00", time=str(time)) from why


def _moved(stored: str | None, by: timedelta) -> str | None:
    """On the user's clock, as the index has it; nothing for a time that no calendar holds."""
    if stored is None:
        return None
    try:
        return (datetime.fromisoformat(stored) + by).astimezone().isoformat(timespec="seconds")[:19]
    except (ValueError, OverflowError):
        return None


def _found(store: Store, hits: Sequence[Recalled]) -> Iterator[Found]:
    homes = {id: _home(store, id) for id in dict.fromkeys(each.home for each in hits)}
    for each in hits:
        home, hit = homes[each.home], each.hit
        yield Found(
            each.home,
            home.conversation.title,
            each.message,
            home.place(each),
            _score(hit),
            hit.because,
            each.text,
            hit.passage.start,
            hit.passage.end,
        )


def _home(store: Store, id: str) -> Home:
    conversation = store.tree.conversation(id)
    if conversation.head is None:
        return Home(conversation, Trail(), 0, frozenset())
    block = _in_force(store, conversation.head)
    last = store.tree.message(block.last).depth if block and block.last else 0
    return Home(conversation, store.tree.trail(conversation.head), last, frozenset(block.lifted if block else ()))


def _in_force(store: Store, head: str) -> Compaction | None:
    newest = store.tree.compaction(head)
    return newest.compaction if newest else None
