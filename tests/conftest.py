"""Real parts, small: a home in a temporary folder and models that answer from a script."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from recto.desk import Desk, open_desk

# no test asserts a time, not even through the property tests
hypothesis_settings.register_profile("recto", deadline=None)
hypothesis_settings.load_profile("recto")

Open = Callable[..., Desk]
Script = Callable[..., str]


@pytest.fixture(autouse=True)
def quiet_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting, key or server of the machine that runs the tests reaches them."""
    for name in list(os.environ):
        if name.startswith("RECTO_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("RECTO_HOME", str(tmp_path / "home"))
    # the real embedder has tests of its own: opening it in every other one would take longer than the test
    monkeypatch.setenv("RECTO_SEARCH_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a script and gives the name of the model that speaks it."""
    written = iter(range(1000))

    def write(*steps: dict[str, Any], limit: int | None = None) -> str:
        path = tmp_path / f"script{next(written)}.json"
        path.write_text(json.dumps({"limit": limit, "steps": steps} if limit else list(steps)))
        return f"scripted:{path}"

    return write


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Open]:
    """Opens desks on one home and closes them at the end."""
    opened: list[Desk] = []

    def make(model: str, vault: Path | None = None, **settings: Any) -> Desk:
        made = open_desk(
            home=tmp_path / "home",
            model=model,
            vault=vault,
            settings={key.replace("__", "."): value for key, value in settings.items()},
        )
        opened.append(made)
        return made

    yield make
    for each in opened:
        each.close()
