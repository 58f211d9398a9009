"""Prefix: how much of one request another one repeats at its beginning, and what broke the rest. Pure.

ComparedRequest: one side of a comparison: a request's account, its pieces, the messages it sent. Values only.

Pieces are stored without their kind; the wire format reads it from their bytes.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from recto.sources.source import Pick
from recto.store.rows import AnyRow
from recto.window.account import PrefixReuse, RequestAccount
from recto.window.request import Format, PieceKind, Request

# Sections that are compared by message, not by pick.
MESSAGE_SECTIONS = ("history", "message")


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
    """A message that was sent verbatim, and its number on its path."""

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


BREAKS: dict[PieceKind, str] = {
    "head": "another model or format",
    "tool": "the tools changed",
    "join": "the tools changed",
    "system": "the instructions changed",
    "message": "another branch",
    "tail": "another branch",
}
# Longer lists of names are shortened to so many.
MAX_NAMES = 3


class PiecePosition(Struct, frozen=True):
    """The first piece that differs."""

    number: int
    """Counted from 1."""
    kind: PieceKind


class SharedPrefix(Struct, frozen=True):
    pieces: int
    """Pieces that both begin with."""
    of: int
    """Pieces that both should begin with: the stable part of the earlier request, or of a summary request."""
    bytes: int
    tokens: int
    """An estimate."""
    first: PiecePosition | None
    """None when one request is the beginning of the other."""
    broken_by: str | None
    """None when all stable pieces are repeated."""


def prefix_of(before: ComparedRequest, after: ComparedRequest, instructions: Sequence[str] = ()) -> SharedPrefix:
    """The prefix that both requests share; `instructions` are the changes of the instructions, in words."""
    shared = _shared(before.pieces, after.pieces)
    size = sum(map(len, before.pieces[:shared]))
    is_summary = after.purpose == "summary"
    of = after.stable if is_summary else before.stable
    broken: str | None
    if shared >= of:
        broken = _broken_round(before, after)
    elif is_summary:
        broken = _other_model(before, after) or "a transcript of its own"
    else:
        broken = _broken(before, after, shared, instructions)
    ends = shared >= min(len(before.pieces), len(after.pieces))
    first = None if ends else PiecePosition(shared + 1, after.kind(shared))
    total, whole = before.account.total or 0, sum(map(len, before.pieces))
    return SharedPrefix(shared, of, size, round(total * size / whole) if whole else 0, first, broken)


def kept_prefix(
    request: Request, base: AnyRow | None, shared: int, account_before: Callable[[], RequestAccount]
) -> PrefixReuse:
    """The prefix reuse that a record is saved with; `account_before` reads the base's account where needed."""
    if base is None:
        return PrefixReuse()
    if request.purpose == "summary":
        # it ends with the covered part, so only its own stable pieces can be shared
        broken = None if shared >= request.stable else "a transcript of its own"
        if broken and request.model != account_before().model:
            broken = "another model"
        return PrefixReuse(base.id, min(shared, request.stable), request.stable, broken)
    broken = None
    if shared < base.stable:
        broken = _named_break(request, shared, account_before())
    elif request.account.messages and request.account.messages.rounds:
        # within a turn everything of the previous request should be repeated, but a compaction may have cut its rounds
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
        return BREAKS["tool"]  # the head says whether a list of tools follows
    return BREAKS[kind]


def _shared(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(before), len(after)))


def _other_model(before: ComparedRequest, after: ComparedRequest) -> str:
    one, other = (request.account.model for request in (before, after))
    return "" if one == other else f"another model: {one} → {other}"


def _broken_round(before: ComparedRequest, after: ComparedRequest) -> str | None:
    """The compaction that cut the rounds of a turn, where all of the earlier request should be repeated."""
    messages = after.account.messages
    return _compaction(before, after) if messages and messages.rounds else None


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


def _are_apart(before: ComparedRequest, after: ComparedRequest) -> bool:
    """True for two conversations: branches and compactions of one mean nothing in the other."""
    return before.conversation != after.conversation


def _compaction(before: ComparedRequest, after: ComparedRequest) -> str | None:
    one, other = before.account.compaction, after.account.compaction
    if one == other or _are_apart(before, after):
        return None
    return f"compaction {other}" if other else "another branch, before the compaction"


def _another_branch(before: ComparedRequest, after: ComparedRequest) -> str:
    if _are_apart(before, after):
        return "another conversation"
    ours, theirs = before.sent, after.sent
    for one, other in zip(ours, theirs, strict=False):
        if one.id != other.id:
            return f"another branch: message #{other.number} is another one"
    both = min(len(ours), len(theirs))
    return "another branch" if both < len(ours) or not both else "a message is sent otherwise than before"


def _tools(before: ComparedRequest, after: ComparedRequest) -> str:
    """The changes of the tools, in words; empty when they are the same."""
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
