"""Spec: what one setting may be, and how its value is read. Knows no setting itself."""

from dataclasses import dataclass, field
from typing import Any

from recto.errors import Invalid

LONGEST_SHOWN = 200
SWITCHES = dict.fromkeys(("true", "1", "on", "yes"), True) | dict.fromkeys(("false", "0", "off", "no"), False)


def setting(
    default: Any, help: str, *, low: float | None = None, high: float | None = None, among: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"help": help, "low": low, "high": high, "among": among})


@dataclass(frozen=True, slots=True)
class Spec:
    """The specification of one setting."""

    key: str
    default: Any
    help: str
    low: float | None
    high: float | None
    among: tuple[str, ...]
    also: str = ""
    """Another name that it is accepted under."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key, self.also) if self.also else (self.key,)

    @property
    def allowed(self) -> str:
        if self.among:
            return " or ".join(self.among)
        if isinstance(self.default, bool):
            return "true or false"
        kind = {int: "a whole number", float: "a number"}.get(type(self.default), "a text")
        return kind if self.low is None else f"{kind} from {self.low:,} to {self.high:,}"

    def read(self, value: Any, where: str) -> Any:
        """Converts a value, also from text, to this setting's type. Raises Invalid, naming what is allowed."""
        try:
            typed = self._typed(value)
        except (KeyError, TypeError, ValueError):
            raise self.wrong(value, where) from None
        if self.among and typed not in self.among:
            raise self.wrong(value, where)
        if self.low is not None and self.high is not None and not self.low <= typed <= self.high:
            raise self.wrong(value, where)
        return typed

    def _typed(self, value: Any) -> Any:
        kind = type(self.default)
        if kind is bool:
            return value if isinstance(value, bool) else SWITCHES[str(value).lower()]
        if kind is str:
            return value if isinstance(value, str) else _refuse()
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return _refuse()
        if kind is int and isinstance(value, float):
            return _refuse()
        return kind(value)

    def wrong(self, value: Any, where: str) -> Invalid:
        text = repr(value)
        told = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        why = f"{where}: {self.key} = {told} is not allowed; it takes {self.allowed}"
        return Invalid(why, key=self.key, allowed=self.allowed)


def _refuse() -> Any:
    raise TypeError
