"""SourceOverrides: the sources that a user added to or removed from a conversation, with times. All others follow the
agent.

A value stored with the conversation. It does not copy what an agent includes `always`, so a changed agent applies from
the next message on.
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
    """Its mode in the session: always or manual; None if it is not included."""
    since: str = ""
    """When the user added or removed it."""
    removed: bool = False
    approval: Approval | None = None
    change: ToolChange | None = None
    """For a tool that asks because it has changed since it was allowed."""

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
    """Tools that may run without asking: `server/tool` -> the hash of the definition that was shown."""

    def mode(self, source: Source) -> Mode | None:
        if not source.enabled:
            return None
        if str(source.id) in self.added:
            return "manual"
        return "always" if source.include == "always" and str(source.id) not in self.removed else None

    def removes(self, source: Source) -> bool:
        return str(source.id) in self.removed

    def missing(self, written: Iterable[Source]) -> list[str]:
        """A sentence for each rule or reference that the user added and that no longer exists."""
        there = {str(each.id) for each in written}
        gone = [key for key in self.added if key not in there and not key.startswith("tool:")]
        return [f"{key}, which you added, is gone: its file is not there, or not enabled" for key in gone]

    def forget(self, named: str) -> "SourceOverrides | None":
        """Drop an added source that no longer exists; None if it was not added."""
        key = str(SourceId.parse(named))
        return replace(self, added=_without(self.added, key)) if key in self.added else None

    def listed(self, source: Source, approval: Approval | None = None) -> SourceStatus:
        key = str(source.id)
        since = self.added.get(key) or self.removed.get(key) or ""
        return SourceStatus(source, source.include, self.mode(source), since, key in self.removed, approval)

    def add(self, source: Source, when: str) -> "SourceOverrides":
        """Add a source of any mode. Invalid if it is already included or never offered."""
        if not source.enabled:
            raise Invalid(f"{source.id} is not enabled: `enabled` in its settings says so", name=str(source.id))
        if mode := self.mode(source):
            how = "it is always included" if mode == "always" else f"added {self.added[str(source.id)]}"
            raise Invalid(f"{source.id} is in this conversation already: {how}", name=str(source.id))
        key = str(source.id)
        return replace(self, added={**self.added, key: when}, removed=_without(self.removed, key))

    def remove(self, source: Source, when: str) -> "SourceOverrides":
        """Remove a source; it is also no longer chosen for messages."""
        key = str(source.id)
        may_be_chosen = source.include == "agent" and source.enabled and key not in self.removed
        if self.mode(source) is None and not may_be_chosen:
            raise Invalid(f"{source.id} is not in this conversation", name=key)
        # an always included source would come back at once; an added one can be chosen again as before
        is_out = source.include == "always" or (may_be_chosen and key not in self.added)
        removed = {**self.removed, key: when} if is_out else self.removed
        return replace(self, added=_without(self.added, key), removed=removed)

    def allow(self, tool: ToolDefinition) -> "SourceOverrides":
        return replace(self, allowed={**self.allowed, tool.id: tool.sha256})

    def disallow(self, tool: str) -> "SourceOverrides":
        """Revoke `server/tool`, or all tools of a server."""
        left = {name: sha for name, sha in self.allowed.items() if name != tool and not name.startswith(f"{tool}/")}
        return replace(self, allowed=left)

    def allows(self, tool: ToolDefinition) -> bool:
        return tool.id in self.allowed and self.allowed[tool.id] == tool.sha256

    def to_json(self) -> dict[str, Any] | None:
        return {name: dict(value) for name, value in asdict(self).items() if value} or None


SourceState = tuple[SourceOverrides, int | None]
"""The overrides, and the number of the Compaction in force."""


def find_source(listing: SourceList, named: str) -> SourceStatus:
    """The source of this name; NotFound with suggestions."""
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
    """Read a conversation's overrides, ignoring invalid parts."""
    known = data if isinstance(data, dict) else {}
    parts = (known.get(name) for name in SourceOverrides.__struct_fields__)
    texts = ({str(key): str(value) for key, value in part.items()} if isinstance(part, dict) else {} for part in parts)
    return SourceOverrides(*texts)


def _without(known: Mapping[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in known.items() if name != key}
