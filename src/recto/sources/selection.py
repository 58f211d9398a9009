"""Selection: a source that goes into the windows of a turn, with its mode and reason; and the text of rules and
references in a window."""

import hashlib
from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.sources.overrides import SourceStatus
from recto.sources.source import Mode, Pick, Source, SourceId
from recto.sources.tools import RunnableTool

RULES = "Follow these rules in every reply:"
REFERENCES = "Know this, where it bears on what is asked:"
MEMORY = "Keep to what was written down to be remembered, as far as it applies:"
FITTING = "These bear on the message below:"


class Selection(Struct, frozen=True):
    source: Source
    mode: Mode
    because: str
    score: float | None = None
    part: str | None = None
    """The section sent instead of the whole text."""
    best: str | None = None
    """The section that best matches the message, in case the whole does not fit."""

    @property
    def id(self) -> SourceId:
        return self.source.id

    @property
    def text(self) -> str:
        return self.source.text if self.part is None else self.part

    @property
    def pick(self) -> Pick:
        sha256, because = self.source.sha256, self.because
        if self.part is not None:
            sha256 = hashlib.sha256(self.part.encode()).hexdigest()
            because = f"{because}; the section that fits best"
        return Pick(self.id.kind, self.id.name, because, 0, self.mode, self.score, sha256, self.id.server)


class OfferedTool(Struct, frozen=True):
    runnable: RunnableTool
    selection: Selection
    lasts: bool = True
    """False if it was chosen for an earlier message: it leaves with the next compaction."""
    needs_archive: bool = False
    """Offered only once enough messages are archived; it can run before that."""


class StablePicks(Struct, frozen=True):
    """The picks at the beginning of a turn's windows, from one picker or all of them."""

    rules: tuple[Selection, ...] = ()
    references: tuple[Selection, ...] = ()
    memory: tuple[Selection, ...] = ()
    """Memory files, which are placed among the rules."""
    tools: tuple[OfferedTool, ...] = ()
    forbidden: tuple[RunnableTool, ...] = ()
    """Tools not offered; a call of one gets the reason as its result."""
    passed: tuple[Pick, ...] = ()
    """Sources that were considered and not included, with the reason."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: "StablePicks") -> "StablePicks":
        names = self.__struct_fields__
        return StablePicks(*((*getattr(self, name), *getattr(other, name)) for name in names))

    def without_tools(self, names: Collection[str]) -> "StablePicks":
        return replace(self, tools=tuple(each for each in self.tools if each.runnable.tool.name not in names))

    @property
    def runnables(self) -> list[RunnableTool]:
        return [*(each.runnable for each in self.tools), *self.forbidden]


def session_selection(status: SourceStatus) -> Selection:
    assert status.mode is not None
    return Selection(status.source, status.mode, status.because)


def sources_text(heading: str, included: Sequence[Selection]) -> str:
    """Rules or references as the model reads them; empty if there are none."""
    return "\n".join((heading, *map(_tagged, included))) if included else ""


def _tagged(each: Selection) -> str:
    """Wrap a text in a tag; if it contains the end tag, in one that it cannot know."""
    kind, text = each.id.kind, each.text.strip()
    seal = f"-{each.source.sha256[:8]}" if f"</{kind}" in text else ""
    name = each.id.name.replace('"', "'")
    return f'<{kind}{seal} name="{name}">\n{text}\n</{kind}{seal}>'
