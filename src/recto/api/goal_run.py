"""GoalRun: drives a conversation toward a goal, turn after turn, until it is done, blocked, or out of steps or money.

Every turn is an ordinary one (`Engine.send`): this only decides whether another follows, and what it says. A run's
state is read from the messages of the path, so it can continue after Ctrl-C, a crash or a refusal."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from recto.base.concurrency import run_to_completion
from recto.base.home_files import make_private_folder, private
from recto.base.ids import new_id
from recto.base.locations import RUNS_FOLDER
from recto.base.text import clean
from recto.chat.blocks import unique_references
from recto.engine import Engine
from recto.errors import Invalid, RectoError, SpendLimit
from recto.events import Event, Noticed, PlanChanged, RunEnded
from recto.tasks.run import DEFAULT_STEPS, PAGE, RunReport, RunStatus, StoredRun, TaskRun, read_run, run_entry
from recto.turn.context import CallOptions
from recto.turn.emitting import Emit
from recto.turn.session import ChatSession
from recto.turn.session_sources import can_call
from recto.turn.spending import MAX_COST, MAX_STEPS, is_priced

# Replies in a row without a tool call, after which the model is considered stuck.
MOST_IDLE = 2
GO_ON = "[agent mode] Go on with the goal{why}. {left}"
NOT_OVER = (
    "[agent mode] The goal is not reported as reached{open}. Go on with the next step, or call update_plan: with "
    "outcome done if everything is done and checked, with outcome blocked and the reason if you cannot go on."
)

Send = Callable[[str, Emit], Awaitable[None]]


async def check_can_run(
    engine: Engine, session: ChatSession, options: CallOptions, max_cost: float | None
) -> list[Noticed]:
    """Raises Invalid if agent mode cannot work, and notes limits that cannot be enforced, before anything is stored."""
    if options.tools:
        raise Invalid("a run cannot use the caller's tools: their calls would end it", option="tools")
    resolved = await engine.turns.resolve(session, options)
    if not resolved.model.tools:
        raise Invalid(
            f"{resolved.model.name} cannot call tools, and agent mode works through tools: choose another model with "
            "--model",
            model=resolved.model.name,
        )
    if not can_call(resolved, engine.settings.tools):
        raise Invalid("agent mode works through tools, and the setting tools.enabled is off")
    if max_cost is None or is_priced(resolved.model):
        return []
    return [Noticed(f"the price of {resolved.model.name} is unknown: {MAX_COST} cannot stop it")]


def new_run(goal: str, max_steps: int | None, max_cost: float | None) -> TaskRun:
    goal = clean(goal)[0].strip()
    if not goal:
        raise Invalid("the goal is empty: say what to do")
    return TaskRun(new_id(), goal, max_steps or DEFAULT_STEPS, max_cost)


def continued(stored: StoredRun | None, name: str, max_steps: int | None, max_cost: float | None) -> TaskRun:
    """The run to continue. Its use so far counts toward the limits."""
    if stored is None:
        raise Invalid(f'no run was begun in {name}: `recto agent run "GOAL"` begins one')
    run = stored.run
    if run.status == "done":
        raise Invalid(f"the last goal of {name} is reached: a new run takes a new goal")
    run.max_steps, run.max_cost = max_steps or run.max_steps, run.max_cost if max_cost is None else max_cost
    if not run.steps_left:
        used = f"all {run.max_steps} steps of this run are used"
        raise Invalid(f"{used}: {MAX_STEPS} {run.max_steps * 2} would allow as many again", steps=run.steps)
    return run


@contextmanager
def run_lock(engine: Engine, conversation: str, name: str) -> Iterator[None]:
    """One run at a time in a conversation, across processes, and machines that share a server's store. The lock ends
    with its process."""
    going_on = Invalid(f"a run is going on in {name}, here or in another process: wait for it, or stop it there")
    path = make_private_folder(engine.home / RUNS_FOLDER) / conversation
    with os.fdopen(private(str(path), os.O_CREAT | os.O_RDWR), "r+b") as file:
        try:
            import fcntl  # not available on every system

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            pass
        except OSError as why:
            raise going_on from why
        with engine.store.database.hold(f"run {conversation}") as is_free:
            if not is_free:
                raise going_on
            yield


class GoalRun:
    def __init__(self, engine: Engine, session: ChatSession, run: TaskRun, send: Send) -> None:
        self._engine, self._session, self._run, self._send = engine, session, run, send
        self._began = time.monotonic()

    async def go(self, emit: Emit) -> None:
        session, run, failed = self._session, self._run, None
        message = _first_message(run)
        run.end("running", "")
        session.apply(run=run)
        try:
            await self._turns(message, emit)
        except SpendLimit as why:
            run.end("out of money", why.message)
        except RectoError as why:
            run.end("stopped", why.message)
            failed = why
        except BaseException:
            run.end("stopped", "it was interrupted")
            raise
        finally:
            session.apply(run=None)
            await run_to_completion(asyncio.ensure_future(self._engine.store.do(self._store_end)))
        await emit(RunEnded(await self._engine.store.do(self._report)))
        if failed:
            raise failed

    async def _turns(self, message: str, emit: Emit) -> None:
        run, idle, told = self._run, 0, self._run.plan

        async def tell_plan() -> None:
            nonlocal told
            if told != (told := run.plan):
                await emit(PlanChanged(run.goal, told, run.steps, run.max_steps))

        async def tell(event: Event) -> None:
            await tell_plan()  # before the events that follow from it
            await emit(event)

        while True:
            steps = run.steps
            await self._send(message, tell)
            await tell_plan()
            idle = idle + 1 if run.steps == steps else 0
            if ended := _ended(run, idle):
                run.end(*ended)
                return
            message = NOT_OVER.format(open=_open_in_words(run))

    def _store_end(self) -> None:
        tree, run, head = self._engine.store.tree, self._run, self._session.head
        for message in tree.page(head, most=PAGE) if head else ():
            entry = run_entry(message)
            if entry and entry["run"] == run.id:
                ended = {**entry, "status": run.status, "because": run.because}
                tree.count(replace(message, task_runs=(*message.task_runs[:-1], ended)))
                return

    def _report(self) -> RunReport:
        store, run = self._engine.store, self._run
        stored = read_run(store.tree.page, self._session.head)
        messages = stored.messages if stored else ()
        usages = [message.usage for message in messages if message.usage]
        spent = store.spending.of_messages(run.messages)
        return RunReport(
            run.id,
            self._session.conversation,
            run.goal,
            run.status,
            run.because,
            run.plan,
            run.steps,
            run.max_steps,
            text=next((each.text for each in reversed(messages) if each.role == "assistant" and each.text), ""),
            references=unique_references(reference for message in messages for reference in message.references),
            refused=tuple(run.refused),
            input=sum(usage.input for usage in usages),
            output=sum(usage.output for usage in usages),
            cache_read=sum(usage.cache_read for usage in usages),
            cost_usd=None if spent.unpriced else round(spent.cost_usd, 9),
            duration_s=round(time.monotonic() - self._began, 3),
        )


def _ended(run: TaskRun, idle: int) -> tuple[RunStatus, str] | None:
    """The outcome; None if the run continues."""
    plan = run.plan
    if plan.outcome == "blocked":
        return "blocked", plan.because or "the model gave no reason"
    if plan.is_reached:
        return "done", plan.because
    if run.stops:
        return "stopped", run.stops
    if not run.steps_left:
        return "out of steps", f"all {run.max_steps} steps are used ({MAX_STEPS})"
    if idle >= MOST_IDLE:
        return "stopped", f"the model replied {idle} times without calling a tool{_open_in_words(run)}"
    return None


def _first_message(run: TaskRun) -> str:
    """The goal itself, or the message that continues it."""
    if not run.messages:
        return run.goal
    why = f"; the work was stopped: {run.because.rstrip('.')}" if run.because else ""
    return GO_ON.format(why=why, left=run.rounds_left(0))


def _open_in_words(run: TaskRun) -> str:
    if not run.plan.steps:
        return ", and there is no plan"
    count = len(run.plan.open_steps)
    return f", and {count} step{'s are' if count != 1 else ' is'} open" if count else ""
