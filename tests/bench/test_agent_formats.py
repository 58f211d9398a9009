"""Runs in the formats of other agents know what was asked, changed and run, at every point."""

import pytest
from bench.agent_formats import FORMATS, FormatAgent
from bench.judge import unpaired


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_knows_its_state_at_every_point(format: str) -> None:
    agent = FormatAgent(format, 1)
    run = agent.run(5_000)
    assert run == FormatAgent(format, 1).run(5_000)
    wire = run.wire()[1:]
    assert unpaired(wire) == (0, 0)
    said = ""
    for number, message in enumerate(wire, 1):
        said += f"{message.get('content') or ''}\n{message.get('tool_calls') or ''}\n"
        state = agent.state(number)
        assert all(name in said for name in state.files)
    assert state.task in said
    assert state.files
    assert len(state.outcomes) > 2
