"""The Python door: its blocking half is complete, and `recto` shows all of it."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.generate.stubs import stubs

import recto
from recto.errors import RectoError

ROOT = Path(__file__).parents[1]


def test_the_stubs_are_current() -> None:
    for file, text in stubs().items():
        assert file.read_text("utf-8") == text, f"`make docs` writes {file.name} again"


@pytest.mark.slow  # the type checker reads nearly all of Recto
@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_the_examples_of_the_pages_pass_the_strict_type_checker(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    file = tmp_path / "page.py"
    file.write_text("\n".join(blocks))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT / "src")})
    assert done.returncode == 0, done.stdout


def test_dir_shows_the_door_and_every_name_of_it_is_there() -> None:
    assert dir(recto) == sorted(recto.__all__)
    for name in recto.__all__:
        assert getattr(recto, name) is not None
    with pytest.raises(AttributeError, match="has no attribute shut"):
        recto.shut  # type: ignore[attr-defined]  # noqa: B018


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
