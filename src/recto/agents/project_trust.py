"""Settings of a project's agents: which of them are used, and the user's trust in them and in the project's own."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from recto.agents.agent_file import AgentFile, read_agent_file
from recto.agents.agents_folder import AGENT_FILE, AgentsFolder, is_agent_name
from recto.base.file_cache import FileCache, stat_file
from recto.errors import NotFound
from recto.settings import settings as configuration
from recto.settings.project_access import ProjectAccess, ProjectSetting

if TYPE_CHECKING:
    from recto.agents.agents import Agents


def admitted_settings(file: AgentFile, place: AgentsFolder, name: str, home: Path) -> AgentFile:
    """The file of a project's agent with only what the project may set."""
    access = ProjectAccess(home, place.root)
    refused = {each.key: access.refusal(each) for each in _agent_settings(file, place, name, access)}
    values = {key: value for key, value in file.values.items() if not refused[key]}
    return replace(file, values=values, notes=(*file.notes, *filter(None, refused.values())))


def _agent_settings(file: AgentFile, place: AgentsFolder, name: str, access: ProjectAccess) -> list[ProjectSetting]:
    folder = place.agent_folder(name)
    return [access.setting(key, value, file.path, folder, name) for key, value in file.values.items()]


def accept_setting(home: Path, project: Path, path: Path, name: str, key: str, value: Any) -> None:
    """Who sets a value trusts it. Invalid for one that no project may set."""
    access = ProjectAccess(home, project)
    access.accept([access.setting(key, value, path, path.parent, name)])


def trust_settings(agents: "Agents", names: Sequence[str] = (), *, trusted: bool = True) -> list[ProjectSetting]:
    """Trusts what the project and its agents set, or stops to: everything that needs trust, or these names alone.

    An agent's setting is named AGENT/KEY."""
    if agents.project is None:
        raise NotFound("there is no project here: a folder with a .recto folder, or one inside of it")
    access = ProjectAccess(agents.home, agents.project)
    found = {each.name: each for each in _all_settings(agents, agents.project, access) if each.asks}
    chosen = [_named(name, found) for name in names] or [each for each in found.values() if not access.forbidden(each)]
    (access.accept if trusted else access.distrust)(chosen)
    return chosen


def _all_settings(agents: "Agents", project: Path, access: ProjectAccess) -> list[ProjectSetting]:
    found, cache = configuration.project_settings(agents.home, project), FileCache()
    for place in agents.folders[1:]:
        for name in filter(is_agent_name, place.names()):
            if entry := stat_file(place.agent_folder(name) / AGENT_FILE):
                file = cache.get(entry, AGENT_FILE, partial(read_agent_file, is_yours=False))
                found += _agent_settings(file, place, name, access)
    return found


def _named(name: str, found: dict[str, ProjectSetting]) -> ProjectSetting:
    if name not in found:
        known = ", ".join(found) or "nothing"
        raise NotFound(f"the project sets no {name} that needs trust; what needs trust: {known}", name=name)
    return found[name]
