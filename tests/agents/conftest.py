"""Fixtures for an agent named clerk, whose files a test writes into a home and a project."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recto.agents.agent import Agent
from recto.agents.agents import Agents

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".recto").mkdir(parents=True)
    return folder


def writer(folder: Path) -> Write:
    def write(path: str, text: str | bytes) -> Path:
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text if isinstance(text, bytes) else text.encode())
        return place

    return write


@pytest.fixture
def yours(home: Path) -> Write:
    """Writes a file of the agent clerk into the home."""
    return writer(home / "agents" / "clerk")


@pytest.fixture
def theirs(project: Path) -> Write:
    """Writes a file of the agent clerk into the project."""
    return writer(project / ".recto" / "agents" / "clerk")


@pytest.fixture
def agents(home: Path, project: Path) -> Agents:
    return Agents(home, project)


def only_note(agent: Agent) -> str:
    (note,) = agent.notes
    return note


def refusing(real: Callable[..., Any], ending: str) -> Callable[..., Any]:
    """The same, without the right to open what ends so: root has every right."""

    def refuse(path: Any, *rest: Any, **named: Any) -> Any:
        if str(path).endswith(ending):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **named)

    return refuse


def settle(folder: Path) -> None:
    """As if all files had been there for a while."""
    while time.time_ns() - max(path.stat().st_ctime_ns for path in folder.rglob("*")) < 60_000_000:
        time.sleep(0.02)
