"""Agents: read from the folders of the user's home and of the project at every turn, with unchanged files cached.

A problem in a file becomes a note instead of ending a chat.
"""

import os
import string
import threading
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from recto.agents.agent import Agent, AgentLayer, apply_agent, merge_layers, with_agent_settings, without_conflicts
from recto.agents.agent_file import (
    BUILT_IN_TOOLS,
    EMPTY_FILE,
    PROMPT_KEYS,
    AgentFile,
    agent_spec,
    agent_specs,
    name_key,
    parse_agent_setting,
    parse_include_key,
    read_agent_file,
    read_mcp_file,
    read_source_file,
    with_include,
    with_setting,
    without_setting,
)
from recto.base import toml_file
from recto.base.file_cache import FileCache, FileEntry, folder_files, stat_file
from recto.base.home_files import private_home
from recto.errors import Invalid, NotFound
from recto.settings import settings as configuration
from recto.settings.project_access import ProjectAccess, ProjectSetting
from recto.settings.settings import Settings
from recto.settings.spec import Spec
from recto.sources.source import BUILT_IN_SERVER, DEFAULT_AGENT, INCLUDES, Reference, Rule, SourceId
from recto.vault.decoding import decoded

# -- where agents are

AGENTS_FOLDER, AGENT_FILE, MCP_FILE = "agents", "agent.toml", ".mcp.json"
MAX_NAME_LENGTH = 64
_NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_.-")
NAME_RULE = f"use letters, digits, _, . and -, at most {MAX_NAME_LENGTH} characters"
_TOML, _RULE = (Path(__file__).with_name(name) for name in ("new_agent.toml", "new_rule.md"))


def is_agent_name(name: str) -> bool:
    return len(name) <= MAX_NAME_LENGTH and name[:1] not in ("", *"_.-") and _NAME_CHARACTERS.issuperset(name)


def check_agent_name(name: str) -> None:
    if not is_agent_name(name):
        shown = repr(name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…")
        raise Invalid(f"{shown} is not a valid agent name: {NAME_RULE}", name=name)


class AgentsFolder(Struct, frozen=True):
    """A place with agents: the user's home, or a project, which may not use files outside it."""

    folder: Path
    root: Path
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
        try:
            with os.scandir(self.folder / AGENTS_FOLDER) as found:
                return sorted(item.name for item in found if item.is_dir())
        except OSError:
            return []

    def markdown_files(self, folder: Path, notes: list[str]) -> tuple[FileEntry, ...]:
        """The Markdown files of a folder. A copied project must not show the model files from outside it."""
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


def agent_toml(name: str, model: str = "", description: str = "") -> str:
    import tomlkit  # only to write a file

    said = {"description": " ".join(description.split()), "model": model}
    lines = (f"{key} = {tomlkit.item(value).as_string()}\n" for key, value in said.items() if value)
    return _TOML.read_text("utf-8").format(name=name) + "".join(lines)


def make_agent(folder: Path, name: str, model: str = "", description: str = "") -> None:
    """Create an agent's folder. Invalid if it exists."""
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


# -- the agents of a home and a project


class AgentSetting(Struct, frozen=True):
    spec: Spec
    value: Any
    origin: str
    """The file that sets it, or `default`, an option, the environment."""


class Agents:
    """The agents of a home and a project. Thread-safe."""

    def __init__(self, home: Path, project: Path | None, settings: Settings | None = None) -> None:
        self.home, self.project = home, project
        self._settings = settings or Settings()
        self._file_cache = FileCache()
        self._last: dict[str, tuple[list[AgentLayer], Agent]] = {}
        self._lock = threading.Lock()

    @property
    def folders(self) -> tuple[AgentsFolder, ...]:
        """The home, then the project, which overrides it. A home inside the project still counts as the home."""
        yours = AgentsFolder(self.home, self.home, True)
        if self.project is None or os.path.realpath(self.project / ".recto") == os.path.realpath(self.home):
            return (yours,)
        return (yours, AgentsFolder(self.project / ".recto", self.project, False))

    # -- listing

    def names(self) -> list[str]:
        """`default` first, the others by name."""
        found = {name for place in self.folders for name in place.names() if is_agent_name(name)}
        return [DEFAULT_AGENT, *sorted(found - {DEFAULT_AGENT})]

    def check(self, name: str) -> None:
        """Raises NotFound unless the agent exists. `default` always does."""
        check_agent_name(name)
        if name != DEFAULT_AGENT and not self.agent_folders(name):
            near = get_close_matches(name, self.names(), 1)
            hint = f"did you mean {near[0]}?" if near else f"`recto agent new {name}` creates it"
            raise NotFound(f"there is no agent {name}: {hint}", name=name)

    def agent_folders(self, name: str) -> list[tuple[AgentsFolder, Path]]:
        """The agent's folders, the home's before the project's."""
        return [(place, place.agent_folder(name)) for place in self.folders if place.has(name)]

    # -- reading

    def read(self, name: str) -> Agent:
        """Read the agent. Raises NotFound or Invalid for its name only; problems in its files become notes."""
        self.check(name)
        with self._lock:
            layers = [self._read_layer(place, name) for place in self.folders]
            if self._last.get(name, (None, None))[0] != layers:
                self._last[name] = layers, without_conflicts(self._settings, merge_layers(name, layers))
            return self._last[name][1]

    def read_or_last(self, name: str) -> Agent:
        """Read the agent of an existing conversation. If it is gone, return it as last read, or bare."""
        try:
            return self.read(name)
        except (Invalid, NotFound) as why:
            problem = f"the agent {name} no longer exists" if isinstance(why, NotFound) else why.message
        if last := self._last.get(name):
            agent, told = last[1], "the conversation continues with the agent as it was"
        else:
            agent = Agent(name)
            told = "the conversation continues without its rules, references, tools and settings"
        return replace(agent, notes=(*agent.notes, f"{problem}: {told}"))

    def settings(self, name: str) -> list[AgentSetting]:
        """All settings of an agent, including inherited ones."""
        agent = self.read(name)
        below = apply_agent(configuration.load(self.home, self.project), agent)
        own = {**agent.values, **agent.context}
        general = {spec.key for spec in configuration.specs()} - set(PROMPT_KEYS if agent.system_prompt else ())
        found = []
        for spec in agent_specs():
            value, origin = (
                (below.get(spec.key), below.origin(spec.key)) if spec.key in general else (spec.default, "default")
            )
            if spec.key in own and (own[spec.key] or spec.key != "model"):  # an empty model means the general setting
                value, origin = own[spec.key], agent.origins[spec.key]
            found.append(AgentSetting(spec, value, origin))
        return found

    def setting(self, name: str, key: str) -> AgentSetting:
        wanted = agent_spec(key, "agent config").key
        return next(each for each in self.settings(name) if each.spec.key == wanted)

    def scope_of(self, path: str | Path) -> str:
        """The place of an agent's file: `user` or `project`."""
        last = self.folders[-1]
        is_inside = Path(path).is_relative_to(last.folder) or Path(path) == last.root / MCP_FILE
        return "project" if is_inside and not last.is_yours else "user"

    def _read_layer(self, place: AgentsFolder, name: str) -> AgentLayer:
        folder, notes, read = place.agent_folder(name), list[str](), self._file_cache.get
        entry, mcp_entry = stat_file(folder / AGENT_FILE), stat_file(place.root / MCP_FILE)
        file = self._read_agent_file(place, entry, name) if entry else EMPTY_FILE
        prompt = (
            self._read_prompt(folder / os.path.expanduser(named), file, notes)
            if (named := file.values.get("system_prompt_file"))
            else None
        )
        parse_mcp_file = partial(read_mcp_file, is_yours=place.is_yours)
        rules, references = (
            tuple(
                read(each, kind.kind, partial(read_source_file, kind))
                for each in place.markdown_files(folder / part, notes)
            )
            for part, kind in (("rules", Rule), ("references", Reference))
        )
        return AgentLayer(
            file=file,
            mcp_file=read(mcp_entry, MCP_FILE, parse_mcp_file) if mcp_entry else EMPTY_FILE,
            prompt=prompt,
            rules=rules,
            references=references,
            notes=tuple(notes),
        )

    def _read_prompt(self, path: Path, file: AgentFile, notes: list[str]) -> str | None:
        if (entry := stat_file(path)) is None:
            notes.append(f"{file.path}: cannot read the system prompt file {path}: there is no such file")
            return None
        text, problem = self._file_cache.get(entry, "prompt", decoded)
        notes += [problem] if problem else []
        return None if problem else text.strip()

    def _read_agent_file(self, place: AgentsFolder, entry: FileEntry, name: str) -> AgentFile:
        """Read the file; keep only what a project may set if it is a project's."""
        file = self._file_cache.get(entry, AGENT_FILE, partial(read_agent_file, is_yours=place.is_yours))
        if place.is_yours:
            return file
        access = ProjectAccess(self.home, place.root)
        refused = {each.key: access.refusal(each) for each in _project_settings(file, place, name, access)}
        values = {key: value for key, value in file.values.items() if not refused[key]}
        return replace(file, values=values, notes=(*file.notes, *filter(None, refused.values())))

    # -- trust in what the project and its agents set

    def trust_settings(self, names: Sequence[str] = (), *, trusted: bool = True) -> list[ProjectSetting]:
        """Trust, or stop trusting, everything that needs trust or only these names. An agent's setting is AGENT/KEY."""
        if self.project is None:
            raise NotFound("there is no project here: a folder with a .recto folder, or one inside of it")
        access = ProjectAccess(self.home, self.project)
        settings = configuration.project_settings(self.home, self.project)
        for place in self.folders[1:]:
            for agent in filter(is_agent_name, place.names()):
                if entry := stat_file(place.agent_folder(agent) / AGENT_FILE):
                    file = self._file_cache.get(entry, AGENT_FILE, partial(read_agent_file, is_yours=False))
                    settings += _project_settings(file, place, agent, access)
        found = {each.name: each for each in settings if each.asks}
        for name in names:
            if name not in found:
                known = ", ".join(found) or "nothing"
                raise NotFound(f"the project sets no {name} that needs trust; what needs trust: {known}", name=name)
        chosen = [found[name] for name in names] or [each for each in found.values() if not access.forbidden(each)]
        (access.accept if trusted else access.distrust)(chosen)
        return chosen

    def _accept(self, project: Path, name: str, key: str, value: Any, path: Path) -> None:
        """Trust a value that the user sets. Invalid for one that no project may set."""
        access = ProjectAccess(self.home, project)
        access.accept([access.setting(key, value, path, path.parent, name)])

    # -- writing

    def set_include(self, name: str, id: SourceId | str, mode: str) -> Path:
        """Write the include mode of a source (by id) or of a server (by name). Returns the file."""
        agent = self.read(name)
        if (include := next((each for each in INCLUDES if each == mode), None)) is None:
            raise Invalid(f"unknown mode {mode!r}: use {', '.join(INCLUDES[:-1])} or {INCLUDES[-1]}", mode=mode)
        servers = {BUILT_IN_SERVER, *(server.name for server in agent.servers)}
        id = SourceId("tool", "", id) if isinstance(id, str) and id in servers else id
        id = parse_include_key(id, servers) if isinstance(id, str) else id
        path = self.writable_file(name, self._source_file(agent, id))
        self._write(path, with_include(toml_file.file_text(path), path, id, include, servers))
        return path

    def set_value(self, name: str, key: str, value: Any) -> Path:
        """Write a setting, checked alone and together with the others. Returns the file."""
        agent, path = self.read(name), self.writable_file(name)
        key, typed = parse_agent_setting(key, value, str(path))
        text = with_setting(toml_file.file_text(path), path, key, typed)
        if key.startswith("context."):
            base = configuration.load(self.home, self.project)
            context = {**without_conflicts(base, agent).context, key: typed}
            with_agent_settings(base, replace(agent, context=context, origins={**agent.origins, key: str(path)}))
        if self.project and self.scope_of(path) == "project":
            self._accept(self.project, name, key, typed, path)
        self._write(path, text)
        return path

    def _write(self, path: Path, text: str) -> None:
        with private_home(self.home):
            toml_file.write(path, text)

    def create(self, name: str, *, in_project: bool = False, model: str = "", description: str = "") -> Path:
        """Make the folder of a new agent, in the user's home or in the project. Invalid if it exists."""
        check_agent_name(name)
        project = self.project or Path.cwd()
        folder = (project / ".recto" if in_project else self.home) / AGENTS_FOLDER / name
        with private_home(self.home):
            make_agent(folder, name, model, description)
        if in_project:
            self._accept(project, name, "model", model, folder / AGENT_FILE)
        return folder

    def unset(self, name: str, key: str) -> Path:
        """Remove a setting from the file that sets it, the project's first. Returns the file."""
        self.check(name)
        key = agent_spec(key, f"the agent {name}").key
        for place in reversed(self.folders):
            path = place.agent_folder(name) / AGENT_FILE
            if (text := without_setting(toml_file.file_text(path), path, key)) is not None:
                self._write(path, text)
                return path
        raise NotFound(f"the agent {name} does not set {key}: there is nothing to unset", key=key)

    def _source_file(self, agent: Agent, id: SourceId) -> str:
        """The file of a source. Raises NotFound if the agent does not have it."""
        noun, name = ("server", id.server) if id.kind == "tool" else (id.kind, id.name)
        servers = {BUILT_IN_SERVER: "", **{server.name: server.origin for server in agent.servers}}
        if id.kind == "tool" and id.server == BUILT_IN_SERVER and id.name:
            noun, name, files = "tool", id.name, dict.fromkeys(BUILT_IN_TOOLS, servers[BUILT_IN_SERVER])
        elif id.kind == "tool":
            files = servers
        else:
            files = {source.name: source.path for source in agent.texts if source.kind == id.kind}
            name = next((known for known in files if name_key(known) == name_key(id.name)), id.name)
        if name not in files:
            near = get_close_matches(name, files, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise NotFound(f"the agent {agent.name} has no {noun} {name}{hint}", name=name)
        return files[name]

    def writable_file(self, name: str, source: str = "") -> Path:
        """The agent.toml to change: the project's, if it exists, or if the source or the agent is only there; else the
        user's.
        """
        yours, last = self.folders[0], self.folders[-1]
        in_project = (
            os.path.isfile(last.agent_folder(name) / AGENT_FILE)
            or (last.has(name) and not yours.has(name))
            or (bool(source) and self.scope_of(source) == "project")
        )
        return (last if in_project else yours).agent_folder(name) / AGENT_FILE


def _project_settings(file: AgentFile, place: AgentsFolder, name: str, access: ProjectAccess) -> list[ProjectSetting]:
    folder = place.agent_folder(name)
    return [access.setting(key, value, file.path, folder, name) for key, value in file.values.items()]
