"""A clock of the tests' own: Recto reads its time, everything else the real one."""

import datetime as real
import sys
import time as real_time
from collections.abc import Callable
from typing import Any


class Clock:
    def __init__(self, at: str) -> None:
        self.at = real.datetime.fromisoformat(at)

    def ahead(self, **by: float) -> None:
        """Moves the clock on, by days, hours, minutes or seconds."""
        self.at += real.timedelta(**by)

    def install(self, replace: Callable[[Any, str, Any], object] = setattr) -> None:
        """In every module of Recto that is imported by now."""
        times, fakes = _time_of(self), _classes_of(self)
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "recto":
                continue
            for attribute, fake in fakes.items():
                if getattr(module, attribute, None) is getattr(real, attribute):
                    replace(module, attribute, fake)
            if getattr(module, "time", None) is real_time:
                replace(module, "time", times)


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


def _time_of(clock: Clock) -> Any:
    class Times:
        def __getattr__(self, name: str) -> Any:
            return getattr(real_time, name)

        def time(self) -> float:
            return clock.at.timestamp()

        def time_ns(self) -> int:
            return int(clock.at.timestamp() * 1000) * 1_000_000

    return Times()
