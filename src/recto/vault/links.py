"""Finds the links of a text, in order, outside code and comments: [[wikilinks]], and Markdown links to files.

Knows how links are written, not where they lead. Our own code, because Markdown parsers know neither wikilinks nor %%
comments, and do not report the position of a link, which a rename needs. Linear in the length of any text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal
from urllib.parse import unquote

_FRONT_END = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
# Every alternative starts with its own literal, so the search can skip ahead.
_OPENING = re.compile(r"``*|~~~~*|%%|<!--")
_FENCE_INDENT = re.compile(r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?")
_MAX_FENCE_INDENT = 1000
_FENCE_END = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t\r]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t>\r]*\n")


def front_matter(text: str) -> tuple[int, int, int] | None:
    """The start and end of the properties and the start of the text after them; None if there are none."""
    start = text.find("\n") + 1
    if not start or text[: start - 1].removeprefix("\ufeff").removesuffix("\r").rstrip(" \t") != "---":
        return None
    closing = _FRONT_END.search(text, start)
    return (start, closing.start(), closing.end()) if closing else None


def mask_code(text: str) -> str:
    """The text with code and comments blanked out; same length, same lines. Front matter stays."""
    front = front_matter(text)
    parts, done = list[str](), 0
    for begin, end in _CodeScanner(text).spans(front[2] if front else 0):
        parts += [text[done:begin], "\n".join(" " * len(line) for line in text[begin:end].split("\n"))]
        done = end
    return "".join([*parts, text[done:]]) if done else text


class _CodeScanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tick_runs: dict[int, list[int]] = {}
        self._paragraph_end = -1
        self._unclosed: set[str] = set()

    def spans(self, at: int) -> Iterator[tuple[int, int]]:
        while opening := _OPENING.search(self.text, at):
            end = self._end(opening)
            if end is not None:
                yield opening.start(), end
            at = opening.end() if end is None else end

    def _end(self, opening: re.Match[str]) -> int | None:
        """The end of the code or comment; None if the marker is ordinary text."""
        marker, at = opening[0], opening.end()
        if marker[0] in "`~" and len(marker) >= 3 and self._is_fence(opening):
            closings = (each.end() for each in _FENCE_END.finditer(self.text, at) if each[1].startswith(marker))
            return next(closings, len(self.text))  # an unclosed fence extends to the end, as in Markdown
        if marker[0] == "`":
            return self._code_end(opening.start(), at)
        if marker[0] == "~":
            return None
        closing = "%%" if marker == "%%" else "-->"
        end = -1 if closing in self._unclosed else self.text.find(closing, at)
        if end < 0:  # ordinary text: `100 %% sure` hides nothing
            self._unclosed.add(closing)
            return None
        return end + len(closing)

    def _is_fence(self, opening: re.Match[str]) -> bool:
        start, end = opening.span()
        line = self.text.rfind("\n", max(0, start - _MAX_FENCE_INDENT), start) + 1
        if not _FENCE_INDENT.fullmatch(self.text, line, start):
            return False
        line_end = self.text.find("\n", end)
        # backticks with more backticks on their line are inline code
        return opening[0][0] == "~" or self.text.find("`", end, line_end if line_end >= 0 else None) < 0

    def _code_end(self, start: int, end: int) -> int | None:
        """The next run of as many backticks in the same paragraph; the first of an escaped run does not count."""
        if not self._tick_runs:
            for run in _TICKS.finditer(self.text):
                self._tick_runs.setdefault(run.end() - run.start(), []).append(run.start())
        if end > self._paragraph_end:
            blank = _BLANK_LINE.search(self.text, end)
            self._paragraph_end = blank.start() if blank else len(self.text)
        size = end - start - (self.text[start - 1 : start] == "\\")
        starts = self._tick_runs.get(size, [])
        at = bisect_right(starts, start)
        return starts[at] + size if at < len(starts) and starts[at] <= self._paragraph_end else None


# A name may contain single brackets, `[[a [draft] b]]`; `[[[a]]]` is a link between two of them.
_WIKI = re.compile(r"\[\[(?:(?!\[)|(?=\[[^\[\]\n]++\](?!\])))((?>(?:[^\[\]\n]++|\[(?!\[)|\](?!\]))+))\]\]")
_BRACKET = re.compile(r"\\.|\[|\]\(?|\n[ \t\r]*\n", re.DOTALL)
LINK_DESTINATION = re.compile(
    r"[ \t]*+(?:<(?P<pointed>[^<>\n]*+)>|(?P<bare>(?>(?:[^\s()\\]++|\\.|\([^\s()]*+\))*)))"
    r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?[ \t]*+\)"
)
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# For text as a reader sees it. No part may contain its own opening, or each opening would be followed to the end of its
# line.
DESTINATION = r"\([^()\n]*+(?>(?:\([^()\n]*+\)[^()\n]*+)?)\)"
WIKILINK = re.compile(r"\[\[([^\[\]\n]*+)\]\]")
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
        return self.wikilink[2:-2] if self.wikilink.startswith("[[") else self.wikilink


def link_to_json(link: Link, path: str | None) -> dict[str, str | bool | None]:
    return {
        "wikilink": link.wikilink,
        "relative_path": path,
        "heading": link.heading,
        "block": link.block,
        "embed": link.embed,
        "caption": link.caption,
    }


def find_links(text: str) -> list[Link]:
    return list(_wikilinks(text, mask_code(text), _line_numbers(text))) if "[[" in text else []


def find_all_links(text: str, mask: str | None = None) -> list[Link]:
    """Wikilinks, and Markdown links and images that lead to files. `mask` is the text without code, if the caller has
    it.

    A Markdown link may be inside the caption of another; apart from that, no two overlap."""
    if "[[" not in text and "](" not in text:
        return []
    mask = mask_code(text) if mask is None else mask
    line_at = _line_numbers(text)
    wikilinks = list(_wikilinks(text, mask, line_at))
    if "](" not in mask:
        return wikilinks
    parts, done = list[str](), 0
    for link in wikilinks:
        parts += [mask[done : link.start], " " * (link.end - link.start)]
        done = link.end
    rest = "".join([*parts, mask[done:]])
    return sorted([*wikilinks, *_markdown_links(text, rest, line_at)], key=lambda link: link.start)


def split_link(inner: str) -> tuple[str, str | None, str | None, str | None]:
    """Target, heading, block and caption of the text between the brackets."""
    destination, bar, caption = inner.partition("|")
    destination, _, block = (destination.removesuffix("\\") if bar else destination).partition("^")
    target, _, heading = destination.partition("#")
    heading = heading.strip().strip("#").strip()
    return target.strip(), heading or None, block.strip() or None, caption.strip() or None


def unquote_destination(raw: str) -> str:
    """The file name in a Markdown link, without escapes."""
    return unquote(ESCAPED.sub(r"\1", raw)).strip()


def _line_numbers(text: str) -> Callable[[int], int]:
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
    return lambda at: bisect_right(ends, at) + 1


def _wikilinks(text: str, mask: str, line_at: Callable[[int], int]) -> Iterator[Link]:
    for found in _WIKI.finditer(mask):
        start, end = found.span()
        before = text[start - 1 : start]
        if before == "\\":
            continue
        # the last bracket of a name may touch those of the link: `[[a [draft]]]`
        if mask[end : end + 1] == "]" and found[1].count("[") > found[1].count("]"):
            end += 1
        target, heading, block, caption = split_link(text[start + 2 : end - 2])
        if target or heading or block:
            yield Link(text[start:end], target, heading, block, caption, before == "!", start, end, line_at(start))


def _markdown_links(text: str, mask: str, line_at: Callable[[int], int]) -> Iterator[Link]:
    for start, at, destination in _destinations(mask):
        raw = text[slice(*destination.span("bare" if destination["pointed"] is None else "pointed"))]
        # `%23` is part of a name, so the parts are decoded after splitting
        target, _, place = map(unquote_destination, raw.partition("#"))
        heading = None if place.startswith("^") else place.strip("#").strip() or None
        block = place[1:].strip() or None if place.startswith("^") else None
        if (target or heading or block) and not _EXTERNAL.match(raw):
            end, caption = destination.end(), text[start + 1 : at - 2].strip() or None
            embed = text[start - 1 : start] == "!"
            yield Link(text[start:end], target, heading, block, caption, embed, start, end, line_at(start), "markdown")


def _destinations(mask: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """The start of each caption's bracket, the start of its destination, and the match."""
    open_brackets, at = list[int](), 0
    while token := _BRACKET.search(mask, at):
        at = token.end()
        if token[0] == "[":
            open_brackets.append(token.start())
        elif token[0].startswith("\n"):
            open_brackets.clear()
        elif token[0].startswith("]") and open_brackets:
            start = open_brackets.pop()
            if token[0] == "](" and (destination := LINK_DESTINATION.match(mask, at)):
                yield start, at, destination
                at = destination.end()
                # a link cannot contain a link, except around an image
                open_brackets = open_brackets[-1:] if mask[start - 1 : start] == "!" else []
