"""Links of a text, in order of appearance, code and comments left out: [[wikilinks]], and Markdown links to files.

Knows how links are written, not what they lead to.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from recto.vault.prose import masked

# A name may hold single brackets, `[[a [draft] b]]`; `[[[a]]]` is a link between two of them.
_WIKI = re.compile(
    r"\[\[(?:(?!\[)|(?=\[[^\[\]\n]++\](?!\])))((?:[^\[\]\n]++|\[(?!\[)|\](?!\]))++)\]\]",
)
_PIPE = re.compile(r"\\?\|")
_BRACKET = re.compile(r"\\.|\[|\]\(?|\n[ \t\r]*\n", re.DOTALL)
_PLACE = re.compile(
    r"[ \t]*+(?:<(?P<pointed>[^<>\n]*+)>|(?P<bare>(?:[^\s()\\]++|\\.|\([^\s()]*+\))*+))"
    r"(?:[ \t]++(?:\"[^\"\n]*+\"|'[^'\n]*+'|\([^()\n]*+\)))?[ \t]*+\)"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_ELSEWHERE = re.compile(r"//|[a-z][a-z0-9+.-]+:(?! )", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """`[[target#heading^block|caption]]`, each part trimmed; an empty target means the same document.

    Links are equal when they say the same, wherever they stand. `text[start:end]` is `wikilink`; an embedded one has
    its `!` before that.
    """

    wikilink: str
    """As it is written; of a Markdown link `[caption](target)`."""
    target: str
    heading: str | None = None
    block: str | None = None
    caption: str | None = None
    embed: bool = field(default=False, compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
    line: int = field(default=0, compare=False)
    """From 1 on; 0 when it was found in no text."""
    kind: Literal["wikilink", "markdown"] = "wikilink"

    @property
    def inside(self) -> str:
        """What stands between the brackets of a wikilink."""
        return self.wikilink[2:-2] if self.wikilink.startswith("[[") else self.wikilink


def link_to_json(link: Link, path: str | None) -> dict[str, str | bool | None]:
    """What a link means, in the fields that commands and tools tell it in."""
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
    return list(_wikilinks(text, masked(text))) if "[[" in text else []


def find_all_links(text: str, mask: str | None = None) -> list[Link]:
    """Wikilinks, and Markdown links and images that lead to files. `mask` is the text without code, where it is known.

    One Markdown link may lie within another's caption; else no two overlap.
    """
    if "[[" not in text and "](" not in text:
        return []
    mask = masked(text) if mask is None else mask
    wikilinks = list(_wikilinks(text, mask))
    if "](" not in mask:
        return wikilinks
    rest = _without(mask, wikilinks)
    return sorted([*wikilinks, *_markdown_links(text, rest)], key=lambda link: link.start)


def split(inside: str) -> tuple[str, str | None, str | None, str | None]:
    """Target, heading, block and caption of what stands between the brackets."""
    place, *captions = _PIPE.split(inside, maxsplit=1)
    place, _, block = place.partition("^")
    target, _, heading = place.partition("#")
    parts = (heading.strip().strip("#").strip(), block.strip(), "".join(captions).strip())
    heading_or, block_or, caption_or = (part or None for part in parts)
    return target.strip(), heading_or, block_or, caption_or


class _Lines:
    """Line numbers of places that come in order."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def of(self, at: int) -> int:
        self._line += self._text.count("\n", self._at, at)
        self._at = at
        return self._line


def _wikilinks(text: str, mask: str) -> Iterator[Link]:
    lines = _Lines(text)
    for found in _WIKI.finditer(mask):
        start, end = found.span()
        if text[start - 1 : start] == "\\":
            continue
        # the name's own bracket closes with the link's: `[[a [draft]]]`
        if mask[end : end + 1] == "]" and found[1].count("[") > found[1].count("]"):
            end += 1
        target, heading, block, caption = split(text[start + 2 : end - 2])
        if target or heading or block:
            embed = text[start - 1 : start] == "!"
            yield Link(text[start:end], target, heading, block, caption, embed, start, end, lines.of(start))


def _without(mask: str, links: list[Link]) -> str:
    parts, kept = [], 0
    for link in links:
        parts += [mask[kept : link.start], " " * (link.end - link.start)]
        kept = link.end
    return "".join([*parts, mask[kept:]])


def _markdown_links(text: str, mask: str) -> Iterator[Link]:
    lines = _Lines(text)
    for start, at, place in sorted(_places(mask), key=lambda found: found[0]):
        raw = text[slice(*place.span("bare" if place["pointed"] is None else "pointed"))]
        target, heading, block = _split_place(raw)
        if not (target or heading or block) or _ELSEWHERE.match(raw):
            continue
        end, caption = place.end(), text[start + 1 : at - 2].strip()
        embed = text[start - 1 : start] == "!"
        written = text[start:end]
        line = lines.of(start)
        yield Link(written, target, heading, block, caption or None, embed, start, end, line, "markdown")


def _places(mask: str) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Where a caption's bracket opens, where the place after it begins, and the place."""
    opened: list[int] = []
    at = 0
    while sign := _BRACKET.search(mask, at):
        at = sign.end()
        if sign[0] == "[":
            opened.append(sign.start())
        elif sign[0].startswith("\n"):
            opened.clear()
        elif sign[0].startswith("]") and opened:
            start = opened.pop()
            if sign[0] == "](" and (place := _PLACE.match(mask, at)):
                yield start, at, place
                at = place.end()
                # no link holds a link, but one around an image may go on
                opened = opened[-1:] if mask[start - 1 : start] == "!" else []


def _split_place(raw: str) -> tuple[str, str | None, str | None]:
    # a `%23` belongs to the name, so the parts are decoded after they are parted
    target, _, rest = (unquote(_ESCAPED.sub(r"\1", part)).strip() for part in raw.partition("#"))
    if rest.startswith("^"):
        return target, None, rest[1:].strip() or None
    return target, rest.strip("#").strip() or None, None
