"""`@path` imports of a message: found in its text, and led to a real file. Knows files, neither notes nor the chat."""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from recto.errors import Invalid, NotFound
from recto.text import clean
from recto.vault.decoding import JUDGED, why_no_text
from recto.vault.folder import MOST_READ
from recto.vault.prose import masked

Exists = Callable[[str], bool]

_BARE = r'(?:\\ |[^\s"`<>|@])+'
_MENTION = re.compile(rf'@(?:"([^"\n]{{1,1000}})"(#{_BARE})?|({_BARE}))')
# So does an address, a link or a query go on: what stands behind is no import.
_GOES_ON = frozenset("@/.-+=&?#%\\~$_")
_AFTER = ".,;:!?'*_…。，；：！？、”“’»)]}）】」"
_PAIRS = {")": "(", "]": "[", "}": "{"}
_SUFFIX = re.compile(r"\.(?=\w*[^\W\d])\w{1,10}$")
_LONGEST = 1000
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Import:
    raw: str
    """As it stands in the text, from the `@` on."""
    path: str
    section: str | None
    start: int
    end: int


def find_imports(text: str, exists: Exists = lambda path: False) -> list[Import]:
    """In order of appearance. A word alone may be a name of someone: it is an import only if such a file exists."""
    if "@" not in text:
        return []
    found = (_read(match, exists) for match in _MENTION.finditer(masked(text)) if not _goes_on(match))
    return [each for each in found if each]


def _goes_on(match: re.Match[str]) -> bool:
    before = match.string[match.start() - 1 : match.start()]
    # scripts without case put no space before what they mention, and are in no address
    return before in _GOES_ON if not before.isalnum() else unicodedata.category(before) != "Lo"


def _read(match: re.Match[str], exists: Exists) -> Import | None:
    quoted, behind, bare = match.groups()
    if quoted:
        return _quoted(match, quoted, behind or "", exists)
    for written in _without_punctuation(bare[:_LONGEST], exists):
        path, section = _parted(written.replace("\\ ", " "), exists)
        if exists(path) or _is_path(path):
            return Import(f"@{written}", path, section, match.start(), match.start() + 1 + len(written))
    return None


def _quoted(match: re.Match[str], quoted: str, behind: str, exists: Exists) -> Import | None:
    """A heading may stand within the quotes, behind them, or one below the other in both."""
    path, section = _parted(quoted.strip(), exists)
    behind = _plain(behind) if len(behind) <= _LONGEST else ""
    parts = [part for part in (section, behind[1:].replace("\\ ", " ").strip()) if part]
    end = match.end(1) + 1 + (len(behind) if len(behind) > 1 else 0)
    raw = match.string[match.start() : end]
    return Import(raw, path, "#".join(parts) or None, match.start(), end) if path else None


def _without_punctuation(written: str, exists: Exists) -> Iterator[str]:
    """What may be meant: all of it where there is such a file, and what is left without the end of the sentence."""
    if exists(written.replace("\\ ", " ")):
        yield written
    yield _plain(written)


def _plain(written: str) -> str:
    end = len(written)
    while end and written[end - 1] in _AFTER and not _is_paired(written, end):
        end -= 1
    return written[:end]


def _is_paired(written: str, end: int) -> bool:
    """Whether it ends with a bracket that it opened itself: `plan(2)`."""
    closing = written[end - 1]
    opening = _PAIRS.get(closing)
    return opening is not None and written.count(opening, 0, end) >= written.count(closing, 0, end)


def _parted(written: str, exists: Exists) -> tuple[str, str | None]:
    """Path and section; the longest existing path where a name holds a `#` itself."""
    ends = [at for at, sign in enumerate(written) if sign == "#"]
    if not ends or exists(written):
        return written, None
    at = next((end for end in reversed(ends) if exists(written[:end])), ends[0])
    return written[:at].strip(), written[at + 1 :].strip() or None


def _is_path(path: str) -> bool:
    """Whether it looks like one: `@rule:tone` and `@ada` do not, nor does `@2.0`."""
    if ":" in path.split("/")[0]:
        return False
    return "/" in path.strip("/") or bool(_SUFFIX.search(path))


# -- to a file


def files_of(roots: Sequence[Path], allowed_outside: bool = False) -> Exists:
    """What exists, for `find_imports`."""
    return lambda path: any(os.path.isfile(place) for place in _places(path, roots, allowed_outside))


def resolve_import(found: Import, roots: Sequence[Path], allowed_outside: bool = False) -> Path:
    """The real file: the first that a root has, `.md` optional. NotFound or Invalid say in a sentence why there is none
    to take: it is missing, outside, a folder, too large, or no text."""
    places = _places(found.path, roots, allowed_outside)
    there = sorted((place for place in places if os.path.exists(place)), key=lambda place: not os.path.isfile(place))
    if not there:
        raise _nowhere(found, places, _places(found.path, roots, allowed_outside=True))
    if there[0].is_dir():
        raise _a_folder(found, there[0])
    _check(found, there[0])
    return there[0]


def _places(path: str, roots: Sequence[Path], allowed_outside: bool) -> list[Path]:
    """Where it may lie, in order. A link is followed before it is asked whether that is inside."""
    real = [place for root in roots if (place := _real(root))]
    named = [
        place for root in real for name in (path, f"{path}.md") if (place := _real(_spelled(root, _at_home(name))))
    ]
    return [place for place in named if allowed_outside or any(place.is_relative_to(root) for root in real)]


def _spelled(root: Path, path: str) -> Path:
    """Accents are written as one sign or as two: each part of a path as the disk has it, else as it was typed."""
    if path.isascii():
        return root / path
    place = root
    for part in Path(path).parts:
        ways = (part, *(unicodedata.normalize(form, part) for form in ("NFC", "NFD")))
        place /= next((way for way in ways if os.path.lexists(place / way)), part)
    return place


def _real(place: Path) -> Path | None:
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):
        return None  # a loop of links, a NUL: nothing lies there


def _at_home(path: str) -> str:
    return os.path.expanduser(path) if path.startswith("~/") else path


def _check(found: Import, place: Path) -> None:
    """Raises Invalid unless it is a text that can be taken in."""
    try:
        facts = place.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise Invalid(f"{_shown(found)} is no file that can be read", path=found.path)
        if facts.st_size > MOST_READ:
            sizes = f"{facts.st_size / 1e6:.1f} MB; at most {MOST_READ / 1e6:g} MB are taken in"
            raise Invalid(f"{_shown(found)} has {sizes}", path=found.path, size=facts.st_size)
        with place.open("rb") as file:
            head = file.read(JUDGED)
    except OSError as why:
        raise Invalid(f"cannot read {_shown(found)}: {why.strerror}", path=found.path) from why
    if because := why_no_text(head):
        raise Invalid(f"{_shown(found)} is no text: {because}", path=found.path)


def _a_folder(found: Import, place: Path) -> Invalid:
    names = [name for name in _names(place) if os.path.isfile(place / name)]
    shown = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
    said = f"name one of its files: {shown}" if names else "it has no files to name"
    return Invalid(f"{_shown(found)} is a folder; {said}", path=found.path, files=names[:_MOST_NAMED])


def _nowhere(found: Import, inside: Sequence[Path], anywhere: Sequence[Path]) -> Invalid | NotFound:
    # what lies outside is not asked for where the path itself leads there; a link of ours may be told of
    if anywhere and (not inside or any(os.path.exists(place) for place in anywhere)):
        return Invalid(f"{_shown(found)} is outside the project and the vault", path=found.path)
    near = [name for place in inside for name in get_close_matches(place.name, _names(place.parent), 1, 0.75)]
    meant = f"; is {near[0]} meant?" if near else ""
    return NotFound(f"{_shown(found)} leads to no file of the project or the vault{meant}", path=found.path)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(clean(name)[0] for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _shown(found: Import) -> str:
    return clean(found.raw if len(found.raw) <= 80 else found.raw[:79] + "…")[0]
