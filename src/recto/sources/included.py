"""Included: a source that goes into the windows of a turn, how it came in and why; and how rules and references are
told to the model."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from recto.sources.pick import Mode, Pick
from recto.sources.session import Listed, Session
from recto.sources.source import Source, SourceId
from recto.sources.tools import Remote, Runnable

RULES = "Follow these rules in every reply:"
REFERENCES = "Know this, where it bears on what is asked:"
FITTING = "These bear on the message below:"


@dataclass(frozen=True, slots=True)
class Included:
    source: Source
    mode: Mode
    because: str
    score: float | None = None
    part: str | None = None
    """The section that is told in place of all of it."""
    best: str | None = None
    """The section that bears most on the message, for where all of it does not fit."""

    @property
    def id(self) -> SourceId:
        return self.source.id

    @property
    def text(self) -> str:
        return self.source.text if self.part is None else self.part

    @property
    def pick(self) -> Pick:
        sha256 = self.source.sha256 if self.part is None else hashlib.sha256(self.part.encode()).hexdigest()
        because = self.because if self.part is None else f"{self.because}; the section that fits best"
        return Pick(self.id.kind, self.id.name, because, 0, self.mode, self.score, sha256, self.id.server)


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that is offered, and what runs it."""

    runnable: Runnable | Remote
    included: Included
    lasts: bool = True
    """False for one that was chosen for an earlier message: the next compaction ends that."""


@dataclass(frozen=True, slots=True)
class Sources:
    """All that goes into the windows of one turn besides the conversation."""

    rules: tuple[Included, ...] = ()
    references: tuple[Included, ...] = ()
    tools: tuple[Offered, ...] = ()
    recall: Runnable | None = None
    """Offered only where something is archived, but always there to be run."""
    forbidden: tuple[Runnable | Remote, ...] = ()
    """Not offered; a model that calls one all the same is told why it does not run."""
    chosen: tuple[Included, ...] = ()
    """Rules and references for this message alone, the best first."""
    passed: tuple[Pick, ...] = ()
    """What was looked at and not chosen."""
    session: Session = Session()  # noqa: RUF009  frozen
    compaction: int | None = None
    """The number of the Compaction that was in force."""
    notes: tuple[str, ...] = ()


def in_session(listed: Listed) -> Included:
    assert listed.mode is not None
    return Included(listed.source, listed.mode, listed.because)


def told(heading: str, included: Sequence[Included]) -> str:
    """Rules and references as the model reads them; empty where there are none."""
    return "\n".join((heading, *map(_tagged, included))) if included else ""


def _tagged(each: Included) -> str:
    """A text that ends its tag itself gets one that it cannot know."""
    kind, text = each.id.kind, each.text.strip()
    seal = f"-{each.source.sha256[:8]}" if f"</{kind}" in text else ""
    name = each.id.name.replace('"', "'")
    return f'<{kind}{seal} name="{name}">\n{text}\n</{kind}{seal}>'
