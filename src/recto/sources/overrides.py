"""SourceOverrides: which sources a conversation has by hand, and since when. The others are in it because their agent
says so.

A value, kept with the conversation; what an agent includes `always` is not copied into it, so that a changed agent
holds from the next message on.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from recto.errors import Invalid, NotFound
from recto.sources.source import BUILT_IN_SERVER, Approval, Include, Mode, Source, SourceId
from recto.sources.tool_definition import ToolChange, ToolDefinition


class SourceStatus(Struct, frozen=True):
    source: Source
    include: Include
    mode: Mode | None
    """How it is in the session: always or manual; None when it is not in it."""
    since: str = ""
    """When it was added or removed by hand."""
    removed: bool = False
    approval: Approval | None = None
    change: ToolChange | None = None
    """Of a tool that asks because it is not what was allowed."""

    @property
    def because(self) -> str:
        if self.mode == "manual":
            return f"added by you, {self.since[:16].replace('T', ' ')} UTC"
        return "built in" if self.source.id.server == BUILT_IN_SERVER else "its agent always includes it"


class SourceList(Struct, frozen=True):
    items: tuple[SourceStatus, ...] = ()
    notes: tuple[str, ...] = ()


class SourceOverrides(Struct, frozen=True):
    added: Mapping[str, str] = field(default_factory=dict)
    """Source, as `rule:style` -> when."""
    removed: Mapping[str, str] = field(default_factory=dict)
    allowed: Mapping[str, str] = field(default_factory=dict)
    """Tools that the user lets run without being asked: `server/tool` -> the hash of the definition that was shown."""

    def mode(self, source: Source) -> Mode | None:
        if not source.enabled:
            return None
        if str(source.id) in self.added:
            return "manual"
        return "always" if source.include == "always" and str(source.id) not in self.removed else None

    def removes(self, source: Source) -> bool:
        return str(source.id) in self.removed

    def missing(self, written: Iterable[Source]) -> list[str]:
        """A sentence for each rule or reference that was added by hand and is there no longer."""
        there = {str(each.id) for each in written}
        gone = [key for key in self.added if key not in there and not key.startswith("tool:")]
        return [f"{key}, which you added, is gone: its file is not there, or not enabled" for key in gone]

    def forget(self, named: str) -> "SourceOverrides | None":
        """Without a source that was added and is there no longer; None where that was not added."""
        key = str(SourceId.parse(named))
        return replace(self, added=_without(self.added, key)) if key in self.added else None

    def listed(self, source: Source, approval: Approval | None = None) -> SourceStatus:
        key = str(source.id)
        since = self.added.get(key) or self.removed.get(key) or ""
        return SourceStatus(source, source.include, self.mode(source), since, key in self.removed, approval)

    def add(self, source: Source, when: str) -> "SourceOverrides":
        """Any source, whatever its mode. Invalid when it is in already, or is never offered."""
        if not source.enabled:
            raise Invalid(f"{source.id} is not enabled: `enabled` in its settings says so", name=str(source.id))
        if mode := self.mode(source):
            how = "it is always included" if mode == "always" else f"added {self.added[str(source.id)]}"
            raise Invalid(f"{source.id} is in this conversation already: {how}", name=str(source.id))
        key = str(source.id)
        return replace(self, added={**self.added, key: when}, removed=_without(self.removed, key))

    def remove(self, source: Source, when: str) -> "SourceOverrides":
        """Also one that the next message might bring in: it is not chosen any longer."""
        key = str(source.id)
        may_be_chosen = source.include == "agent" and source.enabled and key not in self.removed
        if self.mode(source) is None and not may_be_chosen:
            raise Invalid(f"{source.id} is not in this conversation", name=key)
        # an agent that includes it always would bring it back at once; one that was added is chosen as before
        is_out = source.include == "always" or (may_be_chosen and key not in self.added)
        removed = {**self.removed, key: when} if is_out else self.removed
        return replace(self, added=_without(self.added, key), removed=removed)

    def allow(self, tool: ToolDefinition) -> "SourceOverrides":
        return replace(self, allowed={**self.allowed, tool.id: tool.sha256})

    def disallow(self, tool: str) -> "SourceOverrides":
        """`server/tool`, or a server for all of its tools."""
        left = {name: sha for name, sha in self.allowed.items() if name != tool and not name.startswith(f"{tool}/")}
        return replace(self, allowed=left)

    def allows(self, tool: ToolDefinition) -> bool:
        return tool.id in self.allowed and self.allowed[tool.id] == tool.sha256

    def to_json(self) -> dict[str, Any] | None:
        return {name: dict(value) for name, value in asdict(self).items() if value} or None


SourceState = tuple[SourceOverrides, int | None]
"""The overrides, and the number of the Compaction in force."""


def find_source(listing: SourceList, named: str) -> SourceStatus:
    """The source that is named so; NotFound with what may be meant."""
    id = SourceId.parse(named)
    for each in listing.items:
        known = each.source.id
        same = known.kind == id.kind and known.name.casefold() == id.name.casefold() and known.server == id.server
        if same or (each.source.kind == "tool" and each.source.name == id.name and id.server == BUILT_IN_SERVER):
            return each
    alike = {each.source.id.name.casefold(): each.source.id for each in listing.items if each.source.kind == id.kind}
    near = get_close_matches(id.name.casefold(), alike, 1)
    hint = f"; did you mean {alike[near[0]]}?" if near else "; `recto sources list` shows those that there are"
    raise NotFound(f"there is no {id}{hint}", name=str(id))


def overrides_from_json(data: Any) -> SourceOverrides:
    """What a conversation keeps; what cannot be read in it counts as not said."""
    known = data if isinstance(data, dict) else {}
    parts = (known.get(name) for name in SourceOverrides.__struct_fields__)
    texts = ({str(key): str(value) for key, value in part.items()} if isinstance(part, dict) else {} for part in parts)
    return SourceOverrides(*texts)


def _without(known: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in known.items() if name != key}
