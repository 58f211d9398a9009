"""Compares two requests: sources added, removed and changed, how much of its beginning the second shares with the
first, and what broke the rest. Pure. Pieces are stored without their kind: the wire format derives it.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from recto.window.account import PrefixReuse, RequestAccount
from recto.window.request import Format, PieceKind, Request
from recto.window.window import SECTIONS

Texts = Callable[[str], bytes | None]
Formats = Callable[[str], Format | None]
"""Looks up a wire format by name; None if unknown."""
CONTEXT_LINES = 2
# Sections that are compared by message, not by pick.
MESSAGE_SECTIONS = ("history", "message")
INSTRUCTIONS = ("system", "rules", "references")


class ComparedPick(Struct, frozen=True):
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


class SentMessage(Struct, frozen=True):
    """A message that was sent verbatim, with its number on its path."""

    id: str
    number: int
    role: str


class ComparedRequest(Struct, frozen=True):
    id: str
    conversation: str
    purpose: str
    account: RequestAccount
    pieces: tuple[bytes, ...]
    """Without marks."""
    stable: int
    """The number of pieces before those that change with every message."""
    sent: tuple[SentMessage, ...] = ()
    format: Format | None = None
    """The wire format of the pieces; None if unknown."""

    @property
    def items(self) -> dict[tuple[str, str, str], ComparedPick]:
        found: dict[tuple[str, str, str], ComparedPick] = {}
        for section in self.account.sections or ():
            for pick in section.picks if section.name not in MESSAGE_SECTIONS else ():
                item = ComparedPick(
                    section.name, **{name: getattr(pick, name) for name in ComparedPick.__struct_fields__[1:]}
                )
                found[item.key] = _merged(found[item.key], item) if item.key in found else item
        return found

    def kind(self, place: int) -> PieceKind:
        """The kind of a piece, by its index; an index after the last is the tail."""
        if place == 0:
            return "head"
        if place >= len(self.pieces) - 1:
            return "tail"
        if self.pieces[place].startswith(b"]"):
            return "join"
        return self.format.piece_kind(self.pieces[place]) if self.format else "message"

    @property
    def system_text(self) -> str:
        for place, data in enumerate(self.pieces):
            kind = self.kind(place)
            if kind == "system" and self.format:
                return self.format.system_text(data)
            if kind in ("message", "tail"):
                break
        return ""

    @property
    def tools(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for place in range(1, len(self.pieces) - 1):
            if self.kind(place) != "tool" or self.format is None:
                break
            found[self.format.tool_name(self.pieces[place])] = self.pieces[place].removeprefix(b",")
        return found

    def picks(self, section: str) -> list[ComparedPick]:
        return [item for item in self.items.values() if item.section == section]


def _merged(one: ComparedPick, other: ComparedPick) -> ComparedPick:
    """Passages of one document, or of one recalled message."""
    scores = [score for score in (one.score, other.score) if score is not None]
    same = one.sha256 if one.sha256 == other.sha256 else None
    return replace(one, score=max(scores, default=None), tokens=one.tokens + other.tokens, sha256=same)


class PickChange(Struct, frozen=True):
    before: ComparedPick
    after: ComparedPick
    what: tuple[str, ...]
    """The differences: text, mode, score, section."""
    text: tuple[str, ...] = ()
    """The lines of a unified diff; empty if a text is not stored."""


class ValueChange(Struct, frozen=True):
    """A value on both sides: tokens of a section, a parameter."""

    name: str
    before: Any
    after: Any


class PiecePosition(Struct, frozen=True):
    number: int
    """Starts at 1."""
    kind: PieceKind


class SharedPrefix(Struct, frozen=True):
    pieces: int
    """Pieces at the beginning of both."""
    of: int
    """Pieces that should be shared: the stable part of the earlier request, or of a summary request."""
    bytes: int
    tokens: int
    """An estimate."""
    first: PiecePosition | None
    """None if one request is the beginning of the other."""
    broken_by: str | None
    """None if all stable pieces are repeated."""


class Difference(Struct, frozen=True):
    before: str
    after: str
    came_in: tuple[ComparedPick, ...]
    went_out: tuple[ComparedPick, ...]
    changed: tuple[PickChange, ...]
    said_in: tuple[SentMessage, ...]
    said_out: tuple[SentMessage, ...]
    sections: tuple[ValueChange, ...]
    """Tokens of every section of either request, and in total."""
    facts: tuple[ValueChange, ...]
    """Conversation, model, parameters, strategy, limit and similar values that differ."""
    prefix: SharedPrefix

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_builtins(self)
        return plain


def compare(before: ComparedRequest, after: ComparedRequest, texts: Texts = lambda sha256: None) -> Difference:
    sides, ours, theirs = (before, after), before.items, after.items
    came_in = tuple(item for key, item in theirs.items() if key not in ours)
    went_out = tuple(item for key, item in ours.items() if key not in theirs)
    changed = tuple(_changes(before, after, texts))
    return Difference(
        before.id,
        after.id,
        came_in,
        went_out,
        changed,
        said_in=_without(after.sent, before.sent),
        said_out=_without(before.sent, after.sent),
        sections=tuple(_sections(before.account, after.account)),
        facts=(
            *_differing(*(_facts(side) for side in sides)),
            *_differing(*(side.account.parameters or {} for side in sides)),
        ),
        prefix=prefix_of(before, after, _instructions(came_in, went_out, changed)),
    )


def _without(messages: Sequence[SentMessage], others: Sequence[SentMessage]) -> tuple[SentMessage, ...]:
    known = {message.id for message in others}
    return tuple(message for message in messages if message.id not in known)


# -- sources


def _changes(before: ComparedRequest, after: ComparedRequest, texts: Texts) -> Iterator[PickChange]:
    ours, theirs = before.items, after.items
    for key, item in ours.items():
        if key in theirs and (what := _what(item, theirs[key])):
            text = _text_diff(item, theirs[key], texts) if "text" in what else ()
            yield PickChange(item, theirs[key], what, text)
    yield from _system_change(before, after)


def _what(before: ComparedPick, after: ComparedPick) -> tuple[str, ...]:
    is_other_text = bool(before.sha256 and after.sha256 and before.sha256 != after.sha256)
    others = (name for name in ("mode", "score", "section") if getattr(before, name) != getattr(after, name))
    return (*(("text",) if is_other_text else ()), *others)


def _text_diff(before: ComparedPick, after: ComparedPick, texts: Texts) -> tuple[str, ...]:
    ours, theirs = (texts(item.sha256) if item.sha256 else None for item in (before, after))
    return () if ours is None or theirs is None else _lines_diff(_readable(ours), _readable(theirs))


def _readable(data: bytes) -> str:
    """A tool is stored as one line of JSON; indented, its lines can be compared."""
    text = data.decode(errors="replace")
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return json.dumps(parsed, indent=2, ensure_ascii=False) if isinstance(parsed, dict) else text


def _lines_diff(before: str, after: str) -> tuple[str, ...]:
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES)
    return tuple(line for line in found if not line.startswith(("--- ", "+++ ")))


def _system_change(before: ComparedRequest, after: ComparedRequest) -> Iterator[PickChange]:
    """For system prompts without a hash: with the same rules and references, changed instructions mean a changed
    prompt."""
    ours, theirs = (next(iter(request.picks("system")), None) for request in (before, after))
    same = [_instruction_sources(request) for request in (before, after)]
    if ours and theirs and not (ours.sha256 and theirs.sha256) and same[0] == same[1]:
        texts = [side.system_text for side in (before, after)]
        if texts[0] != texts[1]:
            yield PickChange(ours, theirs, ("text",), _lines_diff(*texts))


def _instruction_sources(request: ComparedRequest) -> list[tuple[str, str, str | None]]:
    return [(item.kind, item.name, item.sha256) for name in INSTRUCTIONS[1:] for item in request.picks(name)]


def _instructions(
    came_in: Sequence[ComparedPick], went_out: Sequence[ComparedPick], changed: Sequence[PickChange]
) -> list[str]:
    other_texts = [change.after for change in changed if "text" in change.what and _is_first(change.after)]
    moved = [(change.after, _moved(change)) for change in changed if "section" in change.what]
    told = [
        *((item, "changed") for item in other_texts),
        *((item, "came in") for item in came_in if item.section in INSTRUCTIONS[1:]),
        *((item, "went out") for item in went_out if item.section in INSTRUCTIONS[1:]),
        *((item, how) for item, how in moved if how),
    ]
    return [f"{_name_of(item)} {how}" for item, how in told]


def _is_first(item: ComparedPick) -> bool:
    return item.section in INSTRUCTIONS


def _moved(change: PickChange) -> str:
    """How a source moved between the message's own sources and those of the session."""
    before, after = _is_first(change.before), _is_first(change.after)
    return "" if before == after else "came in" if after else "went out"


def _name_of(item: ComparedPick) -> str:
    return f"the {item.name}" if item.kind == "system" else f"{item.kind} {item.name}"


# -- values


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[ValueChange]:
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield ValueChange(name, ours.get(name), theirs.get(name))


def _sections(before: RequestAccount, after: RequestAccount) -> Iterator[ValueChange]:
    ours, theirs = ({section.name: section.tokens for section in account.sections or ()} for account in (before, after))
    names = [*ours, *(name for name in theirs if name not in ours)]
    order = {name: place for place, name in enumerate(SECTIONS)}
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        yield ValueChange(name, ours.get(name, 0), theirs.get(name, 0))
    if ours or theirs:
        yield ValueChange("total", before.total or 0, after.total or 0)


def _facts(request: ComparedRequest) -> dict[str, Any]:
    account = request.account
    names = ("model", "format", "strategy", "limit", "reserve", "meter", "compaction")
    return {"conversation": request.conversation} | {name: getattr(account, name) for name in names}


# -- the shared prefix

BREAKS: dict[PieceKind, str] = {
    "head": "another model or format",
    "tool": "the tools changed",
    "join": "the tools changed",
    "system": "the instructions changed",
    "message": "another branch",
    "tail": "another branch",
}
# The most names in a list before it is shortened.
MAX_NAMES = 3


def prefix_of(before: ComparedRequest, after: ComparedRequest, instructions: Sequence[str] = ()) -> SharedPrefix:
    """`instructions` are phrases about changed instructions."""
    shared = shared_length(before.pieces, after.pieces)
    size = sum(map(len, before.pieces[:shared]))
    is_summary = after.purpose == "summary"
    of = after.stable if is_summary else before.stable
    broken: str | None = None
    if shared >= of:
        # within a turn all of the earlier request should be repeated, but a compaction may have cut its rounds
        sent = after.account.messages
        broken = _compaction(before, after) if sent and sent.rounds else None
    elif is_summary:
        broken = _other_model(before, after) or "a transcript of its own"
    else:
        broken = _broken(before, after, shared, instructions)
    ends = shared >= min(len(before.pieces), len(after.pieces))
    first = None if ends else PiecePosition(shared + 1, after.kind(shared))
    total, whole = before.account.total or 0, sum(map(len, before.pieces))
    return SharedPrefix(shared, of, size, round(total * size / whole) if whole else 0, first, broken)


def kept_prefix(request: Request, base: Any, shared: int, account_before: Callable[[], RequestAccount]) -> PrefixReuse:
    """The prefix reuse to record; `account_before` reads the base's account if needed."""
    if base is None:
        return PrefixReuse()
    if request.purpose == "summary":
        # a transcript ends with the covered part, so only its own stable pieces can be shared
        broken = None if shared >= request.stable else "a transcript of its own"
        if broken and request.model != account_before().model:
            broken = "another model"
        return PrefixReuse(base.id, min(shared, request.stable), request.stable, broken)
    broken = None
    if shared < base.stable:
        broken = _named_break(request, shared, account_before())
    elif request.account.messages and request.account.messages.rounds:
        now = request.account.compaction
        broken = f"compaction {now}" if now != account_before().compaction else None
    return PrefixReuse(base.id, shared, base.stable, broken)


def _named_break(request: Request, shared: int, before: RequestAccount) -> str:
    if request.model != before.model:
        return "another model"
    if request.account.passing or before.passing:
        return "what does not fit is left out anew with every request"
    kind = request.pieces[shared].kind if shared < len(request.pieces) else "tail"
    now = request.account.compaction
    # a compaction may add or remove the recall tool
    if now != before.compaction and kind != "system":
        return f"compaction {now}" if now else "another branch, before the compaction"
    if kind == "head" and request.format == before.format:
        return BREAKS["tool"]  # the head shows whether a list of tools follows
    return BREAKS[kind]


def shared_length(before: Sequence[object], after: Sequence[object]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(after)))


def _other_model(before: ComparedRequest, after: ComparedRequest) -> str:
    one, other = (request.account.model for request in (before, after))
    return "" if one == other else f"another model: {one} → {other}"


def _broken(before: ComparedRequest, after: ComparedRequest, place: int, instructions: Sequence[str]) -> str:
    kinds = {side.kind(place) for side in (before, after)}
    if model := _other_model(before, after):
        return model
    if before.account.format != after.account.format:
        return f"another format: {before.account.format} → {after.account.format}"
    if before.account.passing or after.account.passing:
        return "what does not fit is left out anew with every request"
    tools = _tools(before, after) if kinds & {"head", "tool", "join"} else ""
    compaction = _compaction(before, after)
    if compaction and (tools or kinds <= {"message", "tail"}):
        return f"{compaction}, and with it {tools}" if tools else compaction
    if tools:
        return tools
    if kinds & {"system", "join", "head"}:
        return f"the instructions changed: {_listing(instructions) or 'the system prompt is another'}"
    return _another_branch(before, after)


def _compaction(before: ComparedRequest, after: ComparedRequest) -> str | None:
    one, other = before.account.compaction, after.account.compaction
    if one == other or before.conversation != after.conversation:  # compactions of one mean nothing in the other
        return None
    return f"compaction {other}" if other else "another branch, before the compaction"


def _another_branch(before: ComparedRequest, after: ComparedRequest) -> str:
    if before.conversation != after.conversation:
        return "another conversation"
    ours, theirs = before.sent, after.sent
    for one, other in zip(ours, theirs, strict=False):
        if one.id != other.id:
            return f"another branch: message #{other.number} is another one"
    both = min(len(ours), len(theirs))
    return "another branch" if both < len(ours) or not both else "a message is sent otherwise than before"


def _tools(before: ComparedRequest, after: ComparedRequest) -> str:
    ours, theirs = (side.tools for side in (before, after))
    changes = [
        *(f"{name} came in" for name in theirs if name not in ours),
        *(f"{name} went out" for name in ours if name not in theirs),
        *(f"{name} changed" for name in ours if name in theirs and ours[name] != theirs[name]),
    ]
    if not changes and list(ours) != list(theirs):
        changes = ["their order changed"]
    return f"the tools changed: {_listing(changes)}" if changes else ""


def _listing(changes: Sequence[str]) -> str:
    more = f" and {len(changes) - MAX_NAMES} more" if len(changes) > MAX_NAMES else ""
    return ", ".join(changes[:MAX_NAMES]) + more
