"""Mentions: `@rule:name` and `@ref:name` in a message. Found in its text, which stays as it was typed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from recto.sources.source import Kind, Reference, Rule
from recto.vault.prose import masked

_MENTION = re.compile(r'(?<![\w@/.])@(rule|ref|reference):(?:"([^"\n]{1,200})"|([^\s"`<>|@]{1,200}))')
_AFTER = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"


@dataclass(frozen=True, slots=True)
class Mention:
    kind: Kind
    names: tuple[str, ...]
    """What may be meant, the longest first: what ends a sentence may be part of a name."""


def find_mentions(text: str) -> list[Mention]:
    """In order of appearance; none in code."""
    if "@r" not in text:
        return []
    return [_mention(match) for match in _MENTION.finditer(masked(text))]


def _mention(match: re.Match[str]) -> Mention:
    kind: Kind = "rule" if match[1] == "rule" else "reference"
    if match[2]:
        return Mention(kind, (match[2].strip(),))
    written, names = match[3], []
    while written:
        names.append(written)
        if written[-1] not in _AFTER:
            break
        written = written[:-1]
    return Mention(kind, tuple(names))


def mentioned(text: str, sources: Iterable[Rule | Reference]) -> tuple[list[Rule | Reference], list[str]]:
    """The sources that a text names, each once, and a sentence for each name that there is not."""
    known = {(each.kind, each.name.casefold()): each for each in sources}
    found: dict[tuple[str, str], Rule | Reference] = {}
    problems = []
    for mention in find_mentions(text):
        keys = [(mention.kind, name.casefold()) for name in mention.names]
        if key := next((key for key in keys if key in known), None):
            found[key] = known[key]
        else:
            problems.append(_unknown(mention, [name for kind, name in known if kind == mention.kind]))
    return list(found.values()), problems


def _unknown(mention: Mention, names: list[str]) -> str:
    said = mention.names[-1]
    near = get_close_matches(said.casefold(), names, 1)
    return f"there is no {mention.kind} {said}" + (f"; did you mean {near[0]}?" if near else "")
