"""RenamePlan: how the links of notes change when a file of the vault moves. Decides texts; touches no file.

A link changes only if it would otherwise lead elsewhere, and then only its name: heading, block, caption and style
stay.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from msgspec import Struct

from recto.vault.folder import is_note
from recto.vault.link_resolver import NOTE_ENDINGS, LinkResolver, fold_name
from recto.vault.links import Link, find_all_links

_SEPARATOR = re.compile(r"\\?[#^|]")
_DESTINATION = re.compile(r"\]\([ \t]*(?:<(?P<pointed>[^<>\n]*)>|(?P<bare>[^\s<]\S*?))(?=[ \t]+[\"'(]|[ \t]*\)\Z)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
# Characters that would end a destination or be read as something else; fewer of them matter inside `<>`.
_UNSAFE_BARE = re.compile(r"[\s\x00-\x20\x7f%#:<>()\[\]\\`\"'|*^]")
_UNSAFE_POINTED = re.compile(r"[\n\r\x00-\x1f%#:<>\\`|]")
# A wikilink has no escapes: these are read across its ends, and only paired brackets can be part of a name.
_UNSAFE_NAME = re.compile(r"[`\n\r]|%%|<!--|-->|~~~")
_SAFE_BRACKETS = re.compile(r"[^\[\]]+(?:\[[^\[\]]+\][^\[\]]+)*")


class RenamePlan(Struct, frozen=True):
    """A file's old and new path, and the names before and after. Aliases move with the file."""

    old: str
    new: str
    before: LinkResolver
    after: LinkResolver

    def new_path(self, path: str) -> str:
        return self.new if path == self.old else path


class _Edit(Struct, frozen=True):
    start: int
    end: int
    text: str


class _Route(Struct, frozen=True):
    """From where to where a link has to lead."""

    source: str
    """The linking note, at its new path."""
    target: str
    original: Link
    """The link as it was read before."""
    adjacent: tuple[str, str]
    """The characters around it, if they are brackets that could merge with its own."""
    after: LinkResolver

    def is_followed_by(self, link: Link) -> bool:
        """Whether a link leads to the target, and to the same place in it."""
        if self.after.follow(link, self.source) != self.target:
            return False
        found, original = self.after.disambiguate(link, self.source), self.original
        return (found.heading, found.block, found.caption) == (original.heading, original.block, original.caption)


def rewrite_links(text: str, links: Sequence[Link], source: str, plan: RenamePlan) -> tuple[str, int]:
    """A note's text whose links lead where they led before, and how many links changed.

    `links` are all links of the text, `source` is the note's old path. Broken links stay as they are.
    """
    edits = [edit for link in links if (edit := _edit(link, _adjacent(text, link), source, plan))]
    parts, done = [], 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        parts += [text[done : edit.start], edit.text]
        done = edit.end
    return "".join([*parts, text[done:]]), len(edits)


def _adjacent(text: str, link: Link) -> tuple[str, str]:
    before, after = text[link.start - 1 : link.start], text[link.end : link.end + 1]
    return before if before in "[!" else "", after if after in "](" else ""


def _edit(link: Link, adjacent: tuple[str, str], source: str, plan: RenamePlan) -> _Edit | None:
    target = plan.before.follow(link, source)
    if target is None:
        return None
    original = plan.before.disambiguate(link, source)
    route = _Route(plan.new_path(source), plan.new_path(target), original, adjacent, plan.after)
    # a relative path stays one: other Markdown programs do not resolve names
    was_relative = _is_relative_path(link, source, target)
    if route.is_followed_by(link) and was_relative <= _is_relative_path(link, route.source, route.target):
        return None
    parts = _split_markdown(original) if link.kind == "markdown" else _split_wikilink(original)
    edit = _rename_link(parts, _names(original, source, target, route), route) if parts else None
    return edit or _as_markdown(original, route)


# -- the parts of a link


class _LinkParts(Struct, frozen=True):
    """A link's text: what is before the name, the name, and what follows."""

    head: str
    name: str
    tail: str
    style: str = "wikilink"
    """Or `bare`, `pointed`: how the destination of a Markdown link is written."""

    def encode(self, name: str) -> str:
        if self.style == "wikilink":
            return name.replace("|", "\\|") if "\\|" in self.tail else name
        unsafe = _UNSAFE_BARE if self.style == "bare" or "%20" in self.name else _UNSAFE_POINTED
        return _percent_encode(name, unsafe)


def _split_wikilink(link: Link) -> _LinkParts:
    inside = link.wikilink[2:-2]
    ends = [*(found.start() for found in _SEPARATOR.finditer(inside)), len(inside)]
    end = next((end for end in ends if inside[:end].replace("\\|", "|").strip() == link.target), len(inside))
    name = inside[:end].strip()
    start = 2 + len(inside[:end]) - len(inside[:end].lstrip())
    return _LinkParts(link.wikilink[:start], name, link.wikilink[start + len(name) :])


def _split_markdown(link: Link) -> _LinkParts | None:
    at = link.wikilink.find("](")
    while at >= 0:
        destination = _DESTINATION.match(link.wikilink, at)
        style = "pointed" if destination and destination["pointed"] is not None else "bare"
        name = destination[style].partition("#")[0] if destination else ""
        if destination and unquote(_ESCAPED.sub(r"\1", name)).strip() == link.target:
            start = destination.start(style)
            return _LinkParts(link.wikilink[:start], name, link.wikilink[start + len(name) :], style)
        at = link.wikilink.find("](", at + 2)
    return None


def _percent_encode(name: str, unsafe: re.Pattern[str]) -> str:
    return unsafe.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)


# -- new names


def _names(link: Link, source: str, target: str, route: _Route) -> Iterator[str]:
    """New names for a link in its old style, the best first."""
    has_ending = not is_note(route.target) or link.target.lower().endswith(NOTE_ENDINGS)
    path = route.target if has_ending else route.target.rpartition(".")[0]
    relative = posixpath.relpath(f"/{path}", f"/{posixpath.dirname(route.source)}")
    if link.target.startswith(("./", "../")) or _is_relative_path(link, source, target):
        yield f"./{relative}" if link.target.startswith("./") and not relative.startswith("../") else relative
    elif not link.target.startswith("/"):
        parts = path.split("/")
        depth = link.target.count("/") + 1
        was_full_path = "/" in link.target and depth == target.count("/") + 1
        min_count = len(parts) if was_full_path else min(depth, len(parts))
        suffixes = ["/".join(parts[-count:]) for count in range(min_count, len(parts) + 1)]
        # names that mean this file from everywhere come before names that depend on the linking note
        yield from (suffix for suffix in suffixes if route.after.resolve(suffix) == route.target)
        yield from suffixes
    yield f"/{path}"


def _is_relative_path(link: Link, source: str, target: str) -> bool:
    """Whether a Markdown link is a path relative to its note's folder."""
    if link.kind != "markdown" or not link.target:
        return False
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.target))
    return fold_name(path) in (fold_name(target), fold_name(target).rpartition(".")[0])


def _rename_link(parts: _LinkParts, names: Iterator[str], route: _Route) -> _Edit | None:
    for name in names:
        if parts.style == "wikilink" and (_UNSAFE_NAME.search(name) or not _SAFE_BRACKETS.fullmatch(name)):
            continue
        encoded = parts.encode(name)
        if _reads_back(f"{parts.head}{encoded}{parts.tail}", route):
            start = route.original.start + len(parts.head)
            return _Edit(start, start + len(parts.name), encoded)
    return None


def _reads_back(new_text: str, route: _Route) -> bool:
    """Whether a text will be read as this one link."""
    start, end = len(route.adjacent[0]), len(route.adjacent[0]) + len(new_text)
    found = find_all_links(new_text.join(route.adjacent))
    return any((link.start, link.end) == (start, end) and route.is_followed_by(link) for link in found)


def _as_markdown(link: Link, route: _Route) -> _Edit | None:
    """Writes a name that no wikilink can contain as a Markdown link, which can contain any."""
    if link.kind == "markdown":
        return None
    title = link.caption or posixpath.basename(route.target)
    caption = re.sub(r"[\[\]`\\|%<&]", lambda match: f"&#{ord(match[0])};", title)
    heading = f"#{_percent_encode(link.heading, _UNSAFE_BARE)}" if link.heading else ""
    block = f"#^{_percent_encode(link.block, _UNSAFE_BARE)}" if link.block else heading
    return _Edit(link.start, link.end, f"[{caption}](/{_percent_encode(route.target, _UNSAFE_BARE)}{block})")
