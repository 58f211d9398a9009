"""What every public name of the Python door gives, over a copy of the golden home."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden.conftest import Compare, World, compare_with, surroundings
from tests.golden.door_calls import DESK_READS, DESK_WRITES, TALK_READS, TALK_WRITES
from tests.golden.plain_values import as_text, plain

import recto
from recto.api.blocking import Desk, open_desk
from recto.errors import RectoError

DURATION = re.compile(r'("duration_s": )[0-9.]+')
"""Of what was made just now."""
ITSELF = {"asynchronous", "engine", "store"}
"""Parts that the door hands out as they are."""


def names(door: type) -> set[str]:
    return {name for name in dir(door) if not name.startswith("_")}


def test_every_name_has_a_golden_file() -> None:
    assert names(recto.Desk) - ITSELF == DESK_READS.keys() | DESK_WRITES.keys()
    assert names(recto.Talk) - ITSELF == TALK_READS.keys() | TALK_WRITES.keys()


def test_the_names_and_their_arguments_are_the_same(shared_world: World) -> None:
    told = [f"recto: {', '.join(name for name in dir(recto) if not name.startswith('_'))}"]
    for door in (recto.Desk, recto.Talk, recto.AsyncDesk, recto.AsyncTalk):
        told += ["", door.__name__, *(f"  {_signature(door, name)}" for name in sorted(names(door)))]
    told += ["", *(f"{name}{_arguments(getattr(recto, name))}" for name in ("fit", "open", "open_async"))]
    compare_with(shared_world, "door/names.txt", "\n".join(told) + "\n")


def _signature(door: type, name: str) -> str:
    found = inspect.getattr_static(door, name)
    return name if isinstance(found, property) else f"{name}{_arguments(found)}"


def _arguments(function: Callable[..., object]) -> str:
    """Without types, whose names are told elsewhere."""
    known = inspect.signature(function)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in known.parameters.values()]
    return str(known.replace(parameters=bare, return_annotation=inspect.Signature.empty))


# -- looking


@pytest.fixture(scope="module")
def reading(second_world: World) -> Iterator[tuple[World, Desk]]:
    """One desk for all that only look, in a copy that nobody changes."""
    with surroundings(second_world):
        desk = open_desk(home=second_world.home, settings={"vault": str(second_world.notes)})
    yield second_world, desk
    desk.close()


@pytest.mark.parametrize("name", DESK_READS)
def test_a_desk_gives_what_it_did(name: str, reading: tuple[World, Desk]) -> None:
    world, desk = reading
    with surroundings(world):
        found, twin = (
            [plain(given(desk, door, call)) for call in DESK_READS[name]] for door in (desk, desk.asynchronous)
        )
    compare_with(world, f"door/Desk.{name}.json", as_text(found))
    assert twin == found


@pytest.mark.parametrize("name", TALK_READS)
def test_a_talk_gives_what_it_did(name: str, reading: tuple[World, Desk]) -> None:
    world, desk = reading
    with surroundings(world):
        talks = [(desk.conversation(title), call) for title, call in TALK_READS[name]]
        found = [plain(given(desk, talk, call)) for talk, call in talks]
        twin = [plain(given(desk, talk.asynchronous, call)) for talk, call in talks]
    compare_with(world, f"door/Talk.{name}.json", as_text(found))
    assert twin == found


def given(desk: Desk, door: object, call: Callable[[Any], Any]) -> object:
    """The result, or the error; of an asynchronous door once it has come."""
    try:
        found = call(door)
        if inspect.isasyncgen(found) or hasattr(found, "__aiter__"):
            return desk.run(_all(found))
        if inspect.isawaitable(found):
            return desk.run(found)  # type: ignore[arg-type]
        return list(found) if inspect.isgenerator(found) else found
    except RectoError as why:
        return why


async def _all(events: Any) -> list[object]:
    return [event async for event in events]


# -- changing


@pytest.mark.parametrize("name", [*(f"Desk.{name}" for name in DESK_WRITES), *(f"Talk.{name}" for name in TALK_WRITES)])
def test_what_changes_something_gives_what_it_did(name: str, world: World, compare: Compare) -> None:
    door, _, method = name.partition(".")
    calls = (DESK_WRITES if door == "Desk" else TALK_WRITES)[method]
    with open_desk(home=world.home, settings={"vault": str(world.notes)}) as desk:
        found = [plain(given(desk, desk, call)) for call in calls]
    text = DURATION.sub(r'\1"<seconds>"', as_text(found))
    compare(f"door/{name}{'' if method != 'facts' else '.changed'}.json", text)


def test_messages_of_another_program_fit_as_they_did(shared_world: World) -> None:
    said = [
        {"role": "user" if turn % 2 == 0 else "assistant", "content": f"Day {turn}: " + "wind. " * 60}
        for turn in range(30)
    ]
    tools = [{"role": "system", "content": "Be kind."}, *said]
    found = [
        plain(recto.fit(tools, model="openai:gpt-4o", max_prompt_tokens=2000, strategy=strategy))
        for strategy in ("summarize", "discard", "hybrid")
    ]
    compare_with(shared_world, "door/fit.json", as_text(found))


def test_the_golden_files_are_those_of_today(request: pytest.FixtureRequest) -> None:
    known = {f"Desk.{name}" for name in (*DESK_READS, *DESK_WRITES)} | {
        f"Talk.{name}" for name in (*TALK_READS, *TALK_WRITES)
    }
    files = {file.stem.removesuffix(".changed") for file in Path(__file__).with_name("door").glob("*.*.json")}
    assert files - known == set()
