"""Comparing: two requests side by side: what came in, went out and changed, and what broke the prefix.

Pure: whoever asks has read both sides, and gives a function for the texts that are kept by their hash.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from recto.store.prefix import Prefix, prefix_of, system_text
from recto.store.side import Item, Said, Side
from recto.window.window import SECTIONS

Texts = Callable[[str], bytes | None]
# Lines around each changed one.
AROUND = 2
CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class Change:
    """The same source in both, not the same way."""

    before: Item
    after: Item
    what: tuple[str, ...]
    """Of: text, mode, score, section."""
    text: tuple[str, ...] = ()
    """The lines of a unified diff; none when a text is not kept."""


@dataclass(frozen=True, slots=True)
class Shift:
    """Something that has a value on both sides: tokens of a section, a parameter."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    before: str
    after: str
    came_in: tuple[Item, ...]
    went_out: tuple[Item, ...]
    changed: tuple[Change, ...]
    said_in: tuple[Said, ...]
    said_out: tuple[Said, ...]
    sections: tuple[Shift, ...]
    """Tokens of every section that either has, and of the total."""
    facts: tuple[Shift, ...]
    """Conversation, model, parameters, strategy, limit and the like, where they differ."""
    prefix: Prefix

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare(before: Side, after: Side, texts: Texts = lambda sha256: None) -> Difference:
    ours, theirs = before.items, after.items
    came_in = tuple(item for key, item in theirs.items() if key not in ours)
    went_out = tuple(item for key, item in ours.items() if key not in theirs)
    changed = tuple(_changes(before, after, texts))
    return Difference(
        before=before.record.id,
        after=after.record.id,
        came_in=came_in,
        went_out=went_out,
        changed=changed,
        said_in=_without(after.said, before.said),
        said_out=_without(before.said, after.said),
        sections=tuple(_sections(before.account, after.account)),
        facts=(*_conversations(before, after), *_facts(before.account, after.account)),
        prefix=prefix_of(before, after, _instructions(came_in, went_out, changed)),
    )


def _without(some: Sequence[Said], others: Sequence[Said]) -> tuple[Said, ...]:
    known = {said.id for said in others}
    return tuple(said for said in some if said.id not in known)


# -- sources


def _changes(before: Side, after: Side, texts: Texts) -> Iterator[Change]:
    ours, theirs = before.items, after.items
    for key, item in ours.items():
        if key in theirs and (what := _what(item, theirs[key])):
            text = _text_diff(item, theirs[key], texts) if "text" in what else ()
            yield Change(item, theirs[key], what, text)
    yield from _system_change(before, after)


def _what(before: Item, after: Item) -> tuple[str, ...]:
    is_other_text = bool(before.sha256 and after.sha256 and before.sha256 != after.sha256)
    differs = {
        "text": is_other_text,
        "mode": before.mode != after.mode,
        "score": before.score != after.score,
        "section": before.section != after.section,
    }
    return tuple(name for name, is_so in differs.items() if is_so)


def _text_diff(before: Item, after: Item, texts: Texts) -> tuple[str, ...]:
    ours, theirs = (texts(item.sha256) if item.sha256 else None for item in (before, after))
    if ours is None or theirs is None:
        return ()
    return _lines_diff(_readable(ours), _readable(theirs))


def _readable(data: bytes) -> str:
    """A tool's text is JSON on one line: its lines are what can be compared."""
    text = data.decode(errors="replace")
    try:
        told = json.loads(text)
    except ValueError:
        return text
    return json.dumps(told, indent=2, ensure_ascii=False) if isinstance(told, dict) else text


def _lines_diff(before: str, after: str) -> tuple[str, ...]:
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=AROUND)
    return tuple(line for line in found if not line.startswith(("--- ", "+++ ")))


def _system_change(before: Side, after: Side) -> Iterator[Change]:
    """Where it has no hash: with the same rules and references, what differs in the instructions is the prompt."""
    ours, theirs = (next(iter(side.picks("system")), None) for side in (before, after))
    same = [_told_first(side) for side in (before, after)]
    if ours and theirs and not (ours.sha256 and theirs.sha256) and same[0] == same[1]:
        texts = [system_text(side) for side in (before, after)]
        if texts[0] != texts[1]:
            yield Change(ours, theirs, ("text",), _lines_diff(*texts))


def _told_first(side: Side) -> list[tuple[str, str, str | None]]:
    return [(item.kind, item.name, item.sha256) for name in ("rules", "references") for item in side.picks(name)]


def _instructions(came_in: Sequence[Item], went_out: Sequence[Item], changed: Sequence[Change]) -> list[str]:
    """What of the instructions is another, in words."""
    first = ("rules", "references")
    return [
        *(f"{_called(each.after)} changed" for each in changed if "text" in each.what and _is_first(each.after)),
        *(f"{_called(item)} came in" for item in came_in if item.section in first),
        *(f"{_called(item)} went out" for item in went_out if item.section in first),
        *(f"{_called(each.after)} {_moved(each)}" for each in changed if "section" in each.what and _moved(each)),
    ]


def _is_first(item: Item) -> bool:
    return item.section in ("system", "rules", "references")


def _moved(change: Change) -> str:
    """From the message's own sources to the session's, or back."""
    before, after = _is_first(change.before), _is_first(change.after)
    return "" if before == after else "came in" if after else "went out"


def _called(item: Item) -> str:
    return f"the {item.name}" if item.kind == "system" else f"{item.kind} {item.name}"


# -- numbers


def _sections(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Shift]:
    ours, theirs = (
        {section["name"]: section.get("tokens", 0) for section in account.get("sections", ())}
        for account in (before, after)
    )
    names = [*ours, *(name for name in theirs if name not in ours)]
    order = {name: place for place, name in enumerate(SECTIONS)}
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        yield Shift(name, ours.get(name, 0), theirs.get(name, 0))
    if ours or theirs:
        yield Shift("total", before.get("total", 0), after.get("total", 0))


def _conversations(before: Side, after: Side) -> Iterator[Shift]:
    one, other = before.record.conversation, after.record.conversation
    if one != other:
        yield Shift(CONVERSATION, one, other)


def _facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Shift]:
    for name in ("model", "format", "strategy", "limit", "reserve", "meter", "compaction"):
        if before.get(name) != after.get(name):
            yield Shift(name, before.get(name), after.get(name))
    ours, theirs = (account.get("parameters") or {} for account in (before, after))
    for name in dict.fromkeys((*ours, *theirs)):
        if ours.get(name) != theirs.get(name):
            yield Shift(name, ours.get(name), theirs.get(name))
