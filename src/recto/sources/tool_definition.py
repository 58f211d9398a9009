"""ToolDefinition: what a user allows: a tool as its server describes it, and how that server is reached.

ToolChange: the difference of a tool from what the user allowed, as lines. Plain values.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

_SENTENCE_END = re.compile(r"(?<=[.!?]) +|\n+")


class ServerIdentity(Struct, frozen=True):
    """The server of a tool. Empty for a tool that runs in this process."""

    place: str = ""
    """The file that defines the server, or the project that it belongs to."""
    runs: str = ""
    """Its command line or address, without secrets."""
    sha256: str = ""
    """The hash of everything that says how it is reached."""


class ToolDefinition(Struct, frozen=True):
    server: str
    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    reached: ServerIdentity = ServerIdentity()

    @property
    def id(self) -> str:
        return f"{self.server}/{self.name}"

    @property
    def sha256(self) -> str:
        parts = [self.server, self.name, self.description, self.schema, self.reached.sha256]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class ToolChange(Struct, frozen=True):
    before: ToolDefinition | None
    """The allowed definition; None if unknown or missing."""
    after: ToolDefinition
    is_new: bool = False
    """True if the user allowed all tools of its server before this one existed."""

    @property
    def text(self) -> str:
        """A sentence about it, without its period."""
        name = _visible(self.after.id)
        if self.is_new:
            return f"{name} is new since you allowed the tools of {self.after.server}"
        what = ", ".join(part for part, _ in self._parts())
        return f"{name} has changed since you allowed it{f' ({what})' if self.before else ''}"

    @property
    def lines(self) -> tuple[str, ...]:
        """Removed (`-`) and added (`+`) lines, below a heading for each part."""
        return tuple(_visible(line) for name, lines in self._parts() for line in (f"its {name}", *lines))

    def _parts(self) -> Iterator[tuple[str, list[str]]]:
        before, after = self.before or ToolDefinition(self.after.server, self.after.name), self.after
        if before.reached.sha256 != after.reached.sha256:
            runs = [[each.reached.runs] if each.reached.runs else [] for each in (before, after)]
            yield "server", _diff(*runs) or ["  the same, with other values that are not shown here"]
        if before.description != after.description:
            yield "description", _diff(_sentences(before.description), _sentences(after.description))
        if before.schema != after.schema:
            yield "schema", _diff(_schema_lines(before.schema), _schema_lines(after.schema))


def _visible(line: str) -> str:
    """The text with invisible characters escaped: a change must not hide in them."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def _schema_lines(schema: Mapping[str, Any]) -> list[str]:
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False).splitlines() if schema else []


def _diff(before: list[str], after: list[str]) -> list[str]:
    gone, new = set(before).difference(after), set(after).difference(before)
    return [*(f"- {line}" for line in before if line in gone), *(f"+ {line}" for line in after if line in new)]
