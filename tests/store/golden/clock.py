"""A clock of the tests' own: Recto reads its time, everything else the real one."""

import datetime as real
import sys
import time as real_time
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any


class Clock:
    def __init__(self, at: str) -> None:
        self.at = real.datetime.fromisoformat(at)

    def ahead(self, **by: float) -> None:
        """Moves the clock on, by days, hours, minutes or seconds."""
        self.at += real.timedelta(**by)

    def stopwatch(self) -> Any:
        """The module `time` for what measures: no time passes."""
        return _time_of(self, monotonic=lambda: 0.0)

    def install(self, replace: Callable[[Any, str, Any], object] = setattr) -> None:
        """In every module of Recto that was imported before the first clock."""
        fakes = {"time": _time_of(self), **_classes_of(self)}
        for module, name in _places():
            replace(module, name, fakes[name])


@cache
def _places() -> list[tuple[ModuleType, str]]:
    """Where modules of Recto have the time from."""
    known = {"time": real_time, "datetime": real.datetime, "date": real.date}
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == "recto"]
    return [(module, name) for module in ours for name, value in known.items() if getattr(module, name, None) is value]


def _classes_of(clock: Clock) -> dict[str, type]:
    class IsReal(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__mro__[1])

    class Datetime(real.datetime, metaclass=IsReal):
        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> real.datetime:  # type: ignore[override]
            at = clock.at.astimezone(tz)
            return at if tz else at.replace(tzinfo=None)

    class Date(real.date, metaclass=IsReal):
        @classmethod
        def today(cls) -> real.date:  # type: ignore[override]
            return clock.at.astimezone().date()

    return {"datetime": Datetime, "date": Date}


def _time_of(clock: Clock, **more: Callable[[], float]) -> Any:
    class Times:
        def __getattr__(self, name: str) -> Any:
            return more.get(name) or getattr(real_time, name)

        def time(self) -> float:
            return clock.at.timestamp()

        def time_ns(self) -> int:
            return int(clock.at.timestamp() * 1000) * 1_000_000

    return Times()
