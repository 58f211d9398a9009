"""FactLearner: after a reply, turns lasting statements of the user into facts, or proposes them, by their wording."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from recto.chat.message import Message
from recto.errors import RectoError
from recto.events import FactLearned, FactProposed, Noticed, Unanswered
from recto.memory.fact_memory import FactMemory, is_told_by
from recto.memory.frequent_notes import FrequentNotes
from recto.memory.statements import learnable
from recto.settings.settings import ContextSettings
from recto.store.store import Store
from recto.turn.emitting import Emit
from recto.turn.planned_request import PlannedRequest
from recto.turn.session import ChatSession
from recto.vault.vault_search import OpenVaults

log = logging.getLogger(__name__)

ASK, ON = "ask", "on"
LEARNED_BY = "Recto"
CONFIDENCE = 0.8
"""Lower than for facts that the user asked to remember."""


class FactLearner:
    def __init__(self, memory: FactMemory, store: Store, vaults: OpenVaults, home: Path) -> None:
        self._memory, self._store = memory, store
        self.frequent_notes = FrequentNotes(store, memory, vaults, home)

    async def learn(
        self, session: ChatSession, message: Message, planned: PlannedRequest, emit: Emit, *, can_ask: bool
    ) -> None:
        """Learn from the message of a finished turn, as the settings say. Failures never end the turn."""
        settings = planned.context.settings
        if not _may_learn(settings, can_ask):
            return
        try:
            for text in _own(learnable(message.text), planned):
                if settings.learn_facts == ON or await self._is_accepted(text, emit):
                    await self._learn(session, message, text, emit)
        except RectoError as why:
            await emit(Noticed(f"not remembered: {why.message}"))
        except Exception as why:  # the reply is complete; no failure here may affect it
            log.exception("learning from a message failed")
            await emit(Noticed(f"nothing was remembered ({type(why).__name__}: {why})"))

    async def _is_accepted(self, text: str, emit: Emit) -> bool:
        if await asyncio.to_thread(self._memory.known, text):
            return False
        proposed, is_accepted = FactProposed(text), False
        await emit(proposed)
        with suppress(Unanswered):
            is_accepted = await proposed.answered()
        return is_accepted

    async def _learn(self, session: ChatSession, message: Message, text: str, emit: Emit) -> None:
        learned = await asyncio.to_thread(
            self._memory.learn,
            text,
            learned_by=LEARNED_BY,
            conversation=session.conversation,
            message=message.id,
            confidence=CONFIDENCE,
        )
        await self._store.do(self._store.tree.learn, message.id, [str(learned.fact.number)])
        if learned.is_new:
            await emit(FactLearned(learned.fact.number, learned.fact.text))

    async def close(self) -> None:
        await asyncio.to_thread(self.frequent_notes.close)


def _may_learn(settings: ContextSettings, can_ask: bool) -> bool:
    if not (settings.memory_integration and settings.use_facts):
        return False
    return settings.learn_facts == ON or (settings.learn_facts == ASK and can_ask)


def _own(texts: Iterable[str], planned: PlannedRequest) -> list[str]:
    """Drop statements that the user only repeats from the window: rules, memory, documents, facts."""
    instructed = planned.preamble.instructed
    sources = [each.text for each in (*instructed.rules, *instructed.references, *instructed.memory)]
    sources += [item.text for item, _ in planned.current.inserts]
    return [text for text in texts if not is_told_by(text, sources)]
