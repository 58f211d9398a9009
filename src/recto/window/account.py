"""RequestAccount: the record of a request besides its bytes: sections with picks, plan, messages, prefix.

Pure data. Missing values are left out of its JSON.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from msgspec import Struct, convert, to_builtins

from recto.sources.source import Pick


class Section(Struct, frozen=True):
    """A part of a window: its tokens, its budget, and its picks."""

    name: str
    tokens: int
    budget: int
    picks: tuple[Pick, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tokens": self.tokens,
            "budget": self.budget,
            "picks": [pick.to_json() for pick in self.picks],
        }


class SentRange(Struct, frozen=True):
    """The messages that were sent, by id: the history as a range, the others one by one."""

    first: str | None = None
    last: str | None = None
    count: int = 0
    lifted: tuple[str, ...] = ()
    excerpts: tuple[str, ...] | None = None
    """Messages, or `message/call`, that were sent as excerpts."""
    current: str | None = None
    rounds: tuple[str, ...] = ()
    """Tool calls and results of this turn."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in to_builtins(self).items() if name != "excerpts" or value is not None}


class PrefixReuse(Struct, frozen=True):
    """How much of the previous request's beginning is repeated."""

    base: str | None = None
    """The previous request; None for the first of a conversation."""
    kept: int = 0
    of: int = 0
    broken_by: str | None = None
    """None if the request begins with all stable pieces of the base."""

    def to_json(self) -> dict[str, object]:
        return {"base": self.base, "kept": self.kept, "of": self.of, "broken_by": self.broken_by}


class RequestAccount(Struct, frozen=True):
    """A field is None if the request does not record it."""

    model: str | None = None
    format: str | None = None
    parameters: Mapping[str, Any] | None = None
    limit: int | None = None
    reserve: int | None = None
    total: int | None = None
    free: int | None = None
    exact: bool | None = None
    strategy: str | None = None
    sections: tuple[Section, ...] | None = None
    plan: Mapping[str, Any] | None = None
    """As JSON, because it is only displayed."""
    notes: tuple[str, ...] | None = None
    not_picked: tuple[Pick, ...] = ()
    messages: SentRange | None = None
    compaction: int | None = None
    ahead: str | None = None
    """For a summary requested before it was due: the last message that it covers."""
    passing: bool | None = None
    """True if messages were left out for this request alone to make the window fit."""
    meter: str | None = None
    window_from: str | None = None
    calibration: Mapping[str, Any] | None = None
    """How estimates were scaled: the factor, the replies it is learned from, and the tokens that were estimated."""
    prefix: PrefixReuse | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Raises ValueError if the stored form is damaged."""
        return convert(stored, cls)

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__struct_fields__}
        told["sections"] = None if self.sections is None else [section.to_json() for section in self.sections]
        told["not_picked"] = [pick.to_json() for pick in self.not_picked] or None
        told["messages"] = self.messages.to_json() if self.messages else None
        # a reply without a compaction records null; a summary request has no such key
        nulls = ("compaction",) if self.messages else ()
        return {name: to_builtins(value) for name, value in told.items() if value is not None or name in nulls}

    @property
    def broken_by(self) -> str | None:
        """Why the request does not begin with all stable pieces of the previous one."""
        return self.prefix.broken_by if self.prefix else None

    def picks(self, *sections: str) -> Iterator[Pick]:
        """The picks of these sections, or of all."""
        for section in self.sections or ():
            if not sections or section.name in sections:
                yield from section.picks


NO_ACCOUNT = RequestAccount()
