"""NoteFolder: a folder that somebody may choose as a vault: how many notes it holds; folders whose names go on as they
were typed, and questions that the notes ask themselves."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from recto.errors import RectoError
from recto.vault.folder import Folder, is_note
from recto.vault.vault import Vault

# Files and folders that are looked at: enough to tell a folder of notes from any other, in a moment.
MOST_LOOKED_AT = 20_000
MOST_NAMED = 3
# Notes whose questions are read, the latest first, and the longest question that is worth offering.
MOST_READ, LONGEST_QUESTION, SHORTEST_QUESTION = 80, 90, 12
_QUESTION = re.compile(
    r"^[ \t]*(?:#{1,6}|[-*+]|\d+[.)])[ \t]+(?:\[.\][ \t]+)?(\S.*?[?？])(?:[ \t]*\(.*\))?[ \t]*$", re.MULTILINE
)
_MARKS = re.compile(r"[*_`]|\[\[|\]\]")


class NoteFolder(Struct, frozen=True):
    path: Path
    notes: int = 0
    has_more: bool = False
    """Whether it holds more than was looked at."""
    names: tuple[str, ...] = ()
    """A few of its notes."""
    problem: str = ""


def look_at_folder(typed: str) -> NoteFolder:
    """What a folder holds that was typed as people type it, such as ~/notes."""
    # Path's own raises for an unknown user
    path = Path(os.path.expanduser(typed.strip()))
    if not path.is_absolute():
        return NoteFolder(path, problem="write the whole path, such as ~/notes or /home/me/notes")
    try:
        entries = list(islice(Folder(path).walk(), MOST_LOOKED_AT))
    except RectoError as why:
        return NoteFolder(path, problem=why.message)
    except ValueError:
        return NoteFolder(path, problem="no folder can have this name")
    notes = [entry for entry in entries if is_note(entry.path)]
    latest = sorted(notes, key=lambda entry: -entry.mtime_ns)[:MOST_NAMED]
    names = tuple(entry.path.rpartition("/")[2].rpartition(".")[0] for entry in latest)
    problem = "" if notes else "there is no note in it: Recto reads Markdown files (.md)"
    return NoteFolder(path, len(notes), len(entries) == MOST_LOOKED_AT, names, problem)


def folders_like(typed: str, most: int = 6) -> list[str]:
    """Folders whose path goes on as it was typed; without anything typed, those in the user's home."""
    start = typed.strip() or "~/"
    place, slash, name = start.rpartition("/")
    if not slash:
        place, name = "~", "" if start == "~" else start
    try:
        with os.scandir(Path(place or "/").expanduser()) as children:
            found = sorted(child.name for child in children if not child.name.startswith(".") and child.is_dir())
    except (OSError, RuntimeError, ValueError):
        return []
    return [f"{place}/{each}" for each in found if each.lower().startswith(name.lower()) and each != name][:most]


def questions_in_notes(vault: Vault, most: int) -> list[str]:
    """Questions that the notes ask themselves, as headings or items of a list; notes that ask several come first."""
    entries = sorted((each for each in vault.folder.walk() if is_note(each.path)), key=lambda each: -each.mtime_ns)
    asked = [list(_questions(vault, entry.path)) for entry in entries[:MOST_READ]]
    return list(dict.fromkeys(each for found in sorted(asked, key=len, reverse=True) for each in found))[:most]


def _questions(vault: Vault, path: str) -> Iterator[str]:
    try:
        text = vault.read(path).text
    except RectoError:
        return
    for match in _QUESTION.finditer(text):
        question = _MARKS.sub("", match[1]).strip()
        if SHORTEST_QUESTION <= len(question) <= LONGEST_QUESTION:
            yield question
