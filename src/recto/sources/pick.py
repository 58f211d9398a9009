"""Pick: something chosen for the window, its tokens, how it came in, and because of what."""

from dataclasses import dataclass, replace
from typing import Literal

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

    def counted(self, tokens: int) -> "Pick":
        return replace(self, tokens=tokens)
