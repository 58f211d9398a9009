"""Links of a text, in order, without code and comments: [[wikilinks]], and Markdown links to files.

Knows how links are written, not where they lead. This is our own code because Markdown parsers do not know wikilinks,
and do not say where in the text a link is, which a rename has to know.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from recto.vault.prose import mask_code

# A name may contain single brackets, `[[a [draft] b]]`; `[[[a]]]` is a link between two of them.
_WIKI = re.compile(
    r"\[\[(?:(?!\[)|(?=\[[^\[\]\n]++\](?!\])))((?:[^\[\]\n]++|\[(?!\[)|\](?!\]))++)\]\]",
)
_PIPE = re.compile(r"\\?\|")
_BRACKET = re.compile(r"\\.|\[|\]\(?|\n[ \t\r]*\n", re.DOTALL)
_DESTINATION = re.compile(
    r"[ \t]*+(?:<(?P<pointed>[^<>\n]*+)>|(?P<bare>(?:[^\s()\\]++|\\.|\([^\s()]*+\))*+))"
    r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?[ \t]*+\)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
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
