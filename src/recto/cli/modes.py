"""How a source comes in, as its agent's file says it: changed from the command line and from a chat alike."""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from recto.errors import Invalid, NotFound
from recto.sources.source import INCLUDES, OWN, Include, SourceId

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Talk

HOW: dict[Include, str] = {"always": "always", "manual": "by hand", "agent": "when a message needs it"}


@dataclass(frozen=True, slots=True)
class Changed:
    name: str
    """As commands take it: `rule:style`, `tool:github/create_issue`, `tool:github` for all tools of a server."""
    include: Include
    agent: str
    file: Path

    def in_words(self) -> str:
        return f"{self.name} comes in {HOW[self.include]} from now on: {self.file} says so for agent {self.agent}"


def change(desk: "Desk", talk: "Talk", name: str, mode: str) -> Changed:
    """Writes the mode into the file of the talk's agent. NotFound for a source that the agent does not have."""
    include = next((each for each in INCLUDES if each == mode), None)
    if include is None:
        raise Invalid(f"{mode!r} is no mode: it is {', '.join(INCLUDES[:-1])} or {INCLUDES[-1]}", mode=mode)
    agent = talk.agent
    meant = _meant(talk, name, {OWN, *(each.name for each in agent.servers)})
    file = desk.agents.set_include(agent.name, meant, include)
    return Changed(str(meant) if isinstance(meant, SourceId) else f"tool:{meant}", include, agent.name, file)


def _meant(talk: "Talk", name: str, servers: set[str]) -> SourceId | str:
    """The source, or the server whose tools are all meant. A tool of a server that cannot be reached may be any."""
    id, alone = SourceId.parse(name), name.partition(":")[2]
    if id.kind != "tool":
        return id
    if alone in servers:
        return alone
    known = [each.source.id.name for each in talk.sources().items if each.source.id.server == id.server]
    if known and id.name not in known:
        near = get_close_matches(id.name, known, 1)
        hint = f"did you mean {near[0]}?" if near else "`recto sources list --kind tool` shows what there is"
        raise NotFound(f"{id.server} has no tool {id.name}; {hint}", name=name)
    return id
