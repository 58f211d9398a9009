"""Compares two requests by their accounts: sources added, removed and changed, tokens of each section; and names what
broke the shared beginning of two consecutive ones. Pure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from recto.window.account import PrefixReuse, RequestAccount
from recto.window.request import PieceKind, Request
from recto.window.window import SECTIONS

# Sections that are compared by their tokens alone.
MESSAGE_SECTIONS = ("history", "message")
FACTS = ("model", "format", "strategy", "limit", "reserve", "meter", "compaction")


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


class PickChange(Struct, frozen=True):
    before: ComparedPick
    after: ComparedPick
    what: tuple[str, ...]
    """The differences: text, mode, score, section."""


class ValueChange(Struct, frozen=True):
    """A value on both sides: tokens of a section, a parameter."""

    name: str
    before: Any
    after: Any


class Difference(Struct, frozen=True):
    before: str
    after: str
    came_in: tuple[ComparedPick, ...]
    went_out: tuple[ComparedPick, ...]
    changed: tuple[PickChange, ...]
    sections: tuple[ValueChange, ...]
    """Tokens of every section of either request, and in total."""
    facts: tuple[ValueChange, ...]
    """Model, parameters, strategy, limit and similar values that differ."""
    prefix: PrefixReuse | None
    """As recorded with the second request; None unless it directly follows the first."""

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_builtins(self)
        return plain


def compare(before: RequestAccount, after: RequestAccount, ids: tuple[str, str]) -> Difference:
    ours, theirs = _items(before), _items(after)
    both = [(item, theirs[key]) for key, item in ours.items() if key in theirs]
    follows = after.prefix is not None and after.prefix.base == ids[0]
    return Difference(
        *ids,
        came_in=tuple(item for key, item in theirs.items() if key not in ours),
        went_out=tuple(item for key, item in ours.items() if key not in theirs),
        changed=tuple(PickChange(*pair, what) for pair in both if (what := _what(*pair))),
        sections=tuple(_sections(before, after)),
        facts=(
            *_differing(_facts(before), _facts(after)),
            *_differing(before.parameters or {}, after.parameters or {}),
        ),
        prefix=after.prefix if follows else None,
    )


def _items(account: RequestAccount) -> dict[tuple[str, str, str], ComparedPick]:
    found: dict[tuple[str, str, str], ComparedPick] = {}
    for section in account.sections or ():
        for pick in section.picks if section.name not in MESSAGE_SECTIONS else ():
            about = {name: getattr(pick, name) for name in ComparedPick.__struct_fields__[1:]}
            item, key = ComparedPick(section.name, **about), (pick.kind, pick.name, pick.server)
            found[key] = _merged(found[key], item) if key in found else item
    return found


def _merged(one: ComparedPick, other: ComparedPick) -> ComparedPick:
    """Passages of one document, or of one recalled message."""
    scores = [score for score in (one.score, other.score) if score is not None]
    same = one.sha256 if one.sha256 == other.sha256 else None
    return replace(one, score=max(scores, default=None), tokens=one.tokens + other.tokens, sha256=same)


def _what(before: ComparedPick, after: ComparedPick) -> tuple[str, ...]:
    is_other_text = bool(before.sha256 and after.sha256 and before.sha256 != after.sha256)
    others = (name for name in ("mode", "score", "section") if getattr(before, name) != getattr(after, name))
    return (*(("text",) if is_other_text else ()), *others)


def _sections(before: RequestAccount, after: RequestAccount) -> Iterator[ValueChange]:
    ours, theirs = ({section.name: section.tokens for section in account.sections or ()} for account in (before, after))
    for name in SECTIONS:
        if name in ours or name in theirs:
            yield ValueChange(name, ours.get(name, 0), theirs.get(name, 0))
    if ours or theirs:
        yield ValueChange("total", before.total or 0, after.total or 0)


def _facts(account: RequestAccount) -> dict[str, Any]:
    return {name: getattr(account, name) for name in FACTS}


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[ValueChange]:
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield ValueChange(name, ours.get(name), theirs.get(name))


# -- the shared prefix

BREAKS: dict[PieceKind, str] = {
    "head": "another model or format",
    "tool": "the tools changed",
    "join": "the tools changed",
    "system": "the instructions changed",
    "message": "another branch",
    "tail": "another branch",
}


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
