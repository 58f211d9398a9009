"""Place: where agents lie, what they may be called there, and what of one is to be seen on the disk. Reads no file."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from recto.agents.readings import Entry, entries_in
from recto.errors import Invalid

FOLDER, SHARED = "agents", ".mcp.json"
LONGEST = 64
ALLOWED = f"letters, digits, _, . and - are allowed, {LONGEST} of them at most"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{LONGEST - 1}}}")


def is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


def check_name(name: str) -> None:
    if not is_name(name):
        shown = repr(name if len(name) <= LONGEST else f"{name[:LONGEST]}…")
        raise Invalid(f"{shown} is no name of an agent: {ALLOWED}", name=name)


@dataclass(frozen=True, slots=True)
class Place:
    """Where agents lie: in the home of the user, or in a project, whose files say nothing that leads out of it."""

    folder: Path
    root: Path
    """Where its .mcp.json is."""
    is_yours: bool

    def agent(self, name: str) -> Path:
        return self.folder / FOLDER / name

    def has(self, name: str) -> bool:
        try:
            return self.agent(name).is_dir()
        except OSError as why:
            raise Invalid(f"cannot read {self.agent(name)}: {why.strerror}", path=str(self.agent(name))) from why

    def names(self) -> list[str]:
        """Of all folders that are there, whether an agent could be called so or not."""
        try:
            with os.scandir(self.folder / FOLDER) as found:
                return sorted(each.name for each in found if each.is_dir())
        except OSError:
            return []

    def sheets(self, folder: Path, notes: list[str]) -> tuple[Entry, ...]:
        """The Markdown files of a folder. A project that was copied from somewhere must not show the model other
        files."""
        entries, problem = (
            entries_in(folder, ".md") if self.holds(folder) else ((), f"{folder} leads out of the project")
        )
        astray = [entry.path for entry in entries if entry.is_link and not self.holds(entry.path)]
        notes += [problem] if problem else []
        notes += [f"{path} leads out of the project: it is left out" for path in astray]
        return tuple(entry for entry in entries if entry.path not in astray)

    def holds(self, path: str | Path) -> bool:
        real = Path(os.path.realpath(path))
        return self.is_yours or any(real.is_relative_to(os.path.realpath(base)) for base in (self.root, self.folder))


@dataclass(frozen=True, slots=True)
class Sight:
    """All that one place has for an agent, as it lies on the disk."""

    file: Entry | None
    shared: Entry | None
    prompt: Entry | None
    rules: tuple[Entry, ...]
    references: tuple[Entry, ...]
    notes: tuple[str, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        return (*filter(None, (self.file, self.shared, self.prompt)), *self.rules, *self.references)
