"""The planner: (strategy, view, budget, counts) -> Plan. It works on numbers only and changes nothing.

Every strategy waits until a compaction is due, checks that it would free something, and then cuts. The strategy decides
whether a summary replaces the covered messages, and which covered messages are still sent.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from recto.chat.conversation import View
from recto.settings.strategy import DISCARD, Strategy
from recto.window.compaction_block import is_held
from recto.window.count import (
    NOTICE,
    SMALLEST_SUMMARY,
    Group,
    Measured,
    Shrunk,
    fit,
    measure,
    recent_start,
    shrink,
    start_of_last,
)
from recto.window.plan import NOTHING, Band, Budget, Cut, Lift, Plan, Range

LINE = 96
"""The most tokens of a line that replaces a tool result, with the id of its call."""
WORTH_A_LINE = 3 * LINE
FEWEST = 2
"""The number of latest messages that stay in a requested compaction, including the next one."""
NOT_SHRINKABLE: Mapping[str, Mapping[str, int]] = {}
LITTLE = 0.1
"""A share of the room: a compaction that frees less has freed little."""
PATIENCE = 2
"""No more compactions are made after this many in a row that freed little."""


def plan_window(
    strategy: Strategy,
    view: View,
    budget: Budget,
    counts: Mapping[str, int],
    *,
    results: Mapping[str, int] | None = None,
    ahead: str | None = None,
) -> Plan:
    """Plans which messages stay, are summarised or left out, and why. All stay while no compaction is due.

    `results` are the tokens of all tool results, by `message/call`: old, large ones shrink to a line, and nothing is
    covered if that reaches low water. `ahead` is the last message of a summary written ahead: the cut is there if that
    reaches low water.
    """
    measured = measure(view, budget, counts)
    why = _due(measured)
    if not why:
        return _all_kept(strategy, measured, "everything fits")
    shrinkable = _shrinkable(measured, results or {})
    if (cut := _shrink_results(measured, shrinkable)) and cut.size <= budget.floor:
        return cut.plan(strategy, f"{why}; {len(cut.lines)} old tool results shrink to a line each")
    if ahead and (cut := _cut(strategy, measured, ahead=ahead)) and _reaches_low_water(cut):
        return cut.plan(strategy, why)
    cut = _cut(strategy, measured, shrinkable=shrinkable)
    if cut is None:
        return _all_kept(strategy, measured, f"{why}, but there is nothing to cover")
    if is_held(view.compaction, measured.size) and not view.older and measured.size <= budget.room * (1 + LITTLE):
        return _passing(cut, f"{why}, and the user took the last compaction back")
    little = budget.room * LITTLE
    if not measured.is_over:
        # a summary seldom has its full length
        if cut.frees + (cut.summary or 0) // 2 < little:
            return _all_kept(strategy, measured, f"{why}, but a compaction would free only {max(0, cut.frees)}")
        return cut.plan(strategy, why)
    before = view.compaction
    if before and before.little >= PATIENCE and cut.frees < little:
        return _passing(cut, f"{why}; {PATIENCE} compactions in a row have freed little, so no more are made")
    if cut.loses:
        return _passing(cut, f"{why}, and a summary has no room beside what must be sent")
    return cut.plan(strategy, why)


def compact_now(strategy: Strategy, view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """Plans a compaction at the user's request, due or not: it covers everything but the latest messages. In a short
    chat fewer stay, down to the last one, until half of it is covered. `because` says why nothing is covered."""
    measured = measure(view, budget, counts)
    there = sum(len(group.messages) for group in measured.groups)
    most, half = min(budget.recent, max(there, FEWEST)), sum(group.tokens for group in measured.groups) // 2
    for recent in range(most, min(most, FEWEST) - 1, -1):
        fewer = replace(budget, recent=recent, least_recent=min(budget.least_recent, recent))
        cut = _cut(strategy, measure(view, fewer, counts), on_request=True)
        if cut and cut.covered.tokens >= half:
            break
    if cut is None or not cut.covered.count:
        return _all_kept(strategy, measured, "there is no message before the last one")
    # the previous summary becomes part of the new one, which may be shorter than both
    if measured.size <= budget.room and not view.compaction and cut.covered.tokens < SMALLEST_SUMMARY:
        little = f"the text before the last messages takes {cut.covered.tokens} tokens, and a summary of it would"
        return _all_kept(strategy, measured, f"{little} take as many")
    return cut.plan(strategy, "the user asked for it")


def plan_ahead(
    strategy: Strategy,
    view: View,
    budget: Budget,
    counts: Mapping[str, int],
    *,
    results: Mapping[str, int] | None = None,
) -> Plan:
    """Plans the compaction that will be due soon: its cut must still reach low water in the window as grown by then.
    All stay if there is no such cut."""
    now = measure(view, budget, counts)
    # the message that makes it due exceeds that by about as much as the last ones took
    beyond = max(int(budget.room * LITTLE) // 2, sum(group.tokens for group in now.groups[-2:]))
    growth = max(0, budget.due - now.size) + beyond
    measured = measure(view, replace(budget, low_water=budget.low_water - growth), counts)
    shrunk = _shrink_results(measured, _shrinkable(measured, results or {}))
    cut = _cut(strategy, measured)
    if cut is None or not _reaches_low_water(cut) or (shrunk and shrunk.size <= measured.budget.floor):
        return _all_kept(strategy, now, "no cut would reach low water later")
    return cut.plan(strategy, "a compaction will soon be due")


def _reaches_low_water(cut: "Cutting") -> bool:
    budget = cut.measured.budget
    return cut.size <= budget.floor and cut.frees >= budget.room * LITTLE and bool(cut.summary) and not cut.loses


def squeezed(strategy: Strategy, view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """Plans a smaller window after the provider rejected one as too long: the largest tool results of this turn at half
    their size; else a compaction down to the budget, which the caller has reduced; else half of the user's message."""
    measured = measure(view, replace(budget, recent=budget.least_recent), counts)
    why = "the provider says that the window is too long"
    large = {key: size // 2 for key, size in measured.results.items() if size > budget.room * LITTLE}
    message = {view.current: budget.current // 2} if view.current and budget.current > 2 * SMALLEST_SUMMARY else {}
    for squeeze in (large, {}, message):
        cut = _cut(strategy, measured, on_request=not squeeze, squeeze=squeeze)
        if cut is not None and cut.frees + (cut.summary or 0) // 2 > 0:
            return _passing(cut, f"{why}, and a summary has no room") if cut.loses else cut.plan(strategy, why)
    return _all_kept(strategy, measured, f"{why}, but there is nothing to make smaller")


def _due(measured: Measured) -> str:
    """Why a compaction is due; empty if none is."""
    budget, size = measured.budget, measured.size
    more = " or more" if measured.view.older else ""
    if measured.view.older or size > budget.room:
        return f"{size}{more} tokens are over the {budget.room} that the window has room for"
    if is_held(measured.view.compaction, size):
        return ""
    if budget.trigger is not None and size >= budget.trigger:
        return f"{size} tokens have reached {budget.trigger / budget.limit:.0%} of {budget.limit}"
    if budget.trigger is not None and size - budget.instructions - budget.tools > budget.messages:
        return f"the messages are over their budget of {budget.messages} tokens"
    return ""


def _passing(cut: "Cutting", why: str) -> Plan:
    """Makes the window fit for this request only, without a model and without a stored Compaction."""
    plan = cut.plan(DISCARD, why)
    assert plan.cut is not None
    keeps = None if cut.summary is None or cut.measured.summary <= cut.summary else 0
    return replace(plan, cut=replace(plan.cut, passing=True, summary=keeps), summed_up=NOTHING, left_out=cut.covered)


class Cutting(Struct, frozen=True):
    measured: Measured
    start: int
    summary: int | None
    lifts: tuple[Lift, ...]
    bands: tuple[Band, ...]
    shrunk: Shrunk
    loses: bool = False
    """It covers messages without a summary of them: stored only by strategies without summaries."""
    shrinkable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By the first message of a group: its old tool results, and what each saves as a line."""

    @property
    def kept(self) -> Sequence[Group]:
        return self.measured.groups[self.start :]

    @property
    def size(self) -> int:
        """The size of the window after the cut, at most."""
        measured, lifted = self.measured, sum(lift.tokens for lift in self.lifts)
        summary = measured.summary if self.summary is None else self.summary
        kept = sum(group.tokens - _saved(group, self.shrinkable) for group in self.kept)
        if self.kept and self.kept[-1] is measured.last_round:
            kept -= self.kept[-1].tokens - self.shrunk.round
        notice = NOTICE if self.lifts and not summary else 0
        return measured.budget.around + self.shrunk.current + (summary or notice) + lifted + kept

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(key for group in self.kept for key in self.shrinkable.get(group.first, ()))

    @property
    def frees(self) -> int:
        return self.measured.size - self.size

    @property
    def covered(self) -> Range:
        lifted = {id for lift in self.lifts for id in lift.messages}
        covered = [group for group in self.measured.groups[: self.start] if group.first not in lifted]
        return _range(covered, sum(group.tokens for group in covered))

    def plan(self, strategy: Strategy, why: str) -> Plan:
        kept = _range(self.kept, sum(group.tokens for group in self.kept))
        covered = {"summed_up" if self.summary else "left_out": self.covered}
        cut = Cut(self._last, self._lifted, self.summary, dict(self.shrunk.excerpts), self.lines)
        return Plan(
            strategy.name, kept, why, lifted=self.lifts, bands=self.bands, cut=cut, frees=max(0, self.frees), **covered
        )

    @property
    def _last(self) -> str | None:
        view = self.measured.view
        if self.start:
            return self.measured.groups[self.start - 1].ids[-1]
        return view.tail[0].parent if view.older and view.tail else view.compaction.last if view.compaction else None

    @property
    def _lifted(self) -> tuple[str, ...]:
        """The ids in order of time, with the current message if it is covered with the first rounds of its turn."""
        current, history = self.measured.view.current, self.measured.history
        ids = [id for lift in self.lifts for id in lift.messages]
        if current is None or not (self.start > history or self.measured.view.current_is_lifted):
            return tuple(ids)
        later = {id for group in self.measured.groups[history:] for id in group.ids}
        before = [id for id in ids if id not in later]
        return (*before, current, *(id for id in ids if id in later))


def _saved(group: Group, shrinkable: Mapping[str, Mapping[str, int]]) -> int:
    return sum(shrinkable[group.first].values()) if group.first in shrinkable else 0


def _cut(
    strategy: Strategy,
    measured: Measured,
    *,
    on_request: bool = False,
    squeeze: Mapping[str, int] | None = None,
    ahead: str | None = None,
    shrinkable: Mapping[str, Mapping[str, int]] = NOT_SHRINKABLE,
) -> Cutting | None:
    """`ahead`: the cut is after this message; None if it is not there, or if the last round does not stay."""
    budget, groups, last = measured.budget, measured.groups, measured.last_round
    max_summary = budget.summary if strategy.summarizes else measured.summary
    shrunk = shrink(measured, max_summary, squeeze or {})
    costs = [0 if group.pinned else group.tokens - _saved(group, shrinkable) for group in groups]
    if last and shrunk.keeps_round:
        costs[-1] = 0 if last.pinned else shrunk.round
    around = budget.around + shrunk.current + measured.pins
    summary = min(max_summary, max(0, budget.room - around - (shrunk.round if last else 0)) // 2)
    summary = summary if summary >= (SMALLEST_SUMMARY if strategy.summarizes else measured.summary) else 0
    if ahead is None:
        start = _start(strategy, measured, costs, around, summary, on_request=on_request)
    else:
        start = next((place for place, group in enumerate(groups, 1) if group.ids[-1] == ahead), 0)
    if ahead is not None and (not start or start > measured.history or shrunk.excerpts):
        return None
    if last:
        start = min(start, len(groups) - 1) if shrunk.keeps_round else len(groups)
    if summary == 0:
        start = _at_a_question(measured, start)
    lifts, bands = _lifts(strategy, measured, start, around + max(summary, NOTICE) + sum(costs[start:]))
    return _worth_making(
        strategy, Cutting(measured, start, summary, tuple(lifts), bands, shrunk, shrinkable=shrinkable)
    )


def _shrinkable(measured: Measured, results: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The large tool results of older groups, and what each saves as a line."""
    old = measured.groups[: start_of_last(measured.groups, max(measured.budget.recent, 2) - 1)]
    found: dict[str, dict[str, int]] = {}
    for group in old if results else ():
        keys = [f"{message.id}/{result.call_id}" for message in group.messages[1:] for result in message.results]
        large = {key: results[key] - LINE for key in keys if results.get(key, 0) >= WORTH_A_LINE}
        if large and not group.pinned:
            found[group.first] = large
    return found


def _shrink_results(measured: Measured, shrinkable: Mapping[str, Mapping[str, int]]) -> Cutting | None:
    """Old tool results as lines, and everything else unchanged."""
    if not shrinkable or measured.view.older:
        return None
    lifts = tuple(Lift(group.ids, group.tokens, "pinned" if group.pinned else "as before") for group in measured.lifted)
    last = measured.last_round
    shrunk = Shrunk(measured.budget.current, last.tokens if last else 0)
    return Cutting(measured, 0, None, lifts, (), shrunk, shrinkable=shrinkable)


def _worth_making(strategy: Strategy, cut: Cutting) -> Cutting | None:
    """The cut with the fate of the current summary; None if it would change nothing."""
    measured, as_it_is = cut.measured, replace(cut, summary=None)
    has_summary = bool(measured.view.compaction and measured.view.compaction.summary)
    if cut.start > 0 or measured.view.older:
        if not strategy.summarizes:  # no new summary, but an earlier one stays
            return as_it_is if cut.summary else replace(cut, loses=has_summary)
        return replace(cut, loses=cut.summary == 0)
    if as_it_is.size > measured.budget.room:
        return replace(cut, loses=has_summary and cut.summary == 0)
    lifted = {id for lift in cut.lifts for id in lift.messages}
    dropped = any(group.first not in lifted for group in measured.lifted)
    return as_it_is if dropped or cut.shrunk.excerpts else None


def _start(
    strategy: Strategy, measured: Measured, costs: Sequence[int], around: int, summary: int, *, on_request: bool
) -> int:
    """The first group that stays: the first of the latest messages, or an earlier one as far as low water allows.

    Summaries seldom have the full length, so the latest messages may use most of the room reserved for one.
    """
    budget, groups, used = measured.budget, measured.groups, around + summary
    if budget.recent == 0 and strategy.summarizes:
        return len(groups)
    hard, soft = budget.room - used, budget.floor - around - summary // 4
    if strategy.latest_share < 1:
        soft = min(soft, int((budget.floor - around) * strategy.latest_share))
    recent = recent_start(groups, costs, budget, min(hard, soft), hard)
    if on_request:
        return recent or start_of_last(groups, budget.least_recent - 1)
    return min(recent, fit(costs, budget.floor - used)) if strategy.extends_tail else recent


def _at_a_question(measured: Measured, start: int) -> int:
    """Moves the start to a user message: without a summary in front, some providers reject a window that begins with a
    reply."""
    while start < measured.history and measured.groups[start].messages[0].role != "user":
        start += 1
    return start


def _lifts(strategy: Strategy, measured: Measured, start: int, used: int) -> tuple[list[Lift], tuple[Band, ...]]:
    """Lifts all pinned messages, and those of the other covered ones that the bands of the strategy choose."""
    covered = (*measured.lifted, *measured.groups[:start])
    chosen: dict[str, Lift] = {
        group.first: Lift(group.ids, group.tokens, "pinned") for group in covered if group.pinned
    }
    bands: tuple[Band, ...] = ()
    if strategy.bands:
        budget = measured.budget
        messages = max(0, budget.floor - budget.fixed)
        unpinned = [group for group in covered if not group.pinned]
        lifts, bands = _lift_by_band(strategy, unpinned, messages, budget.floor - used)
        chosen |= {lift.messages[0]: lift for lift in lifts}
    return [chosen[group.first] for group in covered if group.first in chosen], bands


def _lift_by_band(
    strategy: Strategy, candidates: Sequence[Group], messages: int, room: int
) -> tuple[list[Lift], tuple[Band, ...]]:
    """Lifts in order of time. `messages` is the whole message budget, `room` the unused part of it.

    Within a band the highest priority comes first, then the newest message. A band passes unused tokens to the next.
    """
    left = max(0, room - int(messages * strategy.spare_share))
    carried = 0
    chosen: dict[int, Lift] = {}
    report = []
    for band in strategy.bands:
        share = min(left, int(messages * band.share) + carried) if band.share else left
        used = 0
        places = [
            place for place, group in enumerate(candidates) if band.min_priority <= group.priority <= band.max_priority
        ]
        for place in sorted(places, key=lambda place: (-candidates[place].priority, -place)):
            group = candidates[place]
            if place not in chosen and left and used + group.tokens <= share:
                used += group.tokens
                chosen[place] = Lift(group.ids, group.tokens, f"priority {group.priority} ({band.name})")
        carried, left = share - used, left - used
        report.append(Band(band.name, share, used))
    report.append(Band("memory", int(messages * strategy.memory_share), 0))
    return [chosen[place] for place in sorted(chosen)], tuple(report)


def _all_kept(strategy: Strategy, measured: Measured, because: str) -> Plan:
    lifts = tuple(
        Lift(group.ids, group.tokens, "pinned" if group.pinned else f"priority {group.priority}")
        for group in measured.lifted
    )
    return Plan(
        strategy.name, _range(measured.groups, sum(group.tokens for group in measured.groups)), because, lifted=lifts
    )


def _range(groups: Sequence[Group], tokens: int) -> Range:
    if not groups:
        return NOTHING
    return Range(groups[0].ids[0], groups[-1].ids[-1], sum(len(group.messages) for group in groups), tokens)
