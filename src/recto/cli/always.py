"""Always: what the user once let run without asking, taken back; for the command line and the chat alike."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recto.cli.revealed import revealed
from recto.errors import NotFound
from recto.sources.source import OWN

if TYPE_CHECKING:
    from recto.desk import Desk
    from recto.talk import Talk


@dataclass(frozen=True, slots=True)
class Taken:
    tool: str
    """A server, or `server/tool`."""
    unasked_by: str
    """The file that lets it run unasked all the same; empty where it asks."""

    @property
    def asks(self) -> bool:
        return not self.unasked_by

    def in_words(self) -> str:
        if self.asks:
            return f"{revealed(self.tool)} asks again before it runs"
        return f"{revealed(self.tool)} runs unasked all the same, as `approval` in {revealed(self.unasked_by)} says"


def take_back(desk: "Desk", talk: "Talk", named: str) -> Taken:
    """NotFound for what is neither allowed in the conversation nor of a server that the agent has."""
    tool = named.strip().removeprefix("tool:").strip('"')
    allowed = desk.engine.sourcing.session(talk.id or "").allowed
    # a tool alone is enough where only one was allowed
    meant = [each for each in allowed if each.partition("/")[2] == tool]
    tool = meant[0] if len(meant) == 1 else tool
    server, _, name = tool.partition("/")
    config = talk.agent.server(server)
    if config is None and server != OWN and tool not in allowed:
        known = ", ".join(allowed) or "nothing"
        raise NotFound(f"there is no tool {tool}; what was always allowed here: {known}", name=tool)
    talk.ask_again(tool)
    approval = (config.approval_of(name) if name else config.approval) if config else None
    return Taken(tool, config.origin if config and approval == "allow" else "")
