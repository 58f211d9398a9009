"""Source: what may enter the window besides the conversation: a Rule, a Reference, a Tool. Include: how it comes in.

A source is known by its kind and name, a tool also by the server that has it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from recto.errors import Invalid

Kind = Literal["rule", "reference", "tool"]
Include = Literal["always", "manual", "agent"]
Approval = Literal["ask", "allow", "deny"]
KINDS: tuple[Kind, ...] = ("rule", "reference", "tool")
INCLUDES: tuple[Include, ...] = ("always", "manual", "agent")
APPROVALS: tuple[Approval, ...] = ("ask", "allow", "deny")
OWN = "recto"
"""The server of the tools that are built in."""
PRIORITY, MOST_PRIORITY = 500, 999
_TYPED: dict[str, Kind] = {"rule": "rule", "ref": "reference", "reference": "reference", "tool": "tool"}


@dataclass(frozen=True, slots=True, order=True)
class SourceId:
    kind: Kind
    name: str
    server: str = ""
    """Of a tool: who has it."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.server}/{self.name}" if self.server else f"{self.kind}:{self.name}"

    @staticmethod
    def parse(text: str) -> "SourceId":
        """`rule:style`, `ref:api`, `reference:api`, `tool:server/name`; a tool without a server is one of ours."""
        typed, colon, name = text.partition(":")
        kind = _TYPED.get(typed)
        if not colon or kind is None or not name.strip("/"):
            raise Invalid(f"{text!r} names no source; write rule:NAME, ref:NAME or tool:SERVER/NAME", name=text)
        if kind != "tool":
            return SourceId(kind, name)
        server, slash, tool = name.partition("/")
        return SourceId("tool", tool, server) if slash else SourceId("tool", name, OWN)


@dataclass(frozen=True, slots=True)
class Written:
    """A source that is a text of the user: a file of an agent."""

    kind: ClassVar[Kind]
    name: str
    text: str
    description: str = ""
    include: Include = "manual"
    priority: int = PRIORITY
    """The higher, the earlier it stands in the window."""
    enabled: bool = True
    path: str = ""

    @property
    def id(self) -> SourceId:
        return SourceId(self.kind, self.name)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Rule(Written):
    """How the model is to behave."""

    kind: ClassVar[Kind] = "rule"


@dataclass(frozen=True, slots=True)
class Reference(Written):
    """What the model is to know."""

    kind: ClassVar[Kind] = "reference"


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call."""

    kind: ClassVar[Kind] = "tool"
    name: str
    """As the model calls it: letters, digits, `_` and `-`, one of its kind among all servers."""
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the arguments."""
    include: Include = "always"
    server: str = OWN
    own_name: str = ""
    """As its server calls it, where that differs."""
    enabled: bool = True

    @property
    def id(self) -> SourceId:
        return SourceId("tool", self.own_name or self.name, self.server)

    @property
    def text(self) -> str:
        """What of it may change elsewhere, as one text."""
        told = {"name": self.name, "description": self.description, "schema": dict(self.schema)}
        return json.dumps(told, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


Source = Rule | Reference | Tool


def bare(id: SourceId) -> Source:
    """A source of which nothing but its name is known."""
    if id.kind == "tool":
        return Tool(id.name, "", {}, server=id.server)
    return Rule(id.name, "") if id.kind == "rule" else Reference(id.name, "")
