"""State: how a server is doing."""

from dataclasses import dataclass
from typing import Literal

Doing = Literal["running", "stopped", "starting", "failed", "untrusted", "off"]


@dataclass(frozen=True, slots=True)
class State:
    name: str
    state: Doing
    why: str = ""
    """What is the matter, where something is."""
    tools: int = 0
    pid: int | None = None
