"""ComparedRequest: one side of a comparison: a request's account, its pieces, the messages it sent. Values only.

Pieces are stored without their kind; the wire format reads it from their bytes.
"""

from dataclasses import dataclass, replace

from recto.sources.pick import Pick
from recto.window.account import RequestAccount
from recto.window.request import Format, PieceKind

# Sections that are compared by message, not by pick.
MESSAGE_SECTIONS = ("history", "message")


@dataclass(frozen=True, slots=True)
class ComparedPick:
    """A pick of a window, or several picks of one source merged."""

    section: str
    kind: str
    name: str
    server: str = ""
    mode: str = "always"
    score: float | None = None
    tokens: int = 0
    because: str = ""
    sha256: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.server


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that was sent verbatim, and its number on its path."""

    id: str
    number: int
    role: str


@dataclass(frozen=True, slots=True)
class ComparedRequest:
    id: str
    conversation: str
    purpose: str
    account: RequestAccount
    pieces: tuple[bytes, ...]
    """Without marks."""
    stable: int
    """How many pieces precede those that change with every message."""
    sent: tuple[SentMessage, ...] = ()
    format: Format | None = None
    """The wire format of the pieces; None for an unknown one."""

    @property
    def items(self) -> dict[tuple[str, str, str], ComparedPick]:
        """The picks by kind, name and server, in the order of the window."""
        found: dict[tuple[str, str, str], ComparedPick] = {}
        for section in self.account.sections or ():
            for pick in section.picks if section.name not in MESSAGE_SECTIONS else ():
                item = _compared(section.name, pick)
                found[item.key] = _merged(found[item.key], item) if item.key in found else item
        return found

    def kind(self, place: int) -> PieceKind:
        """The kind of the piece at this place, from 0; a place after the last is the tail."""
        if place == 0:
            return "head"
        if place >= len(self.pieces) - 1:
            return "tail"
        if self.pieces[place].startswith(b"]"):
            return "join"
        return self.format.piece_kind(self.pieces[place]) if self.format else "message"

    @property
    def system_text(self) -> str:
        """The instructions that were sent."""
        for place, data in enumerate(self.pieces):
            kind = self.kind(place)
            if kind == "system" and self.format:
                return self.format.system_text(data)
            if kind in ("message", "tail"):
                break
        return ""

    @property
    def tools(self) -> dict[str, bytes]:
        """The tools that were sent, by name."""
        found: dict[str, bytes] = {}
        for place in range(1, len(self.pieces) - 1):
            if self.kind(place) != "tool" or self.format is None:
                break
            found[self.format.tool_name(self.pieces[place])] = self.pieces[place].removeprefix(b",")
        return found

    def picks(self, section: str) -> list[ComparedPick]:
        return [item for item in self.items.values() if item.section == section]


def _compared(section: str, pick: Pick) -> ComparedPick:
    return ComparedPick(
        section=section,
        kind=pick.kind,
        name=pick.name,
        server=pick.source.server,
        mode=pick.mode,
        score=pick.score,
        tokens=pick.tokens,
        because=pick.because,
        sha256=pick.sha256,
    )


def _merged(one: ComparedPick, other: ComparedPick) -> ComparedPick:
    """Merges passages of one document or of one recalled message."""
    scores = [score for score in (one.score, other.score) if score is not None]
    same = one.sha256 if one.sha256 == other.sha256 else None
    return replace(one, score=max(scores, default=None), tokens=one.tokens + other.tokens, sha256=same)
