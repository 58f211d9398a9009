"""The sources page: rules, references and tools of a conversation and its agent, their modes, trust of servers."""

from typing import Any, ClassVar

from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.sources.source import BUILT_IN_SERVER, INCLUDES
from recto.sources.tool_definition import ToolChange
from recto.web.page import FullView

KINDS = {"rule": "Rules", "reference": "References", "tool": "Tools"}


class SourcesView(FullView):
    address = "/sources"
    template = "sources"
    fields: ClassVar = {"conversation": ""}
    _is_fresh = False
    _changes: tuple[ToolChange, ...] = ()
    """How the shown tools differ from those that the user allowed."""

    async def do_include(self, source: str, value: str) -> None:
        changed = await (await self._talk()).set_include(source, value)
        self.said = f"{changed.name} comes in {value} from the next message on: {changed.file}"

    async def do_add_source(self, source: str) -> None:
        status = await (await self._talk()).add_source(source)
        self.said = f"{status.source.id} goes with every message of this conversation from now on."

    async def do_remove_source(self, source: str) -> None:
        status = await (await self._talk()).remove_source(source)
        self.said = f"{status.source.id} is no longer included in this conversation."

    async def do_trust(self, server: str) -> None:
        config = await self.desk.trust(server, (await self._talk()).agent.name)
        self.said = f"{config.name} is trusted, and started when it is needed."

    async def do_distrust(self, server: str) -> None:
        config = await self.desk.distrust(server, (await self._talk()).agent.name)
        self.said = f"{config.name} is no longer trusted, and not started."

    async def do_accept_tools(self, server: str) -> None:
        """Accept the tools of a server as shown."""
        shown = [change for change in self._changes if change.after.server == server]
        await self.desk.accept_tools(shown)
        self.said = f"{counted(len(shown), 'tool')} of {server} accepted as shown."

    async def do_ask_servers(self) -> None:
        self._is_fresh = True

    async def _talk(self) -> AsyncTalk:
        found = await self.conversation()
        return found.talk if found else await self.desk.conversation()

    async def draw(self) -> None:
        await super().draw()
        self.said = ""

    async def values(self) -> dict[str, Any]:
        talk = await self._talk()
        fresh, self._is_fresh = self._is_fresh, False
        found = await talk.sources(fresh=fresh)
        self._changes = tuple(each.change for each in found.items if each.change)
        states = {status.name: status for status in self.desk.servers.statuses()}
        servers = [each for each in talk.agent.servers if each.name != BUILT_IN_SERVER]
        return {
            "choices": await self.choices(),
            "number": str(talk.number),
            "agent": talk.agent.name,
            "notes": found.notes,
            "modes": INCLUDES,
            "groups": {
                title: [each for each in found.items if each.source.kind == kind] for kind, title in KINDS.items()
            },
            "servers": [(each, each.runs, states.get(each.name)) for each in servers],
            "changed": {change.after.server for change in self._changes},
        }
