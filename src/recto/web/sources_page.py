"""The pages of what goes into windows besides messages. Sources: rules, references and tools of a conversation and its
agent, their modes, trust of servers. Memory: search, edit and forget facts, with their origin."""

import asyncio
from typing import Any, ClassVar

from recto.api.talk import AsyncTalk
from recto.base.text import counted
from recto.errors import NotFound
from recto.sources.source import BUILT_IN_SERVER, INCLUDES
from recto.sources.tool_definition import ToolChange
from recto.store.fact import FACT_KINDS, MemoryFact, checked_kind
from recto.web.page import FullView

# Most facts listed.
MOST = 100
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


class MemoryView(FullView):
    address = "/memory"
    template = "memory"
    fields: ClassVar = {"search": "", "kind": ""}
    _editing = 0

    async def do_edit_fact(self, number: int) -> None:
        """Edit a fact; 0 ends editing."""
        self.said, self._editing = "", number

    async def do_save_fact(self, number: int, text: str, kind: str) -> None:
        await asyncio.to_thread(self.desk.facts.edit, number, text, checked_kind(kind))
        self._editing, self.said = 0, f"Fact {number} is changed."

    async def do_forget_fact(self, number: int) -> None:
        gone = await asyncio.to_thread(self.desk.facts.forget, number)
        self.said = f"Fact {gone.number} is forgotten: none of its words is kept."

    async def do_add_fact(self, text: str) -> None:
        learned = await asyncio.to_thread(self.desk.facts.learn, text)
        self.said = f"Remembered as fact {learned.fact.number}."

    async def values(self) -> dict[str, Any]:
        rows, note, count = await asyncio.to_thread(self._found)
        homes = {each.id: each.number for each in await self.desk.conversations(limit=MOST)}
        found = {"rows": rows, "note": note, "count": count, "homes": homes}
        return found | {"kinds": FACT_KINDS, "editing": self._editing}

    def _found(self) -> tuple[list[tuple[MemoryFact, str]], str, int]:
        """Facts, each with the reason it was found; a note about the search; the number of facts."""
        facts, search = self.desk.facts, self.form["search"]
        kind = checked_kind(self.form["kind"]) if self.form["kind"] else None
        if not search.strip():
            return [(fact, "") for fact in facts.facts(kind, limit=MOST)], "", facts.count
        try:
            found, note = facts.search(search, MOST)
        except NotFound:
            return [], "", facts.count
        return [(each.fact, each.because) for each in found if kind in (None, each.fact.kind)], note, facts.count
