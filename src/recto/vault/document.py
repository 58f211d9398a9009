"""Document: a note and its parts: properties, title, headings, sections, blocks. Knows its text, not the disk.

Any text can be parsed; `problem` says what is wrong with it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any

from msgspec import Struct, field

from recto.vault.links import front_matter, mask_code

MAX_FRONT_MATTER_CHARS = 64_000
MAX_NESTING = 100
_MAX_LINK_CHARS = 300

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?\r?$")
_NOT_A_PARAGRAPH = re.compile(
    r"[ \t\r]*$|[ \t]*(?:#{1,6}(?:[ \t\r]|$)|[>|]|(?:[-*+]|\d+[.)])(?:\s|$)|[-=*_]{3,}[ \t\r]*$)"
)
_BLOCK_START = re.compile(r"[ \t>]*(?:[-*+]|\d+[.)]|#{1,6})[ \t]")
_BLOCK_ID = re.compile(r"\^([A-Za-z0-9-]++)[ \t\r]*+$", re.MULTILINE)
_TAG = re.compile("#([\\w/\\-\u200d\ufe0f\u2600-\u27bf\U0001f000-\U0001faff]+)")
# Aliases, and every way to nest deeply: brackets, repeated dashes, deep indentation. Other front matter needs no check.
_SUSPICIOUS = re.compile(r"\*|(?:[\[{][^\[{]*+){40}|(?:[-?:][ \t]++){20}|^ {80}", re.MULTILINE)
_UNCLOSED = re.compile(r"\ufeff?---[ \t]*\r?\n[\w -]+:(?:\s|$)")


class Heading(Struct, frozen=True):
    level: int
    text: str
    line: int
    """Starts at 1."""
    start: int
    end: int
    """Of its line, or of its underline."""


class NoteSection(Struct, frozen=True):
    """From a heading to the next one of the same or a higher level. The text before the first heading has no path."""

    heading_path: tuple[str, ...]
    start: int
    end: int
    level: int
    body_start: int
    """The end of its heading."""


class ParsedNote(Struct, frozen=True):
    title: str | None = None
    """From the properties, or the first level 1 heading."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    headings: tuple[Heading, ...] = ()
    sections: tuple[NoteSection, ...] = ()
    blocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    body_start: int = 0
    problem: str | None = None


class Document(Struct, frozen=True, dict=True):
    path: str
    """Relative to the vault, with forward slashes."""
    text: str

    @cached_property
    def parsed(self) -> ParsedNote:
        return parse_note(self.text)

    @cached_property
    def head(self) -> tuple[Mapping[str, Any], int]:
        """The properties and the start of the body: enough for a one-line summary, and faster than `parsed`."""
        properties, problem, front_end = _read_front_matter(self.text)
        return properties, 0 if problem else front_end

    @property
    def title(self) -> str:
        return self.parsed.title or note_name(self.path)


def note_name(path: str) -> str:
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def parse_note(text: str, mask: str | None = None) -> ParsedNote:
    """Parses a text. `mask` is the text without code, if the caller already has it."""
    mask = mask_code(text) if mask is None else mask
    properties, problem, front_end = _read_front_matter(text)
    headings = tuple(_headings(mask, text, front_end))
    body_start = 0 if problem else front_end
    inline_tags = _inline_tags(mask[front_end:])
    return ParsedNote(
        title=_title(properties, headings),
        properties=properties,
        aliases=_list_values(properties, "aliases", "alias"),
        tags=tuple(dict.fromkeys([*_property_tags(properties), *inline_tags])),
        headings=headings,
        sections=tuple(_sections(text, headings, body_start)),
        blocks=_blocks(mask, front_end),
        body_start=body_start,
        problem=problem,
    )


def section_text(document: Document, heading: str) -> str | None:
    """The text under a heading, including the heading; `A#B` means a B somewhere below an A. None if missing."""
    target = [name for part in heading.split("#") if (name := _normalize_heading(part))]
    for section in document.parsed.sections:
        path = [_normalize_heading(part) for part in section.heading_path]
        above = iter(path)
        if target and path and path[-1] == target[-1] and all(part in above for part in target):
            return document.text[section.start : section.end]
    return None


def block_text(document: Document, block: str) -> str | None:
    """The paragraph or list item with this `^block` id."""
    span = document.parsed.blocks.get(block.strip().lower())
    return document.text[slice(*span)] if span else None


def _normalize_heading(heading: str) -> str:
    """A heading as links refer to it: without punctuation and case."""
    bare = "".join(sign if sign.isalnum() else " " for sign in heading)
    return " ".join(bare.split()).lower() or heading.strip()


def _read_front_matter(text: str) -> tuple[dict[str, Any], str | None, int]:
    """The properties, any problem with them, and the start of the body."""
    place = front_matter(text)
    if place is None:
        return {}, "the front matter is never closed" if _UNCLOSED.match(text) else None, 0
    start, end, continues = place
    if end - start > MAX_FRONT_MATTER_CHARS:
        return {}, f"the front matter is longer than {MAX_FRONT_MATTER_CHARS // 1000} kB", continues
    raw = text[start:end]
    return (*(_load_yaml(raw) if raw.strip() else ({}, None)), continues)


def _load_yaml(raw: str) -> tuple[dict[str, Any], str | None]:
    import yaml  # only notes with properties need it

    loader = _loader()
    try:
        if _SUSPICIOUS.search(raw) and (problem := _find_danger(yaml.parse(raw, loader))):
            return {}, problem
        found = yaml.load(raw, loader)
    except yaml.MarkedYAMLError as why:
        where = f", line {why.problem_mark.line + 2}" if why.problem_mark else ""
        return {}, f"the front matter is not valid YAML{where}: {why.problem or why.context}"
    except (yaml.YAMLError, ArithmeticError, ValueError, TypeError, AttributeError, RecursionError) as why:
        return {}, f"the front matter is not valid YAML: {str(why).splitlines()[0][:80]}"
    if not isinstance(found, dict):
        return {}, None if found is None else "the front matter is not a list of properties (name: value)"
    return {_to_text(name): value for name, value in found.items()}, None


@cache
def _loader() -> Any:
    """Dates stay text, as in Obsidian: impossible dates do no harm, and each keeps its spelling."""
    import yaml  # only notes with properties need it

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # whichever is installed
        pass

    Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_str)
    return Loader


def _find_danger(events: Iterable[Any]) -> str | None:
    """Finds aliases, which may expand without limit, and nesting deeper than the loader's stack."""
    depth = 0
    for event in events:
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if kind == "AliasEvent":
            return "the front matter uses aliases (*name), which are not supported"
        if depth > MAX_NESTING:
            return "the front matter is nested too deeply"
    return None


def _to_text(value: Any) -> str:
    try:
        return str(value).strip()
    except ValueError:  # more digits than Python prints
        return ""


def _title(properties: Mapping[str, Any], headings: Iterable[Heading]) -> str | None:
    value = properties.get("title")
    if isinstance(value, str | int | float) and (title := " ".join(_to_text(value).split())):
        return title
    return next((heading.text for heading in headings if heading.level == 1 and heading.text), None)


def _list_values(properties: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """The entries of list properties without duplicates; text is split at commas."""
    values: list[Any] = []
    for key in keys:
        value = properties.get(key)
        value = value.split(",") if isinstance(value, str) else value
        values += value if isinstance(value, list) else [value]
    texts = (_to_text(value) for value in values if value is not None and not isinstance(value, list | dict))
    return tuple(dict.fromkeys(text for text in texts if text))


def _property_tags(properties: Mapping[str, Any]) -> Iterator[str]:
    for names in _list_values(properties, "tags", "tag"):
        yield from (tag for name in names.replace(",", " ").split() if (tag := name.strip("#")))


def _inline_tags(body: str) -> Iterator[str]:
    for match in _TAG.finditer(body):
        at, tag = match.start(), match[1].strip("/")
        if tag and not tag.isdecimal() and not body[at - 1 : at].strip():
            before = body[max(0, at - _MAX_LINK_CHARS) : at].rpartition("\n")[2]
            if before.rfind("[[") <= before.rfind("]]"):  # not inside a link
                yield tag


def _headings(mask: str, text: str, front_end: int) -> Iterator[Heading]:
    """Headings are found in the masked text, but their own text may contain code."""
    at, above, above_at = front_end, "", front_end
    for number, line in enumerate(mask[front_end:].split("\n"), text.count("\n", 0, front_end) + 1):
        end = at + len(line.rstrip())
        mark = line.lstrip(" ")[:1]
        if mark == "#" and (found := _ATX.match(line)):
            title = text[at + found.start(2) : at + found.end(2)] if found[2] else ""
            yield Heading(len(found[1]), _heading_text(title), number, at, end)
        elif mark and mark in "=-" and is_underline(line) and at > front_end and not _NOT_A_PARAGRAPH.match(above):
            title = text[above_at : above_at + len(above)]
            yield Heading(1 if mark == "=" else 2, _heading_text(title), number - 1, above_at, end)
        above, above_at, at = line, at, at + len(line) + 1


def is_underline(line: str) -> bool:
    bare = line.lstrip(" ")
    stripped = bare.rstrip(" \t\r")
    return len(line) - len(bare) <= 3 and stripped[:1] in ("=", "-") and not stripped.strip(stripped[0])


def _heading_text(raw: str) -> str:
    text = raw.strip()
    closed = text.rstrip("#")
    return closed.rstrip() if not closed or closed[-1] in " \t" else text


def _sections(text: str, headings: tuple[Heading, ...], body_start: int) -> Iterator[NoteSection]:
    first = headings[0].start if headings else len(text)
    if text[body_start:first].strip():
        yield NoteSection((), body_start, first, 0, body_start)
    ends, next_start = list[int](), [len(text)] * 7
    for heading in reversed(headings):
        ends.append(min(next_start[: heading.level + 1]))
        next_start[heading.level] = heading.start
    above: list[Heading] = []
    for heading, end in zip(headings, reversed(ends), strict=True):
        while above and above[-1].level >= heading.level:
            above.pop()
        above.append(heading)
        path = tuple(each.text for each in above)
        yield NoteSection(path, heading.start, end, heading.level, heading.end)


def _blocks(mask: str, front_end: int) -> dict[str, tuple[int, int]]:
    blocks: dict[str, tuple[int, int]] = {}
    if not _BLOCK_ID.search(mask, front_end):
        return blocks
    start = end = at = front_end
    starts_block = True
    for line in mask[front_end:].split("\n"):
        stripped = line.rstrip()
        found = _BLOCK_ID.search(stripped)
        before = stripped[: found.start()] if found else stripped
        if found and not before.strip():
            # an id on its own line belongs to the block before it, even across an empty line
            blocks.setdefault(found[1].lower(), (start, end))
        elif stripped:
            start = at if starts_block or _BLOCK_START.match(line) else start
            end = at + len(stripped)
            if found and before[-1] in " \t":
                blocks.setdefault(found[1].lower(), (start, at + len(before.rstrip())))
        starts_block = not stripped or _ATX.match(line) is not None
        at += len(line) + 1
    return blocks
