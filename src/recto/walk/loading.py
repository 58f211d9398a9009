"""Loading: the view at a head, newest first and only as far back as could fit, with the weight of all that is in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from recto.chat.blocks import Compaction, ToolResult
from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.store.clerk import Clerk
from recto.store.store import Store
from recto.walk.scale import Scale, Weighed
from recto.window.measure import SUMMARY
from recto.window.request import Entry
from recto.window.window import NO_EXCERPTS, entries_of, summary_entry

# The first look at a path; each further one is twice as deep.
FIRST_PAGE = 256

Unit = tuple[Message, ...]
Weights = dict[str, list[Weighed]]
"""The entries of each unit, by the id of its first message; a call's results weigh with the call."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A view with the weight of all its units."""

    view: View
    weights: Weights
    drift: int = 0
    """How much more than we the provider counted for the last reply's request; 0 where our counts are exact."""
    summary: Weighed | None = None
    """What is sent for all that is covered."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Tokens of each tool result of the last round, by `message/call`."""

    @property
    def counts(self) -> dict[str, int]:
        """Tokens by message; a call's results weigh with the call. Those of the last round also one by one."""
        weights = self.weights
        counts = {
            message.id: sum([entry.count.tokens for entry in weights.get(message.id, ())])
            for message in (*self.view.lifted, *self.view.tail)
        }
        if self.summary:
            counts[SUMMARY] = self.summary.count.tokens
        return {**counts, **self.results}

    def archived(self, last: str | None, lifted: Sequence[str]) -> int:
        """How many messages a cut takes out of the window, those before what was loaded included."""
        return self._said_up_to(last) - len(lifted)

    def covered(self, last: str | None) -> int:
        """How many messages a cut covers that were not covered before."""
        before = self.view.compaction
        return self._said_up_to(last) - (before.messages_archived + len(before.lifted) if before else 0)

    def _said_up_to(self, last: str | None) -> int:
        before = self.view.compaction
        known = {message.id: message.said for message in self.view.tail}
        if last in known:
            return known[last]
        if last is None or (before and last == before.last):
            return before.messages_archived + len(before.lifted) if before and last else 0
        return self.view.tail[0].said - 1 if self.view.tail else 0

    @property
    def ahead(self) -> list[Weighed]:
        """What stands for all that is covered: the summary, and what is lifted."""
        return [*([self.summary] if self.summary else ()), *self.entries(self.view.still_sent)]

    @property
    def before(self) -> list[Weighed]:
        """Everything that precedes the current message."""
        return [*self.ahead, *self.entries(self.view.history)]

    def entries(self, messages: Sequence[Message]) -> list[Weighed]:
        return [entry for message in messages for entry in self.weights.get(message.id, ())]


async def load(store: Store, clerk: Clerk, scale: Scale, head: str | None, current: str | None, room: int) -> Loaded:
    """The view at `head`, newest first, as far back as could fit in `room`; older messages stay in the store."""
    if head is None:
        return Loaded(View(()), {})
    size = FIRST_PAGE
    block, page = await clerk.do(store.tree.active, head, most=size)
    until, excerpts = (block.last, block.excerpts) if block else (None, NO_EXCERPTS)
    path = _said_of(page)
    weights = await _weigh(scale, path, {}, excerpts)
    start = page[-1].parent if len(page) == size else None
    while start and start != until and _total(weights) <= room:
        size *= 2
        page = await clerk.do(store.tree.bare_page, start, most=size, until=until)
        path = _said_of(page) + path
        weights = await _weigh(scale, path, weights, excerpts)
        start = page[-1].parent if len(page) == size else None
    is_whole = start is None or start == until
    return await _view(store, clerk, scale, View(tuple(path), (), block, 0 if is_whole else 1, current), weights)


def _said_of(page: list[Message]) -> list[Message]:
    """A page as it was said: oldest first, without the Compactions in between."""
    return [message for message in reversed(page) if message.compaction is None]


async def follow(
    store: Store, clerk: Clerk, scale: Scale, head: str | None, current: str | None, known: Loaded | None
) -> Loaded | None:
    """The view that was loaded before with what was said since; None when that is not all that has happened."""
    if head is None or known is None or not known.view.tail or known.view.older:
        return None
    last = known.view.tail[-1].id
    page = await clerk.do(store.tree.bare_page, head, most=FIRST_PAGE, until=last)
    if not page or page[-1].parent != last:
        return None
    if any(message.compaction not in (None, known.view.compaction) for message in page):
        return None
    view = replace(known.view, tail=(*known.view.tail, *_said_of(page)), current=current)
    # what another process may still be writing must be read again
    if any(message.status == "unfinished" for message in view.tail):
        return None
    return await _view(store, clerk, scale, view, known.weights)


async def _view(store: Store, clerk: Clerk, scale: Scale, view: View, weights: Weights) -> Loaded:
    """The view with what is lifted; without results whose call was not loaded, which mean nothing alone."""
    tail = list(dropwhile(lambda message: message.role == "tool", view.tail)) if view.older else view.tail
    wanted = view.compaction.lifted if view.compaction else ()
    lifted = await clerk.do(store.tree.messages, wanted) if wanted else []
    view = replace(view, tail=tuple(tail), lifted=tuple(lifted))
    loaded = await _weighed(scale, view, weights)
    return replace(loaded, drift=await _drift(store, clerk, scale, loaded))


async def _weighed(scale: Scale, view: View, weights: Weights) -> Loaded:
    block = view.compaction
    for part in (view.lifted, view.history, view.rounds):
        weights = await _weigh(scale, part, weights, block.excerpts if block else NO_EXCERPTS)
    entry = summary_entry(block, view.still_sent or view.history) if block else None
    summary = (await scale.weigh([entry]))[0] if entry else None
    return Loaded(view, weights, summary=summary, results=await _results(scale, view, weights))


async def _results(scale: Scale, view: View, weights: Weights) -> dict[str, int]:
    """What each result of the last round takes; together never more than the round does."""
    if not view.rounds:
        return {}
    first, *rest = units(view.rounds)[-1]
    sent = [block for entry in weights[first.id] for block in entry.entry.blocks if isinstance(block, ToolResult)]
    keys = {result.call_id: f"{message.id}/{result.call_id}" for message in rest for result in message.results}
    known = [block for block in sent if block.call_id in keys]
    weighed = await scale.weigh([Entry("tool", (block,)) for block in known])
    tokens = {keys[block.call_id]: each.count.tokens for block, each in zip(known, weighed, strict=True)}
    whole, total = sum(entry.count.tokens for entry in weights[first.id]), sum(tokens.values())
    return {key: size * min(whole, total) // total for key, size in tokens.items()} if total else {}


async def _drift(store: Store, clerk: Clerk, scale: Scale, loaded: Loaded) -> int:
    if all(entry.count.exact for entries in loaded.weights.values() for entry in entries):
        return 0
    last = next((message.id for message in reversed(loaded.view.tail) if message.role == "assistant"), None)
    request = await clerk.do(store.tree.request_of, last) if last else None
    if last is None or request is None:
        return 0
    account = (await clerk.do(store.records.record, request)).account
    usage = (await clerk.do(store.tree.message, last)).usage
    if usage is None or not usage.reported or account["meter"] != scale.meter.key:
        return 0
    return max(0, usage.input - int(account["total"]))


async def _weigh(scale: Scale, messages: Sequence[Message], known: Weights, excerpts: Mapping[str, str]) -> Weights:
    """The weights of these messages' units; what is known of them is not rendered again."""
    fresh = [unit for unit in units(messages) if unit[0].id not in known]
    entries = [entries_of(unit, excerpts) for unit in fresh]
    weighed = iter(await scale.weigh([entry for group in entries for entry in group]))
    return known | {unit[0].id: [next(weighed) for _ in group] for unit, group in zip(fresh, entries, strict=True)}


async def behind_cut(scale: Scale, loaded: Loaded, block: Compaction) -> Loaded:
    """What the view becomes once this Compaction stands: nothing is read again, and no more is held."""
    view, before = loaded.view, loaded.view.compaction
    covered, stays = view.split(block.last)
    lifted = tuple(message for message in (*view.lifted, *covered) if message.id in block.lifted)
    view = replace(view, tail=stays, lifted=lifted, compaction=block, older=0)
    known = {
        message.id: loaded.weights[message.id] for message in (*lifted, *view.tail) if message.id in loaded.weights
    }
    if block.excerpts != (before.excerpts if before else {}):
        shortened = {key.partition("/")[0] for key in block.excerpts}
        for unit in units((*lifted, *view.tail)):
            if any(message.id in shortened for message in unit):
                known.pop(unit[0].id, None)
    return replace(await _weighed(scale, view, known), drift=loaded.drift)


def _total(weights: Weights) -> int:
    return sum(entry.count.tokens for entries in weights.values() for entry in entries)
