"""The Python door: its blocking half is complete, and `recto` shows all of it."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recto
from recto.api.blocking import Desk, Talk
from recto.api.desk import AsyncDesk
from recto.api.talk import AsyncTalk
from recto.errors import RectoError


def public(kind: type) -> dict[str, Any]:
    found = {name: each for base in reversed(kind.__mro__[:-1]) for name, each in vars(base).items()}
    return {name: each for name, each in found.items() if not name.startswith("_")}


def parameters(function: Any) -> list[tuple[str, Any, Any, Any]]:
    given = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default, str(each.annotation)) for each in given]


def returns(each: property) -> Any:
    assert each.fget is not None
    return inspect.signature(each.fget).return_annotation


@pytest.mark.parametrize(("asynchronous", "blocking"), [(AsyncTalk, Talk), (AsyncDesk, Desk)])
def test_every_method_has_a_blocking_twin_that_takes_the_same(asynchronous: type, blocking: type) -> None:
    ours, theirs = public(blocking), public(asynchronous)
    assert theirs.keys() - ours.keys() == set(), "missing in the blocking door"
    assert ours.keys() - theirs.keys() <= {
        "asynchronous",
        "session",
        "home",
        "project",
        "settings",
        "store",
        "engine",
        "vault",
        "run",
    }, "what the asynchronous door does not know"
    for name, each in theirs.items():
        if isinstance(each, property):
            assert isinstance(ours[name], property), name
            assert returns(each) == returns(ours[name])
        else:
            assert parameters(each) == parameters(ours[name]), name
            assert not inspect.iscoroutinefunction(ours[name]), name


def test_dir_shows_the_door_and_every_name_of_it_is_there() -> None:
    assert dir(recto) == sorted(recto.__all__)
    for name in recto.__all__:
        assert getattr(recto, name) is not None
    with pytest.raises(AttributeError, match="has no attribute shut"):
        recto.shut  # noqa: B018


def test_importing_recto_imports_nothing_else_of_it() -> None:
    code = "import sys, recto; print([name for name in sys.modules if name.startswith('recto.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_asynchronous_door_answers_in_the_loop_of_its_caller(script: Any, tmp_path: Any) -> None:
    asyncio.run(_talked(script({"text": "fine"}), tmp_path / "home"))


async def _talked(model: str, home: Path) -> None:
    async with await recto.open_async(home=home, model=model) as desk:
        talk = await desk.conversation()
        assert (await talk.ask("how are you?")).text == "fine"
        assert [message.text async for message in talk.path()] == ["fine", "how are you?"]
        assert (await desk.latest()) is not None


def test_a_desk_that_is_closed_says_so(script: Any, tmp_path: Any) -> None:
    with recto.open(home=tmp_path / "home", model=script({"text": "fine"})) as desk:
        talk = desk.conversation()
        talk.ask("how are you?")
    with pytest.raises(RectoError, match="closed"):
        talk.ask("and now?")


def test_a_conversation_is_opened_by_its_number(script: Any, tmp_path: Any) -> None:
    with recto.open(home=tmp_path / "home", model=script({"text": "fine"})) as desk:
        talk = desk.conversation()
        talk.ask("how are you?")
        assert desk.conversation(1).id == desk.conversation("#1").id == talk.id
