"""How a source comes in, as its agent's file says it: changed from the command line and from a chat alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from recto.agents.built_in import BUILT_IN
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
    """The source, or the server whose tools are all meant."""
    id, alone = SourceId.parse(name), name.partition(":")[2]
    if id.kind == "tool" and alone in servers:
        return alone
    if id.kind != "tool" or (id.server == OWN and id.name in BUILT_IN):
        return id
    return _tool(talk, id, alone)


def _tool(talk: "Talk", id: SourceId, alone: str) -> SourceId:
    """One that a server has, also by the name that models call it by. One of a server that cannot be reached may be
    any, and what is not offered may be named in the server's settings."""
    tools = {each.source.name: each.source.id for each in talk.sources([id.kind]).items}
    if id.server == OWN:
        ours = [SourceId(id.kind, each, OWN) for each in BUILT_IN]
        return tools.get(id.name) or _refuse(alone, [*tools.values(), *ours])
    theirs = [each for each in tools.values() if each.server == id.server]
    config = talk.agent.server(id.server)
    is_said = config is not None and id.name in config.tools
    return id if is_said or not theirs or id in theirs else _refuse(alone, theirs)


def _refuse(alone: str, known: Sequence[SourceId]) -> NoReturn:
    """NotFound, with the tool that may be meant: one of the same name first, whoever has it."""
    wanted = alone.rpartition("/")[2]
    by_name = {each.name: each for each in reversed(known)}
    near = get_close_matches(wanted, by_name, 1)
    hint = f"did you mean {by_name[near[0]]}?" if near else "`recto sources list --kind tool` shows what there is"
    raise NotFound(f"there is no tool {alone}; {hint}", name=alone)
