"""Renaming: what a note's links become when a file of the vault moves. Decides texts; touches no file.

A link changes only where it would else lead elsewhere, and of it only the name: heading, block, caption and the way it
is written stay.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from recto.vault.folder import is_note
from recto.vault.links import Link, find_all_links
from recto.vault.names import NOTE_ENDINGS, Names, fold

_PARTING = re.compile(r"\\?[#^|]")
_DESTINATION = re.compile(r"\]\([ \t]*(?:<(?P<pointed>[^<>\n]*)>|(?P<bare>[^\s<]\S*?))(?=[ \t]+[\"'(]|[ \t]*\)\Z)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# What would end a destination, or be read as something else: in `<>` fewer signs do.
_UNSAFE_BARE = re.compile(r"[\s\x00-\x20\x7f%#:<>()\[\]\\`\"'|*^]")
_UNSAFE_POINTED = re.compile(r"[\n\r\x00-\x1f%#:<>\\`|]")
# A wikilink knows no escapes: these are read across its borders, and of brackets only pairs within are its own.
_UNSAFE_NAME = re.compile(r"[`\n\r]|%%|<!--|-->|~~~")
_SAFE_BRACKETS = re.compile(r"[^\[\]]+(?:\[[^\[\]]+\][^\[\]]+)*")


@dataclass(frozen=True, slots=True)
class Renaming:
    """A file's old and new path, and what names mean before and after. Aliases go along with the file."""

    old: str
    new: str
    before: Names
    after: Names

    def moved(self, path: str) -> str:
        return self.new if path == self.old else path


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Way:
    """From where to where a link has to lead."""

    source: str
    """The linking note, where it lies afterwards."""
    target: str
    meant: Link
    """As it was to be read before."""
    beside: tuple[str, str]
    """The signs round it, where they are brackets that its own may be taken together with."""
    after: Names

    def is_led_by(self, link: Link) -> bool:
        """Whether it leads to the file, and to the same place there."""
        if self.after.follow(link, self.source) != self.target:
            return False
        found, meant = self.after.settle(link, self.source), self.meant
        return (found.heading, found.block, found.caption) == (meant.heading, meant.block, meant.caption)


def rewritten(text: str, links: Sequence[Link], source: str, renaming: Renaming) -> tuple[str, int]:
    """A note's text with its links leading where they led before, and how many had to be changed.

    `links` are all links of the text, `source` is the note's path before. Broken links stay as they are.
    """
    edits = [edit for link in links if (edit := _edit(link, _beside(text, link), source, renaming))]
    parts, kept = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[kept : edit.start], edit.text]
        kept = edit.end
    return "".join([*parts, text[kept:]]), len(edits)


def _beside(text: str, link: Link) -> tuple[str, str]:
    before, after = text[link.start - 1 : link.start], text[link.end : link.end + 1]
    return before if before in "[!" else "", after if after in "](" else ""


def _edit(link: Link, beside: tuple[str, str], source: str, renaming: Renaming) -> _Edit | None:
    target = renaming.before.follow(link, source)
    if target is None:
        return None
    meant = renaming.before.settle(link, source)
    way = _Way(renaming.moved(source), renaming.moved(target), meant, beside, renaming.after)
    # a path from a note's folder stays one: other readers of Markdown know no names
    if way.is_led_by(link) and _is_beside(link, source, target) <= _is_beside(link, way.source, way.target):
        return None
    parted = _parted_markdown(meant) if link.kind == "markdown" else _parted_wikilink(meant)
    anew = _named_anew(parted, _names(meant, source, target, way), way) if parted else None
    return anew or _as_markdown(meant, way)


# -- how a link is written


@dataclass(frozen=True, slots=True)
class _Parted:
    """A link's text: what stands before the name, the name, what follows."""

    head: str
    name: str
    tail: str
    style: str = "wikilink"
    """Or `bare`, `pointed`: how a Markdown link's place is written."""

    def written(self, name: str) -> str:
        if self.style == "wikilink":
            return name.replace("|", "\\|") if "\\|" in self.tail else name
        unsafe = _UNSAFE_BARE if self.style == "bare" or "%20" in self.name else _UNSAFE_POINTED
        return _encoded(name, unsafe)


def _parted_wikilink(link: Link) -> _Parted:
    inside = link.wikilink[2:-2]
    ends = [*(found.start() for found in _PARTING.finditer(inside)), len(inside)]
    end = next((end for end in ends if inside[:end].replace("\\|", "|").strip() == link.target), len(inside))
    name = inside[:end].strip()
    start = 2 + len(inside[:end]) - len(inside[:end].lstrip())
    return _Parted(link.wikilink[:start], name, link.wikilink[start + len(name) :])


def _parted_markdown(link: Link) -> _Parted | None:
    at = link.wikilink.find("](")
    while at >= 0:
        place = _DESTINATION.match(link.wikilink, at)
        style = "pointed" if place and place["pointed"] is not None else "bare"
        name = place[style].partition("#")[0] if place else ""
        if place and unquote(_ESCAPED.sub(r"\1", name)).strip() == link.target:
            start = place.start(style)
            return _Parted(link.wikilink[:start], name, link.wikilink[start + len(name) :], style)
        at = link.wikilink.find("](", at + 2)
    return None


def _encoded(name: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign[0].encode()), name)


# -- what it may be called


def _names(link: Link, source: str, target: str, way: _Way) -> Iterator[str]:
    """Names for where the link leads now, in the way in which it was named, the best first."""
    has_ending = not is_note(way.target) or link.target.lower().endswith(NOTE_ENDINGS)
    place = way.target if has_ending else way.target.rpartition(".")[0]
    relative = posixpath.relpath(f"/{place}", f"/{posixpath.dirname(way.source)}")
    if link.target.startswith(("./", "../")) or _is_beside(link, source, target):
        yield f"./{relative}" if link.target.startswith("./") and not relative.startswith("../") else relative
    elif not link.target.startswith("/"):
        parts = place.split("/")
        had = link.target.count("/") + 1
        least = len(parts) if "/" in link.target and had == target.count("/") + 1 else min(had, len(parts))
        suffixes = ["/".join(parts[-count:]) for count in range(least, len(parts) + 1)]
        # a name that means something else to a note elsewhere is left for a path that means one file
        yield from (suffix for suffix in suffixes if way.after.resolve(suffix) == way.target)
        yield from suffixes
    yield f"/{place}"


def _is_beside(link: Link, source: str, target: str) -> bool:
    """Whether it is a Markdown link that is a path from its note's folder."""
    if link.kind != "markdown" or not link.target:
        return False
    place = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.target))
    return fold(place) in (fold(target), fold(target).rpartition(".")[0])


def _named_anew(parted: _Parted, names: Iterator[str], way: _Way) -> _Edit | None:
    for name in names:
        if parted.style == "wikilink" and (_UNSAFE_NAME.search(name) or not _SAFE_BRACKETS.fullmatch(name)):
            continue
        written = parted.written(name)
        if _is_read(f"{parted.head}{written}{parted.tail}", way):
            start = way.meant.start + len(parted.head)
            return _Edit(start, start + len(parted.name), written)
    return None


def _is_read(written: str, way: _Way) -> bool:
    """Whether it will be read as this one link."""
    start, end = len(way.beside[0]), len(way.beside[0]) + len(written)
    found = find_all_links(written.join(way.beside))
    return any((link.start, link.end) == (start, end) and way.is_led_by(link) for link in found)


def _as_markdown(link: Link, way: _Way) -> _Edit | None:
    """A name that no wikilink can hold is written as a Markdown link, which can hold all."""
    if link.kind == "markdown":
        return None
    shown = link.caption or posixpath.basename(way.target)
    caption = re.sub(r"[\[\]`\\|%<&]", lambda sign: f"&#{ord(sign[0])};", shown)
    heading = f"#{_encoded(link.heading, _UNSAFE_BARE)}" if link.heading else ""
    block = f"#^{_encoded(link.block, _UNSAFE_BARE)}" if link.block else heading
    return _Edit(link.start, link.end, f"[{caption}](/{_encoded(way.target, _UNSAFE_BARE)}{block})")
