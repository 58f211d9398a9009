"""The memory page: search, edit and forget facts, with their origin."""

import asyncio
from typing import Any, ClassVar

from recto.errors import NotFound
from recto.store.fact import FACT_KINDS, MemoryFact, checked_kind
from recto.web.page import FullView

# Most facts listed.
MOST = 100


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
