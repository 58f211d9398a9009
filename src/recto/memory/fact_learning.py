"""FactLearner: after a reply, what the user said of lasting things becomes facts, or is proposed.

A model says in the background which sentences these are, and nobody waits for it: what it found is told with the next
message. Without such a model, or where it fails, wording decides, at once.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from recto.base.concurrency import TaskSet
from recto.chat.message import Message
from recto.errors import RectoError
from recto.events import Event, FactLearned, FactProposed, Noticed, Unanswered
from recto.memory.fact_memory import FactMemory, is_told_by
from recto.memory.fact_proposals import ProposedFact, is_worth_asking, proposal_order, supported_facts
from recto.memory.frequent_notes import FrequentNotes
from recto.memory.learning import learnable, own_statements
from recto.settings.settings import ContextSettings
from recto.store.store import Store
from recto.turn.context import TurnContext
from recto.turn.emitting import Emit
from recto.turn.planned_request import PlannedRequest
from recto.turn.preamble import build_preamble
from recto.turn.session import ChatSession
from recto.turn.side_call import SideCall, call_model, count_texts
from recto.vault.vault_search import OpenVaults
from recto.window.request import Parameters

log = logging.getLogger(__name__)

ASK, ON = "ask", "on"
LEARNED_BY = "Recto"
CONFIDENCE = 0.8
"""Nobody asked for it to be remembered."""
MOST_TOKENS, TIMEOUT_S = 600, 60.0


class FactLearner:
    def __init__(self, memory: FactMemory, store: Store, vaults: OpenVaults, home: Path) -> None:
        self._memory, self._store = memory, store
        self.frequent_notes = FrequentNotes(store, memory, vaults, home)
        self._tasks = TaskSet()
        self._untold: dict[str, list[Event]] = {}
        """By conversation, what was learned in the background."""
        self._proposed: dict[str, list[tuple[ProposedFact, str, str]]] = {}
        """By conversation, what the user is asked about after the next reply, with its message and model."""

    def untold(self, session: ChatSession) -> Sequence[Event]:
        """What was learned since the last message."""
        return self._untold.pop(session.conversation, ())

    async def learn(
        self, session: ChatSession, message: Message, planned: PlannedRequest, emit: Emit, *, can_ask: bool
    ) -> None:
        """Learns from the message of a turn that is over, as the settings say. Nothing that goes wrong here ends a
        turn."""
        settings = planned.context.settings
        if not _may_learn(settings, can_ask):
            return
        found = [(each, at, model) for each, at, model in self._proposed.pop(session.conversation, ())]
        said = message.text
        if settings.learn_by_model and _can_propose(planned.context):
            texts = [each.text for each in own_statements(said) if each.is_asked and not each.leans]
            if is_worth_asking(said):
                self._tasks.begin(self._propose(session, message, planned))
        else:
            texts = list(learnable(said))
        found += [(ProposedFact(text), message.id, LEARNED_BY) for text in _own(texts, planned)]
        await self._take(session, found, emit, asks=settings.learn_facts == ASK)

    async def _take(
        self, session: ChatSession, found: Iterable[tuple[ProposedFact, str, str]], emit: Emit, *, asks: bool
    ) -> None:
        for fact, message, learned_by in found:
            if asks:
                if not await asyncio.to_thread(self._is_news, fact.text):
                    continue
                proposed = FactProposed(fact.text)
                await emit(proposed)
                if not await _accepted(proposed):
                    continue
            try:
                learned = await asyncio.to_thread(
                    self._memory.learn,
                    fact.text,
                    fact.kind,
                    learned_by=learned_by,
                    conversation=session.conversation,
                    message=message,
                    confidence=CONFIDENCE,
                )
                await self._store.do(self._store.tree.learn, message, [str(learned.fact.number)])
            except RectoError as why:
                await emit(Noticed(f"not remembered: {why.message}"))
                return
            except Exception as why:  # the reply is there, whatever goes wrong here
                log.exception("learning from a message failed")
                await emit(Noticed(f"nothing was remembered ({type(why).__name__}: {why})"))
                return
            if learned.is_new:
                await emit(FactLearned(learned.fact.number, learned.fact.text))

    async def _propose(self, session: ChatSession, message: Message, planned: PlannedRequest) -> None:
        """Background work: asks the model, checks what it says, and learns it or keeps it for a question."""
        try:
            facts = await self._asked(session, message, planned.context)
        except RectoError as why:
            log.info("no facts were proposed: %s", why.message)
            facts = None
        except Exception:
            log.exception("proposing facts failed")
            return
        if facts is None:
            facts = [ProposedFact(each.text) for each in own_statements(message.text) if each.tells and not each.leans]
        own, model = set(_own([fact.text for fact in facts], planned)), planned.context.model.name
        found = [(fact, message.id, model) for fact in facts if fact.text in own]
        if planned.context.settings.learn_facts == ASK:
            self._proposed.setdefault(session.conversation, []).extend(found)
            return

        async def keep(event: Event) -> None:
            self._untold.setdefault(session.conversation, []).append(event)

        await self._take(session, found, keep, asks=False)

    async def _asked(self, session: ChatSession, message: Message, context: TurnContext) -> list[ProposedFact] | None:
        preamble = await build_preamble(context.token_cache, Parameters())
        order = (await count_texts(context, [proposal_order(message.text)]))[0]
        question = SideCall(context, preamble, (), order, "which facts the message states", MOST_TOKENS)
        if not question.fits:
            return None
        answer = await call_model(question, self._store, session, message.id, TIMEOUT_S, purpose="facts")
        return supported_facts(answer.text, message.text)

    def _is_news(self, text: str) -> bool:
        try:
            return self._memory.known(text) is None
        except RectoError:
            return True

    async def close(self) -> None:
        """Drops what is not proposed yet."""
        await self._tasks.close()
        await asyncio.to_thread(self.frequent_notes.close)


def _may_learn(settings: ContextSettings, can_ask: bool) -> bool:
    if not (settings.memory_integration and settings.use_facts):
        return False
    return settings.learn_facts == ON or (settings.learn_facts == ASK and can_ask)


def _can_propose(context: TurnContext) -> bool:
    """A weak model would propose junk, and one that answers one request at a time would keep the next message
    waiting."""
    return context.model.summarizes and not context.model.one_slot


def _own(texts: Iterable[str], planned: PlannedRequest) -> list[str]:
    """Without what the window told and the user only repeats: rules, memory, documents, facts."""
    instructed = planned.preamble.instructed
    sources = [each.text for each in (*instructed.rules, *instructed.references, *instructed.memory)]
    sources += [item.text for item, _ in planned.current.inserts]
    return [text for text in texts if not is_told_by(text, sources, [])]


async def _accepted(proposed: FactProposed) -> bool:
    try:
        return await proposed.answered()
    except Unanswered:
        return False
