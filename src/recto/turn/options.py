"""CallOptions: what one call asks for besides its message."""

from dataclasses import dataclass, fields, replace

from recto.sources.source import Tool
from recto.window.request import Parameters


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What is left out follows the conversation, its agent and the settings."""

    model: str | None = None
    strategy: str | None = None
    parameters: Parameters = Parameters()  # noqa: RUF009  frozen
    """Fields that are not None are sent in place of the settings' own."""
    tools: tuple[Tool, ...] = ()
    """Tools that the caller runs: their calls are handed back, and the next message carries the results."""


NO_OPTIONS = CallOptions()


def with_parameters(base: Parameters, given: Parameters) -> Parameters:
    """`base` with every field that `given` sets."""
    names = [spec.name for spec in fields(given)]
    changed = {name: value for name in names if (value := getattr(given, name)) not in (None, ())}
    return replace(base, **changed)
