"""Sources: rules, references and tools of a conversation and its agent, how each comes in, and the trust of servers."""

from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.sources.source import BUILT_IN_SERVER, INCLUDES
from recto.sources.tool_definition import ToolChange
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.templates import fill

KINDS = {"rule": "Rules", "reference": "References", "tool": "Tools"}


class SourcesView(FullView):
    title = "Sources"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._conversation, self._said = asked.get("c", ""), ""
        self.handlers = {
            "choose-conversation": self._choose,
            "include": self._include,
            "add-source": self._add,
            "remove-source": self._remove,
            "trust": self._trust,
            "distrust": self._distrust,
            "accept-tools": self._accept,
            "ask-servers": self._fresh,
        }
        self._is_fresh = False
        self._changes: list[ToolChange] = []

    async def _choose(self, deed: Deed) -> None:
        self._conversation = str(deed.get("value", ""))

    async def _include(self, deed: Deed) -> None:
        changed = await (await self._talk()).set_include(str(deed["source"]), str(deed["value"]))
        self._said = f"{changed.name} comes in {deed['value']} from the next message on: {changed.file}"

    async def _add(self, deed: Deed) -> None:
        status = await (await self._talk()).add_source(str(deed["source"]))
        self._said = f"{status.source.id} goes with every message of this conversation from now on."

    async def _remove(self, deed: Deed) -> None:
        status = await (await self._talk()).remove_source(str(deed["source"]))
        self._said = f"{status.source.id} goes along no longer in this conversation."

    async def _trust(self, deed: Deed) -> None:
        talk = await self._talk()
        config = await self.desk.trust(str(deed["server"]), talk.agent.name)
        self._said = f"{config.name} is trusted, and started when it is needed."

    async def _distrust(self, deed: Deed) -> None:
        talk = await self._talk()
        config = await self.desk.distrust(str(deed["server"]), talk.agent.name)
        self._said = f"{config.name} is no longer trusted, and not started."

    async def _accept(self, deed: Deed) -> None:
        """Accepts the tools of a server as they were shown."""
        shown = [change for change in self._changes if change.after.server == deed["server"]]
        await self.desk.accept_tools(shown)
        self._said = f"{counted(len(shown), 'tool')} of {deed['server']} accepted as shown."

    async def _fresh(self, deed: Deed) -> None:
        self._is_fresh = True

    async def _talk(self) -> AsyncTalk:
        found = await self.conversation(self._conversation)
        return found.talk if found else await self.desk.conversation()

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._list = Fragment("", self.act)

    async def draw(self) -> None:
        talk = await self._talk()
        fresh, self._is_fresh = self._is_fresh, False
        found = await talk.sources(fresh=fresh)
        self._changes = [each.change for each in found.items if each.change]
        agent = talk.agent
        choices = await self.choices()
        told = {"choices": choices, "number": talk.number, "agent": agent.name, "said": self._said}
        self._head.show(fill("sources", notes=found.notes, **told))
        groups = {title: [each for each in found.items if each.source.kind == kind] for kind, title in KINDS.items()}
        servers = [each for each in agent.servers if each.name != BUILT_IN_SERVER]
        states = {status.name: status for status in self.desk.servers.statuses()}
        rows = [(each, each.runs, states.get(each.name)) for each in servers]
        changed = {change.after.server for change in self._changes}
        self._list.show(fill("sources_list", groups=groups, servers=rows, modes=INCLUDES, changed=changed))
        self._said = ""
