"""RenamePlan: the changes to links when a file moves. RenameJournal: lets an interrupted rename be finished.

A link changes only if it would otherwise lead elsewhere, and then only in its name: heading, block, caption and style
stay. The journal is written before the file moves and removed when all links are rewritten. Its lock ends with its
process, so a journal without a lock is an abandoned rename.
"""

import logging
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

import msgspec
from msgspec import Struct

from recto.base.home_files import make_private_folder, private
from recto.vault.folder import is_note
from recto.vault.link_resolver import NOTE_ENDINGS, SEPARATOR, LinkResolver, fold_name
from recto.vault.links import LINK_DESTINATION, Link, find_all_links, unquote_destination

log = logging.getLogger(__name__)

# Characters that would end a destination or be misread, besides control characters; then those that matter only outside
# `<>`, besides white space.
_UNSAFE, _UNSAFE_BARE = "%#:<>\\`|", "()[]\"'*^\x7f"
# A wikilink has no escapes: these are read across its ends, and only paired brackets can be part of a name.
_UNSAFE_IN_NAME = ("`", "\n", "\r", "%%", "<!--", "-->", "~~~")
_SAFE_BRACKETS = re.compile(r"[^\[\]]+(?:\[[^\[\]]+\][^\[\]]+)*")
_CAPTION_ENTITIES = {ord(sign): f"&#{ord(sign)};" for sign in "[]`\\|%<&"}


class RenamePlan(Struct, frozen=True):
    """A file's old and new path, and the names before and after. Aliases move with the file."""

    old: str
    new: str
    before: LinkResolver
    after: LinkResolver

    def new_path(self, path: str) -> str:
        return self.new if path == self.old else path


class _Route(Struct, frozen=True):
    source: str
    """The linking note, at its new path."""
    target: str
    original: Link
    adjacent: tuple[str, str]
    """The characters around it, if they are brackets that could merge with its own."""
    after: LinkResolver

    def is_followed_by(self, link: Link) -> bool:
        """True if a link leads to the target and to the same place in it."""
        if self.after.follow(link, self.source) != self.target:
            return False
        original = self.original
        return (link.heading, link.block, link.caption) == (original.heading, original.block, original.caption)

    def reads_back(self, new_text: str) -> bool:
        """True if a text parses as exactly this link."""
        start = len(self.adjacent[0])
        found = find_all_links(new_text.join(self.adjacent))
        return any(
            (link.start, link.end) == (start, start + len(new_text)) and self.is_followed_by(link) for link in found
        )


_Edit = tuple[int, int, str]
"""Start, end, new text."""


def rewrite_links(text: str, links: Sequence[Link], source: str, plan: RenamePlan) -> tuple[str, int]:
    """The note's text with updated links, and the number of changes.

    `links` are all links of the text, `source` is the note's old path. Broken links stay as they are.
    """
    edits = sorted(edit for link in links if (edit := _edit(text, link, source, plan)))
    parts, done = list[str](), 0
    for start, end, new_text in edits:
        parts += [text[done:start], new_text]
        done = end
    return "".join([*parts, text[done:]]), len(edits)


def _edit(text: str, link: Link, source: str, plan: RenamePlan) -> _Edit | None:
    target = plan.before.follow(link, source)
    if target is None:
        return None
    before, after = text[link.start - 1 : link.start], text[link.end : link.end + 1]
    adjacent = before if before in "[!" else "", after if after in "](" else ""
    route = _Route(plan.new_path(source), plan.new_path(target), link, adjacent, plan.after)
    # a relative path stays one: other Markdown programs do not resolve names
    was_relative = _is_relative_path(link, source, target)
    if route.is_followed_by(link) and was_relative <= _is_relative_path(link, route.source, route.target):
        return None
    parts = _split_markdown(link) if link.kind == "markdown" else _split_wikilink(link)
    edit = _renamed(parts, _names(link, source, target, route), route) if parts else None
    return edit or (_as_markdown(link, route) if link.kind == "wikilink" else None)


class _LinkParts(Struct, frozen=True):
    head: str
    name: str
    tail: str
    style: str = "wikilink"
    """Or `bare`, `pointed`: the styles of a Markdown destination."""

    def encode(self, name: str) -> str:
        if self.style == "wikilink":
            return name.replace("|", "\\|") if "\\|" in self.tail else name
        return _percent_encode(name, is_bare=self.style == "bare" or "%20" in self.name)


def _split_wikilink(link: Link) -> _LinkParts:
    inside = link.wikilink[2:-2]
    ends = [*(found.start() for found in SEPARATOR.finditer(inside)), len(inside)]
    end = next((end for end in ends if inside[:end].replace("\\|", "|").strip() == link.target), len(inside))
    name = inside[:end].strip()
    start = 2 + len(inside[:end]) - len(inside[:end].lstrip())
    return _LinkParts(link.wikilink[:start], name, link.wikilink[start + len(name) :])


def _split_markdown(link: Link) -> _LinkParts | None:
    at = link.wikilink.find("](")
    while at >= 0:
        if destination := LINK_DESTINATION.fullmatch(link.wikilink, at + 2):
            style = "bare" if destination["pointed"] is None else "pointed"
            name, start = destination[style].partition("#")[0], destination.start(style)
            if unquote_destination(name) == link.target:
                return _LinkParts(link.wikilink[:start], name, link.wikilink[start + len(name) :], style)
        at = link.wikilink.find("](", at + 2)
    return None


def _percent_encode(name: str, *, is_bare: bool = True) -> str:
    def is_unsafe(sign: str) -> bool:
        return sign in _UNSAFE or sign < " " or (is_bare and (sign in _UNSAFE_BARE or sign.isspace()))

    return "".join(quote(sign, safe="") if is_unsafe(sign) else sign for sign in name)


def _names(link: Link, source: str, target: str, route: _Route) -> Iterator[str]:
    """New names for a link in its old style, best first."""
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
    if link.kind != "markdown" or not link.target:
        return False
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link.target))
    return fold_name(path) in (fold_name(target), fold_name(target).rpartition(".")[0])


def _renamed(parts: _LinkParts, names: Iterator[str], route: _Route) -> _Edit | None:
    for name in names:
        if parts.style == "wikilink" and (
            any(mark in name for mark in _UNSAFE_IN_NAME) or not _SAFE_BRACKETS.fullmatch(name)
        ):
            continue
        encoded = parts.encode(name)
        if route.reads_back(f"{parts.head}{encoded}{parts.tail}"):
            start = route.original.start + len(parts.head)
            return start, start + len(parts.name), encoded
    return None


def _as_markdown(link: Link, route: _Route) -> _Edit:
    """Writes a name that no wikilink can contain as a Markdown link."""
    caption = (link.caption or posixpath.basename(route.target)).translate(_CAPTION_ENTITIES)
    heading = f"#{_percent_encode(link.heading)}" if link.heading else ""
    place = f"#^{_percent_encode(link.block)}" if link.block else heading
    return link.start, link.end, f"[{caption}](/{_percent_encode(route.target)}{place})"


JOURNAL = "rename.json"


class BegunRename(Struct, frozen=True):
    old: str
    new: str
    notes: Mapping[str, str]
    """Notes whose links may have to change, by their old paths, with the sha256 of their content."""


class RenameJournal:
    def __init__(self, folder: Path | None) -> None:
        """Without a folder, or in one that is not writable, nothing is recorded."""
        self.path = folder / JOURNAL if folder else None

    @contextmanager
    def remembered(self, begun: BegunRename) -> Iterator[None]:
        """Around a rename. Unless it ends normally or by its own error, it is left to be finished."""
        file = self._begin(begun)
        try:
            yield
            self._forget_own(file)
        except Exception:
            self._forget_own(file)
            raise
        finally:
            if file:
                file.close()

    @contextmanager
    def left(self) -> Iterator[BegunRename | None]:
        """The unfinished rename, if any; locked meanwhile."""
        file, begun = self._open_left(), None
        if file:
            try:
                begun = msgspec.json.decode(file.read(), type=BegunRename)
            except (OSError, msgspec.MsgspecError):  # killed while writing it: nothing had been moved
                self.forget()
        try:
            yield begun
        finally:
            if file:
                file.close()

    def forget(self) -> None:
        with suppress(OSError):
            if self.path:
                self.path.unlink()

    def _forget_own(self, file: IO[bytes] | None) -> None:
        if file:  # another process's journal stays
            self.forget()

    def _open_left(self) -> IO[bytes] | None:
        try:
            if self.path and self.path.exists():
                file = self.path.open("r+b")
                return file if _lock(file, self.path) else None
        except OSError as why:
            log.warning("an unfinished rename cannot be read from %s: %s", self.path, why)
        return None

    def _begin(self, begun: BegunRename) -> IO[bytes] | None:
        if self.path is None:
            return None
        file = None
        try:
            make_private_folder(self.path.parent)
            file = os.fdopen(private(str(self.path), os.O_RDWR | os.O_CREAT), "r+b")
            if not _lock(file, self.path):  # another process is renaming, with its own journal
                return None
            file.truncate()
            file.write(msgspec.json.encode(begun))
            file.flush()
            os.fsync(file.fileno())
        except OSError as why:
            log.warning("a rename is not remembered in %s: %s", self.path, why)
            if file:
                file.close()
            return None
        return file


def _lock(file: IO[bytes], path: Path) -> bool:
    """True if the file is now ours. It is closed if another process has it or has just deleted it."""
    try:
        import fcntl  # not on every system

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return True
    except ImportError:
        return True
    except OSError:
        pass
    file.close()
    return False
