"""Comparison of two requests: sources added, removed and changed, and what broke the prefix.

Pure: the caller reads both requests, and passes a function that looks up texts by their hash.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct, to_builtins

from recto.store.prefix import ComparedPick, ComparedRequest, SentMessage, SharedPrefix, prefix_of
from recto.window.account import RequestAccount
from recto.window.window import SECTIONS

Texts = Callable[[str], bytes | None]
# Lines of context around each changed line.
CONTEXT_LINES = 2
CONVERSATION = "conversation"


class PickChange(Struct, frozen=True):
    """A source that is in both requests but differs."""

    before: ComparedPick
    after: ComparedPick
    what: tuple[str, ...]
    """What differs: text, mode, score, section."""
    text: tuple[str, ...] = ()
    """The lines of a unified diff; empty when a text is not stored."""


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
    said_in: tuple[SentMessage, ...]
    said_out: tuple[SentMessage, ...]
    sections: tuple[ValueChange, ...]
    """Tokens of every section of either request, and of the total."""
    facts: tuple[ValueChange, ...]
    """Conversation, model, parameters, strategy, limit and similar values that differ."""
    prefix: SharedPrefix

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_builtins(self)
        return plain


def compare(before: ComparedRequest, after: ComparedRequest, texts: Texts = lambda sha256: None) -> Difference:
    ours, theirs = before.items, after.items
    came_in = tuple(item for key, item in theirs.items() if key not in ours)
    went_out = tuple(item for key, item in ours.items() if key not in theirs)
    changed = tuple(_changes(before, after, texts))
    return Difference(
        before=before.id,
        after=after.id,
        came_in=came_in,
        went_out=went_out,
        changed=changed,
        said_in=_without(after.sent, before.sent),
        said_out=_without(before.sent, after.sent),
        sections=tuple(_sections(before.account, after.account)),
        facts=(*_conversations(before, after), *_facts(before.account, after.account)),
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
    differs = {
        "text": is_other_text,
        "mode": before.mode != after.mode,
        "score": before.score != after.score,
        "section": before.section != after.section,
    }
    return tuple(name for name, is_so in differs.items() if is_so)


def _text_diff(before: ComparedPick, after: ComparedPick, texts: Texts) -> tuple[str, ...]:
    ours, theirs = (texts(item.sha256) if item.sha256 else None for item in (before, after))
    if ours is None or theirs is None:
        return ()
    return _lines_diff(_readable(ours), _readable(theirs))


def _readable(data: bytes) -> str:
    """A tool is stored as JSON on one line; indented, its lines can be compared."""
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
    """The change of a system prompt without a hash: with the same rules and references, the instructions differ only
    in the prompt."""
    ours, theirs = (next(iter(request.picks("system")), None) for request in (before, after))
    same = [_instruction_sources(request) for request in (before, after)]
    if ours and theirs and not (ours.sha256 and theirs.sha256) and same[0] == same[1]:
        texts = [side.system_text for side in (before, after)]
        if texts[0] != texts[1]:
            yield PickChange(ours, theirs, ("text",), _lines_diff(*texts))


def _instruction_sources(request: ComparedRequest) -> list[tuple[str, str, str | None]]:
    return [(item.kind, item.name, item.sha256) for name in ("rules", "references") for item in request.picks(name)]


def _instructions(
    came_in: Sequence[ComparedPick], went_out: Sequence[ComparedPick], changed: Sequence[PickChange]
) -> list[str]:
    """The changes of the instructions, in words."""
    first = ("rules", "references")
    return [
        *(
            f"{_name_of(change.after)} changed"
            for change in changed
            if "text" in change.what and _is_first(change.after)
        ),
        *(f"{_name_of(item)} came in" for item in came_in if item.section in first),
        *(f"{_name_of(item)} went out" for item in went_out if item.section in first),
        *(
            f"{_name_of(change.after)} {moved}"
            for change in changed
            if "section" in change.what and (moved := _moved(change))
        ),
    ]


def _is_first(item: ComparedPick) -> bool:
    return item.section in ("system", "rules", "references")


def _moved(change: PickChange) -> str:
    """Whether a source moved between the message's own sources and those of the session, in words."""
    before, after = _is_first(change.before), _is_first(change.after)
    return "" if before == after else "came in" if after else "went out"


def _name_of(item: ComparedPick) -> str:
    return f"the {item.name}" if item.kind == "system" else f"{item.kind} {item.name}"


# -- numbers


def _sections(before: RequestAccount, after: RequestAccount) -> Iterator[ValueChange]:
    ours, theirs = ({section.name: section.tokens for section in account.sections or ()} for account in (before, after))
    names = [*ours, *(name for name in theirs if name not in ours)]
    order = {name: place for place, name in enumerate(SECTIONS)}
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        yield ValueChange(name, ours.get(name, 0), theirs.get(name, 0))
    if ours or theirs:
        yield ValueChange("total", before.total or 0, after.total or 0)


def _conversations(before: ComparedRequest, after: ComparedRequest) -> Iterator[ValueChange]:
    one, other = before.conversation, after.conversation
    if one != other:
        yield ValueChange(CONVERSATION, one, other)


def _facts(before: RequestAccount, after: RequestAccount) -> Iterator[ValueChange]:
    for name in ("model", "format", "strategy", "limit", "reserve", "meter", "compaction"):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield ValueChange(name, one, other)
    ours, theirs = (account.parameters or {} for account in (before, after))
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield ValueChange(name, ours.get(name), theirs.get(name))
