"""What somebody must know who takes over from an agent, and whether a text names it."""

import json

from bench.agent_work import Agent, State, family_of, named, state_of
from bench.judge import unpaired
from bench.wire import Wire


def call(id: str, name: str, **arguments: str) -> Wire:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": text}


def said(role: str, text: str) -> Wire:
    return {"role": role, "content": text}


def test_the_last_outcome_of_a_command_counts_and_the_latest_task() -> None:
    state = state_of(
        [
            said("user", "Mend the clock."),
            call("1", "edit_file", path="src/clock.py"),
            result("1", "ok"),
            call("2", "run_command", command="pytest -q tests/a.py"),
            result("2", "1 failed in 4.71s"),
            said("user", "Now the bell."),
            call("3", "run_command", command="pytest -q"),
            result("3", "88 passed in 3.10s"),
            said("assistant", "Done."),
        ]
    )
    assert state.task == "Now the bell."
    assert state.files == {"clock.py"}
    assert state.outcomes == {"pytest": {"88", "passed", "3.10"}}


def test_a_command_family_is_its_program_and_subcommand() -> None:
    assert family_of("git commit -am 'x'") == "git commit"
    assert family_of("pytest -q tests/a.py") == "pytest"
    assert family_of("cd src && make lint") == "make lint"


STATE = State("Mend the clock in the tower before noon.", frozenset({"clock.py"}), {"pytest": frozenset({"88"})})


def test_an_outcome_is_named_beside_its_command() -> None:
    found = named(STATE, "User: Mend the clock in the tower before noon.\n#4 src/clock.py\n#9 pytest -q → 88 passed")
    assert found.share == 1
    apart = named(STATE, "pytest -q\nsomething else\n#9 88 passed")
    assert (apart.task_named, apart.files_named, apart.outcomes_named) == (0, 0, 0)


def test_a_run_that_was_made_up_is_the_same_again_and_has_its_calls_answered() -> None:
    run = Agent(1).run(6_000)
    assert run == Agent(1).run(6_000)
    assert unpaired(run.wire()) == (0, 0)
    state = state_of(run.wire()[1:])
    assert state.task == run.turns[-1].question
    assert "pytest" in state.outcomes
