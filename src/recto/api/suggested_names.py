"""Names to suggest while the user types: notes, their headings, files. A vault that cannot be read suggests nothing."""

import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from recto.api.suggestions import Suggestion, Suggestions
from recto.errors import RectoError
from recto.vault.document import note_name
from recto.vault.folder import Enters, Folder, is_note
from recto.vault.link_resolver import fold_name
from recto.vault.links import Link, find_links, split_link

if TYPE_CHECKING:
    from recto.vault.folder import FolderEntry
    from recto.vault.vault import Vault

# Of a larger folder only the first files are offered.
MOST_FILES = 200_000
# Folders that programs fill: by their name, or by a file that the program puts there. pip, venv and most caches write
# one of these files; npm and Python do not.
GENERATED_NAMES = {"node_modules", "bower_components", "__pycache__", "site-packages"}
GENERATED_MARKS = {"pyvenv.cfg", "conda-meta", "CACHEDIR.TAG"}
NEEDS_QUOTES = re.compile(r"[\s\"`<>|@]")
# Characters that would end or divide a link; headings are found without them.
_DIVIDERS = re.compile(r"[\[\]#^|]+")
# Cannot be typed on one line; cannot be in a linked name; must be tried in a link.
_UNTYPED = re.compile("^\\s|[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
UNTYPED_SOURCE = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"]')
_UNLINKED = re.compile(r"[|^]")
_ODD = re.compile(r"[\[\]#`%<\\]|\s$")

log = logging.getLogger(__name__)


def note_names(vault: "Vault") -> Iterator[Suggestion]:
    """Every file by the shortest link that leads to it, latest change first; then notes by their aliases."""
    paths = [entry.path for entry in sorted(_files(vault.folder), key=lambda entry: -entry.mtime_ns)]
    names = {path: note_name(path) if is_note(path) else path.rpartition("/")[2] for path in paths}
    bearers = Counter(fold_name(name) for name in names.values())
    links = {path: name if bearers[fold_name(name)] == 1 else path.removesuffix(".md") for path, name in names.items()}
    links = {path: link for path, link in links.items() if not _UNLINKED.search(link) and _leads(vault, link, path)}
    for path, link in links.items():
        folder = path.rpartition("/")[0]
        yield Suggestion(fold_name(link), link, link, f"{folder}/" if folder else "")
    for note in vault.documents():
        for alias in note.aliases if note.path in links else ():
            link, caption = links[note.path], " ".join(_DIVIDERS.sub(" ", alias).split())
            if caption and _leads(vault, insert := f"{link}|{caption}", note.path):
                yield Suggestion(fold_name(alias), insert, alias, f"→ {link}")


def _leads(vault: "Vault", inside: str, path: str) -> bool:
    """Whether `[[inside]]` is a link that leads to this path."""
    if _UNTYPED.search(inside):
        return False
    if not _ODD.search(inside):
        return True
    found = find_links(f"[[{inside}]]")
    return [each.inner for each in found] == [inside] and vault.resolve(found[0]) == path


def note_paths(vault: "Vault") -> Iterator[Suggestion]:
    """Notes by their paths, latest change first."""
    for entry in sorted(_files(vault.folder), key=lambda entry: -entry.mtime_ns):
        if is_note(entry.path) and not _UNTYPED.search(entry.path):
            yield Suggestion(fold_name(entry.path), entry.path, entry.path)


def note_headings(vault: "Vault", name: str, typed: str) -> list[Suggestion]:
    """The headings of the named note; in document order while nothing is typed."""
    try:
        path = vault.resolve(Link(f"[[{name}]]", *split_link(name))) if name.strip("# ") else None
        headings = vault.read(path).parsed.headings if path and is_note(path) else ()
    except RectoError:
        log.debug("the headings of a note could not be read", exc_info=True)
        return []
    plain = [" ".join(_DIVIDERS.sub(" ", heading.text).split()) for heading in headings]
    found = [
        Suggestion(fold_name(text), text, text, "#" * heading.level)
        for text, heading in zip(plain, headings, strict=True)
        if text
    ]
    return Suggestions(found).best(typed.lstrip())


def file_paths(roots: Sequence[Path]) -> Iterator[Suggestion]:
    """Files below the roots as an `@` takes them, latest change first; a file below two roots is named from the nearer
    one."""
    known: dict[str, tuple[str, int]] = {}
    for root in roots:
        start = f"{root}/"
        for path, _, changed in _files(Folder(root), enters=_is_written_by_people):
            place = start + path
            if place not in known or len(path) < len(known[place][0]):
                known[place] = (path, changed)
    latest = sorted(known.values(), key=lambda each: -each[1])
    for path in dict.fromkeys(path for path, _ in latest):
        if not UNTYPED_SOURCE.search(path):
            yield Suggestion(fold_name(path), f'"{path}"' if NEEDS_QUOTES.search(path) else path, path)


def _is_written_by_people(folder: str, names: Set[str]) -> bool:
    return folder.rpartition("/")[2] not in GENERATED_NAMES and names.isdisjoint(GENERATED_MARKS)


def _files(folder: Folder, enters: Enters | None = None) -> Iterator["FolderEntry"]:
    return islice(folder.walk(enters=enters), MOST_FILES)
