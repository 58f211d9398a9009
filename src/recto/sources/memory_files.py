"""MemoryFile: a file of instructions that is read at every turn: the user's, the agent's, the project's.

A project's files are found from its folder upwards to the root of its repository. A file may import others with
`@path`. Nothing is read outside a file's own place, and nothing that another user of the machine could have put there.
A problem becomes a sentence; the other files are used.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from recto.base.file_cache import FileCache, stat_file
from recto.base.text import clean
from recto.errors import Invalid
from recto.vault.decoding import decoded
from recto.vault.document import Document
from recto.vault.links import mask_code

PROJECT_NAMES = ("RECTO.md", "AGENTS.md", "CLAUDE.md")
"""The first one found in a folder is read."""
OWN_NAME = "memory.md"
"""In the user's home, and in the folder of an agent."""
MAX_DEPTH = 5
"""Most levels of imports followed."""
MAX_FILES = 50
_IMPORT = re.compile(
    r"(?<![\w@/.`\\])@(?:(?P<path>(?:~|\.{1,2})?/?[\w.-](?:[\w./-]|\\ )*?\.\w{1,8}|(?:~|\.{1,2})?/(?:[\w./-]|\\ )+)"
    # spaces in a name need quotation marks or backslashes
    r"(?=[.,;:!?)\]'\"]*(?:\s|$))|(?P<mark>[\"'])(?P<quoted>[^\"'\n\0]{1,200})(?P=mark))"
)
# Anything else with an @ and a dot, such as a decorator, is an import only if the file exists.
_TEXT_SUFFIXES = (".md", ".mdc", ".markdown", ".txt", ".rst")
_NEVER = (".git", ".ssh", ".gnupg")

MemoryScope = Literal["user", "agent", "project"]


class MemoryFile(Struct, frozen=True):
    scope: MemoryScope
    path: str
    name: str
    """The display path, relative to its place."""
    text: str
    imported_by: str = ""
    """The name of the importing file."""

    @property
    def because(self) -> str:
        whose = "your own memory" if self.scope == "user" else f"the {self.scope}'s memory"
        return f"{whose}, imported by {self.imported_by}" if self.imported_by else whose

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """The sections, each with only its own text, for files that are too long to be sent whole."""
        sections = Document(self.path, self.text).parsed.sections
        ends = [*(section.start for section in sections[1:]), len(self.text)]
        parts = [(each, self.text[each.start : end].strip()) for each, end in zip(sections, ends, strict=False)]
        return tuple((" › ".join(section.heading_path), text) for section, text in parts if text)


class FoundMemory(Struct, frozen=True):
    files: tuple[MemoryFile, ...] = ()
    notes: tuple[str, ...] = ()
    """The reason for each unread file, as a sentence."""

    def __add__(self, other: "FoundMemory") -> "FoundMemory":
        return FoundMemory((*self.files, *other.files), (*self.notes, *other.notes))


NO_MEMORY = FoundMemory()


class MemoryFiles:
    """Reads memory files, caching unchanged ones. Thread-safe."""

    def __init__(self) -> None:
        self._cache = FileCache()
        self._told: dict[Path, tuple[object, ...]] = {}

    def untold_notes(self, project: Path, files: Sequence[MemoryFile], notes: Sequence[str]) -> Sequence[str]:
        """Return notes that were not shown yet for this state of the files, and mark them as shown."""
        state = (*notes, *files)
        if os.path.isdir(project) and self._told.get(project) == state:
            return ()
        self._told[project] = state
        return notes

    def of_user(self, home: Path) -> FoundMemory:
        return self._read("user", home, [home / OWN_NAME])

    def of_agent(self, folders: Sequence[Path]) -> FoundMemory:
        """The agent's files in several places, the user's before the project's."""
        found = NO_MEMORY
        for folder in folders:
            found += self._read("agent", folder, [folder / OWN_NAME], shown_from=folder.parent.parent)
        return found

    def of_project(self, project: Path) -> FoundMemory:
        """The project's files, nearest last, so that it has the last word."""
        folders = project_folders(project)
        found = NO_MEMORY
        for folder in folders:
            root = folders[0] if _is_repository(folders[0]) else folder
            files = [path for name in PROJECT_NAMES if os.path.isfile(path := folder / name)]
            found += self._read("project", root, files[:1], shown_from=project)
        return found

    def _read(
        self, scope: MemoryScope, root: Path, paths: Sequence[Path], shown_from: Path | None = None
    ) -> FoundMemory:
        reading = _Reading(self._cache, scope, Path(os.path.realpath(root)), shown_from or root)
        for path in filter(os.path.lexists, paths):
            reading.add(path)
        return FoundMemory(tuple(reading.files), tuple(reading.notes))


class _Reading:
    """The files of one place with their imports."""

    def __init__(self, cache: FileCache, scope: MemoryScope, root: Path, shown_from: Path) -> None:
        self._cache, self._scope, self._root, self._shown_from = cache, scope, root, shown_from
        self._seen: set[str] = set()
        self.files: list[MemoryFile] = []
        self.notes: list[str] = []

    def add(self, path: Path, imported_by: str = "", depth: int = 0) -> None:
        real, name = os.path.realpath(path), os.path.relpath(path, self._shown_from).replace(os.sep, "/")
        if real in self._seen or (imported_by and not os.path.lexists(path) and path.suffix not in _TEXT_SUFFIXES):
            return
        self._seen.add(real)
        if problem := self._problem(path, real, depth):
            by = f", which {imported_by} imports," if imported_by else ""
            self.notes.append(f"the memory file {name}{by} is not read: {problem}")
            return
        entry = stat_file(Path(real))
        text, problem = self._cache.get(entry, "memory", decoded) if entry else ("", "")
        if problem:
            self.notes.append(f"the memory file {name} is not read: {problem}")
        if text := text.strip():
            self.files.append(MemoryFile(self._scope, str(path), name, text, imported_by))
            for target in imported_paths(text):
                self.add(Path(os.path.normpath(path.parent / os.path.expanduser(target))), name, depth + 1)

    def _problem(self, path: Path, real: str, depth: int) -> str:
        if not Path(real).is_relative_to(self._root):
            return f"it is outside of {self._root}"
        if depth and (path.name.startswith(".") or not set(path.parts).isdisjoint(_NEVER)):
            return "a hidden file is not imported"
        if depth > MAX_DEPTH:
            return f"imports are followed {MAX_DEPTH} files deep"
        if len(self.files) >= MAX_FILES:
            return f"{MAX_FILES} files are read at most"
        try:
            found = os.stat(real)
        except OSError as why:
            return "it does not exist" if isinstance(why, FileNotFoundError) else (why.strerror or str(why))
        if not stat.S_ISREG(found.st_mode):
            return "it is not a file"
        # anyone with write access could put instructions into other users' chats
        return "it belongs to another user" if hasattr(os, "geteuid") and found.st_uid != os.geteuid() else ""


def imported_paths(text: str) -> Iterator[str]:
    """The paths that a text imports: `@docs/style.md`, `@./notes.txt`, `@"house rules.md"`, not in code. Words such as
    `@angular` or `@scope/package` do not count."""
    if "@" in text:
        found = _IMPORT.finditer(mask_code(text))
        yield from dict.fromkeys(each["quoted"] or each["path"].replace("\\ ", " ") for each in found)


def project_folders(project: Path) -> list[Path]:
    """The folders whose memory applies in a project, its own last: up to the root of its repository; without one, up to
    the user's home folder; elsewhere only its own."""
    above = [project, *project.parents]
    for place, folder in enumerate(above):
        if _is_repository(folder):
            return above[place::-1]
    home = Path.home()
    return above[above.index(home) :: -1] if home in above else [project]


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def notes_file(project: Path) -> Path:
    """The project's existing or new memory file for added lines."""
    return next((path for name in PROJECT_NAMES if os.path.isfile(path := project / name)), project / PROJECT_NAMES[0])


def add_note(project: Path, text: str) -> Path:
    """Add a line to the project's memory file. Raises Invalid if it cannot be written or links elsewhere."""
    path, line = notes_file(project), " ".join(clean(text)[0].split())
    if not line:
        raise Invalid("there is nothing to remember: write a text after #")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project)):
        raise Invalid(f"{path} leads outside of the project and is not changed", path=str(path))
    try:
        before = path.read_bytes() if path.exists() else b""
        end = b"\r\n" if b"\r\n" in before else b"\n"
        with path.open("ab") as file:  # concurrent writes are not lost
            file.write((b"" if not before or before.endswith(b"\n") else end) + f"- {line}".encode() + end)
    except OSError as why:
        raise Invalid(f"cannot write {path}: {why.strerror}", path=str(path)) from why
    return path
