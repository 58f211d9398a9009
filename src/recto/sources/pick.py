"""Pick: something in a window, with its tokens, how it came in and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from recto.sources.source import BUILT_IN_SERVER, SourceId, SourceKind

Mode = Literal["always", "manual", "agent"]


@dataclass(frozen=True, slots=True)
class Pick:
    kind: str
    """rule, reference, tool, document, message, summary, system …"""
    name: str
    because: str
    tokens: int = 0
    mode: Mode = "always"
    score: float | None = None
    sha256: str | None = None
    """Of the text that went in, where that text may change elsewhere."""
    server: str = ""
    """Of a tool: who has it."""

    @property
    def source(self) -> SourceId:
        """The rule, reference or tool. Old records name built-in tools without a server."""
        server = self.server or (BUILT_IN_SERVER if self.kind == "tool" else "")
        return SourceId(cast(SourceKind, self.kind), self.name, server)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(
            kind=stored.get("kind", ""),
            name=stored.get("name", ""),
            because=stored.get("because", ""),
            tokens=stored.get("tokens", 0),
            mode=stored.get("mode", "always"),
            score=stored.get("score"),
            sha256=stored.get("sha256"),
            server=stored.get("server", ""),
        )

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


@dataclass(frozen=True, slots=True)
class Insert:
    """A text that goes in front of the current message, in one section of the window."""

    section: str
    text: str
    picks: tuple[Pick, ...]
    """What it is made of; where that is several things, their tokens give the proportion."""
    texts: tuple[str, ...] = ()
    """Of sources: the text of each pick, to be kept by its hash."""
