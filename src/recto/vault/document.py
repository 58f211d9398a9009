"""Document: a note taken apart: properties, title, headings, sections, blocks. Knows its text, not where it lies.

Whatever the text is, it can be taken apart: what is wrong with it is said in `problem`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from recto.vault.prose import front_matter, masked

MOST_FRONT_MATTER = 64_000
MOST_NESTED = 100
_LONGEST_NAME = 300

# Both begin with the end of a line, not with `^`: an expression that begins with a letter is looked for much faster.
_ATX = re.compile(r"\n {0,3}(#{1,6})(?:[ \t]+([^\n]*))?(?=\r?\n|\r?\Z)")
_SETEXT = re.compile(r"\n {0,3}(=+|-+)[ \t\r]*(?=\n|\Z)")
_NO_PARAGRAPH = re.compile(r"[ \t\r]*$|[ \t]*(?:#{1,6}[ \t]|[>|]|(?:[-*+]|\d+[.)])(?:\s|$)|[-=*_]{3,}[ \t\r]*$)")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)]|#{1,6})[ \t]")
_SOME_BLOCK = re.compile(r"\^[A-Za-z0-9-]++[ \t\r]*+(?:\n|\Z)")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}[ \t]")
_BLOCK_ID = re.compile(r"[A-Za-z0-9-]+")
_TAG = re.compile("#([\\w/\\-\u200d\ufe0f\u2600-\u27bf\U0001f000-\U0001faff]+)")
_SPOKEN = re.compile(r"[\W_]+")
# Aliases, and every way to nest deeply: brackets, dashes in a row, a deep indent. Without these nobody looks twice.
_NEEDS_A_LOOK = re.compile(r"\*|(?:[\[{][^\[{]*+){40}|(?:[-?:][ \t]++){20}|^ {80}", re.MULTILINE)
_UNCLOSED = re.compile(r"\ufeff?---[ \t]*\r?\n[\w -]+:(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Heading:
    level: int
    text: str
    line: int
    """From 1 on."""
    start: int


@dataclass(frozen=True, slots=True)
class Section:
    """From a heading to the next one of its rank; what comes before the first heading has none."""

    heading_path: tuple[str, ...]
    start: int
    end: int
    level: int


@dataclass(frozen=True, slots=True)
class Parsed:
    title: str | None = None
    """As the properties or the first heading of the first rank say."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    headings: tuple[Heading, ...] = ()
    sections: tuple[Section, ...] = ()
    blocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    body_start: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class Document:
    path: str
    """Relative to the vault, with forward slashes."""
    text: str

    @cached_property
    def parsed(self) -> Parsed:
        return parse(self.text)

    @cached_property
    def head(self) -> tuple[Mapping[str, Any], int]:
        """Its properties and where its body starts: all that a line about it needs, without the rest."""
        properties, problem = _properties(self.text)
        front = front_matter(self.text)
        return properties, front[2] if front and not problem else 0

    @property
    def title(self) -> str:
        return self.parsed.title or name_of(self.path)


def name_of(path: str) -> str:
    """A file's name without its folders and its ending."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def parse(text: str, mask: str | None = None) -> Parsed:
    """All that can be told from the text alone. `mask` is the text without code, where it is known."""
    mask = masked(text) if mask is None else mask
    properties, problem = _properties(text)
    front = front_matter(text)
    after = front[2] if front else 0
    headings = tuple(_headings(mask, text, after))
    body_start = 0 if problem else after
    return Parsed(
        title=_title(properties, headings),
        properties=properties,
        aliases=_names(properties, "aliases", "alias"),
        tags=tuple(dict.fromkeys([*_property_tags(properties), *_tags(mask[after:])])),
        headings=headings,
        sections=tuple(_sections(text, headings, body_start)),
        blocks=_blocks(mask, after),
        body_start=body_start,
        problem=problem,
    )


def section_text(document: Document, heading: str) -> str | None:
    """What stands under a heading, the heading included; `A#B` means a B somewhere below an A. None when none fits."""
    wanted = [spoken for part in heading.split("#") if (spoken := _spoken(part))]
    for section in document.parsed.sections:
        path = [_spoken(part) for part in section.heading_path]
        if wanted and path and path[-1] == wanted[-1] and _in_order(wanted, path):
            return document.text[section.start : section.end]
    return None


def block_text(document: Document, block: str) -> str | None:
    """The paragraph or list item that bears a `^block` id."""
    span = document.parsed.blocks.get(block.strip().lower())
    return document.text[slice(*span)] if span else None


def _spoken(heading: str) -> str:
    """A heading as links name it: signs and case do not count."""
    return _SPOKEN.sub(" ", heading).strip().lower() or heading.strip()


def _in_order(wanted: Iterable[str], path: Iterable[str]) -> bool:
    rest = iter(path)
    return all(part in rest for part in wanted)


def _properties(text: str) -> tuple[dict[str, Any], str | None]:
    place = front_matter(text)
    if place is None:
        return {}, "the front matter is never closed" if _UNCLOSED.match(text) else None
    if place[1] - place[0] > MOST_FRONT_MATTER:
        return {}, f"the front matter is longer than {MOST_FRONT_MATTER // 1000} kB"
    raw = text[place[0] : place[1]]
    return _loaded(raw) if raw.strip() else ({}, None)


def _loaded(raw: str) -> tuple[dict[str, Any], str | None]:
    import yaml  # only notes with properties

    loader = _loader()
    try:
        if _NEEDS_A_LOOK.search(raw) and (problem := _danger(yaml.parse(raw, loader))):
            return {}, problem
        found = yaml.load(raw, loader)
    except yaml.MarkedYAMLError as why:
        where = f", line {why.problem_mark.line + 2}" if why.problem_mark else ""
        return {}, f"the front matter is not valid YAML{where}: {why.problem or why.context}"
    except (yaml.YAMLError, ArithmeticError, ValueError, TypeError, AttributeError, RecursionError) as why:
        return {}, f"the front matter is not valid YAML: {str(why).splitlines()[0][:80]}"
    if not isinstance(found, dict):
        return {}, None if found is None else "the front matter is no list of properties (name: value)"
    return {_said(name): value for name, value in found.items()}, None


@cache
def _loader() -> Any:
    """Dates stay texts, as Obsidian has them: one that is in no calendar costs nothing, and each says what it said."""
    import yaml  # only notes with properties

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # which one, the machine decides
        pass

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    return Loader


def _danger(events: Iterable[Any]) -> str | None:
    """What would unfold to more than memory holds, or nest deeper than the loader's stack."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if kind == "AliasEvent":
            return "the front matter uses aliases (*name), which are not followed"
        if depth > MOST_NESTED:
            return "the front matter is nested too deeply"
    return None


def _said(value: Any) -> str:
    try:
        return str(value).strip()
    except ValueError:  # a number of more digits than Python writes
        return ""


def _title(properties: Mapping[str, Any], headings: Iterable[Heading]) -> str | None:
    given = properties.get("title")
    if isinstance(given, str | int | float) and (said := " ".join(_said(given).split())):
        return said
    return next((heading.text for heading in headings if heading.level == 1 and heading.text), None)


def _names(properties: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """Each entry of a list; a text is parted at its commas."""
    values: list[Any] = []
    for key in keys:
        given = properties.get(key)
        given = given.split(",") if isinstance(given, str) else given
        values += given if isinstance(given, list) else [given]
    said = (_said(value) for value in values if value is not None and not isinstance(value, list | dict))
    return tuple(dict.fromkeys(name for name in said if name))


def _property_tags(properties: Mapping[str, Any]) -> Iterator[str]:
    for names in _names(properties, "tags", "tag"):
        yield from (tag for name in re.split(r"[,\s]+", names) if (tag := name.strip("#")))


def _tags(body: str) -> list[str]:
    found = (match for match in _TAG.finditer(body) if not body[match.start() - 1 : match.start()].strip())
    tags = (match[1].strip("/") for match in found if not _is_in_link(body, match.start()))
    return [tag for tag in tags if tag and not tag.isdecimal()]


def _is_in_link(body: str, at: int) -> bool:
    before = body[max(0, at - _LONGEST_NAME) : at].rpartition("\n")[2]
    return before.rfind("[[") > before.rfind("]]")


def _headings(mask: str, text: str, after: int) -> Iterator[Heading]:
    line, counted = 1, 0
    lines = f"\n{mask[after:]}"
    # a place in `lines` is one further than in what they are made of: where a line's end is there, its start is here
    for place, level, begin, end in sorted([*_atx(lines), *_setext(lines)]):
        start = place + after
        line += text.count("\n", counted, start)
        counted = start
        yield Heading(level, _heading_text(text[begin - 1 + after : end - 1 + after]), line, start)


def _atx(lines: str) -> Iterator[tuple[int, int, int, int]]:
    for found in _ATX.finditer(lines) if "#" in lines else ():
        begin, end = found.span(2) if found[2] is not None else (found.end(), found.end())
        yield found.start(), len(found[1]), begin, end


def _setext(lines: str) -> Iterator[tuple[int, int, int, int]]:
    for found in _SETEXT.finditer(lines):
        end = found.start()
        above = lines.rfind("\n", 0, end)
        if above >= 0 and not _NO_PARAGRAPH.match(lines[above + 1 : end]):
            yield above, 1 if found[1][0] == "=" else 2, above + 1, end


def _heading_text(raw: str) -> str:
    text = raw.strip()
    closed = text.rstrip("#")
    return closed.rstrip() if not closed or closed[-1] in " \t" else text


def _sections(text: str, headings: tuple[Heading, ...], body_start: int) -> Iterator[Section]:
    first = headings[0].start if headings else len(text)
    if text[body_start:first].strip():
        yield Section((), body_start, first, 0)
    ends = _ends(headings, len(text))
    above: list[Heading] = []
    for heading, end in zip(headings, ends, strict=True):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        yield Section(tuple(each.text for each in above), heading.start, end, heading.level)


def _ends(headings: tuple[Heading, ...], end: int) -> list[int]:
    ends: list[int] = []
    next_of = [end] * 7
    for heading in reversed(headings):
        ends.append(min(next_of[: heading.level + 1]))
        next_of[heading.level] = heading.start
    return ends[::-1]


def _blocks(mask: str, after: int) -> dict[str, tuple[int, int]]:
    blocks: dict[str, tuple[int, int]] = {}
    if not _SOME_BLOCK.search(mask, after):
        return blocks
    start = end = at = after
    is_apart = True
    for line in mask[after:].split("\n"):
        bare = line.rstrip()
        marker = bare.rfind("^")
        before, name = bare[:marker], bare[marker + 1 :].lower()
        is_named = marker >= 0 and _BLOCK_ID.fullmatch(name) is not None
        if is_named and not before.strip():
            # a line of its own names the block before it, even across an empty line
            blocks.setdefault(name, (start, end))
        elif bare:
            start = at if is_apart or _ITEM.match(line) else start
            end = at + len(bare)
            if is_named and before[-1] in " \t":
                blocks.setdefault(name, (start, at + len(before.rstrip())))
        is_apart = not bare or _HEADING_LINE.match(line) is not None
        at += len(line) + 1
    return blocks
