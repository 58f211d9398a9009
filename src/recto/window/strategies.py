"""Strategies: (view, budget, counts) -> Plan. They see numbers only and change nothing.

All of them wait until a compaction is due, check that it would free something, and then cut: `discard` without a
summary, `summarize` with one, `hybrid` with one and with what its bands lift.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from recto.chat.conversation import View
from recto.window.bands import LATEST, lift
from recto.window.budget import Budget
from recto.window.fitting import SMALLEST_SUMMARY, Shrunk, fit, recent_start, shrink, start_of_last
from recto.window.measure import NOTICE, Group, Measured, measure
from recto.window.plan import NOTHING, Band, Cut, Lift, Plan, Range

LITTLE = 0.1
"""Of the room: a compaction that frees less frees little."""
PATIENCE = 2
"""After so many in a row that freed little, no more are made."""

Strategy = Callable[[View, Budget, Mapping[str, int]], Plan]


def discard(view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """Keeps the newest that stay below low water, and at least the latest messages."""
    return _plan("discard", measure(view, budget, counts))


def summarize(view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """The same with a summary of what is covered, whose room is taken off before anything is fitted."""
    return _plan("summarize", measure(view, budget, counts))


def hybrid(view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """A summary, the latest messages, and of the covered ones those that matter most, by bands of priority."""
    return _plan("hybrid", measure(view, budget, counts))


STRATEGIES: dict[str, Strategy] = {"discard": discard, "summarize": summarize, "hybrid": hybrid}


def compact_now(strategy: str, view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """As the user asks for it: everything but the latest messages is covered, due or not."""
    measured = measure(view, budget, counts)
    cut = _cut(strategy, measured, asked=True)
    is_small = cut is not None and cut.frees <= 0 and budget.recent > len(measured.groups)
    if cut is None or (is_small and measured.size <= budget.room):
        return _all_kept(strategy, measured, "there is nothing to cover")
    return cut.plan(strategy, "the user asked for it")


def squeezed(strategy: str, view: View, budget: Budget, counts: Mapping[str, int]) -> Plan:
    """For a provider that says the window is too long: the largest tool results of this turn at half their size; else
    a compaction down to the budget, which the caller has made smaller; else half of the user's message."""
    measured = measure(view, replace(budget, recent=budget.least_recent), counts)
    why = "the provider says that the window is too long"
    large = {key: size // 2 for key, size in measured.results.items() if size > budget.room * LITTLE}
    message = {view.current: budget.current // 2} if view.current and budget.current > 2 * SMALLEST_SUMMARY else {}
    for squeeze in (large, {}, message):
        cut = _cut(strategy, measured, asked=not squeeze, squeeze=squeeze)
        if cut is not None and cut.frees + (cut.summary or 0) // 2 > 0:
            return _passing(cut, f"{why}, and a summary has no room") if cut.loses else cut.plan(strategy, why)
    return _all_kept(strategy, measured, f"{why}, but there is nothing to make smaller")


def _plan(strategy: str, measured: Measured) -> Plan:
    why = _due(measured)
    if not why:
        return _all_kept(strategy, measured, "everything fits")
    cut = _cut(strategy, measured)
    if cut is None:
        return _all_kept(strategy, measured, f"{why}, but there is nothing to cover")
    little = measured.budget.room * LITTLE
    if not measured.is_over:
        # a summary is seldom as long as it may be
        if cut.frees + (cut.summary or 0) // 2 < little:
            return _all_kept(strategy, measured, f"{why}, but a compaction would free only {max(0, cut.frees)}")
        return cut.plan(strategy, why)
    before = measured.view.compaction
    if before and before.little >= PATIENCE and cut.frees < little:
        return _passing(cut, f"{why}; {PATIENCE} compactions in a row have freed little, so no more are made")
    if cut.loses:
        return _passing(cut, f"{why}, and a summary has no room beside what must be sent")
    return cut.plan(strategy, why)


def _due(measured: Measured) -> str:
    """Because of what a compaction is due; empty when it is not."""
    budget, size = measured.budget, measured.size
    more = " or more" if measured.view.older else ""
    if measured.view.older or size > budget.room:
        return f"{size}{more} tokens are over the {budget.room} that the window has room for"
    if budget.trigger is not None and size >= budget.trigger:
        return f"{size} tokens have reached {budget.trigger / budget.limit:.0%} of {budget.limit}"
    if budget.trigger is not None and size - budget.instructions - budget.tools - budget.drift > budget.messages:
        return f"the messages are over their budget of {budget.messages} tokens"
    return ""


def _passing(cut: "Cutting", why: str) -> Plan:
    """The window is made to fit for this request, without a model and without a Compaction to keep."""
    plan = cut.plan("discard", why)
    assert plan.cut is not None
    keeps = None if cut.summary is None or cut.measured.summary <= cut.summary else 0
    return replace(plan, cut=replace(plan.cut, passing=True, summary=keeps), summed_up=NOTHING, left_out=cut.covered)


@dataclass(frozen=True, slots=True)
class Cutting:
    """A cut in numbers."""

    measured: Measured
    start: int
    """The first group that stays."""
    summary: int | None
    lifts: tuple[Lift, ...]
    bands: tuple[Band, ...]
    shrunk: Shrunk
    loses: bool = False
    """It would cover what no summary tells: to be stored only where nobody wants summaries."""

    @property
    def kept(self) -> Sequence[Group]:
        return self.measured.groups[self.start :]

    @property
    def size(self) -> int:
        """The window after it, at most."""
        measured, lifted = self.measured, sum(each.tokens for each in self.lifts)
        summary = measured.summary if self.summary is None else self.summary
        kept = sum(group.tokens for group in self.kept)
        if self.kept and self.kept[-1] is measured.last_round:
            kept -= self.kept[-1].tokens - self.shrunk.round
        notice = NOTICE if self.lifts and not summary else 0
        return measured.budget.around + self.shrunk.current + (summary or notice) + lifted + kept

    @property
    def frees(self) -> int:
        return self.measured.size - self.size

    @property
    def covered(self) -> Range:
        """What goes and is not lifted."""
        lifted = {id for each in self.lifts for id in each.messages}
        gone = [group for group in self.measured.groups[: self.start] if group.ids[0] not in lifted]
        return _range(gone, sum(group.tokens for group in gone))

    def plan(self, strategy: str, why: str) -> Plan:
        kept = _range(self.kept, sum(group.tokens for group in self.kept))
        gone = {"summed_up" if self.summary else "left_out": self.covered}
        cut = Cut(self._last, self._lifted, self.summary, dict(self.shrunk.excerpts))
        return Plan(strategy, kept, why, lifted=self.lifts, bands=self.bands, cut=cut, frees=max(0, self.frees), **gone)

    @property
    def _last(self) -> str | None:
        view = self.measured.view
        if self.start:
            return self.measured.groups[self.start - 1].ids[-1]
        return view.tail[0].parent if view.older and view.tail else view.compaction.last if view.compaction else None

    @property
    def _lifted(self) -> tuple[str, ...]:
        """In order of time; a current message that is covered with the first rounds of its turn is among them."""
        current, history = self.measured.view.current, self.measured.history
        ids = [id for each in self.lifts for id in each.messages]
        if current is None or not (self.start > history or self.measured.view.current_is_lifted):
            return tuple(ids)
        later = {id for group in self.measured.groups[history:] for id in group.ids}
        before = [id for id in ids if id not in later]
        return (*before, current, *(id for id in ids if id in later))


def _cut(
    strategy: str, measured: Measured, *, asked: bool = False, squeeze: Mapping[str, int] | None = None
) -> Cutting | None:
    budget, groups, last = measured.budget, measured.groups, measured.last_round
    wanted = budget.summary if strategy != "discard" else measured.summary
    shrunk = shrink(measured, wanted, squeeze or {})
    costs = [0 if group.pinned else group.tokens for group in groups]
    if last and shrunk.keeps_round:
        costs[-1] = 0 if last.pinned else shrunk.round
    around = budget.around + shrunk.current + measured.pins
    summary = min(wanted, max(0, budget.room - around - (shrunk.round if last else 0)) // 2)
    summary = summary if summary >= (SMALLEST_SUMMARY if strategy != "discard" else measured.summary) else 0
    start = _start(strategy, measured, costs, around, summary, asked=asked)
    if last:
        start = min(start, len(groups) - 1) if shrunk.keeps_round else len(groups)
    if summary == 0:
        start = _at_a_question(measured, start)
    lifts, bands = _lifts(strategy, measured, start, around + max(summary, NOTICE) + sum(costs[start:]))
    return _worth_making(strategy, Cutting(measured, start, summary, tuple(lifts), bands, shrunk))


def _worth_making(strategy: str, cut: Cutting) -> Cutting | None:
    """The cut with what becomes of the summary; None when it would change nothing."""
    measured, as_it_is = cut.measured, replace(cut, summary=None)
    has_summary = bool(measured.view.compaction and measured.view.compaction.summary)
    if cut.start > 0 or measured.view.older:
        if strategy == "discard":  # it writes no summary, but what one has said before stays
            return as_it_is if cut.summary else replace(cut, loses=has_summary)
        return replace(cut, loses=cut.summary == 0)
    if as_it_is.size > measured.budget.room:
        return replace(cut, loses=has_summary and cut.summary == 0)
    lifted = {id for each in cut.lifts for id in each.messages}
    dropped = any(group.ids[0] not in lifted for group in measured.lifted)
    return as_it_is if dropped or cut.shrunk.excerpts else None


def _start(strategy: str, measured: Measured, costs: Sequence[int], around: int, summary: int, *, asked: bool) -> int:
    """Where what stays begins: with the latest messages, or further back as far as low water reaches.

    Summaries are seldom as long as they may be: the latest messages may count on most of that room to stay free.
    """
    budget, groups, taken = measured.budget, measured.groups, around + summary
    if budget.recent == 0 and strategy != "discard":
        return len(groups)
    hard, soft = budget.room - taken, budget.floor - around - summary // 4
    if strategy == "hybrid":
        soft = min(soft, int((budget.floor - around) * LATEST))
    recent = recent_start(groups, costs, budget, min(hard, soft), hard)
    if asked:
        return recent or start_of_last(groups, budget.least_recent - 1)
    return recent if strategy == "hybrid" else min(recent, fit(costs, budget.floor - taken))


def _at_a_question(measured: Measured, start: int) -> int:
    """Without a summary in front a window starts with a question: some providers refuse an answer there."""
    while start < measured.history and measured.groups[start].messages[0].role != "user":
        start += 1
    return start


def _lifts(strategy: str, measured: Measured, start: int, taken: int) -> tuple[list[Lift], tuple[Band, ...]]:
    """Pins always; in `hybrid` what the bands choose of everything else that is covered."""
    covered = (*measured.lifted, *measured.groups[:start])
    chosen: dict[str, Lift] = {
        group.ids[0]: Lift(group.ids, group.tokens, "pinned") for group in covered if group.pinned
    }
    bands: tuple[Band, ...] = ()
    if strategy == "hybrid":
        budget = measured.budget
        messages = max(0, budget.floor - budget.fixed)
        loose = [group for group in covered if not group.pinned]
        lifts, bands = lift(loose, messages, budget.floor - taken)
        chosen |= {each.messages[0]: each for each in lifts}
    return [chosen[group.ids[0]] for group in covered if group.ids[0] in chosen], bands


def _all_kept(strategy: str, measured: Measured, because: str) -> Plan:
    lifts = tuple(
        Lift(group.ids, group.tokens, "pinned" if group.pinned else f"priority {group.priority}")
        for group in measured.lifted
    )
    return Plan(
        strategy, _range(measured.groups, sum(group.tokens for group in measured.groups)), because, lifted=lifts
    )


def _range(groups: Sequence[Group], tokens: int) -> Range:
    if not groups:
        return NOTHING
    return Range(groups[0].ids[0], groups[-1].ids[-1], sum(len(group.messages) for group in groups), tokens)
