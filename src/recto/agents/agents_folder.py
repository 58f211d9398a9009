"""AgentsFolder: where agents are stored, which names they may have, and which files one has. Opens no file.

A new agent: a folder with a commented agent.toml and an example rule.
"""

import os
import re
from pathlib import Path

from msgspec import Struct

from recto.base.file_cache import FileEntry, folder_files
from recto.errors import Invalid

AGENTS_FOLDER, AGENT_FILE, MCP_FILE = "agents", "agent.toml", ".mcp.json"
MAX_NAME_LENGTH = 64
NAME_RULE = f"use letters, digits, _, . and -, at most {MAX_NAME_LENGTH} characters"
# Lines behind a # are defaults or examples: uncommented they make a valid file.
_TOML, _RULE = (Path(__file__).with_name(name) for name in ("new_agent.toml", "new_rule.md"))
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.-]{{0,{MAX_NAME_LENGTH - 1}}}")


def is_agent_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


def check_agent_name(name: str) -> None:
    if not is_agent_name(name):
        shown = repr(name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…")
        raise Invalid(f"{shown} is not a valid agent name: {NAME_RULE}", name=name)


class AgentsFolder(Struct, frozen=True):
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
            entries, problem = folder_files(folder, ".md")
        else:
            entries, problem = (), f"{folder} points outside the project and is ignored"
        outside = [entry.path for entry in entries if entry.is_link and not self.contains(entry.path)]
        notes += [problem] if problem else []
        notes += [f"{path} points outside the project and is ignored" for path in outside]
        return tuple(entry for entry in entries if entry.path not in outside)

    def contains(self, path: str | Path) -> bool:
        if self.is_yours:
            return True
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(os.path.realpath(base)) for base in (self.root, self.folder))


class AgentFiles(Struct, frozen=True):
    """The files that one place has for an agent."""

    file: FileEntry | None
    mcp_file: FileEntry | None
    prompt: FileEntry | None
    rules: tuple[FileEntry, ...]
    references: tuple[FileEntry, ...]
    notes: tuple[str, ...]
    trust: FileEntry | None = None
    """The user's file that says which settings of a project are trusted."""

    @property
    def entries(self) -> tuple[FileEntry, ...]:
        files = (self.file, self.mcp_file, self.prompt, self.trust)
        return (*filter(None, files), *self.rules, *self.references)


def agent_toml(name: str, model: str = "", description: str = "") -> str:
    import tomlkit  # only to write a file

    def line(key: str, value: str, example: str) -> str:
        shown = tomlkit.item(value or example).as_string()
        return f"{key} = {shown}" if value else f"# {key} = {shown}"

    said = line("description", " ".join(description.split()), "What it is for, in a sentence.")
    return _TOML.read_text("utf-8").format(name=name, description=said, model=line("model", model, "openai:gpt-4o"))


def make_agent(folder: Path, name: str, model: str = "", description: str = "") -> None:
    """Invalid when there is such a folder already: nothing is overwritten."""
    try:
        folder.mkdir(parents=True)
        for part in ("rules", "references"):
            (folder / part).mkdir()
        (folder / "agent.toml").write_text(agent_toml(name, model, description), "utf-8")
        (folder / "rules" / "example.md").write_bytes(_RULE.read_bytes())
    except FileExistsError as why:
        raise Invalid(f"there is an agent {name} already: {folder}", name=name) from why
    except OSError as why:
        raise Invalid(f"cannot write {folder}: {why.strerror}", path=str(folder)) from why
