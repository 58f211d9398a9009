"""[[wikilinks]]: found in a text, in order of appearance, code left out."""

import re
from dataclasses import dataclass

_LINK = re.compile(r"\[\[([^\[\]\n]+?)\]\]")
_CODE = re.compile(r"^(```+|~~~+).*?(?:^\1`*~*\s*$|\Z)|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Link:
    """`[[target#heading^block|caption]]`, each part trimmed; an empty target means the same document."""

    wikilink: str
    target: str
    heading: str | None = None
    block: str | None = None
    caption: str | None = None


def find_links(text: str) -> list[Link]:
    without_code = _CODE.sub(lambda found: " " * len(found[0]), text)
    return [link for found in _LINK.finditer(without_code) if (link := _parse(found[0], found[1]))]


def _parse(wikilink: str, inside: str) -> Link | None:
    place, _, caption = (part.strip() for part in inside.partition("|"))
    place, _, block = (part.strip() for part in place.partition("^"))
    target, _, heading = (part.strip() for part in place.partition("#"))
    if not (target or heading or block):
        return None
    return Link(wikilink, target, heading or None, block or None, caption or None)
