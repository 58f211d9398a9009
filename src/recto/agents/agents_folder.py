"""AgentsFolder: where agents are stored, which names they may have, and which files one has. Opens no file."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from recto.agents.file_cache import FileEntry, list_files
from recto.errors import Invalid

AGENTS_FOLDER, MCP_FILE = "agents", ".mcp.json"
MAX_NAME_LENGTH = 64
NAME_RULE = f"use letters, digits, _, . and -, at most {MAX_NAME_LENGTH} characters"
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{MAX_NAME_LENGTH - 1}}}")


def is_agent_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


def check_agent_name(name: str) -> None:
    if not is_agent_name(name):
        shown = repr(name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…")
        raise Invalid(f"{shown} is not a valid agent name: {NAME_RULE}", name=name)


@dataclass(frozen=True, slots=True)
class AgentsFolder:
    """A place with agents: the user's home, or a project. A project may not use files outside of it."""

    folder: Path
    root: Path
    """Where its .mcp.json is."""
    is_yours: bool

    def agent_folder(self, name: str) -> Path:
        return self.folder / AGENTS_FOLDER / name

    def has(self, name: str) -> bool:
        folder = self.agent_folder(name)
        try:
            return folder.is_dir()
        except OSError as why:
            raise Invalid(f"cannot read {folder}: {why.strerror}", path=str(folder)) from why

    def names(self) -> list[str]:
        """The names of all folders, valid agent names or not."""
        try:
            with os.scandir(self.folder / AGENTS_FOLDER) as found:
                return sorted(item.name for item in found if item.is_dir())
        except OSError:
            return []

    def markdown_files(self, folder: Path, notes: list[str]) -> tuple[FileEntry, ...]:
        """The Markdown files of a folder. A copied project must not show the model files from outside of it."""
        if self.contains(folder):
            entries, problem = list_files(folder, ".md")
        else:
            entries, problem = (), f"{folder} points outside the project and is ignored"
        outside = [entry.path for entry in entries if entry.is_link and not self.contains(entry.path)]
        notes += [problem] if problem else []
        notes += [f"{path} points outside the project and is ignored" for path in outside]
        return tuple(entry for entry in entries if entry.path not in outside)

    def contains(self, path: str | Path) -> bool:
        real = Path(os.path.realpath(path))
        return self.is_yours or any(real.is_relative_to(os.path.realpath(base)) for base in (self.root, self.folder))


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The files that one place has for an agent."""

    file: FileEntry | None
    mcp_file: FileEntry | None
    prompt: FileEntry | None
    rules: tuple[FileEntry, ...]
    references: tuple[FileEntry, ...]
    notes: tuple[str, ...]

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        return (*filter(None, (self.file, self.mcp_file, self.prompt)), *self.rules, *self.references)
