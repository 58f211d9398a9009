"""Source: a Rule, a Reference, a Tool or a Memory that may enter the window. Include: the mode in which it does.

A source is identified by its kind and name, a tool also by its server.

Pick: something in a window, with its tokens, mode and reason.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from msgspec import Struct

from recto.errors import Invalid

SourceKind = Literal["rule", "reference", "tool", "memory"]
Include = Literal["always", "manual", "agent"]
Approval = Literal["ask", "allow", "deny"]
SOURCE_KINDS: tuple[SourceKind, ...] = ("rule", "reference", "tool")
"""Kinds of an agent's sources, which the user can add and remove."""
SENT_KINDS: tuple[SourceKind, ...] = (*SOURCE_KINDS, "memory")
"""Kinds of all sources in a request."""
INCLUDES: tuple[Include, ...] = ("always", "manual", "agent")
APPROVALS: tuple[Approval, ...] = ("ask", "allow", "deny")
DEFAULT_AGENT = "default"
"""The built-in agent, which needs no files."""
BUILT_IN_SERVER = "recto"
DEFAULT_PRIORITY, MAX_PRIORITY = 500, 999
_KIND_PREFIXES: dict[str, SourceKind] = {"rule": "rule", "ref": "reference", "reference": "reference", "tool": "tool"}


class SourceId(Struct, frozen=True, order=True):
    kind: SourceKind
    name: str
    server: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.server}/{self.name}" if self.server else f"{self.kind}:{self.name}"

    @staticmethod
    def parse(text: str) -> "SourceId":
        """Parse `rule:style`, `ref:api`, `reference:api`, `tool:server/name`; a tool without a server is built in."""
        prefix, colon, name = text.partition(":")
        kind = _KIND_PREFIXES.get(prefix)
        if not colon or kind is None or not name.strip("/"):
            raise Invalid(
                f"{text!r} is not the name of a source; write rule:NAME, ref:NAME or tool:SERVER/NAME", name=text
            )
        if kind != "tool":
            return SourceId(kind, name)
        server, slash, tool = name.partition("/")
        return SourceId("tool", tool, server) if slash else SourceId("tool", name, BUILT_IN_SERVER)


class TextSource(Struct, frozen=True):
    """A text: a file in the folder of an agent."""

    kind: ClassVar[SourceKind]
    name: str
    text: str
    description: str = ""
    include: Include = "manual"
    priority: int = DEFAULT_PRIORITY
    """Sources with a higher priority come earlier in the window."""
    enabled: bool = True
    path: str = ""

    @property
    def id(self) -> SourceId:
        return SourceId(self.kind, self.name)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class Rule(TextSource, frozen=True):
    """A text that says how the model should behave."""

    kind: ClassVar[SourceKind] = "rule"


class Reference(TextSource, frozen=True):
    """A text that the model should know."""

    kind: ClassVar[SourceKind] = "reference"


class Memory(TextSource, frozen=True):
    """A memory file, or a section of one. Users cannot remove it, but settings switch memory off."""

    kind: ClassVar[SourceKind] = "memory"


class Tool(Struct, frozen=True):
    """A function that a model may call."""

    kind: ClassVar[SourceKind] = "tool"
    name: str
    """The name for the model: letters, digits, `_` and `-`, unique among all servers."""
    description: str
    schema: Mapping[str, Any]
    include: Include = "always"
    server: str = BUILT_IN_SERVER
    own_name: str = ""
    """The name on its server, if different."""
    enabled: bool = True

    @property
    def id(self) -> SourceId:
        return SourceId("tool", self.own_name or self.name, self.server)

    @property
    def text(self) -> str:
        """The tool as the model sees it, as one text."""
        data = {"name": self.name, "description": self.description, "schema": dict(self.schema)}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


Source = Rule | Reference | Tool | Memory


def placeholder_source(id: SourceId) -> Source:
    """A source without content, for an id whose source no longer exists."""
    if id.kind == "tool":
        return Tool(id.name, "", {}, server=id.server)
    texts: dict[str, type[Rule | Reference | Memory]] = {"rule": Rule, "memory": Memory}
    return texts.get(id.kind, Reference)(id.name, "")


Mode = Literal["always", "manual", "agent"]


class Pick(Struct, frozen=True):
    kind: str
    """rule, reference, tool, document, message, summary, system …"""
    name: str
    because: str
    tokens: int = 0
    mode: Mode = "always"
    score: float | None = None
    sha256: str | None = None
    """The hash of the included text, if its origin may change."""
    server: str = ""
    """The server of a tool."""

    @property
    def source(self) -> SourceId:
        return SourceId(cast(SourceKind, self.kind), self.name, self.server)

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "tokens": self.tokens,
            "because": self.because,
            "mode": self.mode,
            "score": self.score,
        }
        if self.server:
            out["server"] = self.server
        return out | {"sha256": self.sha256} if self.sha256 else out


class Insert(Struct, frozen=True):
    """A text placed before the current message, in one section of the window."""

    section: str
    text: str
    picks: tuple[Pick, ...]
    """Its parts; if there are several, their tokens say the proportion."""
    texts: tuple[str, ...] = ()
    """For sources: the text of each pick, to be kept by its hash."""
