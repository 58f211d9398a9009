"""The table of actions: what it names is there, in the Python door and in what draws results."""

import inspect
from operator import attrgetter

import click
import pytest

from recto.api.actions import ACTIONS, BY_NAME, Action, offered
from recto.api.blocking import Desk, Talk
from recto.cli.drawing.results import RESULTS
from recto.cli.main import recto
from recto.cli.slash import COMMANDS, OWN
from recto.memory.fact_memory import FactMemory

OWNERS = {"talk": Talk, "desk": Desk}
WITH_METHOD = [action for action in ACTIONS if action.method]


@pytest.mark.parametrize("action", WITH_METHOD, ids=lambda action: action.name)
def test_the_method_of_an_action_takes_its_arguments(action: Action) -> None:
    owner, _, name = action.method.partition(".")
    method = getattr(FactMemory, name.removeprefix("facts.")) if "." in name else attrgetter(name)(OWNERS[owner])
    own, *_ = parameters = list(inspect.signature(method).parameters)
    assert own == "self"
    assert {*(argument.name for argument in action.arguments), *action.fixed} <= {*parameters}


@pytest.mark.parametrize("action", WITH_METHOD, ids=lambda action: action.name)
def test_an_action_is_a_command_whose_result_is_drawn(action: Action) -> None:
    group = recto.get_command(click.Context(recto), action.group)
    assert isinstance(group, click.Group)
    assert action.word in group.commands
    assert action.shown in RESULTS


def test_every_result_is_of_an_action() -> None:
    assert {action.shown for action in WITH_METHOD} == {*RESULTS}


def test_a_slash_command_is_typed_as_the_table_says_or_has_a_function() -> None:
    assert [*COMMANDS] == [action.word for action in offered("slash")]
    assert {*OWN} | {action.word for action in WITH_METHOD} >= {*COMMANDS}
    assert {*OWN} <= {*COMMANDS}


def test_a_door_finds_what_it_offers() -> None:
    assert BY_NAME["conversations pin"].doors == {"command", "slash", "page"}
    assert BY_NAME["memory show"].doors == {"command"}
    assert BY_NAME["quit"].doors == {"slash"}
