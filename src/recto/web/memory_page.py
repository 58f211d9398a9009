"""Memory: facts that are remembered between conversations: searched, edited, forgotten, with where they are from."""

import asyncio

from msgspec import Struct

from recto.errors import NotFound
from recto.store.fact import FACT_KINDS, MemoryFact, checked_kind
from recto.web.components import Deed, Fragment
from recto.web.full_view import Asked, FullView
from recto.web.live import LiveConversations
from recto.web.page_desk import PageDesk
from recto.web.templates import fill

# Facts that are listed at once.
MOST = 100


class ShownFact(Struct, frozen=True):
    fact: MemoryFact
    because: str = ""
    """Why it was found."""
    conversation: int | None = None


class MemoryView(FullView):
    title = "Memory"

    def __init__(self, desk: PageDesk, live: LiveConversations, asked: Asked) -> None:
        super().__init__(desk, live, asked)
        self._search, self._kind, self._editing, self._said = "", "", 0, ""
        self.handlers = {
            "look": self._look,
            "choose-kind": self._choose,
            "edit-fact": self._edit,
            "save-fact": self._save,
            "forget-fact": self._forget,
            "add-fact": self._add,
        }

    async def _look(self, deed: Deed) -> None:
        self._search = str(deed.get("value", ""))

    async def _choose(self, deed: Deed) -> None:
        self._kind = str(deed.get("value", ""))

    async def _edit(self, deed: Deed) -> None:
        self._said, self._editing = "", int(deed.get("number") or 0)

    async def _save(self, deed: Deed) -> None:
        kind = checked_kind(str(deed.get("kind", "")))
        await asyncio.to_thread(self.desk.facts.edit, int(deed["number"]), str(deed.get("text", "")), kind)
        self._editing, self._said = 0, f"Fact {deed['number']} is changed."

    async def _forget(self, deed: Deed) -> None:
        gone = await asyncio.to_thread(self.desk.facts.forget, int(deed["number"]))
        self._said = f"Fact {gone.number} is forgotten: none of its words is kept."

    async def _add(self, deed: Deed) -> None:
        learned = await asyncio.to_thread(self.desk.facts.learn, str(deed.get("text", "")))
        self._said = f"Remembered as fact {learned.fact.number}."

    def build(self) -> None:
        self._head = Fragment("", self.act)
        self._list = Fragment("", self.act)

    async def draw(self) -> None:
        shown, note = await asyncio.to_thread(self._found)
        count = await asyncio.to_thread(lambda: self.desk.facts.count)
        told = {"search": self._search, "kind": self._kind, "kinds": FACT_KINDS, "count": count}
        self._head.show(fill("memory", said=self._said, note=note, **told))
        homes = {each.id: each.number for each in await self.desk.conversations(limit=MOST)}
        rows = [ShownFact(each.fact, each.because, homes.get(each.fact.conversation or "")) for each in shown]
        self._list.show(fill("memory_facts", rows=rows, editing=self._editing, kinds=FACT_KINDS))

    def _found(self) -> tuple[list[ShownFact], str]:
        facts, kind = self.desk.facts, checked_kind(self._kind) if self._kind else None
        if not self._search.strip():
            return [ShownFact(fact) for fact in facts.facts(kind, limit=MOST)], ""
        try:
            found, note = facts.search(self._search, MOST)
        except NotFound:
            return [], ""
        return [ShownFact(each.fact, each.because) for each in found if kind in (None, each.fact.kind)], note
