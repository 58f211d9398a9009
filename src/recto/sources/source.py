"""Tool: what a model may call. Include: how a source comes into the window."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Include = Literal["always", "manual", "agent"]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the arguments."""
    include: Include = "always"
