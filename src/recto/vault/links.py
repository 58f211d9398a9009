"""Links of a text, in order, without code and comments: [[wikilinks]], and Markdown links to files.

Knows how links are written, not where they lead. This is our own code because Markdown parsers do not know wikilinks,
and do not say where in the text a link is, which a rename has to know.

Prose: finds a note's front matter, and masks its code and comments.

The time is proportional to the length, whatever the text is. This is our own code because Markdown parsers do not say
where in a line something is, and do not know %% comments.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

_FRONT = re.compile(r"\ufeff?---[ \t]*\r?\n")
_FRONT_END = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# Every alternative starts with its own literal, so that the search can skip ahead.
_OPENING = re.compile(r"``*|~~~~*|%%|<!--")
_FENCE_INDENT = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?")
_MAX_FENCE_INDENT = 1000
_FENCE_END = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t>\r]*\n")


def front_matter(text: str) -> tuple[int, int, int] | None:
    """Where the properties start and end, and where the text continues; None if there are none."""
    opening = _FRONT.match(text)
    closing = _FRONT_END.search(text, opening.end()) if opening else None
    return (opening.end(), closing.start(), closing.end()) if opening and closing else None


def mask_code(text: str) -> str:
    """The text with spaces in place of code and comments; same length, same lines. Front matter stays."""
    front = front_matter(text)
    start = front[2] if front else 0
    if not _OPENING.search(text, start):
        return text
    parts, done = [], 0
    for begin, end in _Scanner(text).spans(start):
        parts += [text[done:begin], _blank(text[begin:end])]
        done = end
    return "".join([*parts, text[done:]])


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


class _Scanner:
    """Finds code and comments from the beginning of a text to its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tick_starts: dict[int, list[int]] | None = None
        self._paragraph_end = -1
        self._unclosed: set[str] = set()

    def spans(self, at: int) -> Iterator[tuple[int, int]]:
        while opening := _OPENING.search(self.text, at):
            end = self._end(opening)
            if end is None:
                at = opening.end()
                continue
            yield opening.start(), end
            at = end

    def _end(self, opening: re.Match[str]) -> int | None:
        """Where the code or comment ends; None if the marker is ordinary text."""
        marker = opening[0]
        if marker[0] in "`~" and len(marker) >= 3 and self._is_fence(opening):
            return self._fence_end(marker, opening.end())
        if marker[0] == "`":
            return self._code_end(*opening.span())
        return None if marker[0] == "~" else self._comment_end("%%" if marker == "%%" else "-->", opening.end())

    def _is_fence(self, opening: re.Match[str]) -> bool:
        start, end = opening.span()
        line = self.text.rfind("\n", max(0, start - _MAX_FENCE_INDENT), start) + 1
        if not _FENCE_INDENT.fullmatch(self.text, line, start):
            return False
        # backticks with more backticks on their line are inline code
        return opening[0][0] == "~" or self.text.find("`", end, self._line_end(end)) < 0

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _comment_end(self, marker: str, at: int) -> int | None:
        """An unclosed comment is ordinary text: `100 %% sure` hides nothing."""
        closing = -1 if marker in self._unclosed else self.text.find(marker, at)
        if closing < 0:
            self._unclosed.add(marker)
        return closing + len(marker) if closing >= 0 else None

    def _fence_end(self, fence: str, at: int) -> int:
        """An unclosed fence extends to the end, as in Markdown."""
        for closing in _FENCE_END.finditer(self.text, at):
            if closing[1].startswith(fence):
                return closing.end()
        return len(self.text)

    def _code_end(self, start: int, end: int) -> int | None:
        size = end - start
        if self.text[start - 1 : start] == "\\":
            size -= 1
        following = _TICKS.search(self.text, end)
        if (
            following
            and following.end() - following.start() == size
            and following.start() <= self._paragraph_end_after(end)
        ):
            return following.end()
        starts = self._tick_runs().get(size, [])
        at = bisect_right(starts, start)
        if at == len(starts) or starts[at] > self._paragraph_end_after(end):
            return None
        return starts[at] + size

    def _tick_runs(self) -> dict[int, list[int]]:
        if self._tick_starts is None:
            self._tick_starts = {}
            for run in _TICKS.finditer(self.text):
                self._tick_starts.setdefault(run.end() - run.start(), []).append(run.start())
        return self._tick_starts

    def _paragraph_end_after(self, at: int) -> int:
        if at > self._paragraph_end:
            blank = _BLANK_LINE.search(self.text, at)
            self._paragraph_end = blank.start() if blank else len(self.text)
        return self._paragraph_end


# A name may contain single brackets, `[[a [draft] b]]`; `[[[a]]]` is a link between two of them.
_WIKI = re.compile(
    r"\[\[(?:(?!\[)|(?=\[[^\[\]\n]++\](?!\])))((?>(?:[^\[\]\n]++|\[(?!\[)|\](?!\]))+))\]\]",
)
_PIPE = re.compile(r"\\?\|")
_BRACKET = re.compile(r"\\.|\[|\]\(?|\n[ \t\r]*\n", re.DOTALL)
_DESTINATION = re.compile(
    r"[ \t]*+(?:<(?P<pointed>[^<>\n]*+)>|(?P<bare>(?>(?:[^\s()\\]++|\\.|\([^\s()]*+\))*)))"
    r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?[ \t]*+\)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# For texts as a reader sees them. No part may contain what opens it: else each opening would be followed to the end of
# its line.
DESTINATION = r"\([^()\n]*+(?>(?:\([^()\n]*+\)[^()\n]*+)?)\)"
EMBED = re.compile(rf"!\[\[[^\[\]\n]*+\]\]|!\[[^\[\]\n]*+\]{DESTINATION}")
_EXTERNAL = re.compile(r"//|[a-z][a-z0-9+.-]+:(?! )", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """`[[target#heading^block|caption]]`, each part trimmed; an empty target means the same document.

    Links with the same content are equal, wherever they are. `text[start:end]` is `wikilink`; the `!` of an embedded
    link is before that.
    """

    wikilink: str
    """As written; for a Markdown link `[caption](target)`."""
    target: str
    heading: str | None = None
    block: str | None = None
    caption: str | None = None
    embed: bool = field(default=False, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    line: int = field(default=0, compare=False)
    """Starts at 1; 0 if the link does not come from a text."""
    kind: Literal["wikilink", "markdown"] = "wikilink"

    @property
    def inner(self) -> str:
        """The text between the brackets of a wikilink."""
        return self.wikilink[2:-2] if self.wikilink.startswith("[[") else self.wikilink


def link_to_json(link: Link, path: str | None) -> dict[str, str | bool | None]:
    """A link in the JSON fields of commands and tools."""
    return {
        "wikilink": link.wikilink,
        "relative_path": path,
        "heading": link.heading,
        "block": link.block,
        "embed": link.embed,
        "caption": link.caption,
    }


def find_links(text: str) -> list[Link]:
    """The wikilinks of a text."""
    return list(_wikilinks(text, mask_code(text))) if "[[" in text else []


def find_all_links(text: str, mask: str | None = None) -> list[Link]:
    """Wikilinks, and Markdown links and images that lead to files. `mask` is the text without code, if the caller has
    it.

    A Markdown link may be inside the caption of another; apart from that, no two overlap."""
    if "[[" not in text and "](" not in text:
        return []
    mask = mask_code(text) if mask is None else mask
    wikilinks = list(_wikilinks(text, mask))
    if "](" not in mask:
        return wikilinks
    rest = _blank_links(mask, wikilinks)
    return sorted([*wikilinks, *_markdown_links(text, rest)], key=lambda link: link.start)


def split_link(inner: str) -> tuple[str, str | None, str | None, str | None]:
    """Target, heading, block and caption of the text between the brackets."""
    destination, *captions = _PIPE.split(inner, maxsplit=1)
    destination, _, block = destination.partition("^")
    target, _, heading = destination.partition("#")
    parts = (heading.strip().strip("#").strip(), block.strip(), "".join(captions).strip())
    heading_or, block_or, caption_or = (part or None for part in parts)
    return target.strip(), heading_or, block_or, caption_or


class _LineCounter:
    """Line numbers for ascending offsets."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def number_at(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        return self._line


def _wikilinks(text: str, mask: str) -> Iterator[Link]:
    lines = _LineCounter(text)
    for found in _WIKI.finditer(mask):
        start, end = found.span()
        if text[start - 1 : start] == "\\":
            continue
        # the last bracket of a name may touch those of the link: `[[a [draft]]]`
        if mask[end : end + 1] == "]" and found[1].count("[") > found[1].count("]"):
            end += 1
        target, heading, block, caption = split_link(text[start + 2 : end - 2])
        if target or heading or block:
            embed = text[start - 1 : start] == "!"
            yield Link(text[start:end], target, heading, block, caption, embed, start, end, lines.number_at(start))


def _blank_links(mask: str, links: list[Link]) -> str:
    parts, done = [], 0
    for link in links:
        parts += [mask[done : link.start], " " * (link.end - link.start)]
        done = link.end
    return "".join([*parts, mask[done:]])


def _markdown_links(text: str, mask: str) -> Iterator[Link]:
    lines = _LineCounter(text)
    for start, at, destination in sorted(_destinations(mask), key=lambda found: found[0]):
        raw = text[slice(*destination.span("bare" if destination["pointed"] is None else "pointed"))]
        target, heading, block = _split_destination(raw)
        if not (target or heading or block) or _EXTERNAL.match(raw):
            continue
        end, caption = destination.end(), text[start + 1 : at - 2].strip()
        embed = text[start - 1 : start] == "!"
        raw_link = text[start:end]
        line = lines.number_at(start)
        yield Link(raw_link, target, heading, block, caption or None, embed, start, end, line, "markdown")


def _destinations(mask: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Where the bracket of a caption opens, where the destination begins, and its match."""
    open_brackets: list[int] = []
    at = 0
    while token := _BRACKET.search(mask, at):
        at = token.end()
        if token[0] == "[":
            open_brackets.append(token.start())
        elif token[0].startswith("\n"):
            open_brackets.clear()
        elif token[0].startswith("]") and open_brackets:
            start = open_brackets.pop()
            if token[0] == "](" and (destination := _DESTINATION.match(mask, at)):
                yield start, at, destination
                at = destination.end()
                # a link cannot contain a link, except around an image
                open_brackets = open_brackets[-1:] if mask[start - 1 : start] == "!" else []


def _split_destination(raw: str) -> tuple[str, str | None, str | None]:
    # `%23` is part of a name, so the parts are decoded after splitting
    target, _, rest = (unquote(_ESCAPED.sub(r"\1", part)).strip() for part in raw.partition("#"))
    if rest.startswith("^"):
        return target, None, rest[1:].strip() or None
    return target, rest.strip("#").strip() or None, None
