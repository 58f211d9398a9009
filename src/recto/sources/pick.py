"""Pick: something chosen for the window, its tokens, how it came in, and because of what."""

from dataclasses import dataclass
from typing import Any, Literal, cast

from recto.sources.source import Kind, SourceId

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
        """Of a rule, a reference or a tool: which one."""
        return SourceId(cast(Kind, self.kind), self.name, self.server)

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
