"""Agent mode over 500 steps in a window of 8k: whether every request holds the plan, and what the input costs.

A made-up run: a goal, a plan of 20 steps that is told anew after every 25 rounds, a tool call with its result in each
other one. Beside us the same messages through a sliding window (trim_messages at every step) and
SummarizationMiddleware at .85 → .40 of the window, both with our instructions as their system message; our low water is
set so that as much is kept after a compaction. Counts are exact for all, every summary is the same text with a number,
and the cache is that of `bench.cache`. Goals for us: the plan in every request, no call without its result, no request
over the window, and no dearer than the others.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import corpus, peers
from bench.cache import FOR_SUMMARY, KEPT, SUMMARY, THRESHOLD, Figures, figures
from bench.figure import Figure, share, wrong
from bench.replay import Made, recorded, recorded_tools, steps, summaries
from bench.runs import Round, Run, Turn
from bench.table import judged, show
from bench.turn import apart
from bench.wire import Limits, Wire, weight
from recto.api.blocking import open_desk
from recto.tasks.plan import UPDATE_PLAN, TaskPlan, plan_from
from recto.window.plan import reserve_of

WINDOW, STEPS, QUICK_STEPS = 8_192, 500, 80
SLIDING, SUMMARIZING = PEERS = ("trim_messages, agent", "SummarizationMiddleware, full input")
SYSTEM = "You are a careful assistant who works on a goal with the tools that there are."
# Steps of the plan, and rounds of work for each of them in the long run.
PLANNED, EVERY = 20, 25
TOOLS = ("read_file", "write_file", "search_files", "run_tests")
RESULT_CHARACTERS = (200, 1_600)


@dataclass(frozen=True, slots=True)
class Held:
    """Of the requests for replies: how many held the plan and the goal, and how many calls lacked their results."""

    requests: int
    plan: int
    goal: int
    orphans: int


def main(quick: bool) -> None:
    peers.install()
    run = made_run(QUICK_STEPS if quick else STEPS)
    with tempfile.TemporaryDirectory(dir=peers.FOLDER) as folder:
        home = Path(folder)
        ours = apart(play, home / "ours", run)
        system = ours[0].messages[0]["content"]
        task = _task(home / "task.json", run, system)
        found = {"recto, agent mode": ours} | {name: _theirs(task, name) for name in PEERS}
        _show(run, {name: (held(run, made), figures([made], WINDOW)) for name, made in found.items()})


def small_untimed(home: Path) -> Iterator[Figure]:
    run = made_run(QUICK_STEPS)
    ours = play(home / "ours", run)
    task = _task(home / "task.json", run, ours[0].messages[0]["content"])
    sliding = figures([_theirs(task, SLIDING)], WINDOW).bill.cost()
    kept, billed = held(run, ours), figures([ours], WINDOW)
    yield share("agent: requests that hold the plan", kept.plan / kept.requests)
    yield wrong("agent: calls without results, requests over the window", kept.orphans + billed.over)
    yield Figure("agent: billed input", billed.bill.cost() / 1000, "k tokens", SLIDING, sliding / 1000)


# -- the run


def made_run(rounds: int) -> Run:
    speaker = corpus.Speaker(29)
    texts = [" ".join(speaker.text(70).split()) for _ in range(PLANNED)]
    goal = f"Work through all parts of this and report: {speaker.text(400)}"
    made = [_plan_round(n, rounds, texts) if n % EVERY == 0 else _tool_round(n, speaker) for n in range(rounds - 1)]
    return Run(SYSTEM, (Turn(goal, (*made, _plan_round(rounds, rounds, texts)), "Everything is done."),))


def _plan_round(number: int, rounds: int, texts: Sequence[str]) -> Round:
    done = PLANNED * number // rounds
    statuses = ["done" if place < done else "active" if place == done else "pending" for place in range(PLANNED)]
    told = [{"text": text, "status": status} for text, status in zip(texts, statuses, strict=True)]
    arguments: dict[str, Any] = {"steps": told} | ({"outcome": "done"} if done == PLANNED else {})
    return _round(number, UPDATE_PLAN, arguments, f"The plan is kept: {done} of {PLANNED} steps done.")


def _tool_round(number: int, speaker: corpus.Speaker) -> Round:
    least, most = RESULT_CHARACTERS
    size = least + number * 7919 % (most - least)
    path = f"src/part{number % 37}/module{number % 11}.py"
    return _round(number, TOOLS[number % len(TOOLS)], {"path": path, "number": number}, speaker.text(size))


def _round(number: int, name: str, arguments: dict[str, Any], result: str) -> Round:
    id = f"call_{number}"
    call: Wire = {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return Round("", (call,), {id: result})


# -- ours and theirs


def play(home: Path, run: Run) -> list[Made]:
    """The run through agent mode."""
    home.mkdir()
    script, [turn] = home / "script.json", run.turns
    script.write_text(json.dumps({"limit": WINDOW, "steps": [*steps(run), *summaries(SUMMARY)]}), "utf-8")
    limits = _limits()
    chosen = {
        "system_prompt": run.system,
        "context.threshold": THRESHOLD,
        "context.low_water": (limits.keep + FOR_SUMMARY + weight({"role": "system", "content": run.system}))
        / limits.most,
        "context.summary_tokens": FOR_SUMMARY,
        "context.prepare_at": 0,
    }
    results = {id: text for each in turn.rounds for id, text in each.results.items()}
    model = f"scripted:{script}"
    with open_desk(home=home, project=home, model=model, settings=chosen) as desk, recorded_tools(results):
        talk = desk.conversation()
        report = talk.run_goal(turn.question, max_steps=len(turn.rounds) + 1)
        assert report.is_done, report.because
        return list(recorded(desk, talk.id))


def _limits() -> Limits:
    return Limits(WINDOW - reserve_of(WINDOW, 0, None), int(WINDOW * THRESHOLD), int(WINDOW * KEPT))


def _task(path: Path, run: Run, system: str) -> Path:
    """The same run; our instructions and rules are the system message of everyone."""
    wire = Run(system, run.turns).wire()
    path.write_text(json.dumps({"limits": _limits().to_json(), "summary": SUMMARY, "runs": [wire]}), "utf-8")
    return path


def _theirs(task: Path, name: str) -> list[Made]:
    out = task.with_name(f"{name}.json")
    peers.ask("cache", name, task, out)
    found = json.loads(out.read_text("utf-8"))
    [run], messages = found["runs"], found["messages"]
    return [Made(each["purpose"], [messages[number] for number in each["messages"]]) for each in run]


# -- what the requests held


def held(run: Run, made: Sequence[Made]) -> Held:
    [turn] = run.turns
    replies = [each.messages for each in made if each.purpose == "reply"]
    plans, plan = [TaskPlan()], TaskPlan()
    for each in turn.rounds:
        plan = _told(each.calls) or plan
        plans.append(plan)
    assert len(replies) == len(plans), f"{len(replies)} requests for {len(plans)} replies"
    has_plan = sum(holds_plan(messages, plan) for messages, plan in zip(replies, plans, strict=True))
    has_goal = sum(any(turn.question in _text(message) for message in messages) for messages in replies)
    return Held(len(replies), has_plan, has_goal, sum(map(orphans, replies)))


def holds_plan(messages: Sequence[Wire], plan: TaskPlan) -> bool:
    """In the last call that told one, or word for word."""
    told = [found for message in messages if (found := _told(message.get("tool_calls") or ()))]
    return (told[-1] if told else TaskPlan()) == plan or any(plan.text in _text(message) for message in messages)


def orphans(messages: Sequence[Wire]) -> int:
    """Calls without a result, and results without a call."""
    calls = {call["id"] for message in messages for call in message.get("tool_calls") or ()}
    results = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    return len(calls ^ results)


def _told(calls: Sequence[Wire]) -> TaskPlan | None:
    made = [call["function"] for call in calls if call["function"]["name"] == UPDATE_PLAN]
    return plan_from(json.loads(made[-1]["arguments"])) if made else None


def _text(message: Wire) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


# -- the table


def _show(run: Run, found: dict[str, tuple[Held, Figures]]) -> None:
    [(kept, ours), *_] = found.values()
    bad = kept.requests - kept.plan + kept.orphans + ours.over
    costs = {name: figures.bill.cost() for name, (_, figures) in found.items()}
    goals = (
        judged(bad, 0, "plan in every request, no orphan, none over the window"),
        *(judged(ours.bill.cost() / costs[name], 1.0, f"≤ 1.0× {name}") for name in PEERS),
    )
    show(
        f"Agent mode: {len(run.turns[0].rounds)} steps in a window of {WINDOW:,}, cost in thousand token equivalents",
        ("", "plan", "goal", "orphans", "over window", "cost", "to sliding", "input", "read", "requests", "summaries"),
        [_row(name, kept, figures, costs[SLIDING]) for name, (kept, figures) in found.items()],
        notes=(
            f"goals: {'; '.join(goals)}",
            "plan, goal: share of the requests for replies that hold it word for word",
        ),
    )


def _row(name: str, kept: Held, found: Figures, sliding: float) -> list[str]:
    return [
        name,
        f"{kept.plan / kept.requests:.1%}",
        f"{kept.goal / kept.requests:.1%}",
        f"{kept.orphans}" if kept.orphans else "–",
        f"{found.over}" if found.over else "–",
        f"{found.bill.cost() / 1e3:,.0f}",
        f"{found.bill.cost() / sliding:.2f}×",
        f"{found.bill.input / 1e3:,.0f}",
        f"{found.bill.hit_rate:.1%}",
        f"{found.requests:,}",
        f"{found.summaries}",
    ]
