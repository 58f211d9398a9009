"""LoadedView: the view at a head with the token counts of all its units, loaded only as far back as could fit."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import dropwhile

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.blocks import Compaction, ToolResult
from recto.chat.conversation import View, units
from recto.chat.message import Message
from recto.store.store import Store
from recto.turn.token_cache import Counted, TokenCache, total_of
from recto.window.count import SUMMARY, proportional_shares
from recto.window.request import Entry
from recto.window.window import NO_EXCERPTS, OWN_IDS, entries_of, ids_to_send, summary_entry

# The first page of a path; each further page is twice as long.
FIRST_PAGE = 256

ALL_OWN: Mapping[str, Mapping[str, str]] = {}
Unit = tuple[Message, ...]
CountedUnits = dict[str, list[Counted]]
"""Entries by the id of each unit's first message; tool results count with their call."""


class LoadedView(Struct, frozen=True, dict=True):
    view: View
    counted_units: CountedUnits
    factor: float = 1.0
    summary: Counted | None = None
    results: Mapping[str, int] = field(default_factory=dict)
    """Tokens of each tool result of the last round, by `message/call`."""

    @cached_property
    def counts(self) -> dict[str, int]:
        """Tokens by message; tool results count with their call, those of the last round also individually."""
        sent = (*self.view.lifted, *self.view.tail)
        counts = {message.id: total_of(self.counted_units.get(message.id, ())) for message in sent}
        if self.summary:
            counts[SUMMARY] = self.summary.count.tokens
        return {**counts, **self.results}

    @cached_property
    def all_results(self) -> dict[str, int]:
        """Tokens of every tool result as it is sent, by `message/call`; several in one entry get their shares."""
        found: dict[str, int] = {}
        for unit in units(self.view.tail):
            keys = _result_keys(unit)
            for counted in self.counted_units.get(unit[0].id, ()) if keys else ():
                sent = [block for block in counted.entry.blocks if isinstance(block, ToolResult)]
                shares = proportional_shares(counted.count.tokens, [len(block.text) + 1 for block in sent])
                # a call without a result is sent with one that says so
                each = zip(sent, shares, strict=True)
                found |= {keys[block.call_id]: share for block, share in each if block.call_id in keys}
        return found

    def rescaled(self, factor: float) -> "LoadedView":
        if factor == self.factor:
            return self
        units = {id: [entry.rescaled(factor) for entry in entries] for id, entries in self.counted_units.items()}
        results = {key: int(tokens * factor / self.factor) for key, tokens in self.results.items()}
        summary = self.summary.rescaled(factor) if self.summary else None
        return LoadedView(self.view, units, factor, summary, results)

    @property
    def covered_before(self) -> int:
        """The number of covered messages, which is also the number of the last one."""
        before = self.view.compaction
        return before.messages_archived + len(before.lifted) if before and before.last else 0

    def archived(self, last: str | None, lifted: Sequence[str]) -> int:
        """The number of messages archived after a cut, including those not loaded."""
        before, tail = self.view.compaction, self.view.tail
        said = {message.id: message.said for message in tail}.get(last or "")
        if said is None:
            is_before = before is not None and last == before.last
            said = 0 if last is None else self.covered_before if is_before or not tail else tail[0].said - 1
        return said - len(lifted)

    @cached_property
    def ahead(self) -> list[Counted]:
        """The entries sent in place of everything covered: the summary and the lifted messages."""
        return [*([self.summary] if self.summary else ()), *self.entries(self.view.still_sent)]

    @cached_property
    def before(self) -> list[Counted]:
        return [*self.ahead, *self.entries(self.view.history)]

    def entries(self, messages: Sequence[Message]) -> list[Counted]:
        return [entry for message in messages for entry in self.counted_units.get(message.id, ())]


def _result_keys(unit: Unit) -> dict[str, str]:
    """Keys (`message/call`) by call."""
    return {result.call_id: f"{message.id}/{result.call_id}" for message in unit[1:] for result in message.results}


async def load_view(
    store: Store, token_cache: TokenCache, head: str | None, current: str | None, room: int
) -> LoadedView:
    """The view at `head`, as far back as could fit in `room`; older messages stay in the store."""
    if head is None:
        return LoadedView(View((), current=current), {})
    size = FIRST_PAGE
    block, page = await store.do(store.tree.active, head, most=size)
    until, excerpts = (block.last, block.excerpts) if block else (None, NO_EXCERPTS)
    path, known = _said_of(page), CountedUnits()
    while True:
        known = await _count(token_cache, path, known, excerpts)
        start = page[-1].parent if len(page) == size else None
        if not start or start == until or sum(map(total_of, known.values())) > room:
            break
        size *= 2
        page = await store.do(store.tree.bare_page, start, most=size, until=until)
        path = _said_of(page) + path
    older = 0 if start is None or start == until else 1
    return await _view(store, token_cache, View(tuple(path), (), block, older, current), known)


def _said_of(page: list[Message]) -> list[Message]:
    """A page, oldest first, without Compactions."""
    return [message for message in reversed(page) if message.compaction is None]


async def extend_view(
    store: Store, token_cache: TokenCache, head: str | None, current: str | None, known: LoadedView | None
) -> LoadedView | None:
    """A loaded view extended by newer messages; None if anything else has changed."""
    if head is None or known is None or not known.view.tail:
        return None
    last = known.view.tail[-1].id
    if head == last and known.view.current == current:
        return known.rescaled(token_cache.factor)
    if known.view.older:
        return None
    page = await store.do(store.tree.bare_page, head, most=FIRST_PAGE, until=last)
    if not page or page[-1].parent != last:
        return None
    if any(message.compaction not in (None, known.view.compaction) for message in page):
        return None
    said = _said_of(page)
    # messages that another process may still be writing must be read again
    if any(message.status == "unfinished" for message in (*known.view.tail, *said)):
        return None
    return await grown_view(store, token_cache, known, said, current)


async def grown_view(
    store: Store, token_cache: TokenCache, known: LoadedView, said: Sequence[Message], current: str | None
) -> LoadedView:
    view = replace(known.view, tail=(*known.view.tail, *said), current=current)
    known = known.rescaled(token_cache.factor)
    # the same Compaction has the same summary
    summary = known.summary if view.compaction and view.compaction.summary else None
    return await _view(store, token_cache, view, known.counted_units, summary)


async def _view(
    store: Store, token_cache: TokenCache, view: View, known: CountedUnits, summary: Counted | None = None
) -> LoadedView:
    """The view with its lifted messages; tool results whose call was not loaded are dropped."""
    tail = tuple(dropwhile(lambda message: message.role == "tool", view.tail)) if view.older else view.tail
    wanted = view.compaction.lifted if view.compaction else ()
    lifted = await store.do(store.tree.messages, wanted) if wanted else []
    return await _counted_view(token_cache, replace(view, tail=tail, lifted=tuple(lifted)), known, summary)


async def _counted_view(
    token_cache: TokenCache, view: View, known: CountedUnits, summary: Counted | None = None
) -> LoadedView:
    block, parts = view.compaction, (view.lifted, view.history, view.rounds)
    call_ids = ids_to_send(message for part in parts for message in part)
    # some were counted while another message with the same ids was, or was not, sent before them
    known = {
        id: entries
        for id, entries in known.items()
        if not entries or entries[0].entry.call_ids == call_ids.get(id, OWN_IDS)
    }
    for part in parts:
        known = await _count(token_cache, part, known, block.excerpts if block else NO_EXCERPTS, call_ids)
    if summary is None and block and (entry := summary_entry(block, view.still_sent or view.history)):
        summary = (await token_cache.count([entry]))[0]
    results = await _results(token_cache, view, known)
    return LoadedView(view, known, token_cache.factor, summary, results)


async def _results(token_cache: TokenCache, view: View, known: CountedUnits) -> dict[str, int]:
    """Tokens of each result of the last round; their sum is at most the round's own count."""
    if not view.rounds:
        return {}
    unit = units(view.rounds)[-1]
    keys, entries = _result_keys(unit), known[unit[0].id]
    blocks = [block for each in entries for block in each.entry.blocks if isinstance(block, ToolResult)]
    sent = [block for block in blocks if block.call_id in keys]
    counted = await token_cache.count([Entry("tool", (block,)) for block in sent])
    tokens = {keys[block.call_id]: each.count.tokens for block, each in zip(sent, counted, strict=True)}
    whole, total = total_of(entries), sum(tokens.values())
    return {key: size * min(whole, total) // total for key, size in tokens.items()} if total else {}


async def _count(
    token_cache: TokenCache,
    messages: Sequence[Message],
    known: CountedUnits,
    excerpts: Mapping[str, str],
    call_ids: Mapping[str, Mapping[str, str]] = ALL_OWN,
) -> CountedUnits:
    """Counts the units; known ones are not rendered again."""
    fresh = [unit for unit in units(messages) if unit[0].id not in known]
    entries = [entries_of(unit, excerpts, call_ids.get(unit[0].id, OWN_IDS)) for unit in fresh]
    counted = iter(await token_cache.count([entry for group in entries for entry in group]))
    return known | {unit[0].id: [next(counted) for _ in group] for unit, group in zip(fresh, entries, strict=True)}


async def view_after_cut(token_cache: TokenCache, loaded: LoadedView, block: Compaction) -> LoadedView:
    """Nothing is read again, and what is no longer sent is released."""
    before, (covered, tail) = loaded.view.compaction, loaded.view.split(block.last)
    lifted = tuple(message for message in (*loaded.view.lifted, *covered) if message.id in block.lifted)
    view = replace(loaded.view, tail=tail, lifted=lifted, compaction=block, older=0)
    known = {each.id: found for each in (*lifted, *tail) if (found := loaded.counted_units.get(each.id)) is not None}
    if block.excerpts != (before.excerpts if before else {}):
        shortened = {key.partition("/")[0] for key in block.excerpts}
        for unit in units((*lifted, *tail)):
            if any(message.id in shortened for message in unit):
                known.pop(unit[0].id, None)
    return await _counted_view(token_cache, view, known)
