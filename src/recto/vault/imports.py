"""Imports: finds each `@path` in a message and resolves it to a file. Knows files, neither notes nor the chat."""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from recto.base.text import clean
from recto.errors import Invalid, NotFound
from recto.vault.decoding import SNIFFED_BYTES, why_not_text
from recto.vault.folder import MAX_NOTE_BYTES, too_large_error
from recto.vault.links import mask_code

Exists = Callable[[str], bool]

_BARE = r'(?:\\ |[^\s"`<>|@])+'
_MENTION = re.compile(rf'@(?:"([^"\n]{{1,1000}})"(#{_BARE})?|({_BARE}))')
# Characters before an `@` that make it part of an address, a link or a query.
_CONTINUATION = frozenset("@/.-+=&?#%\\~$_")
_PUNCTUATION = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_MAX_CHARS = 1000
_MAX_NAMED_FILES = 5


class Import(Struct, frozen=True):
    raw: str
    """As written in the text, including the `@`."""
    path: str
    section: str | None
    start: int
    end: int
    lines: tuple[int, int] | None = None
    """The first and the last line, counted from 1: `@todo.txt:3-7`."""


def find_imports(text: str, exists: Exists = lambda path: False) -> list[Import]:
    """Finds imports in order. A single word may be a person's name: it counts only if such a file exists."""
    if "@" not in text:
        return []
    found = (_parse(match, exists) for match in _MENTION.finditer(mask_code(text)) if not _is_continuation(match))
    return [each for each in found if each]


def _is_continuation(match: re.Match[str]) -> bool:
    before = match.string[match.start() - 1 : match.start()]
    # scripts without case use no space before a mention and do not occur in addresses
    return before in _CONTINUATION if not before.isalnum() else unicodedata.category(before) != "Lo"


def _parse(match: re.Match[str], exists: Exists) -> Import | None:
    quoted, suffix, bare = match.groups()
    start = match.start()
    if quoted:  # a section may be inside the quotes, after them, or both, one nested in the other
        path, section = _split_section(quoted.strip(), exists)
        suffix = _strip_punctuation(suffix) if suffix and len(suffix) <= _MAX_CHARS else ""
        parts = [part for part in (section, suffix[1:].replace("\\ ", " ").strip()) if part]
        end = match.end(1) + 1 + (len(suffix) if len(suffix) > 1 else 0)
        return Import(match.string[start:end], path, "#".join(parts) or None, start, end) if path else None
    bare = bare[:_MAX_CHARS]
    for text in (bare, _strip_punctuation(bare)) if exists(bare.replace("\\ ", " ")) else (_strip_punctuation(bare),):
        path, section = _split_section(text.replace("\\ ", " "), exists)
        path, lines = _split_lines(path, exists)
        if lines or exists(path) or _looks_like_path(path):
            return Import(f"@{text}", path, section, start, start + 1 + len(text), lines)
    return None


def _strip_punctuation(text: str) -> str:
    """Strips trailing punctuation, except for a bracket opened in the text: `plan(2)`."""
    end = len(text)
    while end and (last := text[end - 1]) in _PUNCTUATION:
        if last in _PAIRS and text.count(_PAIRS[last], 0, end) >= text.count(last, 0, end):
            break
        end -= 1
    return text[:end]


def _split_section(text: str, exists: Exists) -> tuple[str, str | None]:
    """Path and section. If a name contains a `#`, the longest path that exists."""
    ends = [at for at, character in enumerate(text) if character == "#"]
    if not ends or exists(text):
        return text, None
    at = next((end for end in reversed(ends) if exists(text[:end])), ends[0])
    return text[:at].strip(), text[at + 1 :].strip() or None


def _split_lines(text: str, exists: Exists) -> tuple[str, tuple[int, int] | None]:
    """A path and the lines named after it."""
    path, _, lines = text.rpartition(":")
    first, dash, last = lines.partition("-")
    if exists(text) or not (first.isdecimal() and (last.isdecimal() if dash else True)):
        return text, None
    return (path, (int(first), int(last or first))) if exists(path) or _looks_like_path(path) else (text, None)


def _looks_like_path(path: str) -> bool:
    """False for `@rule:tone`, `@ada` and `@2.0`."""
    if ":" in path.split("/")[0]:
        return False
    _, dot, ending = path.rpartition(".")
    is_ending = 0 < len(ending) <= 10 and all(sign.isalnum() or sign == "_" for sign in ending)
    return "/" in path.strip("/") or path.endswith("/") or (bool(dot) and is_ending and not ending.isdecimal())


# -- resolving


def exists_under(roots: Sequence[Path], allowed_outside: bool = False) -> Exists:
    """A test for `find_imports`: whether a file exists below one of the roots."""
    return lambda path: any(os.path.isfile(location) for location in _locations(path, roots, allowed_outside))


def resolve_import(found: Import, roots: Sequence[Path], allowed_outside: bool = False) -> Path:
    """The file below the first root that has it; `.md` is optional. Raises NotFound or Invalid if it is missing,
    outside, a folder, too large, or not text."""
    locations = _locations(found.path, roots, allowed_outside)
    existing = [location for location in locations if os.path.exists(location)]
    if not existing:
        raise _missing_error(found, locations, _locations(found.path, roots, allowed_outside=True))
    location = next(filter(os.path.isfile, existing), existing[0])
    if location.is_dir():
        names = [name for name in _names(location) if os.path.isfile(location / name)]
        listed = ", ".join(names[:_MAX_NAMED_FILES]) + (" …" if len(names) > _MAX_NAMED_FILES else "")
        advice = f"name one of its files: {listed}" if names else "it has no files"
        raise Invalid(f"{_describe(found)} is a folder; {advice}", path=found.path, files=names[:_MAX_NAMED_FILES])
    _check_file(found, location)
    return location


def _locations(path: str, roots: Sequence[Path], allowed_outside: bool) -> list[Path]:
    """Possible locations of the file, in order. Symlinks are resolved before a location counts as inside."""
    real_roots = [location for root in roots if (location := _resolve(root))]
    names = [os.path.expanduser(name) if name.startswith("~/") else name for name in (path, f"{path}.md")]
    candidates = (_resolve(_match_spelling(root, name)) for root in real_roots for name in names)
    return [
        location
        for location in candidates
        if location and (allowed_outside or any(map(location.is_relative_to, real_roots)))
    ]


def _match_spelling(root: Path, path: str) -> Path:
    """Accents can be one character or two: use the spelling on disk for each part of the path, else as typed."""
    if path.isascii():
        return root / path
    location = root
    for part in Path(path).parts:
        spellings = (part, *(unicodedata.normalize(form, part) for form in ("NFC", "NFD")))
        location /= next((spelling for spelling in spellings if os.path.lexists(location / spelling)), part)
    return location


def _resolve(location: Path) -> Path | None:
    try:
        return location.resolve()
    except (OSError, RuntimeError, ValueError):
        return None  # a loop of links, or a NUL


def _check_file(found: Import, location: Path) -> None:
    """Raises Invalid unless it is a readable text file."""
    try:
        info = location.stat()
        if not stat.S_ISREG(info.st_mode):
            raise Invalid(f"{_describe(found)} is not a regular file", path=found.path)
        if info.st_size > MAX_NOTE_BYTES:
            raise too_large_error(_describe(found), found.path, info.st_size)
        with location.open("rb") as file:
            head = file.read(SNIFFED_BYTES)
    except OSError as why:
        raise Invalid(f"cannot read {_describe(found)}: {why.strerror}", path=found.path) from why
    if reason := why_not_text(head):
        raise Invalid(f"{_describe(found)} is not text: {reason}", path=found.path)


def _missing_error(found: Import, locations: Sequence[Path], anywhere: Sequence[Path]) -> Invalid | NotFound:
    # a path that itself leads outside is not looked up; one reached through a link inside may be mentioned
    if anywhere and (not locations or any(os.path.exists(location) for location in anywhere)):
        return Invalid(f"{_describe(found)} is outside the project and the vault", path=found.path)
    similar = [name for each in locations for name in get_close_matches(each.name, _names(each.parent), 1, 0.75)]
    hint = f"; did you mean {similar[0]}?" if similar else ""
    return NotFound(f"{_describe(found)} matches no file in the project or the vault{hint}", path=found.path)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(clean(name)[0] for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _describe(found: Import) -> str:
    return clean(found.raw if len(found.raw) <= 80 else found.raw[:79] + "…")[0]
