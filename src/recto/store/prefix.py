"""Prefix: how much of one request another begins with, and what stands in the way of the rest. Pure.

Pieces are stored without their kind: what each is can be read from its bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recto import wire
from recto.store.rows import AnyRow
from recto.store.side import Side
from recto.window.request import PieceKind, Request

BREAKS: dict[PieceKind, str] = {
    "head": "another model or format",
    "tool": "the tools changed",
    "join": "the tools changed",
    "system": "the instructions changed",
    "message": "another branch",
    "tail": "another branch",
}
# Of more names the first are told.
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Place:
    """The first piece that is not the same."""

    number: int
    """From 1."""
    kind: PieceKind


@dataclass(frozen=True, slots=True)
class Prefix:
    pieces: int
    """That come first in both."""
    of: int
    """That should have: the stable part of the former, or of what sums it up."""
    bytes: int
    tokens: int
    """About."""
    first: Place | None
    """None when one is the beginning of the other."""
    broken_by: str | None
    """None when all that was stable came again."""


def prefix_of(before: Side, after: Side, instructions: Sequence[str] = ()) -> Prefix:
    """`instructions` says what of them changed, in words."""
    shared = _shared(before.pieces, after.pieces)
    size = sum(map(len, before.pieces[:shared]))
    is_summary = after.record.purpose == "summary"
    of = after.stable if is_summary else before.stable
    broken: str | None
    if shared >= of:
        broken = _broken_round(before, after)
    elif is_summary:
        broken = _other_model(before, after) or "a transcript of its own"
    else:
        broken = _broken(before, after, shared, instructions)
    ends = shared >= min(len(before.pieces), len(after.pieces))
    first = None if ends else Place(shared + 1, kind_of(after.pieces, shared))
    total, whole = before.account.get("total") or 0, sum(map(len, before.pieces))
    return Prefix(shared, of, size, round(total * size / whole) if whole else 0, first, broken)


def kept_prefix(
    request: Request, base: AnyRow | None, shared: int, told: Callable[[], Mapping[str, Any]]
) -> dict[str, Any]:
    """What a record tells of it when it is saved; `told` gives the base's account, where that is needed."""
    if base is None:
        return {"base": None, "kept": 0, "of": 0, "broken_by": None}
    if request.purpose == "summary":
        # it stops where the covered part ends: what counts is how much of it the former request began with
        broken = None if shared >= request.stable else "a transcript of its own"
        if broken and request.model != told().get("model"):
            broken = "another model"
        return {"base": base.id, "kept": min(shared, request.stable), "of": request.stable, "broken_by": broken}
    broken = None
    if shared < base.stable:
        broken = _named_break(request, shared, told())
    elif request.account.get("messages", {}).get("rounds"):
        # within a turn everything of the former request should come again, and a compaction may have cut its rounds
        now = request.account.get("compaction")
        broken = f"compaction {now}" if now != told().get("compaction") else None
    return {"base": base.id, "kept": shared, "of": base.stable, "broken_by": broken}


def _named_break(request: Request, shared: int, before: Mapping[str, Any]) -> str:
    if request.model != before.get("model"):
        return "another model"
    if request.account.get("passing") or before.get("passing"):
        return "what does not fit is left out anew with every request"
    kind = request.pieces[shared].kind if shared < len(request.pieces) else "tail"
    now = request.account.get("compaction")
    # with a compaction comes the tool that recalls, and it may go with one
    if now != before.get("compaction") and kind != "system":
        return f"compaction {now}" if now else "another branch, before the compaction"
    if kind == "head" and request.format == before.get("format"):
        return BREAKS["tool"]  # the head says whether a list of tools follows
    return BREAKS[kind]


def _shared(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(after)))


def _other_model(before: Side, after: Side) -> str:
    one, other = (side.account.get("model") for side in (before, after))
    return "" if one == other else f"another model: {one} → {other}"


def _broken_round(before: Side, after: Side) -> str | None:
    """Within a turn everything of the former should come again, and a compaction may have cut its rounds."""
    has_rounds = bool((after.account.get("messages") or {}).get("rounds"))
    return _compaction(before, after) if has_rounds else None


def _broken(before: Side, after: Side, place: int, instructions: Sequence[str]) -> str:
    kinds = {kind_of(side.pieces, place) for side in (before, after)}
    if model := _other_model(before, after):
        return model
    if before.account.get("format") != after.account.get("format"):
        return f"another format: {before.account.get('format')} → {after.account.get('format')}"
    if before.account.get("passing") or after.account.get("passing"):
        return "what does not fit is left out anew with every request"
    tools = _tools(before, after) if kinds & {"head", "tool", "join"} else ""
    compaction = _compaction(before, after)
    if compaction and (tools or kinds <= {"message", "tail"}):
        return f"{compaction}, and with it {tools}" if tools else compaction
    if tools:
        return tools
    if kinds & {"system", "join", "head"}:
        return f"the instructions changed: {_some(instructions) or 'the system prompt is another'}"
    return _another_branch(before, after)


def _are_apart(before: Side, after: Side) -> bool:
    """Two conversations: neither branches nor compactions of one mean anything in the other."""
    return before.record.conversation != after.record.conversation


def _compaction(before: Side, after: Side) -> str | None:
    one, other = before.account.get("compaction"), after.account.get("compaction")
    if one == other or _are_apart(before, after):
        return None
    return f"compaction {other}" if other else "another branch, before the compaction"


def _another_branch(before: Side, after: Side) -> str:
    if _are_apart(before, after):
        return "another conversation"
    ours, theirs = before.said, after.said
    for one, other in zip(ours, theirs, strict=False):
        if one.id != other.id:
            return f"another branch: message #{other.number} is another one"
    both = min(len(ours), len(theirs))
    return "another branch" if both < len(ours) or not both else "a message is sent otherwise than before"


# -- what a piece is


def kind_of(pieces: Sequence[bytes], place: int) -> PieceKind:
    """Of the piece at this place, from 0; behind the last there is only the tail."""
    if place == 0:
        return "head"
    if place >= len(pieces) - 1:
        return "tail"
    if pieces[place].startswith(b"]"):
        return "join"
    told = _read(pieces[place])
    if "function" in told or "input_schema" in told:
        return "tool"
    is_system = told.get("role") in ("system", "developer") or ("role" not in told and told.get("type") == "text")
    return "system" if is_system else "message"


def _read(data: bytes) -> dict[str, Any]:
    try:
        told = wire.loads(data.removeprefix(b","))
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def system_text(side: Side) -> str:
    """The instructions as they were sent."""
    for place, data in enumerate(side.pieces):
        kind = kind_of(side.pieces, place)
        if kind == "system":
            told = _read(data)
            content = told.get("content", told.get("text"))
            return content if isinstance(content, str) else wire.dumps(content)
        if kind in ("message", "tail"):
            break
    return ""


def _tools(before: Side, after: Side) -> str:
    """What of the tools is another, in words; empty when they are the same."""
    ours, theirs = (_by_name(side.pieces) for side in (before, after))
    said = [
        *(f"{name} came in" for name in theirs if name not in ours),
        *(f"{name} went out" for name in ours if name not in theirs),
        *(f"{name} changed" for name in ours if name in theirs and ours[name] != theirs[name]),
    ]
    if not said and list(ours) != list(theirs):
        said = ["they stand in another order"]
    return f"the tools changed: {_some(said)}" if said else ""


def _by_name(pieces: Sequence[bytes]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for place in range(1, len(pieces) - 1):
        if kind_of(pieces, place) != "tool":
            break
        told = _read(pieces[place])
        found[str(told.get("name") or told.get("function", {}).get("name"))] = pieces[place].removeprefix(b",")
    return found


def _some(said: Sequence[str]) -> str:
    more = f" and {len(said) - MOST_NAMES} more" if len(said) > MOST_NAMES else ""
    return ", ".join(said[:MOST_NAMES]) + more
