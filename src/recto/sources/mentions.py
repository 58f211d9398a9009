"""Mention: `@rule:name` or `@ref:name` in a message. The text of the message stays as typed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct

from recto.sources.source import Reference, Rule, SourceKind
from recto.vault.links import mask_code

# A backslash escapes a mention, as everywhere in Markdown.
_MENTION = re.compile(r'(?<![\w@/.\\])@(rule|ref|reference):(?:"([^"\n]{1,200})"|([^\s"`<>|@]{1,200}))', re.IGNORECASE)
_TRAILING = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"
_GENITIVE = ("'s", "’s")
# How many unknown names get a sentence each: looking for similar names takes time.
MAX_PROBLEMS = 10
# How much of the line after a name may belong to it.
_MAX_REST_CHARS = 200

NamedSource = Rule | Reference


class Mention(Struct, frozen=True):
    kind: SourceKind
    names: tuple[str, ...]
    """Possible names, the longest first: punctuation at the end may belong to the name or to the sentence."""
    rest: str = ""
    """The rest of the line, where the name has no quotes: it may be part of the name."""

    @property
    def shortest_name(self) -> str:
        return self.names[-1]


def find_mentions(text: str) -> list[Mention]:
    """Mentions in order of appearance, except those in code."""
    if "@" not in text:
        return []
    prose = mask_code(text)
    return [_mention(match, prose) for match in _MENTION.finditer(prose)]


def without_mentions(text: str) -> str:
    """The message without mentions: a mentioned name must not influence which other sources are chosen."""
    return _MENTION.sub(" ", text) if "@" in text else text


def _mention(match: re.Match[str], prose: str) -> Mention:
    kind: SourceKind = "rule" if match[1].lower() == "rule" else "reference"
    if match[2]:
        return Mention(kind, (match[2].strip(),))
    line = prose[match.end() : match.end() + _MAX_REST_CHARS].partition("\n")[0]
    return Mention(kind, tuple(_possible_names(match[3])), line)


def _possible_names(written: str) -> Iterable[str]:
    while written:
        yield written
        if written.lower().endswith(_GENITIVE):
            written = written[:-2]
        elif written[-1] in _TRAILING:
            written = written[:-1]
        else:
            break


def mentioned_sources(text: str, sources: Iterable[NamedSource]) -> tuple[list[NamedSource], list[str]]:
    """The enabled sources that a text mentions, each once; and a sentence for each unknown or disabled one, up to a
    limit."""
    known: dict[tuple[SourceKind, str], NamedSource] = {
        (source.kind, source.name.casefold()): source for source in sources
    }
    found: dict[tuple[SourceKind, str], NamedSource] = {}
    unknown: dict[tuple[SourceKind, str], Mention] = {}
    for mention in find_mentions(text):
        keys = [(mention.kind, name.casefold()) for name in mention.names]
        if key := next((key for key in keys if key in known), None):
            found[key] = known[key]
        else:
            unknown.setdefault(keys[-1], mention)
    disabled = [f"{source.kind} {source.name} is not enabled" for source in found.values() if not source.enabled]
    problems = [*disabled, *(_unknown_text(mention, known) for mention in list(unknown.values())[:MAX_PROBLEMS])]
    enabled = [source for source in found.values() if source.enabled]
    return enabled, _limit(problems, len(disabled) + len(unknown))


def _limit(problems: Sequence[str], total: int) -> list[str]:
    shown = list(problems[:MAX_PROBLEMS])
    return [*shown, f"and {total - len(shown)} more are unknown"] if total > len(shown) else shown


def _unknown_text(mention: Mention, known: Mapping[tuple[SourceKind, str], NamedSource]) -> str:
    names = {key: source.name for (kind, key), source in known.items() if kind == mention.kind}
    problem = f"there is no {mention.kind} {mention.shortest_name}"
    if whole := _unquoted_name(mention, names):
        prefix = "rule" if mention.kind == "rule" else "ref"
        return f'{problem}; put a name of several words in quotes: @{prefix}:"{whole}"'
    near = get_close_matches(mention.shortest_name.casefold(), names, 1)
    return f"{problem}; did you mean {names[near[0]]}?" if near else problem


def _unquoted_name(mention: Mention, names: Mapping[str, str]) -> str:
    """The longest name of several words with which the line continues; empty where there is none."""
    line = f"{mention.names[0]}{mention.rest}".casefold()
    prefixes = [key for key in names if " " in key and line.startswith(key)]
    complete = [key for key in prefixes if not line[len(key) : len(key) + 1].isalnum()]
    return names[max(complete, key=len)] if complete else ""
