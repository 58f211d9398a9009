"""Side: one of two requests that are compared: its record, its pieces, the messages it sent. Values only."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from recto.sources.source import OWN
from recto.store.record import Record

# What was said is told by message, not by pick.
SAID = ("history", "message")


@dataclass(frozen=True, slots=True)
class Item:
    """A pick as it stood in a window, or several of one source together."""

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
class Said:
    """A message that was sent word for word, and its number on its path."""

    id: str
    number: int
    role: str


@dataclass(frozen=True, slots=True)
class Side:
    record: Record
    pieces: tuple[bytes, ...]
    """Without marks."""
    stable: int
    """How many of them precede what changes with every message."""
    said: tuple[Said, ...] = ()

    @property
    def account(self) -> Mapping[str, Any]:
        return self.record.account

    @property
    def items(self) -> dict[tuple[str, str, str], Item]:
        """By what they are known by, in the order of the window."""
        found: dict[tuple[str, str, str], Item] = {}
        for section in self.account.get("sections", ()):
            for pick in section.get("picks", ()) if section.get("name") not in SAID else ():
                item = item_of(section["name"], pick)
                found[item.key] = _together(found[item.key], item) if item.key in found else item
        return found

    def picks(self, section: str) -> list[Item]:
        return [item for item in self.items.values() if item.section == section]


def item_of(section: str, pick: Mapping[str, Any]) -> Item:
    """What an older version did not write is what it is by default: it had no tools but our own."""
    named = ("kind", "name", "server", "mode", "score", "tokens", "because", "sha256")
    server = OWN if pick.get("kind") == "tool" else ""
    written = {name: pick[name] for name in named if name in pick}
    return Item(section, **{"kind": "", "name": "", "server": server, **written})


def _together(one: Item, other: Item) -> Item:
    """Passages of one document, or of one message that was recalled."""
    scores = [score for score in (one.score, other.score) if score is not None]
    same = one.sha256 if one.sha256 == other.sha256 else None
    return replace(one, score=max(scores, default=None), tokens=one.tokens + other.tokens, sha256=same)
