"""Mentions: `@rule:name` and `@ref:name` in a message. Found in its text, which stays as it was typed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from recto.sources.source import Kind, Reference, Rule
from recto.vault.prose import masked

# One that is written behind a backslash is none, as everywhere in Markdown.
_MENTION = re.compile(r'(?<![\w@/.\\])@(rule|ref|reference):(?:"([^"\n]{1,200})"|([^\s"`<>|@]{1,200}))', re.IGNORECASE)
_AFTER = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"
_GENITIVE = ("'s", "’s")
# So many unknown names get a sentence each; to look for names like theirs takes time.
MOST_TOLD = 10
# So far behind a name the words are looked at that may belong to it.
_FAR = 200

Named = Rule | Reference


@dataclass(frozen=True, slots=True)
class Mention:
    kind: Kind
    names: tuple[str, ...]
    """What may be meant, the longest first: what ends a sentence may be part of a name."""
    behind: str = ""
    """How the line goes on, where the name has no quotes: it may be the rest of it."""

    @property
    def said(self) -> str:
        return self.names[-1]


def find_mentions(text: str) -> list[Mention]:
    """In order of appearance; none in code."""
    if "@" not in text:
        return []
    prose = masked(text)
    return [_mention(match, prose) for match in _MENTION.finditer(prose)]


def besides_mentions(text: str) -> str:
    """What a message says besides the names of sources: those speak of themselves, not of what is needed."""
    return _MENTION.sub(" ", text) if "@" in text else text


def _mention(match: re.Match[str], prose: str) -> Mention:
    kind: Kind = "rule" if match[1].lower() == "rule" else "reference"
    if match[2]:
        return Mention(kind, (match[2].strip(),))
    line = prose[match.end() : match.end() + _FAR].partition("\n")[0]
    return Mention(kind, tuple(_readings(match[3])), line)


def _readings(written: str) -> Iterable[str]:
    while written:
        yield written
        if written.lower().endswith(_GENITIVE):
            written = written[:-2]
        elif written[-1] in _AFTER:
            written = written[:-1]
        else:
            break


def mentioned(text: str, sources: Iterable[Named]) -> tuple[list[Named], list[str]]:
    """The enabled sources that a text names, each once; and a sentence for each name that there is not, or that is not
    enabled, up to a number."""
    known: dict[tuple[Kind, str], Named] = {(each.kind, each.name.casefold()): each for each in sources}
    found: dict[tuple[Kind, str], Named] = {}
    unknown: dict[tuple[Kind, str], Mention] = {}
    for mention in find_mentions(text):
        keys = [(mention.kind, name.casefold()) for name in mention.names]
        if key := next((key for key in keys if key in known), None):
            found[key] = known[key]
        else:
            unknown.setdefault(keys[-1], mention)
    off = [f"{each.kind} {each.name} is not enabled" for each in found.values() if not each.enabled]
    problems = [*off, *(_unknown(each, known) for each in list(unknown.values())[:MOST_TOLD])]
    return [each for each in found.values() if each.enabled], _bounded(problems, len(off) + len(unknown))


def _bounded(problems: Sequence[str], total: int) -> list[str]:
    told = list(problems[:MOST_TOLD])
    return [*told, f"and {total - len(told)} more are not known"] if total > len(told) else told


def _unknown(mention: Mention, known: Mapping[tuple[Kind, str], Named]) -> str:
    names = {name: each.name for (kind, name), each in known.items() if kind == mention.kind}
    if whole := _begun(mention, names):
        typed = "rule" if mention.kind == "rule" else "ref"
        return f'there is no {mention.kind} {mention.said}; a name of several words takes quotes: @{typed}:"{whole}"'
    near = get_close_matches(mention.said.casefold(), names, 1)
    return f"there is no {mention.kind} {mention.said}" + (f"; did you mean {names[near[0]]}?" if near else "")


def _begun(mention: Mention, names: Mapping[str, str]) -> str:
    """The longest name that the line goes on with; empty when it is none."""
    line = f"{mention.names[0]}{mention.behind}".casefold()
    begun = [key for key in names if " " in key and line.startswith(key)]
    fitting = [key for key in begun if not line[len(key) : len(key) + 1].isalnum()]
    return names[max(fitting, key=len)] if fitting else ""
