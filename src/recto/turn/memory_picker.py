"""MemoryPicker: memory files stand among the rules, in the stable part of the window.

Of those that would take too much of it, the sections that bear on the message come in front of it instead.
"""

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
from recto.sources.memory_files import NO_MEMORY, FoundMemory, MemoryFile, MemoryFiles, MemoryScope, untold_notes
from recto.sources.selection import MEMORY, Selection, StablePicks, sources_text
from recto.sources.source import Insert, Memory, Pick
from recto.turn.context import TurnContext
from recto.turn.session import ChatSession
from recto.turn.turn import Picker, Room, Turn, VolatilePicks
from recto.window.request import Entry

log = logging.getLogger(__name__)

STABLE_SHARE = 0.15
"""Of the room, for whole memory files."""
VOLATILE_SHARE = 0.20
"""Of what is unused, for sections of longer ones."""


class MemoryPicker(Picker):
    def __init__(self, files: MemoryFiles, chooser: Chooser, agents: Agents, turn: Turn) -> None:
        super().__init__()
        self._files, self._chooser, self._agents, self._turn = files, chooser, agents, turn
        self._sections: tuple[Memory, ...] = ()

    async def stable(self) -> StablePicks:
        if not self._turn.resolved.settings.memory_integration:
            return StablePicks()
        if self._turn.memory is None:
            found = await asyncio.to_thread(self._find)
        else:
            found = self._wanted(await self._turn.memory)
        named = _named(found.files)
        whole = await self._fitting(named)
        long = [(file, memory) for file, memory in named if memory not in whole]
        self._sections = tuple(section for file, memory in long for section in _sections(file, memory))
        chosen = tuple(Selection(memory, "always", file.because) for file, memory in named if memory in whole)
        notes = [
            f"{memory.name} is long for this window: only the sections that bear on a message are sent"
            for _, memory in long
        ]
        return StablePicks(memory=chosen, notes=tuple(await self._untold(found, (*found.notes, *notes))))

    async def _untold(self, found: FoundMemory, notes: Sequence[str]) -> Sequence[str]:
        """Once for each change of the files: they would come with every question. A draft shows them all."""
        project = self._turn.session.project
        if not notes or self._turn.is_draft or project is None:
            return notes
        return await asyncio.to_thread(untold_notes, self._agents.home, project, found.files, notes)

    def _find(self) -> FoundMemory:
        return self._wanted(read_memory(self._files, self._agents, self._turn.session))

    def _wanted(self, found: Mapping[MemoryScope, FoundMemory]) -> FoundMemory:
        settings = self._turn.resolved.settings
        switches: dict[MemoryScope, bool] = {
            "user": settings.use_user_memory,
            "agent": settings.use_agent_memory,
            "project": settings.use_project_memory,
        }
        return sum((found[scope] for scope, is_on in switches.items() if is_on), NO_MEMORY)

    async def _fitting(self, named: Sequence[tuple[MemoryFile, Memory]]) -> list[Memory]:
        """Those that are sent whole: the user's first, then the nearest."""
        cache, left = self._turn.resolved.token_cache, int(self._turn.resolved.room * STABLE_SHARE)
        counted = await cache.count([Entry("user", (Text(memory.text),)) for _, memory in named]) if named else []
        sizes = [(memory, each.count.tokens) for (_, memory), each in zip(named, counted, strict=True)]
        yours = [each for each, (file, _) in zip(sizes, named, strict=True) if file.scope != "project"]
        whole: list[Memory] = []
        for memory, tokens in (*yours, *(each for each in reversed(sizes) if each not in yours)):
            if tokens <= left:
                whole.append(memory)
                left -= tokens
        return whole

    @property
    def wants_room(self) -> bool:
        return bool(self._sections)

    async def volatile(self, message: Message, context: TurnContext, room: Room) -> VolatilePicks:
        """The sections of long files that bear on the message, the best first."""
        settings, text = context.settings, without_mentions(message.text)
        limits = ChoiceLimits(settings.top_k, settings.top_n, settings.include_score, settings.min_score)
        try:
            choice = await asyncio.to_thread(self._chooser.choose, text, self._sections, limits)
        except Exception as why:  # a chat never ends because of what it might have been told
            log.exception("choosing sections of memory failed")
            self.notes.append(f"no section of memory was chosen for this message ({type(why).__name__}: {why})")
            return VolatilePicks()
        left, included, sizes = int(room.unused * VOLATILE_SHARE), list[Selection](), list[int]()
        passed = [Selection(each.source, "agent", each.because, round(each.score, 2)).pick for each in choice.rejected]
        for each in choice.chosen:
            chosen = Selection(each.source, "agent", each.because, round(each.score, 2))
            tokens = await context.token_cache.tokens_of(chosen.text)
            if tokens <= left:
                included.append(chosen)
                sizes.append(tokens)
                left -= tokens
            else:
                why_not = f"takes {tokens} tokens, and {left} are left for memory; {chosen.because}"
                passed.append(replace(chosen.pick, because=why_not))
        return _inserted(included, sizes, passed)


def read_memory(files: MemoryFiles, agents: Agents, session: ChatSession) -> Mapping[MemoryScope, FoundMemory]:
    """All memory files of a conversation, also those that the settings switch off: a turn begins with it, before the
    settings are known."""
    folders, project = [folder for _, folder in agents.agent_folders(session.agent)], session.project
    gone = f"the folder of this conversation, {project}, is not there, nor is its memory"
    is_there = project is not None and os.path.isdir(project)
    return {
        "user": files.of_user(agents.home),
        "agent": files.of_agent(folders),
        "project": files.of_project(project) if project and is_there else FoundMemory(notes=(gone,) * bool(project)),
    }


def _inserted(included: Sequence[Selection], sizes: Sequence[int], passed: Sequence[Pick]) -> VolatilePicks:
    if not included:
        return VolatilePicks(passed=tuple(passed))
    picks = tuple(replace(each.pick, tokens=size) for each, size in zip(included, sizes, strict=True))
    insert = Insert("memory", sources_text(MEMORY, included), picks, tuple(each.text for each in included))
    return VolatilePicks((insert,), tuple(passed))


def _named(files: Sequence[MemoryFile]) -> list[tuple[MemoryFile, Memory]]:
    """Each file as a source; of two with one name, the later is known by its path."""
    named: dict[str, tuple[MemoryFile, Memory]] = {}
    for file in files:
        name = file.path if file.name in named else file.name
        named[name] = (file, Memory(name, file.text, include="always", path=file.path))
    return list(named.values())


def _sections(file: MemoryFile, memory: Memory) -> list[Memory]:
    found = {f"{memory.name} › {heading}" if heading else memory.name: text for heading, text in file.sections}
    return [Memory(name, text, include="agent", path=memory.path) for name, text in found.items()]
