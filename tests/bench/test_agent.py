"""What is told of the requests of an agent that works for long."""

from pathlib import Path

from bench.agent import held, holds_plan, made_run, orphans, play

from recto.tasks.plan import plan_from


def test_a_call_without_its_result_is_an_orphan_and_so_is_a_result_without_its_call() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": "{}"}}]}
    result = {"role": "tool", "tool_call_id": "a", "content": "y"}
    assert (orphans([call, result]), orphans([call]), orphans([result])) == (0, 1, 1)


def test_an_older_plan_is_not_the_plan() -> None:
    plan = plan_from({"steps": [{"text": "read", "status": "done"}]})
    older = plan_from({"steps": [{"text": "read", "status": "active"}]})
    assert holds_plan([{"role": "user", "content": f"<plan>\n{plan.text}\n</plan>"}], plan)
    assert not holds_plan([{"role": "user", "content": older.text}], plan)


def test_a_made_run_is_played_through_agent_mode(tmp_path: Path) -> None:
    run = made_run(30)
    found = held(run, play(tmp_path / "home", run))
    assert (found.requests, found.plan, found.goal, found.orphans) == (31, 31, 31, 0)
