"""The laws of cutting, for every strategy and any history: parallel calls, results missing, a turn inside its loop,
pins, lifted messages, a summary in force, messages many times the window."""

from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.conftest import examples

from recto.chat.blocks import Compaction, Text, ToolCall, ToolResult
from recto.chat.conversation import View, units, view
from recto.chat.message import Message
from recto.errors import DoesNotFit
from recto.settings.strategy import DISCARD, HYBRID, STRATEGIES, SUMMARIZE, Strategy
from recto.window.count import NOTICE, SMALLEST_EXCERPT, SUMMARY, fit, level_sizes
from recto.window.plan import Budget, Plan, Shares
from recto.window.planner import LITTLE, compact_now, plan_window, squeezed

CURRENT = "now"
EXAMPLES = examples(2000, few=50)
many = settings(max_examples=EXAMPLES)


def text(id: str, role: str = "user", priority: int = 5) -> Message:
    return Message(id, role, (Text(id),), priority=priority)  # type: ignore[arg-type]


def rounds(draw: st.DrawFn, name: str, calls: int) -> list[Message]:
    """A message with calls, and results in any order for some of them, in one message or two, or none."""
    ids = [f"{name}.{n}" for n in range(calls)]
    asked = Message(name, "assistant", tuple(ToolCall(id, "t", "{}") for id in ids), priority=draw(st.integers(1, 10)))
    answered = draw(st.permutations(ids))[: draw(st.integers(0, calls))]
    cut = draw(st.integers(0, len(answered)))
    parts = [part for part in (answered[:cut], answered[cut:]) if part]
    results = [
        Message(f"{name}r{n}", "tool", tuple(ToolResult(id, "t", "x") for id in part)) for n, part in enumerate(parts)
    ]
    return [asked, *results]


def linked(path: list[Message]) -> list[Message]:
    before = None
    for place, message in enumerate(path):
        path[place] = replace(message, parent=before)
        before = message.id
    return path


@dataclass(frozen=True)
class Case:
    path: list[Message]
    budget: Budget
    counts: dict[str, int]

    @property
    def view(self) -> View:
        return view(self.path, current=CURRENT)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    path: list[Message] = []
    for number in range(draw(st.integers(0, 10))):
        kind = draw(st.sampled_from(["user", "assistant", "calls"]))
        priority = draw(st.integers(1, 10))
        path += (
            rounds(draw, f"m{number}", draw(st.integers(1, 3)))
            if kind == "calls"
            else [text(f"m{number}", kind, priority)]
        )
    groups = units(path)
    block = None
    has_block: bool = draw(st.booleans())
    if path and has_block:
        covered = draw(st.integers(0, len(groups)))
        last = groups[covered - 1][-1].id if covered else None
        lifted = [group for group in groups[:covered] if draw(st.booleans())]
        here = (*lifted, *groups[covered:])
        pins = [group[-1].id if draw(st.booleans()) else group[0].id for group in here if draw(st.integers(0, 3)) == 0]
        block = Compaction(
            3,
            "",
            last,
            draw(st.sampled_from(["", "a summary"])) if covered else "",
            0,
            0,
            0,
            "model",
            "",
            tuple(message.id for group in lifted for message in group),
            pinned=tuple(pins),
            little=draw(st.integers(0, 3)),
        )
        path.append(Message("c", "system", (block,)))
    path.append(text(CURRENT))
    for number in range(draw(st.integers(0, 3))):
        path += rounds(draw, f"r{number}", draw(st.integers(1, 2)))
    sizes = st.one_of(st.integers(0, 60), st.integers(0, 3000))
    counts = {message.id: 0 if message.role == "tool" else draw(sizes) for message in path}
    if block and block.summary:
        counts[SUMMARY] = draw(st.integers(1, 120))
    case = Case(linked(path), draw(budgets(draw(sizes))), counts)
    counts |= _results(case)
    return with_notice(case)


def _results(case: Case) -> dict[str, int]:
    """Part of what the last round takes is its results."""
    if not case.view.rounds:
        return {}
    unit = units(case.view.rounds)[-1]
    keys = [f"{message.id}/{result.call_id}" for message in unit for result in message.results]
    return dict.fromkeys(keys, case.counts[unit[0].id] // (len(keys) + 1)) if keys else {}


@st.composite
def budgets(draw: st.DrawFn, current: int) -> Budget:
    limit = draw(st.integers(100, 1500))
    recent = draw(st.integers(0, 8))
    room = limit - 20
    return Budget(
        limit,
        20,
        low_water=int(room * draw(st.sampled_from([0.3, 0.5, 0.7]))),
        trigger=draw(st.sampled_from([None, int(limit * 0.85), int(limit * 0.75)])),
        summary=int(room * draw(st.sampled_from([0.1, 0.2, 0.3]))),
        recent=recent,
        least_recent=draw(st.integers(0, recent)),
        shares=draw(st.sampled_from([Shares(), Shares(0.1, 0.3, 0.4)])),
        instructions=draw(st.integers(0, limit // 3)),
        tools=draw(st.integers(0, limit // 3)),
        current=current,
    )


def sent(seen: View) -> list[str]:
    return [message.id for message in (*seen.still_sent, *seen.history, *seen.rounds)]


def size(case: Case) -> int:
    return case.budget.fixed + case.counts.get(SUMMARY, 0) + sum(case.counts[id] for id in sent(case.view))


def with_notice(case: Case) -> Case:
    """A window without a summary that begins with something lifted that is no question gets a line in front."""
    first = case.view.still_sent[0] if case.view.still_sent else None
    if not case.counts.get(SUMMARY) and first and first.role != "user":
        case.counts[SUMMARY] = NOTICE
    return case


def carried_out(case: Case, plan: Plan) -> Case:
    """The case once the plan's cut is made, its summary as long as it may be."""
    cut, before = plan.cut, case.view.compaction
    assert cut is not None
    summary = (before.summary if before else "") if cut.summary is None else "s" * bool(cut.summary)
    pinned, little = (before.pinned, before.little) if before else ((), 0)
    block = Compaction(4, "", cut.last, summary, 0, 0, 0, "model", "", cut.lifted, pinned=pinned, little=little)
    counts = dict(case.counts)
    if cut.summary is not None:
        counts[SUMMARY] = cut.summary
    budget = case.budget
    for key, most in cut.excerpts.items():
        if key == CURRENT:
            budget = replace(budget, current=most)
        else:
            first = units(case.view.rounds)[-1][0].id
            counts[first] -= counts[key] - most
            counts[key] = most
    path = [*case.path, Message("cut", "system", (block,), parent=case.path[-1].id)]
    return with_notice(Case(path, budget, counts))


def least_needed(case: Case) -> int:
    pinned = set(case.view.compaction.pinned) if case.view.compaction else set()
    groups = [*units(case.view.still_sent), *units(case.view.history), *units(case.view.rounds)]
    pins = sum(case.counts[group[0].id] for group in groups if any(message.id in pinned for message in group))
    return case.budget.around + (pins + NOTICE if pinned else 0) + min(case.budget.current, SMALLEST_EXCERPT)


def check_laws(case: Case, plan: Plan) -> Case:
    """What holds once a cut is carried out; gives the case as it is then."""
    after = carried_out(case, plan)
    seen, remaining = after.view, sent(after.view)
    assert size(after) <= case.budget.room, "the window fits"
    assert len(remaining) == len(set(remaining)), "nothing is there twice"
    here = [message.id for message in seen.tail + seen.lifted]
    assert here.count(CURRENT) == 1, "the current message is in exactly once"
    said = [message.id for message in case.path if not message.compaction]
    tail = [message.id for message in seen.tail]
    assert tail == said[len(said) - len(tail) :], "the tail is contiguous"
    lifted = [message.id for message in seen.lifted]
    assert lifted == [id for id in said if id in set(lifted)], "what is lifted is in order of time"
    everything = units([message for message in case.path if not message.compaction and message.id != CURRENT])
    for unit in everything:
        inside = {message.id in remaining for message in unit}
        assert len(inside) == 1, "calls and their results are all in or all out"
    pinned = seen.compaction.pinned if seen.compaction else ()
    assert set(pinned) <= set(here), "pins stay"
    return after


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@many
@given(case=cases())
def test_a_plan_fits_loses_nothing_and_keeps_together_what_belongs_together(strategy: Strategy, case: Case) -> None:
    make = partial(plan_window, strategy)
    try:
        plan = make(case.view, case.budget, case.counts)
    except DoesNotFit:
        assert least_needed(case) > case.budget.room, "only when the least that must be sent is too large"
        return
    assert plan == make(case.view, case.budget, case.counts), "the same inputs give the same plan"
    covered = plan.summed_up.count + plan.left_out.count
    newly_lifted = sum(
        len(lift.messages) for lift in plan.lifted if lift.messages[0] not in {m.id for m in case.view.lifted}
    )
    conversation = len(case.view.history) + len(case.view.rounds)
    assert plan.kept.count + covered + newly_lifted == conversation, "kept, covered and lifted make up the view"
    if plan.cut is None:
        assert size(case) <= case.budget.room
        return
    after = check_laws(case, plan)
    again = make(after.view, after.budget, after.counts)
    assert again.cut is None or again.frees >= case.budget.room * LITTLE, "a cut is not followed by another for little"


@many
@given(case=cases(), strategy=st.sampled_from([SUMMARIZE, HYBRID]))
def test_a_compaction_that_is_asked_for_keeps_the_laws(case: Case, strategy: Strategy) -> None:
    try:
        plan = compact_now(strategy, case.view, case.budget, case.counts)
    except DoesNotFit:
        assert least_needed(case) > case.budget.room
        return
    if plan.cut is not None:
        check_laws(case, plan)


@many
@given(case=cases(), strategy=st.sampled_from(list(STRATEGIES.values())))
def test_a_squeeze_for_a_provider_that_counts_more_keeps_the_laws(case: Case, strategy: Strategy) -> None:
    try:
        plan = squeezed(strategy, case.view, case.budget, case.counts)
    except DoesNotFit:
        assert least_needed(case) > case.budget.room
        return
    if plan.cut is not None:
        check_laws(case, plan)


@many
@given(case=cases())
def test_after_a_summary_the_window_is_below_low_water_when_what_must_stay_allows_it(case: Case) -> None:
    if case.view.rounds or case.view.compaction or case.budget.trigger is None:
        return
    try:
        plan = plan_window(SUMMARIZE, case.view, case.budget, case.counts)
    except DoesNotFit:
        return
    if plan.cut is None or plan.cut.excerpts:
        return
    after = carried_out(case, plan)
    latest = case.view.history[-max(0, case.budget.recent - 1) or len(case.view.history) :]
    must = sum(case.counts[message.id] for message in latest) if case.budget.recent > 1 else 0
    least = case.budget.fixed + (plan.cut.summary or 0) + must
    assert size(after) <= max(case.budget.low_water, least + max(case.counts.values()))


# -- the worked examples


@pytest.mark.parametrize(
    ("limit", "instructions", "messages", "start", "left"),
    [
        (100, 0, [5, 19, 18], 0, 55),
        (50, 0, [30, 30, 5, 19, 18], 2, 5),
        (50, 20, [10, 15], 0, 2),
        (30, 20, [10, 15], 2, 7),
    ],
)
def test_the_bare_fitting_of_history_into_room(
    limit: int, instructions: int, messages: list[int], start: int, left: int
) -> None:
    room = limit - 3 - instructions  # a reply is primed with 3
    assert fit(messages, room) == start
    assert room - sum(messages[start:]) == left


def chat(*sizes: int, priorities: tuple[int, ...] = ()) -> tuple[View, dict[str, int]]:
    """Question and answer in turns, then the current message."""
    names = [f"m{n}" for n in range(len(sizes))]
    roles = ["user", "assistant"] * len(sizes)
    said = [
        text(name, role, priorities[n] if priorities else 5)
        for n, (name, role) in enumerate(zip(names, roles, strict=False))
    ]
    path = linked([*said, text(CURRENT)])
    return view(path, current=CURRENT), dict(zip([*names, CURRENT], [*sizes, 0], strict=True))


def budget(limit: int, **changes: object) -> Budget:
    known = {"trigger": int(limit * 0.85), "summary": limit // 5, "recent": 6, "least_recent": 2}
    return Budget(limit, 0, limit // 2, **(known | changes))  # type: ignore[arg-type]


def test_the_threshold_fires_at_80_percent_and_not_at_79() -> None:
    just_below, counts = chat(*[79] * 10)
    at = budget(1000, trigger=800)
    assert plan_window(SUMMARIZE, just_below, at, counts).cut is None
    reached, counts = chat(*[80] * 10)
    plan = plan_window(SUMMARIZE, reached, at, counts)
    assert plan.cut is not None
    assert "80%" in plan.because
    assert plan.kept.count == 5
    assert plan.kept.tokens <= at.low_water


def test_latest_messages_that_are_large_become_fewer_down_to_the_current_one_alone() -> None:
    seen, counts = chat(*[80] * 11)
    plan = plan_window(SUMMARIZE, seen, budget(1000), counts)
    assert (plan.kept.count, plan.kept.last, plan.summed_up.count) == (5, "m10", 6), "the last six, this one included"
    plan = plan_window(SUMMARIZE, seen, budget(1000, recent=0, least_recent=0), counts)
    assert (plan.kept.count, plan.summed_up.count) == (0, 11), "with zero it is all or nothing"
    seen, counts = chat(*[30] * 40)
    plan = plan_window(SUMMARIZE, seen, budget(1000), counts)
    assert plan.cut is not None
    assert (plan.cut.summary, plan.kept.tokens <= 300) == (200, True), "the summary's room is taken off before fitting"
    seen, counts = chat(200, 200, 200, 200, 200, 200, 200, 200)
    plan = plan_window(SUMMARIZE, seen, budget(1000), counts)
    assert plan.kept.count == 2
    assert plan.kept.count + plan.summed_up.count == 8, "all eight are kept or covered"
    seen, counts = chat(200, 200, 200, 200, 200, 200, 200, 900)
    plan = plan_window(SUMMARIZE, seen, budget(1000), counts)
    assert plan.kept.count == 0
    assert plan.summed_up.count == 8


def test_a_compaction_that_would_free_little_is_not_made_before_the_window_is_full() -> None:
    seen, counts = chat(60, 60)
    at = budget(1000, instructions=750)
    plan = plan_window(SUMMARIZE, seen, at, counts)
    assert plan.cut is None
    assert "would free only" in plan.because


def test_after_two_compactions_that_freed_little_no_more_are_made() -> None:
    seen, counts = chat(50, 40)
    block = Compaction(2, "", None, "", 0, 0, 0, "model", "", little=2)
    plan = plan_window(SUMMARIZE, replace(seen, compaction=block), budget(1000, instructions=920), counts)
    assert plan.cut is not None
    assert plan.cut.passing
    assert "freed little" in plan.because


def test_hybrid_lifts_what_matters_within_its_bands_in_order_of_time() -> None:
    priorities = (8, 5, 9, 2, 7, 5, 3, 2, 5, 5, 5, 5, 5, 5, 5, 5)
    seen, counts = chat(*[60] * 16, priorities=priorities)
    plan = plan_window(HYBRID, seen, budget(1000, summary=100), counts)
    assert plan.cut is not None
    assert [lift.messages[0] for lift in plan.lifted][:2] == ["m0", "m2"]
    assert "priority 8 (critical)" in [lift.because for lift in plan.lifted]
    used = {band.name: band.tokens for band in plan.bands}
    assert used["critical"] == 120
    assert all(band.tokens <= band.budget for band in plan.bands)
    assert {band.name for band in plan.bands} == {"critical", "important", "normal", "low", "memory"}


def test_without_differences_in_priority_hybrid_lifts_the_newest() -> None:
    seen, counts = chat(*[40] * 24)
    plan = plan_window(HYBRID, seen, budget(1000, summary=100), counts)
    assert plan.lifted
    assert plan.lifted[-1].messages[0] == "m18", "right before the tail"


def test_messages_over_their_own_budget_make_a_compaction_due() -> None:
    seen, counts = chat(*[30] * 12)
    shares = Shares(0.1, 0.3, 0.3)
    plan = plan_window(SUMMARIZE, seen, budget(1000, shares=shares, instructions=100, tools=300), counts)
    assert plan.cut is not None
    assert "over their budget of 300" in plan.because


def test_older_messages_that_were_not_loaded_make_a_cut_necessary() -> None:
    tail = (replace(text("m9"), parent="m8"), replace(text(CURRENT), parent="m9"))
    seen = View(tail, older=8, current=CURRENT)
    plan = plan_window(DISCARD, seen, Budget(100, 10, 50, instructions=10), {"m9": 10, CURRENT: 5})
    assert plan.cut is not None
    assert plan.cut.last == "m8"


def test_a_tool_result_larger_than_the_window_is_sent_as_an_excerpt() -> None:
    call = Message("r", "assistant", (ToolCall("1", "t", "{}"),))
    result = Message("rr", "tool", (ToolResult("1", "t", "x"),))
    seen = view(linked([text(CURRENT), call, result]), current=CURRENT)
    plan = plan_window(SUMMARIZE, seen, budget(1000, current=30), {"r": 5000, "rr": 0, CURRENT: 30, "rr/1": 4980})
    assert plan.cut is not None
    assert list(plan.cut.excerpts) == ["rr/1"]
    assert 300 < plan.cut.excerpts["rr/1"] < 1000


def test_a_message_larger_than_the_window_is_sent_as_an_excerpt() -> None:
    seen, counts = chat()
    plan = plan_window(SUMMARIZE, seen, budget(250, current=2000), counts)
    assert plan.cut is not None
    assert plan.cut.last is None
    assert 64 <= plan.cut.excerpts[CURRENT] <= 250


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5000), max_size=6), st.integers(0, 3000))
def test_levelling_keeps_small_ones_whole_and_never_takes_more_than_there_is(sizes: dict[str, int], room: int) -> None:
    shares = level_sizes(sizes, room)
    assert sum(shares.values()) <= room
    assert all(shares[key] <= sizes[key] for key in sizes)
    if sum(sizes.values()) <= room:
        assert shares == sizes
