"""MemoryPicker: memory files go among the rules, in the stable part of the window.

For files too large for that, the sections that bear on the message go in front of it instead."""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from recto.agents.agents import Agents
from recto.chat.blocks import Text
from recto.chat.message import Message
from recto.sources.chooser import ChoiceLimits, Chooser
from recto.sources.documents import without_mentions
from recto.sources.memory_files import NO_MEMORY, FoundMemory, MemoryFile, MemoryFiles, MemoryScope
from recto.sources.selection import MEMORY, Selection, StablePicks
from recto.sources.source import Memory
from recto.turn.context import TurnContext
from recto.turn.session import ChatSession
from recto.turn.turn import Picker, Room, Turn, VolatilePicks, selections_inserted
from recto.window.request import Entry

log = logging.getLogger(__name__)

STABLE_SHARE = 0.15
"""Share of the room for whole memory files."""
VOLATILE_SHARE = 0.20
"""Share of the unused room for sections of longer ones."""


class MemoryPicker(Picker):
    def __init__(self, files: MemoryFiles, chooser: Chooser, agents: Agents, turn: Turn) -> None:
        super().__init__()
        self._files, self._chooser, self._agents, self._turn = files, chooser, agents, turn
        self._sections: list[Memory] = []

    async def stable(self) -> StablePicks:
        turn, settings = self._turn, self._turn.resolved.settings
        if not settings.memory_integration:
            return StablePicks()
        read = await asyncio.to_thread(read_memory, self._files, self._agents, turn.session)
        switches: dict[MemoryScope, bool] = {
            "user": settings.use_user_memory,
            "agent": settings.use_agent_memory,
            "project": settings.use_project_memory,
        }
        found = sum((read[scope] for scope, is_on in switches.items() if is_on), NO_MEMORY)
        named: dict[str, tuple[MemoryFile, Memory]] = {}
        for file in found.files:  # if two share a name, the later one is known by its path
            name = file.path if file.name in named else file.name
            named[name] = (file, Memory(name, file.text, include="always", path=file.path))
        whole = await self._fitting(list(named.values()))
        chosen, notes = list[Selection](), [*found.notes]
        for file, memory in named.values():
            if memory in whole:
                chosen.append(Selection(memory, "always", file.because))
                continue
            texts = {f"{memory.name} › {heading}" if heading else memory.name: text for heading, text in file.sections}
            self._sections += [Memory(name, text, include="agent", path=file.path) for name, text in texts.items()]
            notes.append(f"{memory.name} is long for this window: only the sections that bear on a message are sent")
        if notes and not turn.is_draft and (project := turn.session.project):
            # once per change of the files, not with every question; a draft shows all of them
            notes = [*self._files.untold_notes(project, found.files, notes)]
        return StablePicks(memory=tuple(chosen), notes=tuple(notes))

    async def _fitting(self, named: Sequence[tuple[MemoryFile, Memory]]) -> list[Memory]:
        """The files that are sent whole: the user's first, then the nearest."""
        cache, left = self._turn.resolved.token_cache, int(self._turn.resolved.room * STABLE_SHARE)
        counted = await cache.count([Entry("user", (Text(memory.text),)) for _, memory in named]) if named else []
        sized = [(*each, entry.count.tokens) for each, entry in zip(named, counted, strict=True)]
        yours = [each for each in sized if each[0].scope != "project"]
        whole: list[Memory] = []
        for _, memory, tokens in (*yours, *(each for each in reversed(sized) if each not in yours)):
            if tokens <= left:
                whole.append(memory)
                left -= tokens
        return whole

    @property
    def wants_room(self) -> bool:
        return bool(self._sections)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        """The relevant sections of long files, best first."""
        settings, text = context.settings, without_mentions(message.text)
        limits = ChoiceLimits(settings.top_k, settings.top_n, settings.include_score, settings.min_score)
        try:
            choice = await asyncio.to_thread(self._chooser.choose, text, self._sections, limits)
        except Exception as why:  # a chat must not fail because of memory
            log.exception("choosing sections of memory failed")
            self.notes.append(f"no section of memory was chosen for this message ({type(why).__name__}: {why})")
            return VolatilePicks()
        left, included, sizes = int(room.unused * VOLATILE_SHARE), list[Selection](), list[int]()
        scored = [Selection(each.source, "agent", each.because, round(each.score, 2)) for each in choice.chosen]
        passed = [Selection(each.source, "agent", each.because, round(each.score, 2)).pick for each in choice.rejected]
        for chosen in scored:
            tokens = await context.token_cache.tokens_of(chosen.text)
            if tokens <= left:
                included.append(chosen)
                sizes.append(tokens)
                left -= tokens
            else:
                why_not = f"takes {tokens} tokens, and {left} are left for memory; {chosen.because}"
                passed.append(replace(chosen.pick, because=why_not))
        return selections_inserted("memory", MEMORY, included, sizes, passed)


def read_memory(files: MemoryFiles, agents: Agents, session: ChatSession) -> Mapping[MemoryScope, FoundMemory]:
    """Includes files that settings switch off: the turn reads them before it knows the settings."""
    folders, project = [folder for _, folder in agents.agent_folders(session.agent)], session.project
    gone = f"the folder of this conversation, {project}, is not there, nor is its memory"
    is_there = project is not None and os.path.isdir(project)
    return {
        "user": files.of_user(agents.home),
        "agent": files.of_agent(folders),
        "project": files.of_project(project) if project and is_there else FoundMemory(notes=(gone,) * bool(project)),
    }
