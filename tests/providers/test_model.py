"""Which parameters a model takes, by the facts about it."""

import pytest
from msgspec.structs import replace

from recto.providers.model import Model, accepted
from recto.window.request import NamedTool, Parameters, ResponseFormat

EASY = Model("acme:m", "acme", "m", None, "unknown", effort=True, adaptive_thinking=False)
ASKED = Parameters(
    max_tokens=9,
    temperature=0.5,
    tool_choice=NamedTool("look"),
    top_p=0.9,
    stop=("END",),
    response_format=ResponseFormat("json_schema", {}),
    reasoning_effort="low",
    parallel_tool_calls=False,
)


def test_a_model_that_takes_everything_is_asked_for_everything() -> None:
    assert accepted(ASKED, EASY) == (ASKED, ())


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (replace(EASY, fixed_temperature=True), ("temperature", "top_p")),
        (replace(EASY, stop=False), ("stop",)),
        (replace(EASY, effort=False), ("reasoning_effort",)),
        (replace(EASY, json_schema=False), ("response_format",)),
        (replace(EASY, forced_tools=False), ("tool_choice",)),
    ],
)
def test_what_a_model_refuses_is_left_out_and_named(model: Model, names: tuple[str, ...]) -> None:
    taken, left_out = accepted(ASKED, model)
    assert left_out == names
    given = ASKED.given()
    assert taken.given() == {name: value for name, value in given.items() if name not in names}


def test_what_forces_nothing_is_never_left_out() -> None:
    strict = replace(EASY, forced_tools=False, json_schema=False)
    asked = Parameters(tool_choice="none", response_format=ResponseFormat("json_object"))
    assert accepted(asked, strict) == (asked, ())


def test_a_model_that_decides_itself_how_much_it_thinks_gets_no_budget() -> None:
    adaptive = replace(EASY, adaptive_thinking=True)
    assert accepted(Parameters(thinking_budget=2000), adaptive) == (Parameters(thinking="adaptive"), ())
    assert accepted(Parameters(thinking="adaptive"), EASY) == (Parameters(), ("thinking",))
